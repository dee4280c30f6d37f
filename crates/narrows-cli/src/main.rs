//! The `narrows` command, the only crate that prints.
//!
//! `args` parses, `commands` does the work; both rest on `config`, `client` (a running server) and
//! `local_store` (no server). `acp` and `supervise` are processes of their own.

mod acp;
mod args;
mod client;
mod commands;
mod config;
mod error;
mod input;
mod local_store;
mod output;
mod runtime;
mod supervise;

use args::Command;
use error::{CliError, ErrorKind};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::parse();
    let result = match &args.command {
        // These three choose their own exit codes.
        Command::Acp(args) => return acp::run(args),
        Command::Run(args) => return commands::run::run(args),
        Command::Supervise(args) => return supervise::run(args),
        Command::Ls(args) => commands::ls::run(args).map(|()| true),
        Command::Show(args) => commands::show::run(args).map(|()| true),
        Command::Search(args) => commands::search::run(args),
        Command::Watch(args) => commands::watch::run(args).map(|()| true),
        Command::Export(args) => commands::export::run(args).map(|()| true),
        Command::Stats(args) => commands::stats::run(args).map(|()| true),
        Command::Rm(args) => commands::rm::run(args).map(|()| true),
        Command::Demo(args) => commands::demo::run(args).map(|()| true),
        Command::Serve(args) => commands::serve::run(args).map(|()| true),
        Command::LoginUrl(args) => commands::token::login_url(args).map(|()| true),
        Command::Token(args) => commands::token::run(args).map(|()| true),
        Command::Ingest(args) => commands::ingest::run(args).map(|()| true),
        Command::Openapi => commands::serve::openapi().map(|()| true),
        Command::Agents(args) => commands::agents::run(args).map(|()| true),
        Command::Parse(args) => commands::parse::run(args).map(|()| true),
        Command::Sanitize(args) => commands::sanitize::run(args).map(|()| true),
        Command::Check(args) => commands::check::run(args),
        Command::Usage(args) => commands::usage::run(args).map(|()| true),
        Command::Index(args) => commands::index::run(args).map(|()| true),
        Command::Service(args) => commands::service::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Prune(args) => commands::prune::run(args).map(|()| true),
        Command::Backup(args) => commands::backup::backup(args).map(|()| true),
        Command::Restore(args) => commands::backup::restore(args).map(|()| true),
        Command::Repair(args) => commands::repair::run(args),
        Command::Completions(args) => commands::completions::completions(args).map(|()| true),
        Command::Man(args) => commands::completions::man(args).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            if !error.is(ErrorKind::BrokenPipe) {
                report(&error);
            }
            error.exit_code()
        }
    }
}

/// Prints an error. There is nothing to do if standard error is gone.
fn report(error: &CliError) {
    let _ = writeln!(std::io::stderr(), "narrows: {error}");
}
