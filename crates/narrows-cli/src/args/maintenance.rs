//! Commands that look after the store and the installation.

use super::{DataArgs, LocalStoreArgs, RedactionArgs, RetentionArgs};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct IndexArgs {
    /// Keep importing until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    pub(crate) command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install and start the service
    Install {
        #[command(flatten)]
        data: DataArgs,
        /// Write the unit file but do not start the service
        #[arg(long)]
        no_start: bool,
        /// Print the unit file instead of installing it
        #[arg(long)]
        print: bool,
    },
    /// Show whether the service runs
    Status,
    /// Stop the service and remove its unit file
    Remove,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) retention: RetentionArgs,
    /// Delete only sessions with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Print what would be deleted, but delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// Backup file to create
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Backup file to restore
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// Print what would be recovered and lost, but change nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write one page per command into this directory instead
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

pub(super) const INDEX_HELP: &str = "\
Commands that show sessions do this by themselves. Sessions are read incrementally: what was
imported before is not read again.

Examples:
  narrows index
  narrows index --follow
      Import sessions as they are written";

pub(super) const SERVICE_HELP: &str = "\
Installs `narrows serve` as a systemd user unit or a launchd agent, so that sessions are imported
before the agent deletes them (Claude Code does after 30 days).

Examples:
  narrows service install
  narrows service status
  narrows service remove
      Stored sessions stay";

pub(super) const DOCTOR_HELP: &str = "\
Exits with 1 if something needs attention.

Examples:
  narrows doctor
  narrows doctor --json | jq .attention";

pub(super) const PRUNE_HELP: &str = "\
Examples:
  narrows prune --retain-days 30 --dry-run
      What would be deleted
  narrows prune --retain-bytes 5G --retain-tag important
      Delete the oldest sessions beyond 5 GiB of logs, but none with this tag
  narrows prune --retain-days 0 --tag scratch
      Delete all sessions with this tag";

pub(super) const BACKUP_HELP: &str = "\
A backup is a consistent snapshot of one moment. Restoring starts a new log epoch for every
session; connected clients receive `reset` and reload. The replaced store is kept as
narrows.db.before-….

Examples:
  narrows backup narrows-2026-11-16.db
  narrows restore narrows-2026-11-16.db
      Stop the server first";

pub(super) const REPAIR_HELP: &str = "\
Copies every intact row into a new database, then replaces the old one. Lost events are replaced
with an event that says so, and the items of those sessions are rebuilt from the rest of the log;
clients reload them. Intact sessions do not change. The old database is kept as
narrows.db.before-…; delete it when you are sure that nothing is missing. An intact store is not
changed.

Needs as much free disk space as the store uses. It can be interrupted and started again at any
time. Exits with 1 if the store cannot be repaired, or with --check if it is damaged.

Examples:
  narrows repair
      Stop the server first
  narrows repair --check
      Report only
  narrows repair --json | jq .sessions
      The sessions that lost something";

pub(super) const COMPLETIONS_HELP: &str = "\
Examples:
  narrows completions bash > ~/.local/share/bash-completion/completions/narrows
  narrows completions zsh > ~/.zfunc/_narrows
  narrows completions fish > ~/.config/fish/completions/narrows.fish";

pub(super) const MAN_HELP: &str = "\
Examples:
  narrows man | man -l -
  narrows man --dir ~/.local/share/man/man1";
