//! Memory of a server, and of the first reading of many files.

use crate::measure::{Growth, peak};
use crate::served::{NARROWS, serve};
use crate::wire::Wire;
use std::fs;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const LINES: &str = "application/x-ndjson";

/// A text of so many MB in pieces of 1 kB, then windows of it, and exports.
pub(crate) fn text(megabytes: usize) -> bool {
    println!("a text of {megabytes} MB in pieces of 1 kB");
    let dir = tempfile::tempdir().expect("folder");
    let served = serve(&dir.path().join("data"), &[], &[]).expect("a server");
    let process = served.child.id();
    let mut wire = Wire::open(&served.url, &served.token).expect("connect");
    let id = wire.session().expect("a session");
    let piece = format!("{}\\n", "a line of the long text, with some words in it. ".repeat(21));
    let line = format!(
        "{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{piece}\"}}}}\n"
    );
    let some = line.repeat(64);
    let mut growth = Growth::of(process);
    wire.begin(&format!("/api/sessions/{id}/packets")).expect("a request");
    let rounds = megabytes * 1000 / 64;
    for round in 1..=rounds {
        wire.piece(some.as_bytes()).expect("sent");
        if round % (rounds / 10).max(1) == 0 {
            growth.look(round * 64 / 1000, "MB sent");
        }
    }
    wire.end().expect("an answer");
    let mut flat = growth.end(32);
    println!("windows of 50 items of it");
    let mut growth = Growth::of(process);
    for window in 1..=10 {
        let page = format!("/api/sessions/{id}/items?limit=50&preview=0");
        let length = wire.length(&page).expect("items");
        assert!(length > 0 && length < 16 << 20, "{length} bytes");
        growth.look(window, "windows");
    }
    flat &= growth.end(32);
    println!("exports of it");
    let mut growth = Growth::of(process);
    for form in ["md", "html", "json", "text"] {
        let page = format!("/api/sessions/{id}/export?format={form}");
        let length = wire.length(&page).expect("an export");
        growth.look(usize::try_from(length / 1_000_000).expect("a size"), "MB exported");
    }
    flat &= growth.end(64);
    println!("  peak {} MB\n", peak(process) >> 10);
    flat
}

/// Sessions that are written at the same time, of so many calls each.
pub(crate) fn calls(sessions: usize, calls: usize) -> bool {
    println!("{sessions} sessions of {calls} calls");
    let dir = tempfile::tempdir().expect("folder");
    let served = serve(&dir.path().join("data"), &[], &[]).expect("a server");
    let mut wire = Wire::open(&served.url, &served.token).expect("connect");
    let ids: Vec<String> = (0..sessions).map(|_| wire.session().expect("a session")).collect();
    let mut growth = Growth::of(served.child.id());
    let mut done = 0;
    while done < calls {
        let some = some_calls(done..done + 400);
        for id in &ids {
            let path = format!("/api/sessions/{id}/packets");
            wire.send("POST", &path, LINES, some.as_bytes()).expect("an answer");
        }
        done += 400;
        if done % (calls / 10 / 400 * 400).max(400) == 0 {
            growth.look(done, "calls each");
        }
    }
    growth.end(24 + calls * sessions / 20_000)
}

/// Calls that begin, go on and end.
pub(crate) fn some_calls(numbers: Range<usize>) -> String {
    numbers
            .map(|n| {
                format!(
                    "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"call_{n:024}\",\"title\":\"bash\",\"kind\":\"execute\",\"status\":\"pending\",\"rawInput\":{{}}}}\n\
                     {{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call_{n:024}\",\"status\":\"in_progress\",\"rawInput\":{{\"command\":\"cat src/module_{n}.rs\",\"description\":\"Reads a module\"}}}}\n\
                     {{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call_{n:024}\",\"status\":\"completed\",\"rawOutput\":{{\"output\":\"fn number_{n}() {{}}\",\"metadata\":{{\"exit\":0}}}}}}\n"
                )
            })
            .collect()
}

/// So many tiny sessions that are sent one after the other.
pub(crate) fn sent(sessions: usize) -> bool {
    println!("{sessions} tiny sessions that are sent");
    let dir = tempfile::tempdir().expect("folder");
    let served = serve(&dir.path().join("data"), &[], &[]).expect("a server");
    let mut wire = Wire::open(&served.url, &served.token).expect("connect");
    let mut growth = Growth::of(served.child.id());
    let lines = "{\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\
                 {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"Hi there.\"}}\n\
                 {\"type\":\"prompt_response\",\"stopReason\":\"end_turn\"}\n";
    for n in 1..=sessions {
        let id = wire.session().expect("a session");
        let path = format!("/api/sessions/{id}/packets");
        wire.send("POST", &path, LINES, lines.as_bytes()).expect("an answer");
        if n % (sessions / 10) == 0 {
            growth.look(n, "sessions");
        }
    }
    growth.end(48)
}

/// The first `narrows index` of so many tiny files.
pub(crate) fn index(sessions: usize) -> bool {
    println!("the first index of {sessions} tiny sessions");
    let dir = tempfile::tempdir().expect("folder");
    let (home, claude) = (dir.path().join("home"), dir.path().join("claude"));
    fs::create_dir_all(&home).expect("a folder");
    for n in 0..sessions {
        let project = claude.join(format!("projects/-srv-app-{}", n / 1000));
        if n % 1000 == 0 {
            fs::create_dir_all(&project).expect("a folder");
        }
        let id = format!("{n:08x}-0000-4000-8000-000000000000");
        let line = |kind: &str, uuid: usize, parent: &str, content: &str| {
            format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/srv/app\",\"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"{kind}\",\"message\":{content},\"uuid\":\"{uuid:08x}-{n:04}-4000-8000-000000000000\",\"timestamp\":\"2026-01-02T03:04:05.000Z\"}}\n"
            )
        };
        let mut text = line("user", 1, "null", "{\"role\":\"user\",\"content\":\"Hello\"}");
        text += &line(
            "assistant",
            2,
            "null",
            &format!(
                "{{\"id\":\"msg_{n}\",\"role\":\"assistant\",\"type\":\"message\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"Hi there.\"}}]}}"
            ),
        );
        fs::write(project.join(format!("{id}.jsonl")), text).expect("a file");
    }
    let mut child = Command::new(NARROWS)
        .args(["index"])
        .env("HOME", &home)
        .env("CLAUDE_CONFIG_DIR", &claude)
        .env("NARROWS_DATA", dir.path().join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("narrows runs");
    let mut growth = Growth::of(child.id());
    let mut seconds = 0;
    while child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_secs(1));
        seconds += 1;
        if crate::measure::now(child.id()) > 0 {
            growth.look(seconds, "s");
        }
    }
    // Each file that waits to be read has a name.
    growth.end(48 + sessions / 1000)
}
