//! An agent of launchd.

use super::State;
use super::tool::{Tools, Why};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

pub(super) const LABEL: &str = "dev.narrows";
/// What the server says, below the home directory.
pub(super) const LOG: &str = "Library/Logs/narrows.log";
pub(super) const RESTART: &str = "launchctl kickstart -k gui/$(id -u)/dev.narrows";

/// A server that cannot start ends within this time.
const TRIAL: Duration = Duration::from_millis(400);
/// `bootout` answers before the old one is gone, and until then `bootstrap` fails.
const TRIES: u32 = 10;

pub(super) fn by_hand(file: &Path) -> String {
    let file = file.display().to_string().replace('\'', r"'\''");
    format!("  launchctl bootstrap gui/$(id -u) '{file}'")
}

/// The user's own services: whoever wrote the file.
fn domain(file: &Path) -> Result<String, Why> {
    let uid =
        fs::metadata(file).map_err(|e| Why::Failed(format!("{}: {e}", file.display())))?.uid();
    Ok(format!("gui/{uid}"))
}

/// Starts it, now and at every login; `again` if it may run from another file.
pub(super) fn start(tools: &Tools, file: &Path, again: bool) -> Result<(), Why> {
    let domain = domain(file)?;
    let service = format!("{domain}/{LABEL}");
    let path = file.display().to_string();
    if tools.ask("launchctl", &["print", &service])?.well {
        if !again {
            return Ok(());
        }
        tools.must("launchctl", &["bootout", &service])?;
    }
    // Somebody may have disabled it: that outlives its file.
    tools.must("launchctl", &["enable", &service])?;
    let mut tried = 0;
    loop {
        match tools.must("launchctl", &["bootstrap", &domain, &path]) {
            Err(Why::Failed(_)) if again && tried < TRIES => {
                tried += 1;
                sleep(Duration::from_millis(200));
            }
            Err(why) => return Err(why),
            Ok(()) => break,
        }
    }
    sleep(TRIAL);
    Ok(())
}

pub(super) fn state(tools: &Tools, file: &Path) -> State {
    let asked = domain(file)
        .and_then(|domain| tools.ask("launchctl", &["print", &format!("{domain}/{LABEL}")]));
    match asked {
        Ok(answer) if !answer.well => State::Stopped("not loaded".to_owned()),
        Ok(answer) => {
            let state = answer.out.lines().find_map(|l| l.trim().strip_prefix("state = "));
            match state.unwrap_or("unknown") {
                "running" => State::Running,
                word => State::Stopped(word.to_owned()),
            }
        }
        Err(why) => State::Unknown(why),
    }
}

pub(super) fn stop(tools: &Tools, file: &Path) -> Result<(), Why> {
    let service = format!("{}/{LABEL}", domain(file)?);
    if !tools.ask("launchctl", &["print", &service])?.well {
        return Ok(());
    }
    tools.must("launchctl", &["bootout", &service])
}
