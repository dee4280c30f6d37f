//! Lines in and out.

use super::room::Room;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// How many bytes were written so far.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

pub fn written() -> u64 {
    WRITTEN.load(Ordering::Relaxed)
}

/// Writes one line.
pub fn send(message: &Value) {
    raw(&format!("{message}\n"));
}

/// Writes what is given as it is. Nobody reads any more: then there is nothing to live for.
pub fn raw(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
    WRITTEN.fetch_add(text.len() as u64, Ordering::Relaxed);
}

/// The lines of standard input, until its end.
pub fn lines(room: Arc<Room>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || read(&room, &sender));
    receiver
}

fn read(room: &Room, sender: &Sender<String>) {
    let stdin = rustix::stdio::stdin();
    let (mut held, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        if room.close_stdin.load(Ordering::SeqCst) {
            nothing(|file| rustix::stdio::dup2_stdin(file));
            loop {
                std::thread::park();
            }
        }
        // Nobody waits in a read: that would hold the pipe open when it is to be closed.
        let soon = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&soon)), Ok(0)) {
            continue;
        }
        match rustix::io::read(stdin, &mut buffer[..]) {
            Ok(0) => return,
            Ok(count) => held.extend_from_slice(&buffer[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = held.drain(..=end).collect();
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
        }
    }
}

/// Closes the pipe of standard output; what is written from now on goes nowhere.
pub fn close_stdout() {
    nothing(|file| rustix::stdio::dup2_stdout(file));
}

fn nothing(put: impl FnOnce(&std::fs::File) -> rustix::io::Result<()>) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(file) = file {
        let _ = put(&file);
    }
}
