//! Sessions of Claude Code made up to look like kept ones: same records, same sizes, real code and
//! prose in them.

use super::generate::{Dice, ROOT, Session};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Changes when the corpus does, so that an old one is not used.
const EDITION: &str = "6";

/// The files of the corpus, made if they are not there.
pub(crate) fn files(folder: &Path, sessions: u64, bytes: u64) -> io::Result<Vec<PathBuf>> {
    let folder = folder.join(format!("claude-{EDITION}-{sessions}-{}", bytes >> 20));
    let done = folder.join("done");
    let projects = folder.join("projects");
    if !done.exists() {
        let _ = fs::remove_dir_all(&folder);
        let mut dice = Dice::new(11);
        for n in 0..sessions {
            let project = projects.join(format!("-workspace-app-{}", n % 40));
            fs::create_dir_all(&project)?;
            let id = uuid(&mut dice);
            // A few sessions hold most of the bytes.
            let share = 0.35 + 60.0 * (dice.roll(100_000) as f64 / 100_000.0).powi(99);
            let size = (bytes as f64 / sessions as f64 * share * 0.8) as usize;
            fs::write(project.join(format!("{id}.jsonl")), session(n, &id, size.max(2_000)))?;
        }
        fs::File::create(&done)?.write_all(b"")?;
    }
    let mut files = Vec::new();
    for project in fs::read_dir(projects)? {
        for file in fs::read_dir(project?.path())? {
            files.push(file?.path());
        }
    }
    files.sort();
    Ok(files)
}

