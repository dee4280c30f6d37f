//! Standard output, through a pager if it is a terminal.

use crate::error::{CliError, ErrorKind};
use std::env;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The exit code of a shell for a command that does not exist.
const COMMAND_NOT_FOUND: i32 = 127;
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output, or a pager that writes to it.
#[derive(Debug)]
pub(crate) enum PagedOutput {
    Direct(BufWriter<StdoutLock<'static>>),
    Pager(BufWriter<ChildStdin>, Child),
}

impl PagedOutput {
    /// Starts a pager if `use_pager` is set and standard output is a terminal that can show one.
    pub(crate) fn new(use_pager: bool) -> PagedOutput {
        let is_dumb = env::var_os("TERM").is_none_or(|t| t == "dumb");
        if use_pager
            && io::stdout().is_terminal()
            && !is_dumb
            && let Some(mut child) = pager_command().and_then(|mut pager| pager.spawn().ok())
            && let Some(input) = child.stdin.take()
        {
            return PagedOutput::Pager(BufWriter::with_capacity(BUFFER_BYTES, input), child);
        }
        PagedOutput::Direct(BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()))
    }

    /// Flushes and waits for the pager to exit. A user who quits the pager early is not an error.
    pub(crate) fn finish(self, result: Result<(), CliError>) -> Result<(), CliError> {
        let (flushed, child) = match self {
            PagedOutput::Direct(mut out) => (out.flush(), None),
            PagedOutput::Pager(mut out, child) => {
                let flushed = out.flush();
                // Dropping the writer would flush again; the pager exits when its input is closed.
                let (input, _) = out.into_parts();
                drop(input);
                (flushed, Some(child))
            }
        };
        let result = result.and(flushed.map_err(CliError::stdout));
        if let Some(mut child) = child
            && child.wait().is_ok_and(|status| status.code() == Some(COMMAND_NOT_FOUND))
        {
            return Err(CliError::new("cannot run $PAGER").hint("use --no-pager"));
        }
        match result {
            Err(error) if error.is(ErrorKind::BrokenPipe) => Ok(()),
            result => result,
        }
    }
}

impl Write for PagedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PagedOutput::Direct(out) => out.write(bytes),
            PagedOutput::Pager(out, _) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            PagedOutput::Direct(out) => out.flush(),
            PagedOutput::Pager(out, _) => out.flush(),
        }
    }
}

/// `$PAGER`, else `less`; none if `$PAGER` is empty or `cat`.
fn pager_command() -> Option<Command> {
    let variable = env::var("PAGER").ok();
    let mut command = match variable.as_deref().map(str::trim) {
        Some("" | "cat") => return None,
        // It may have options, so a shell splits it.
        Some(pager) if cfg!(unix) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(pager);
            command
        }
        Some(pager) => Command::new(pager),
        None => {
            let mut command = Command::new("less");
            command.arg("-FRX");
            command
        }
    };
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    if env::var_os("LESSCHARSET").is_none() {
        command.env("LESSCHARSET", "utf-8");
    }
    command.stdin(Stdio::piped());
    Some(command)
}
