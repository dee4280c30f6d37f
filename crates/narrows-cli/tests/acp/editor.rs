//! An editor that starts `narrows acp` as its agent.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use super::served::NARROWS;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// An agent that says what lies in `reply-1`, `reply-2`, … for each line that it gets.
pub const REPLIES: &str =
    "n=0; while IFS= read -r line; do n=$((n+1)); cat reply-$n 2>/dev/null; done; exit 7";

pub struct Editor {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: Option<BufReader<ChildStdout>>,
    folder: PathBuf,
    said: usize,
}

/// Starts an agent by a shell, in a folder.
pub fn start(data: &Path, folder: &Path, agent: &str) -> Editor {
    let mut child = Command::new(NARROWS)
        .args(["acp", "--label", "made", "--data"])
        .arg(data)
        .args(["--", "sh", "-c", agent])
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("NARROWS_CONFIG")
        .env_remove("CLAUDE_CONFIG_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("narrows");
    let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
    Editor { child, input, output, folder: folder.to_owned(), said: 0 }
}

impl Editor {
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("input");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the agent reads");
    }

    /// Says a line; the agent of `REPLIES` answers with these, which are waited for.
    pub fn say(&mut self, line: &str, replies: &[String]) {
        self.said += 1;
        let text: String = replies.iter().map(|r| format!("{r}\n")).collect();
        std::fs::write(self.folder.join(format!("reply-{}", self.said)), text).expect("reply");
        self.write(format!("{line}\n").as_bytes());
        for reply in replies {
            assert_eq!(self.line().trim_end(), reply);
        }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().expect("output").read_line(&mut line).expect("line");
        line
    }

    /// Everything that comes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.output.as_mut().expect("output").read_to_end(&mut bytes).expect("bytes");
        bytes
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill").success());
    }

    /// Closes the agent's input, and waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        self.input = None;
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + Duration::from_mins(2);
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("it does not end");
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(2);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The spool files of a data directory.
pub fn spools(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("spool")).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    files.sort();
    files
}

/// The packets of a spool file, each with its end.
pub fn packets(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("spool");
    text.lines().skip(1).map(|l| format!("{l}\n")).collect()
}
