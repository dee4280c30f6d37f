//! What an agent does to the machine: processes, files, signals.

use super::room::Room;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

/// What a command printed, and its exit code; none when it was cancelled.
#[derive(Debug)]
pub struct Ran {
    pub output: String,
    pub code: Option<i32>,
}

/// Runs a command of the shell until its end or until the turn is cancelled.
pub fn run(command: &str, cwd: &Path, room: &Room) -> Ran {
    let child = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{command}"))
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) => return Ran { output: e.to_string(), code: Some(127) },
    };
    let (sender, receiver) = channel();
    let out = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut out) = out {
            let _ = out.read_to_end(&mut bytes);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    loop {
        if let Ok(output) = receiver.recv_timeout(Duration::from_millis(5)) {
            let code = child.wait().ok().and_then(|status| status.code());
            return Ran { output, code: Some(code.unwrap_or(-1)) };
        }
        if room.is_cancelled() {
            let _ = child.kill();
            let _ = child.wait();
            return Ran { output: String::new(), code: None };
        }
    }
}

/// Writes a file, and says what it held before.
pub fn put(path: &Path, text: &str) -> std::io::Result<Option<String>> {
    let before = std::fs::read_to_string(path).ok();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)?;
    Ok(before)
}

pub fn stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

pub fn flood_stderr(bytes: u64) {
    let line = format!("{}\n", "noise ".repeat(170));
    let mut left = bytes;
    while left > 0 {
        let count = left.min(line.len() as u64) as usize;
        stderr(&line[..count]);
        left -= count as u64;
    }
}

/// The names of the environment.
pub fn env() -> String {
    let mut names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.join(" ")
}

/// The file descriptors that are open, but for the one that looks.
pub fn fds() -> String {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return "not known".to_owned();
    };
    let mut open: Vec<u32> = entries
        .flatten()
        .filter(|entry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|to| !(to.starts_with("/proc/") && to.ends_with("fd")))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    open.sort_unstable();
    open.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// SIGTERM does nothing from now on.
pub fn deafen() {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let kind = tokio::signal::unix::SignalKind::terminate();
            let Ok(mut signal) = tokio::signal::unix::signal(kind) else { return };
            let _ = sender.send(());
            loop {
                signal.recv().await;
            }
        });
    });
    let _ = receiver.recv();
}

/// This program again, to do something else.
fn itself(word: &str, room: &Room) -> Option<Command> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg(word);
    if room.deaf.load(Ordering::SeqCst) {
        command.arg("--deaf");
    }
    Some(command)
}

/// A child that sleeps, with the pipes of this process.
pub fn fork(room: &Room) {
    let _ = itself("--sleep", room).and_then(|mut command| command.spawn().ok());
}

/// A process that has left the group, the session and its parent, and holds no pipe.
pub fn daemon(room: &Room) {
    let Some(mut command) = itself("--daemon", room) else { return };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.status();
}

/// The first half of a daemon: its child goes on alone.
pub fn detach(deaf: bool) -> ! {
    let _ = rustix::process::setsid();
    let room = Room::default();
    room.deaf.store(deaf, Ordering::SeqCst);
    fork(&room);
    std::process::exit(0);
}

/// Ten minutes are enough for any test.
pub fn sleep(deaf: bool) -> ! {
    if deaf {
        deafen();
    }
    std::thread::sleep(Duration::from_mins(10));
    std::process::exit(0);
}
