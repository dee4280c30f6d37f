//! A machine with nothing but a few sessions.

use crate::served::{NARROWS, Served, serve_with};
use serde_json::{Value, json as object};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// The agent's own id of sessions that are made here.
const SESSION: &str = "5e551011-0000-4000-8000-000000000000";

/// A home directory with a store.
pub(crate) struct Home {
    folder: TempDir,
    /// Ids, and what stands for them where outputs are compared.
    names: Vec<(String, String)>,
}

pub(crate) fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("JSON")
}

/// Compares with what is expected, or writes it.
pub(crate) fn snapshot(name: &str, told: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/library/{name}.txt"));
    if std::env::var_os("NARROWS_BLESS").is_some() {
        fs::write(file, told).expect("write");
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == told, "{name} is not as expected (NARROWS_BLESS=1 writes it):\n{told}");
}

fn fixture(name: &str, day: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures");
    let text = fs::read_to_string(root.join(name).join("input.jsonl")).expect("fixture");
    text.replace("2026-11-15T", &format!("{day}T"))
}

/// One record of Claude Code.
fn record(kind: &str, n: u32, at: &str, cwd: &str, more: &Value) -> String {
    let mut record = object!({
        "type": kind, "uuid": format!("00000000-0000-4000-8000-{n:012}"), "timestamp": at,
        "cwd": cwd, "sessionId": SESSION, "version": "2.1.325",
    });
    for (key, value) in more.as_object().expect("object") {
        record[key] = value.clone();
    }
    record.to_string() + "\n"
}

/// A session with a question, a call and an answer.
fn talk(day: &str, cwd: &str, title: &str, [asked, ran, gave, said]: [&str; 4]) -> String {
    let at = |time: &str| format!("{day}T{time}Z");
    let usage = object!({
        "input_tokens": 1000 + said.len(), "output_tokens": 345, "cache_read_input_tokens": 45_600,
        "cache_creation_input_tokens": 789,
    });
    let answer = |id: &str, content: Value| {
        object!({ "requestId": format!("req-{id}-{day}"), "message": {
            "id": format!("msg-{id}-{day}"), "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [content], "usage": usage,
        }})
    };
    let call = object!({
        "type": "tool_use", "id": format!("toolu-{day}"), "name": "Bash", "input": { "command": ran },
    });
    let result = object!({ "message": { "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": format!("toolu-{day}"), "content": gave }
    ]}});
    let question = object!({ "message": { "role": "user", "content": asked } });
    [
        record("user", 1, &at("10:00:00"), cwd, &question),
        record("assistant", 2, &at("10:00:05"), cwd, &answer("a", call)),
        record("user", 3, &at("10:00:08"), cwd, &result),
        record(
            "assistant",
            4,
            &at("10:03:12"),
            cwd,
            &answer("b", object!({ "type": "text", "text": said })),
        ),
        object!({ "type": "custom-title", "customTitle": title, "sessionId": SESSION }).to_string()
            + "\n",
    ]
    .concat()
}

/// A session that is like many others.
pub(crate) fn history(day: &str, cwd: &str, title: &str) -> String {
    talk(day, cwd, title, ["Do it.", "make", "done", "It is done."])
}

impl Home {
    pub(crate) fn empty() -> Home {
        Home { folder: tempfile::tempdir().expect("folder"), names: Vec::new() }
    }

