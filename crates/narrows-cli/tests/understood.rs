//! Input that is understood, in part, or not at all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures").join(name)
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn stdout(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Each command on one file.
fn all(file: &str, data: &str) -> [(&'static str, Output); 4] {
    [
        ("parse", narrows(&["parse", file])),
        ("usage", narrows(&["usage", file])),
        ("ingest", narrows(&["ingest", "--data", data, file])),
        ("parity", narrows(&["check", "parity", file, file])),
    ]
}

const CODEX: &str = r#"{"timestamp":"2026-11-18T04:34:31Z","type":"session_meta","payload":{"id":"x","cwd":"/srv"}}
{"timestamp":"2026-11-18T04:34:32Z","type":"response_item","payload":{"type":"message","role":"user","content":[]}}
"#;

#[test]
fn what_is_not_understood_is_said_and_ends_in_3() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let inputs: [(&str, &[u8], &str); 9] = [
        ("passwd", b"root:x:0:0:root:/root:/bin/sh\nbin:x:1:1::/:/bin/false\n", "plain text"),
        ("empty", b"", "it is empty"),
        ("blank", b"\n\n  \n", "it is empty"),
        (
            "binary",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\xff\xfe\xfd\0\0\xf0\n\0\0\xee\xee",
            "binary data",
        ),
        ("page", b"<!DOCTYPE html>\n<html><body>x</body></html>\n", "HTML"),
        ("array", b"[{\"a\":1},{\"b\":2}]\n", "one JSON document"),
        ("lines", b"{\"type\":\"x\"}\n{\"type\":\"y\"}\n", "a program that is not known"),
        ("codex", CODEX.as_bytes(), "Codex"),
        ("null", b"null\n12\n\"x\"\n", "looks like"),
    ];
    for (name, bytes, words) in inputs {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        for (command, out) in all(file.to_str().unwrap(), data) {
            let said = stderr(&out);
            assert_eq!(out.status.code(), Some(3), "{command} {name}: {said}");
            assert!(said.contains(words), "{command} {name}: {said}");
            assert!(!stdout(&out).contains("equal"), "{command} {name}");
        }
    }
    let kept = narrows(&["ls", "--data", data, "--json"]);
    assert_eq!(stdout(&kept), "", "what is not understood makes no session");
}

/// Lines of programs that use words of the protocol for something else.
const ALIKE: [(&str, &str, &str); 2] = [
    (
        "gemini",
        r#"{"sessionId":"8b","projectHash":"ac","startTime":"2026-11-15T19:36:16.116Z","kind":"main"}
{"$set":{"lastUpdated":"2026-11-15T19:36:16.117Z"}}
{"id":"06","timestamp":"2026-11-15T19:36:16.141Z","type":"user","content":[{"text":"Print something"}]}
{"id":"64","timestamp":"2026-11-15T19:36:16.822Z","type":"gemini","content":"Printing.","model":"x"}
{"$set":{"lastUpdated":"2026-11-15T19:36:16.823Z"}}
"#,
        "Gemini CLI",
    ),
    (
        "codex",
        r#"{"type":"thread.started","thread_id":"01"}
{"type":"turn.started"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"turn.failed","error":{"message":"exceeded"}}
"#,
        "Codex",
    ),
];

#[test]
fn what_only_seems_to_fit_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for (name, text, words) in ALIKE {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        for (command, out) in all(file, data.to_str().unwrap()) {
            let said = stderr(&out);
            assert_eq!(out.status.code(), Some(3), "{command} {name}: {said}");
            assert!(said.contains(words) && said.contains("1 of "), "{command} {name}: {said}");
            assert!(!said.contains("nothing in it"), "{command} {name}: {said}");
            assert_eq!(stdout(&out), "", "{command} {name}");
        }
        for view in ["session", "activity", "packets"] {
            let out = narrows(&["parse", "--view", view, file]);
            assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(3), ""), "{view} {name}");
        }
    }
    // A packet that leaves no doubt makes a session of all before it.
    let file = dir.path().join("relayed");
    let said = r#"{"type":"agent_message_chunk","content":{"type":"text","text":"Done."}}"#;
    std::fs::write(&file, format!("{}{said}\n", ALIKE[0].1)).unwrap();
    for view in ["items", "packets"] {
        let out = narrows(&["parse", "--view", view, file.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(0), "{view}: {}", stderr(&out));
        let shown = stdout(&out);
        assert!(shown.contains("Print something") || view == "packets", "{view}: {shown}");
        assert!(shown.contains("Done."), "{view}: {shown}");
    }
}

