//! The service as a launchd agent.

use super::ServiceState;
use super::manager::{ManagerError, ServiceManager};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

pub(super) const LABEL: &str = "dev.narrows";
/// The log file, relative to the home directory.
pub(super) const LOG_FILE: &str = "Library/Logs/narrows.log";
pub(super) const RESTART_COMMAND: &str = "launchctl kickstart -k gui/$(id -u)/dev.narrows";

/// A server that cannot start exits within this time.
const STARTUP_CHECK_DELAY: Duration = Duration::from_millis(400);
/// `bootout` returns before the old service has exited, and until then `bootstrap` fails.
const MAX_BOOTSTRAP_ATTEMPTS: u32 = 10;
const BOOTSTRAP_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The command that starts the service.
pub(super) fn manual_start(file: &Path) -> String {
    let file = file.display().to_string().replace('\'', r"'\''");
    format!("  launchctl bootstrap gui/$(id -u) '{file}'")
}

/// The service domain of the user who owns the file.
fn domain(file: &Path) -> Result<String, ManagerError> {
    let uid = fs::metadata(file)
        .map_err(|e| ManagerError::Failed(format!("{}: {e}", file.display())))?
        .uid();
    Ok(format!("gui/{uid}"))
}

/// Starts the service now and at every login; restarts it if its plist has changed.
pub(super) fn start(
    manager: &ServiceManager,
    file: &Path,
    restart: bool,
) -> Result<(), ManagerError> {
    let domain = domain(file)?;
    let service = format!("{domain}/{LABEL}");
    let path = file.display().to_string();
    if manager.query("launchctl", &["print", &service])?.success {
        if !restart {
            return Ok(());
        }
        manager.run("launchctl", &["bootout", &service])?;
    }
    // A disabled service stays disabled even if its plist is removed.
    manager.run("launchctl", &["enable", &service])?;
    let mut attempts = 0;
    loop {
        match manager.run("launchctl", &["bootstrap", &domain, &path]) {
            Err(ManagerError::Failed(_)) if restart && attempts < MAX_BOOTSTRAP_ATTEMPTS => {
                attempts += 1;
                sleep(BOOTSTRAP_RETRY_DELAY);
            }
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    sleep(STARTUP_CHECK_DELAY);
    Ok(())
}

pub(super) fn state(manager: &ServiceManager, file: &Path) -> ServiceState {
    let printed = domain(file)
        .and_then(|domain| manager.query("launchctl", &["print", &format!("{domain}/{LABEL}")]));
    match printed {
        Ok(output) if !output.success => ServiceState::Stopped("not loaded".to_owned()),
        Ok(output) => {
            let state = output.out.lines().find_map(|l| l.trim().strip_prefix("state = "));
            match state.unwrap_or("unknown") {
                "running" => ServiceState::Running,
                word => ServiceState::Stopped(word.to_owned()),
            }
        }
        Err(error) => ServiceState::Unknown(error),
    }
}

pub(super) fn stop(manager: &ServiceManager, file: &Path) -> Result<(), ManagerError> {
    let service = format!("{}/{LABEL}", domain(file)?);
    if !manager.query("launchctl", &["print", &service])?.success {
        return Ok(());
    }
    manager.run("launchctl", &["bootout", &service])
}
