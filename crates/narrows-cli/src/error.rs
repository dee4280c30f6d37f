//! Errors of the command: what failed, why, and what to try next.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// What an error means for the exit code and for callers that can handle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Failed,
    /// The command line parses but makes no sense.
    Usage,
    /// The input holds no packet of a known format.
    UnrecognizedInput,
    /// The reader of standard output has gone. This is not a failure.
    BrokenPipe,
    /// Another process writes the store.
    StoreLocked,
}

/// An error for the user, printed as `message; hint`.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl CliError {
    #[expect(clippy::needless_pass_by_value, reason = "callers pass literals, texts and errors")]
    pub(crate) fn new(message: impl ToString) -> CliError {
        CliError { kind: ErrorKind::Failed, message: message.to_string(), hint: None }
    }

    /// A command line that makes no sense; exits like one that cannot be parsed.
    pub(crate) fn usage(message: impl ToString) -> CliError {
        CliError::new(message).kind(ErrorKind::Usage)
    }

    /// Makes a closure for `map_err`: `cannot <action>: <error>`.
    pub(crate) fn cannot(action: impl fmt::Display) -> impl FnOnce(io::Error) -> CliError {
        move |error| {
            let message = format!("cannot {action}: {error}");
            CliError { message, ..CliError::from(error) }
        }
    }

    /// The error of a write to standard output.
    pub(crate) fn stdout(error: io::Error) -> CliError {
        CliError::cannot("write to standard output")(error)
    }

    /// Adds what the user can do about it.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass literals and texts")]
    pub(crate) fn hint(mut self, hint: impl ToString) -> CliError {
        self.hint = Some(hint.to_string());
        self
    }

    pub(crate) fn kind(mut self, kind: ErrorKind) -> CliError {
        self.kind = kind;
        self
    }

    pub(crate) fn is(&self, kind: ErrorKind) -> bool {
        self.kind == kind
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.kind {
            ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            ErrorKind::Failed | ErrorKind::StoreLocked => ExitCode::FAILURE,
            ErrorKind::Usage => ExitCode::from(2),
            ErrorKind::UnrecognizedInput => ExitCode::from(3),
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => ErrorKind::BrokenPipe,
            _ => ErrorKind::Failed,
        };
        CliError::new(error).kind(kind)
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}