fn uuid(dice: &mut Dice) -> String {
    let mut hex = |n: u32| format!("{:0w$x}", dice.roll(1 << (4 * n.min(15))), w = n as usize);
    format!("{}-{}-4{}-a{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12))
}

struct Writer {
    out: Vec<u8>,
    text: Session,
    dice: Dice,
    session: String,
    last: Option<String>,
    ms: u64,
    calls: u64,
    messages: u64,
    /// What the files hold that were read or written last.
    files: Vec<(String, String)>,
}

/// One session of about `size` bytes.
fn session(seed: u64, id: &str, size: usize) -> Vec<u8> {
    let mut w = Writer {
        out: Vec::with_capacity(size + (1 << 16)),
        text: Session::new(seed + 1, 0),
        dice: Dice::new(seed + 77),
        session: id.to_owned(),
        last: None,
        ms: 1_790_000_000_000 + seed * 1_000_000,
        calls: 0,
        messages: 0,
        files: Vec::new(),
    };
    while w.out.len() < size {
        w.turn(size);
    }
    w.out
}

impl Writer {
    fn turn(&mut self, size: usize) {
        let prompt = self.prose(12);
        let time = self.time();
        self.line(&json!({"type": "queue-operation", "operation": "enqueue", "timestamp": time, "sessionId": self.session, "content": prompt}));
        self.record(
            "user",
            &json!({"message": {"role": "user", "content": prompt}, "promptSource": "sdk"}),
        );
        for kind in ["environment", "date", "skill_listing"] {
            let body = self.prose(60);
            self.record("attachment", &json!({"attachment": {"type": kind, "content": body}}));
        }
        for _ in 0..3 + self.dice.roll(12) {
            if self.out.len() >= size {
                break;
            }
            self.step();
        }
        let text = self.prose(60);
        self.assistant(&json!({"type": "text", "text": text}), "end_turn");
        self.line(&json!({"type": "last-prompt", "lastPrompt": prompt, "sessionId": self.session}));
        self.line(&json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": {"trackedFileBackups": {}}, "isSnapshotUpdate": false}));
    }

    /// The model says something and calls a tool; the tool answers.
    fn step(&mut self) {
        if self.dice.roll(3) == 0 {
            let thought = self.prose(50);
            self.assistant(
                &json!({"type": "thinking", "thinking": thought, "signature": "c2ln".repeat(60)}),
                "tool_use",
            );
        }
        if self.dice.roll(2) == 0 {
            let text = self.prose(25);
            self.assistant(&json!({"type": "text", "text": text}), "tool_use");
        }
        self.calls += 1;
        let id = self.own("toolu", self.calls);
        let path = format!("{ROOT}/src/part{}.rs", self.dice.roll(30));
        let (name, input, content, result) = match self.dice.roll(10) {
            0..=3 => self.bash(),
            4..=6 => self.read(&path),
            7 => self.write(&path),
            _ => self.edit(&path),
        };
        self.assistant(
            &json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            "tool_use",
        );
        self.record("user", &json!({
            "message": {"role": "user", "content": [{"tool_use_id": id, "type": "tool_result", "content": content, "is_error": false}]},
            "toolUseResult": result,
            "permissionDecision": {"decision": "accept", "source": "config", "reasonType": "mode"},
        }));
        // Newer versions log every request.
        self.line(&json!({"type": "api-request-blob", "hash": "0".repeat(64), "sessionId": self.session, "message": {"role": "user", "content": [{"tool_use_id": id, "type": "tool_result", "content": content}]}}));
        let time = self.time();
        self.line(&json!({"type": "api-request", "id": id, "sessionId": self.session, "timestamp": time, "params": {"model": "claude-sonnet-4-5", "max_tokens": 32000}}));
    }

    fn bash(&mut self) -> (&'static str, Value, Value, Value) {
        let size = self.size(900, 30_000);
        let text = self.text.code(size);
        let input =
            json!({"command": format!("cd {ROOT} && cargo test"), "description": "Run the tests"});
        let result = json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false});
        ("Bash", input, json!(text), result)
    }

    fn read(&mut self, path: &str) -> (&'static str, Value, Value, Value) {
        let text = self.file(path, 6_000, 60_000);
        let lines = text.lines().count();
        let shown: String =
            text.lines().enumerate().map(|(i, l)| format!("{}\t{l}\n", i + 1)).collect();
        let file = json!({"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines});
        ("Read", json!({"file_path": path}), json!(shown), json!({"type": "text", "file": file}))
    }

    fn write(&mut self, path: &str) -> (&'static str, Value, Value, Value) {
        let size = self.size(2_500, 20_000);
        let text = self.text.file(size);
        self.keep(path, text.clone());
        let said = json!(format!("File created successfully at: {path}"));
        let result = json!({"type": "create", "filePath": path, "content": text, "structuredPatch": [], "originalFile": null, "userModified": false});
        ("Write", json!({"file_path": path, "content": text}), said, result)
    }

    fn edit(&mut self, path: &str) -> (&'static str, Value, Value, Value) {
        // What is edited was read before, mostly just before.
        let known = self.files.len().checked_sub(1 + self.dice.roll(3) as usize);
        let path = known.and_then(|i| self.files.get(i)).map_or(path.to_owned(), |f| f.0.clone());
        let original = self.file(&path, 6_000, 60_000);
        let lines: Vec<&str> = original.lines().collect();
        let at = self.dice.roll(lines.len() as u64) as usize;
        let (old, new) = (lines[at].to_owned(), format!("{} // changed", lines[at]));
        let around = |from: usize, to: usize| {
            lines[from..to.min(lines.len())].iter().map(|l| format!(" {l}"))
        };
        let mut hunk: Vec<String> = around(at.saturating_sub(3), at).collect();
        hunk.extend([format!("-{old}"), format!("+{new}")]);
        hunk.extend(around(at + 1, at + 4));
        let changed = original.replacen(&old, &new, 1);
        self.keep(&path, changed);
        let input =
            json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": false});
        let result = json!({"filePath": path, "oldString": old, "newString": new, "originalFile": original, "structuredPatch": [{"oldStart": at, "oldLines": 7, "newStart": at, "newLines": 7, "lines": hunk}], "userModified": false, "replaceAll": false});
        ("Edit", input, json!(format!("The file {path} has been updated.")), result)
    }

    /// What a file holds; made up the first time.
    fn file(&mut self, path: &str, usual: u64, most: u64) -> String {
        if let Some((_, text)) = self.files.iter().find(|(p, _)| p == path) {
            return text.clone();
        }
        let size = self.size(usual, most);
        let text = self.text.file(size.max(80));
        self.keep(path, text.clone());
        text
    }

    fn keep(&mut self, path: &str, text: String) {
        self.files.retain(|(p, _)| p != path);
        self.files.push((path.to_owned(), text));
        if self.files.len() > 20 {
            self.files.remove(0);
        }
    }

    /// Mostly small, now and then large.
    fn size(&mut self, usual: u64, most: u64) -> usize {
        let roll = self.dice.roll(1000) as f64 / 1000.0;
        let size = usual as f64 * (0.2 + 0.8 * roll / (1.02 - roll).powf(1.3));
        size.min(most as f64) as usize
    }

    fn prose(&mut self, words: u64) -> String {
        const WORDS: [&str; 16] = [
            "the", "file", "now", "checks", "whether", "naïve", "tests", "pass", "and", "returns",
            "a", "value", "of", "type", "error", "again",
        ];
        let mut text = String::new();
        for _ in 0..words / 2 + self.dice.roll(words) {
            text.push_str(WORDS[self.dice.roll(16) as usize]);
            text.push(' ');
            if self.dice.roll(90) == 0 {
                text.push_str(&format!("`{ROOT}/src/lib.rs` "));
            }
        }
        text
    }

    /// An id that no other session has.
    fn own(&self, kind: &str, n: u64) -> String {
        format!("{kind}_{}{n:016}", self.session.get(..8).unwrap_or_default())
    }

    fn time(&mut self) -> String {
        self.ms += 700;
        let s = self.ms / 1000;
        format!(
            "2026-09-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            1 + s / 86_400 % 28,
            s / 3600 % 24,
            s / 60 % 60,
            s % 60,
            self.ms % 1000
        )
    }

    fn assistant(&mut self, block: &Value, stop: &str) {
        self.messages += u64::from(block["type"] != "tool_use");
        let usage = json!({"input_tokens": 13, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 41_000, "output_tokens": 64, "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard"});
        let message = json!({"id": self.own("msg", self.messages), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "stop_reason": stop, "usage": usage});
        let request = self.own("req", self.messages);
        self.record("assistant", &json!({"message": message, "requestId": request}));
    }

    /// A record with everything that stands on each.
    fn record(&mut self, kind: &str, body: &Value) {
        let id = uuid(&mut self.dice);
        let mut record = json!({"parentUuid": self.last, "isSidechain": false, "type": kind, "uuid": id, "timestamp": self.time(), "userType": "external", "entrypoint": "cli", "cwd": ROOT, "sessionId": self.session, "version": "2.1.325", "gitBranch": "main"});
        let map = body.as_object().cloned().unwrap_or_default();
        record.as_object_mut().expect("an object").extend(map);
        self.last = Some(id);
        self.line(&record);
    }

    /// A line. Where a record has nothing before it, its type comes first, as the agent writes it.
    fn line(&mut self, record: &Value) {
        let mut record = record.clone();
        let map = record.as_object_mut().expect("an object");
        if !map.contains_key("parentUuid")
            && let Some(kind) = map.remove("type")
        {
            self.out.extend_from_slice(format!("{{\"type\":{kind},").as_bytes());
            let rest = record.to_string();
            self.out.extend_from_slice(&rest.as_bytes()[1..]);
        } else {
            serde_json::to_writer(&mut self.out, &record).expect("a record is JSON");
        }
        self.out.push(b'\n');
    }
}
