//! Asking the service manager: the one place of this command that starts a process.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// The programs that are asked.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Where they are looked for, if not where everything is.
    pub(super) path: Option<OsString>,
}

/// What a program answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) well: bool,
    pub(super) out: String,
    pub(super) err: String,
}

/// Why nothing was done.
#[derive(Debug)]
pub(super) enum Why {
    /// There is no such program.
    Missing(String),
    /// It is there, but has nobody to talk to.
    Nobody(String),
    /// It tried and failed, with these words.
    Failed(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Missing(program) => write!(f, "there is no {program} on this system"),
            Why::Nobody(words) => write!(f, "this login has no service manager ({words})"),
            Why::Failed(words) => f.write_str(words),
        }
    }
}

/// What systemctl and launchctl say when there is no manager of this user's services.
const NOBODY: &[&str] = &[
    "Failed to connect to bus",
    "scope bus",
    "D-Bus connection",
    "not been booted with systemd",
    "Domain does not support specified action",
    "Could not find domain",
];

impl Tools {
    /// Runs a program and waits for its answer, whatever that is.
    pub(super) fn ask(&self, program: &str, words: &[&str]) -> Result<Answer, Why> {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null());
        // Its words are read here, so they must be in the language that is known here.
        command.env("LC_ALL", "C").env("SYSTEMD_PAGER", "").env("SYSTEMD_COLORS", "0");
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        let output = command.output().map_err(|e| match e.kind() {
            ErrorKind::NotFound => Why::Missing(program.to_owned()),
            _ => Why::Failed(format!("{program}: {e}")),
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        if !output.status.success() && NOBODY.iter().any(|said| err.contains(said)) {
            return Err(Why::Nobody(first(&err)));
        }
        Ok(Answer { well: output.status.success(), out, err })
    }

    /// The same, where any other answer than success is a failure.
    pub(super) fn must(&self, program: &str, words: &[&str]) -> Result<(), Why> {
        let answer = self.ask(program, words)?;
        if answer.well {
            return Ok(());
        }
        let said = if answer.err.is_empty() { "it failed".to_owned() } else { first(&answer.err) };
        Err(Why::Failed(format!("{program} {}: {said}", words.join(" "))))
    }
}

fn first(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
