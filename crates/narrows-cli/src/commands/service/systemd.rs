//! A user unit of systemd.

use super::tool::{Tools, Why};
use super::{State, file};
use crate::Fault;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

pub(super) const UNIT: &str = "narrows.service";
pub(super) const BY_HAND: &str = "  systemctl --user daemon-reload\n  \
     systemctl --user enable narrows.service\n  \
     systemctl --user restart narrows.service";
pub(super) const RESTART: &str = "systemctl --user restart narrows.service";
pub(super) const LINGER: &str =
    "It ends with your last logout. To have it run without a login: loginctl enable-linger";
pub(super) const TELLS_WHY: &str = "`journalctl --user -u narrows.service` tells why";

/// A server that cannot start ends within this time.
const TRIAL: Duration = Duration::from_millis(400);

fn must(tools: &Tools, words: &[&str]) -> Result<(), Why> {
    tools.must("systemctl", &[&["--user"], words].concat())
}

/// Starts it, now and at every login; `again` if it may run from another file.
pub(super) fn start(tools: &Tools, again: bool) -> Result<(), Why> {
    must(tools, &["daemon-reload"])?;
    if again {
        must(tools, &["enable", UNIT])?;
        must(tools, &["restart", UNIT])?;
    } else {
        must(tools, &["enable", "--now", UNIT])?;
    }
    sleep(TRIAL);
    Ok(())
}

pub(super) fn state(tools: &Tools) -> State {
    match tools.ask("systemctl", &["--user", "is-active", UNIT]) {
        Ok(answer) => match answer.out.as_str() {
            "active" | "reloading" => State::Running,
            "" => State::Unknown(Why::Failed(answer.err)),
            word => State::Stopped(word.to_owned()),
        },
        Err(why) => State::Unknown(why),
    }
}

/// Whether it starts at login, where that can be told.
pub(super) fn at_login(tools: &Tools) -> Option<bool> {
    let answer = tools.ask("systemctl", &["--user", "is-enabled", UNIT]).ok()?;
    match answer.out.as_str() {
        "" => None,
        word => Some(word.starts_with("enabled")),
    }
}

pub(super) fn stop(tools: &Tools) -> Result<(), Why> {
    must(tools, &["disable", "--now", UNIT])
}

/// Lets systemd know that the file is gone.
pub(super) fn forget(tools: &Tools, config: &Path) -> Result<(), Fault> {
    // `disable` removes this link, but it needs a manager that runs.
    file::remove(&config.join("systemd/user/default.target.wants").join(UNIT))?;
    // The unit is gone either way: what these two say changes nothing.
    let _ = must(tools, &["daemon-reload"]);
    let _ = must(tools, &["reset-failed", UNIT]);
    Ok(())
}