    /// With six sessions in the store.
    pub(crate) fn filled() -> Home {
        let mut home = Home::empty();
        let race = talk(
            "2024-03-06",
            "/srv/app",
            "Fix the race in the writer",
            [
                "Why does the writer lose the last row? I think of the mutex.",
                "cargo test writer",
                "test writer::last_row ... FAILED\nthe mutex is held while the mover waits",
                "The writer holds the mutex while the mover waits for it, so the last row of a commit \
             is written after the log was moved. The quick brown fox agrees.",
            ],
        );
        let kanji = talk(
            "2024-02-01",
            "/srv/日本語",
            "漢字とかな: テストを直す 🚀",
            [
                "漢字の幅を直してください 🚀",
                "cat 漢字.txt",
                "漢字かな交じり文\n二行目の漢字",
                "直しました。漢字は二桁です。",
            ],
        );
        let evil = talk(
            "2023-12-31",
            "/srv/ev\u{1b}[2Jil",
            "\u{1b}[31mred\u{1b}]0;owned\u{7} \u{9b}2Jalert\u{202e}",
            [
                "\u{1b}]52;c;b3duZWQ=\u{7}alert \u{1b}[2Jnow",
                "printf '\u{1b}[2J'",
                "alert\u{1b}[8m hidden \u{9b}31m\u{1b}P1$r\u{1b}\\",
                "An alert\r\nwas \u{202e}raised",
            ],
        );
        let none: &[&str] = &[];
        home.put("race", "AAAA", &race, none);
        home.put(
            "web-files",
            "BBBB",
            &fixture("claude-history/2.1-c-files", "2024-03-05"),
            &["night"],
        );
        home.put(
            "fetch",
            "CCCC",
            &fixture("acp/opencode-1.18-c-files", "2024-03-04"),
            &["night", "web"],
        );
        home.put("kanji", "DDDD", &kanji, none);
        home.put("evil", "EEEE", &evil, none);
        home.put("shell", "FFFF", &fixture("claude-history/2.1-d-bash", "2023-05-05"), none);
        home
    }

