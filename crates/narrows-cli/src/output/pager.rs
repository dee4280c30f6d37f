//! Standard output, through a pager where somebody reads.

use crate::{Fault, fault};
use std::env;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// What a shell says of a command that is not there.
const NOT_FOUND: i32 = 127;

/// Where a session is written to.
#[derive(Debug)]
pub(crate) enum Output {
    Plain(BufWriter<StdoutLock<'static>>),
    Paged(BufWriter<ChildStdin>, Child),
}

impl Output {
    /// Standard output; through a pager if `page` says so and a terminal is there.
    pub(crate) fn new(page: bool) -> Output {
        let dumb = env::var_os("TERM").is_none_or(|t| t == "dumb");
        if page
            && io::stdout().is_terminal()
            && !dumb
            && let Some(mut child) = pager().and_then(|mut p| p.spawn().ok())
            && let Some(input) = child.stdin.take()
        {
            return Output::Paged(BufWriter::with_capacity(64 << 10, input), child);
        }
        Output::Plain(BufWriter::with_capacity(64 << 10, io::stdout().lock()))
    }

    /// Writes what is left, and waits for whoever reads. A reader who has had enough is no fault.
    pub(crate) fn finish(self, done: Result<(), Fault>) -> Result<(), Fault> {
        let (written, child) = match self {
            Output::Plain(mut out) => (out.flush(), None),
            Output::Paged(mut out, child) => {
                let written = out.flush();
                // What could not be written is not tried again; then the pager sees the end.
                let (input, _) = out.into_parts();
                drop(input);
                (written, Some(child))
            }
        };
        let done = done.and(written.map_err(Fault::new("standard output")));
        if let Some(mut child) = child
            && child.wait().is_ok_and(|status| status.code() == Some(NOT_FOUND))
        {
            return Err(fault("$PAGER could not be run; --no-pager prints without one"));
        }
        match done {
            Err(fault) if fault.error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(out) => out.write(bytes),
            Output::Paged(out, _) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(out) => out.flush(),
            Output::Paged(out, _) => out.flush(),
        }
    }
}

/// The user's pager, else `less`; none where they want none.
fn pager() -> Option<Command> {
    let wanted = env::var("PAGER").ok();
    let mut command = match wanted.as_deref().map(str::trim) {
        Some("" | "cat") => return None,
        // It may have options: the shell knows how to read them.
        Some(wanted) if cfg!(unix) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(wanted);
            command
        }
        Some(wanted) => Command::new(wanted),
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
