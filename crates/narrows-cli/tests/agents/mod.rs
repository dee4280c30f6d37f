//! The scripted agents as processes, and what is left of processes.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A scripted agent. `cargo test` builds it, but not when a single test is named.
pub fn agent(name: &str) -> PathBuf {
    let folder = Path::new(NARROWS).parent().expect("folder").join("examples");
    let file = folder.join(name);
    assert!(file.exists(), "{} is missing: cargo build -p narrows-cli --examples", file.display());
    file
}

/// The variable by which processes of a test are found.
pub const MARK: &str = "NARROWS_TEST_MARK";

/// A mark that no other test has.
pub fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes that have a mark in their environment.
pub fn marked(mark: &str) -> Vec<u32> {
    let needle = format!("{MARK}={mark}\0");
    let entries = std::fs::read_dir("/proc").expect("processes");
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            environment.windows(needle.len()).any(|part| part == needle.as_bytes())
        })
    })
    .collect()
}

/// The state and the parent of a process.
pub fn stat(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process has taken SIGTERM for itself.
pub fn catches_term(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << 14) != 0)
}

/// How many children of a process have ended and were not taken up.
pub fn zombies(parent: u32) -> usize {
    let entries = std::fs::read_dir("/proc").expect("processes");
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| stat(*pid) == Some(('Z', parent))).count()
}

pub fn kill(signal: &str, pid: u32) {
    let _ = Command::new("kill").args([signal, &pid.to_string()]).status();
}

/// Waits until something is so.
pub fn until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that talks in lines.
pub struct Talk {
    pub child: Child,
    pub input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything that was said, with who said it: true is the agent.
    pub said: Vec<(bool, String)>,
}

impl Talk {
    pub fn start(command: &mut Command) -> Talk {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("process");
        let out = BufReader::new(child.stdout.take().expect("output"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Talk { child, input, lines, said: Vec::new() }
    }

    pub fn send(&mut self, message: &Value) {
        let line = message.to_string();
        let input = self.input.as_mut().expect("input");
        input.write_all(format!("{line}\n").as_bytes()).expect("send");
        self.said.push((false, line));
    }

    /// The next line; none at the end.
    pub fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.said.push((true, line.clone()));
                Some(line)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(e) => panic!("nothing is said: {e}; before: {:?}", self.said.last()),
        }
    }

    /// Reads until a message is as it should be.
    pub fn find(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        while let Some(line) = self.line() {
            let message = serde_json::from_str(&line).unwrap_or(Value::Null);
            if is(&message) {
                return message;
            }
        }
        panic!("it ended; before: {:?}", self.said.last());
    }

    /// Closes the input and waits for the end.
    pub fn end(&mut self) -> Option<i32> {
        self.input = None;
        while self.line().is_some() {}
        self.exit()
    }

    /// Waits for the end.
    pub fn exit(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // A keeper that is killed cannot end its agent.
        kill("-TERM", self.child.id());
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