    /// Puts a session into the store; its id is told as `name`.
    fn put(&mut self, label: &str, name: &str, text: &str, tags: &[&str]) {
        let file = self.path("input.jsonl");
        fs::write(&file, text).expect("write");
        let mut words = vec!["ingest", "--no-env", "--label", label];
        words.extend(tags.iter().flat_map(|tag| ["--tag", tag]));
        words.push(file.to_str().expect("path"));
        let out = self.command(&words).output().expect("run");
        let told = String::from_utf8(out.stdout).expect("text");
        let (id, _) = told.split_once(": ").expect("an id");
        self.names.push((id.to_owned(), name.to_owned()));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.path("")),
            ("NARROWS_DATA", self.path("data")),
            ("TZ", "UTC".into()),
            ("NO_COLOR", "1".into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default().into()),
        ]
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(NARROWS);
        command.args(words).env_clear().envs(self.environment()).stdin(Stdio::null());
        command
    }

    /// What a command prints and how it ends, without looking for sessions.
    pub(crate) fn told(&self, words: &[&str]) -> String {
        let more: &[&str] = if words[0] == "rm" { &[] } else { &["--no-scan"] };
        self.run(words, more)
    }

    /// The same, with a look at what the agents keep.
    pub(crate) fn told_scanning(&self, words: &[&str]) -> String {
        self.run(words, &[])
    }

    fn run(&self, words: &[&str], more: &[&str]) -> String {
        let out = self.command(&[words, more].concat()).output().expect("run");
        let quoted = words
            .iter()
            .map(|w| if w.contains([' ', '"']) { format!("'{w}'") } else { (*w).to_owned() });
        let mut told = format!("$ narrows {}\n", quoted.collect::<Vec<_>>().join(" "));
        told.push_str(&String::from_utf8(out.stdout).expect("text"));
        for line in String::from_utf8(out.stderr).expect("text").lines() {
            told.extend(["stderr: ", line, "\n"]);
        }
        match out.status.code() {
            Some(0) => {}
            Some(code) => told.extend(["exit: ", &code.to_string(), "\n"]),
            None => told.push_str("killed\n"),
        }
        self.named(&told) + "\n"
    }

    /// A command on a terminal; none where there is no `script`.
    pub(crate) fn on_terminal(&self, columns: usize, words: &str, typed: &str) -> Option<String> {
        let scan = if words.starts_with("rm") { "" } else { "--no-scan" };
        let line = format!("stty cols {columns} rows 50; '{NARROWS}' {words} {scan}");
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env_clear().envs(self.environment());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (mut input, mut output) = (child.stdin.take()?, child.stdout.take()?);
        // Answers are typed when there is a question.
        let mut told = Vec::new();
        while !typed.is_empty() && !told.ends_with(b"[y/N] ") {
            let mut byte = [0];
            assert_eq!(output.read(&mut byte).expect("read"), 1, "no question");
            told.push(byte[0]);
        }
        input.write_all(typed.as_bytes()).expect("type");
        output.read_to_end(&mut told).expect("read");
        child.wait().expect("end");
        let told = String::from_utf8(told).expect("text").replace("\r\n", "\n");
        Some(self.named(&format!("$ narrows {words}\n{told}")) + "\n")
    }

    /// With names for ids, and without what is different every time.
    fn named(&self, told: &str) -> String {
        let mut told = told.replace(self.folder.path().to_str().expect("path"), "HOME");
        for (id, name) in &self.names {
            told = told.replace(id, &name.repeat(4)).replace(&id[..4], name);
        }
        let between = |told: String, from: &str, until: &[char]| {
            let mut parts = told.split(from);
            let mut out = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let end = part.find(until).unwrap_or(part.len());
                out.push_str(from);
                out.push('…');
                out.push_str(&part[end..]);
            }
            out
        };
        // Sizes, and days that are so long from now.
        told = between(told, "~/data: ", &[',', '\n']);
        told = between(told, "the first on ", &[';', '\n']);
        for field in ["databaseBytes", "walBytes", "nextAt"] {
            told = between(told, &format!("\"{field}\":"), &[',', '}']);
        }
        // What is found by scanning has an id that nobody knows.
        if self.names.is_empty() {
            let masked = told.lines().map(|line| match line.split_at_checked(6) {
                Some((id, rest)) if id.ends_with("  ") && !id.starts_with([' ', 'I']) => {
                    format!("????  {rest}\n")
                }
                _ => format!("{line}\n"),
            });
            told = masked.collect();
        }
        told
    }

    /// The id of a session.
    pub(crate) fn id(&self, label: &str) -> String {
        let out = self.command(&["ls", "--no-scan", "--json", "-n", "0"]).output().expect("run");
        let told = String::from_utf8(out.stdout).expect("text");
        let row = told.lines().map(json).find(|row| row["label"] == label).expect("session");
        row["id"].as_str().expect("id").to_owned()
    }

    /// A server on the store, which follows nothing.
    pub(crate) fn serve(&self) -> Served {
        let home = self.path("");
        serve_with(&self.path("data"), &[], &[], &[("HOME", &home)]).expect("start")
    }

    fn claude(&self, id: &str) -> PathBuf {
        self.path(".claude/projects/-srv-app").join(format!("{id}.jsonl"))
    }

    /// A session as Claude Code keeps it, written so long ago.
    pub(crate) fn write_claude(&self, id: &str, text: &str, ago: Duration) {
        let file = self.claude(id);
        fs::create_dir_all(file.parent().expect("folder")).expect("folder");
        // Copies of one session would be taken for one.
        let (own, head) = (id.replace('-', ""), "00000000-0000-4000-8000-");
        let text = text.replace(SESSION, id);
        let text = text.replace(head, &format!("{}-0000-4000-8000-", &own[..8]));
        fs::write(&file, text).expect("write");
        let then = SystemTime::now() - ago;
        File::options().append(true).open(&file).and_then(|f| f.set_modified(then)).expect("time");
    }

    pub(crate) fn remove_claude(&self, id: &str) {
        fs::remove_file(self.claude(id)).expect("remove");
    }

    pub(crate) fn settings(&self, text: &str) {
        fs::write(self.path(".claude/settings.json"), text).expect("write");
    }
}
