//! Runs `systemctl` and `launchctl`.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// The service manager of this user.
#[derive(Debug, Default)]
pub(super) struct ServiceManager {
    /// Overrides `PATH`.
    pub(super) path: Option<OsString>,
}

#[derive(Debug)]
pub(super) struct CommandOutput {
    pub(super) success: bool,
    pub(super) out: String,
    pub(super) err: String,
}

#[derive(Debug)]
pub(super) enum ManagerError {
    /// The program is not installed.
    Missing(String),
    /// The program is installed, but no manager of this user's services runs.
    NoManager(String),
    /// The command failed with this message.
    Failed(String),
}

impl fmt::Display for ManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManagerError::Missing(program) => write!(f, "{program} is not installed"),
            ManagerError::NoManager(message) => {
                write!(f, "this login has no service manager ({message})")
            }
            ManagerError::Failed(message) => f.write_str(message),
        }
    }
}

/// Parts of the messages of systemctl and launchctl if no manager of this user's services runs.
const NO_MANAGER_MESSAGES: &[&str] = &[
    "Failed to connect to bus",
    "scope bus",
    "D-Bus connection",
    "not been booted with systemd",
    "Domain does not support specified action",
    "Could not find domain",
];

impl ServiceManager {
    /// Runs a command and returns its output, whether it succeeded or not.
    pub(super) fn query(
        &self,
        program: &str,
        args: &[&str],
    ) -> Result<CommandOutput, ManagerError> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null());
        // The output is parsed, so it must not be localized.
        command.env("LC_ALL", "C").env("SYSTEMD_PAGER", "").env("SYSTEMD_COLORS", "0");
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        let output = command.output().map_err(|e| match e.kind() {
            ErrorKind::NotFound => ManagerError::Missing(program.to_owned()),
            _ => ManagerError::Failed(format!("{program}: {e}")),
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        if !output.status.success() && NO_MANAGER_MESSAGES.iter().any(|text| err.contains(text)) {
            return Err(ManagerError::NoManager(first_line(&err)));
        }
        Ok(CommandOutput { success: output.status.success(), out, err })
    }

    /// Runs a command that must succeed.
    pub(super) fn run(&self, program: &str, args: &[&str]) -> Result<(), ManagerError> {
        let output = self.query(program, args)?;
        if output.success {
            return Ok(());
        }
        let message =
            if output.err.is_empty() { "failed".to_owned() } else { first_line(&output.err) };
        Err(ManagerError::Failed(format!("{program} {}: {message}", args.join(" "))))
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