#[test]
fn a_part_that_is_understood_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let whole =
        std::fs::read_to_string(fixture("claude-history/2.0-interactive/input.jsonl")).unwrap();
    let file = dir.path().join("part.jsonl");
    let junk = "not JSON\n{\"type\":\"x\"}\n".repeat(40);
    std::fs::write(&file, format!("{junk}{whole}")).unwrap();
    for (command, out) in all(file.to_str().unwrap(), data.to_str().unwrap()) {
        assert_eq!(out.status.code(), Some(0), "{command}: {}", stderr(&out));
    }
    let out = narrows(&["parse", file.to_str().unwrap()]);
    assert!(stderr(&out).contains("40 malformed lines"), "{}", stderr(&out));
}

#[test]
fn bookkeeping_at_the_beginning_does_not_hide_the_format() {
    let dir = tempfile::tempdir().unwrap();
    let whole =
        std::fs::read_to_string(fixture("claude-history/2.0-interactive/input.jsonl")).unwrap();
    assert!(whole.starts_with(r#"{"type":"file-history-snapshot""#));
    let first = [
        "",
        r#"{"type":"summary","summary":"Tide","leafUuid":"x"}"#,
        r#"{"type":"queue-operation","operation":"enqueue"}"#,
        r#"{"type":"summary","summary":"of whatever"}"#,
        r#"{"type":"a-kind-of-tomorrow","x":1}"#,
    ];
    for line in first {
        let file = dir.path().join("s.jsonl");
        std::fs::write(&file, format!("{line}\n{whole}")).unwrap();
        let file = file.to_str().unwrap();
        let named = stdout(&narrows(&["parse", "--format", "claude-history", file]));
        let items = stdout(&narrows(&["parse", file]));
        assert!(items.lines().count() > 5, "{line}: {items}");
        assert_eq!(items, named, "{line}");
    }
}

#[test]
fn what_is_not_understood_among_others_is_left_out_of_the_sums() {
    let dir = tempfile::tempdir().unwrap();
    let session = fixture("claude-history/2.0-interactive/input.jsonl");
    let (other, empty) = (dir.path().join("other.jsonl"), dir.path().join("empty.jsonl"));
    std::fs::write(&other, CODEX).unwrap();
    std::fs::write(&empty, "").unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let alone = narrows(&["usage", &path(&session)]);
    let with = narrows(&["usage", &path(&session), &path(&other)]);
    assert_eq!(with.status.code(), Some(3), "{}", stderr(&with));
    assert!(stderr(&with).contains("Codex"), "{}", stderr(&with));
    assert_eq!(stdout(&with), stdout(&alone));
    // A file in which nothing stands yet holds no answer that could be missed.
    let with = narrows(&["usage", &path(&session), &path(&empty)]);
    assert_eq!(with.status.code(), Some(0), "{}", stderr(&with));
    assert!(stderr(&with).contains("it is empty"), "{}", stderr(&with));
    assert_eq!(stdout(&with), stdout(&alone));
}

#[test]
fn drift_does_not_call_known_what_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    let utf16: Vec<u8> =
        "{\"type\":\"user\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes) in [("text", &b"root:x:0:0\n"[..]), ("empty", b""), ("utf16", &utf16)] {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let out = narrows(&["check", "drift", "--exit-code", file.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(3), "{name}: {out:?}");
        assert!(!stdout(&out).contains("known"), "{name}: {}", stdout(&out));
        assert!(stderr(&out).contains("no packet of a known agent"), "{name}: {}", stderr(&out));
    }
    // Part of a session.
    let mut part = std::fs::read(fixture("claude-history/2.1-c-files/input.jsonl")).unwrap();
    part.truncate(part.len() - 40);
    let file = dir.path().join("part.jsonl");
    std::fs::write(&file, part).unwrap();
    let out = narrows(&["check", "drift", "--exit-code", file.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(stdout(&out).contains("all readable kinds and fields are known"), "{}", stdout(&out));
}
