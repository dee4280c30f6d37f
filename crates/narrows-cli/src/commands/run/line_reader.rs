//! Reads lines from the terminal without blocking the runtime.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, IsTerminal, Stdin};
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longer lines are truncated.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Standard input, if it is a terminal.
pub(super) struct LineReader {
    input: Stdin,
    buffer: Vec<u8>,
}

impl LineReader {
    /// None if standard input is not a terminal.
    pub(super) fn new() -> Option<LineReader> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        Some(LineReader { input, buffer: Vec::new() })
    }

    /// Discards what was typed so far.
    pub(super) fn discard(&mut self) {
        self.buffer.clear();
        let _ = tcflush(&self.input, QueueSelector::IFlush);
    }

    /// Reads the next line; none at the end of the input. Cancel-safe: partial input stays buffered.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
            }
            let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
            let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
            if !matches!(poll(&mut fds, Some(&no_wait)), Ok(1..)) {
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            let mut chunk = [0; 4096];
            match rustix::io::read(&self.input, &mut chunk) {
                Ok(0) => return Ok(None),
                Ok(n) => {
                    self.buffer.extend_from_slice(&chunk[..n]);
                    self.buffer.truncate(MAX_LINE_BYTES);
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
