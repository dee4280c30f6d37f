//! What is typed to repair a store.

use super::DataArgs;

pub(super) const REPAIR_EXAMPLES: &str = "\
Copies every row that is as it was written into a new database, and puts that in the place of the
old one when it is whole. Where events are lost, an event says so; the items of such a session are
completed from what is left of its log, and whoever follows it is told to read it again. Sessions
that were not hit are as they were. The old database is kept beside the new one as
narrows.db.before-…: delete it when nothing is missed. A store that is whole stays as it is.

It needs as much room on the disk as the store. It can be stopped at any time: either the old store
or the new one is there, and it can be started again.

Exits with 0 when the store is whole now, whatever was lost; with --check, with 1 when something is
damaged. Else with 1: nothing was changed then.

Examples:
  narrows repair
      Stop the server first
  narrows repair --check
      What would be kept and what is lost; changes nothing
  narrows repair --json | jq .sessions
      The same for a program: the sessions of which something is lost";

#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Only tell what would be kept and what is lost
    #[arg(long)]
    pub(crate) check: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
