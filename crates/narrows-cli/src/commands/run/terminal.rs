//! Lines that somebody types, read without holding anything else up.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, IsTerminal, Stdin};
use std::time::Duration;

/// How often somebody is looked for who types.
const LOOK: Duration = Duration::from_millis(20);
/// What of a line is kept.
const MAX_LINE: usize = 64 << 10;

/// Standard input, where it is a terminal.
pub(super) struct Terminal {
    input: Stdin,
    typed: Vec<u8>,
}

impl Terminal {
    /// None when nobody types here.
    pub(super) fn new() -> Option<Terminal> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        Some(Terminal { input, typed: Vec::new() })
    }

    /// Forgets what was typed so far.
    pub(super) fn forget(&mut self) {
        self.typed.clear();
        let _ = tcflush(&self.input, QueueSelector::IFlush);
    }

    /// The next line; none at the end of the input. Whoever stops waiting loses nothing.
    pub(super) async fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.typed.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.typed.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
            }
            let mut one = [PollFd::new(&self.input, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if !matches!(poll(&mut one, Some(&now)), Ok(1..)) {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let mut piece = [0; 4096];
            match rustix::io::read(&self.input, &mut piece) {
                Ok(0) => return Ok(None),
                Ok(n) => {
                    self.typed.extend_from_slice(&piece[..n]);
                    self.typed.truncate(MAX_LINE);
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
