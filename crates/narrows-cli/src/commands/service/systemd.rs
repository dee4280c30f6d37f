//! The service as a systemd user unit.

use super::manager::{ManagerError, ServiceManager};
use super::{ServiceState, unit_file};
use crate::error::CliError;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

pub(super) const UNIT: &str = "narrows.service";
pub(super) const MANUAL_START: &str = "  systemctl --user daemon-reload\n  \
     systemctl --user enable narrows.service\n  \
     systemctl --user restart narrows.service";
pub(super) const RESTART_COMMAND: &str = "systemctl --user restart narrows.service";
pub(super) const LINGER_HINT: &str =
    "It ends with your last logout. To run it without a login: loginctl enable-linger";
pub(super) const LOG_HINT: &str = "see `journalctl --user -u narrows.service`";

/// A server that cannot start exits within this time.
const STARTUP_CHECK_DELAY: Duration = Duration::from_millis(400);

fn systemctl(manager: &ServiceManager, args: &[&str]) -> Result<(), ManagerError> {
    manager.run("systemctl", &[&["--user"], args].concat())
}

/// Starts the service now and at every login; restarts it if its unit file has changed.
pub(super) fn start(manager: &ServiceManager, restart: bool) -> Result<(), ManagerError> {
    systemctl(manager, &["daemon-reload"])?;
    if restart {
        systemctl(manager, &["enable", UNIT])?;
        systemctl(manager, &["restart", UNIT])?;
    } else {
        systemctl(manager, &["enable", "--now", UNIT])?;
    }
    sleep(STARTUP_CHECK_DELAY);
    Ok(())
}

pub(super) fn state(manager: &ServiceManager) -> ServiceState {
    match manager.query("systemctl", &["--user", "is-active", UNIT]) {
        Ok(output) => match output.out.as_str() {
            "active" | "reloading" => ServiceState::Running,
            "" => ServiceState::Unknown(ManagerError::Failed(output.err)),
            word => ServiceState::Stopped(word.to_owned()),
        },
        Err(error) => ServiceState::Unknown(error),
    }
}

/// Whether the service starts at login; none if systemd does not say.
pub(super) fn starts_at_login(manager: &ServiceManager) -> Option<bool> {
    let output = manager.query("systemctl", &["--user", "is-enabled", UNIT]).ok()?;
    match output.out.as_str() {
        "" => None,
        word => Some(word.starts_with("enabled")),
    }
}

pub(super) fn stop(manager: &ServiceManager) -> Result<(), ManagerError> {
    systemctl(manager, &["disable", "--now", UNIT])
}

/// Cleans up after the unit file was removed.
pub(super) fn unregister(manager: &ServiceManager, config: &Path) -> Result<(), CliError> {
    // `disable` removes this link, but only if a manager runs.
    unit_file::remove(&config.join("systemd/user/default.target.wants").join(UNIT))?;
    // The unit is gone either way, so errors do not matter.
    let _ = systemctl(manager, &["daemon-reload"]);
    let _ = systemctl(manager, &["reset-failed", UNIT]);
    Ok(())
}
