//! What others run on such files. `scripts/bench-index` installs them and tells where they are.

use super::place::Place;
use std::path::Path;
use std::process::Command;

/// Reads all sessions into its own database, in this process and without a network.
pub(crate) fn agentsview(place: &Place, data: &Path) -> Option<Command> {
    let mut command = place.command(std::env::var_os("AGENTSVIEW")?);
    command.arg("sync").env("CLAUDE_PROJECTS_DIR", place.projects());
    command.env("AGENTSVIEW_DATA_DIR", data).env("AGENTSVIEW_NO_DAEMON", "1");
    command.env("AGENTSVIEW_TELEMETRY_ENABLED", "0").env("AGENTSVIEW_DISABLE_UPDATE_CHECK", "1");
    Some(command)
}

/// Makes pages of all sessions, beside them.
pub(crate) fn claude_code_log(place: &Place) -> Option<Command> {
    let mut command = place.command(std::env::var_os("CLAUDE_CODE_LOG")?);
    command.arg(place.projects()).arg("--all-projects");
    Some(command)
}
