//! The program as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn spawn(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn narrows(args: &[&str], input: &[u8]) -> Output {
    let mut child = spawn(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fixture(case: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures/acp");
    fixtures.join(case).join("input.jsonl")
}

const CHUNK: &str =
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi."}}"#;

#[test]
fn items_are_the_default_view() {
    let file = fixture("opencode-1.18-c-files");
    let out = narrows(&["parse", file.to_str().unwrap()], b"");
    assert!(out.status.success());
    let items = lines(&out);
    assert_eq!(items[0]["type"], "user_message");
    assert_eq!(items[2]["toolCall"]["toolName"], "read");
    assert_eq!(items[2]["toolCall"]["filePath"], "notes.md");
    assert!(items.iter().all(|i| i["isStreaming"] != true), "a finished input streams nothing");
    assert_eq!(stderr(&out), "");
}

#[test]
fn every_view_prints_json_lines() {
    let file = std::fs::read(fixture("opencode-1.1-f-todos")).unwrap();
    for (view, kind) in [
        ("events", "tool_call_progress"),
        ("items", "todo_list"),
        ("activity", "agent_tool_result"),
        ("packets", "agent_plan_update"),
    ] {
        let out = narrows(&["parse", "--format", "acp", "--view", view, "-"], &file);
        assert!(out.status.success());
        assert!(lines(&out).iter().any(|l| l["type"] == kind), "{view} has no {kind}");
    }
}

#[test]
fn activity_has_the_fields_of_its_messages() {
    let file = fixture("opencode-1.18-d-bash");
    let path = file.to_str().unwrap();
    let out = narrows(
        &["parse", "--view", "activity", "--session", "wo-1", "--interval", "1", path],
        b"",
    );
    let messages = lines(&out);
    assert!(messages.iter().all(|m| m["workOrderId"] == "wo-1" && m["runId"] == "wo-1"));
    let of =
        |kind: &str| messages.iter().filter(|m| m["type"] == kind).cloned().collect::<Vec<_>>();
    let call = &of("agent_tool_call")[0];
    assert_eq!(call["tool"], "Bash");
    assert_eq!(call["input"]["command"], "echo out; echo err >&2");
    let result = &of("agent_tool_result")[0];
    assert_eq!(result["toolUseId"], call["toolUseId"]);
    assert_eq!((&result["success"], &result["contentLength"]), (&true.into(), &8.into()));
    assert!(result["durationMs"].is_u64());
    assert_eq!(of("agent_tool_result")[1]["success"], false, "exit 3 is no success");
    assert!(
        of("agent_tool_result").iter().all(|r| r["contentPreview"]
            .as_str()
            .unwrap()
            .chars()
            .count()
            <= 500)
    );
    assert_eq!(of("agent_output").len(), 1, "one message a finished block");
    let told: Vec<u64> =
        of("progress_update").iter().map(|p| p["percentage"].as_u64().unwrap()).collect();
    assert!(told.len() > 2 && told.is_sorted(), "{told:?}");
    assert_eq!(told.iter().filter(|p| **p == 100).count(), 1, "100 only at the end: {told:?}");
}

#[test]
fn the_packets_view_reads_back_to_the_same_calls() {
    for case in ["opencode-1.18-c-files", "opencode-1.1-d-bash", "claude-acp-g-subagent"] {
        let file = fixture(case);
        let packets = narrows(&["parse", "--view", "packets", file.to_str().unwrap()], b"");
        let direct = lines(&narrows(&["parse", file.to_str().unwrap()], b""));
        let again = lines(&narrows(&["parse"], &packets.stdout));
        let calls = |items: &[Value]| -> Vec<(Value, Value, Value)> {
            let calls = items.iter().filter(|i| i["type"] == "tool_call").map(|i| &i["toolCall"]);
            calls.map(|c| (c["id"].clone(), c["toolName"].clone(), c["status"].clone())).collect()
        };
        assert_eq!(calls(&direct), calls(&again), "{case}");
    }
}

#[test]
fn the_root_is_hidden_in_every_view() {
    for case in [
        "opencode-1.18-p-paths-sandbox",
        "claude-acp-p-paths-k8s",
        "gemini-acp-p-paths-k8s",
        "codex-acp-p-paths-sandbox",
    ] {
        let file = fixture(case);
        let text = std::fs::read_to_string(&file).unwrap();
        let at = text.find("\"cwd\":\"").unwrap() + 7;
        let root = text[at..].split('"').next().unwrap();
        let id = root.rsplit('/').next().unwrap();
        for view in ["events", "items", "activity", "packets"] {
            let out = narrows(&["parse", "--view", view, file.to_str().unwrap()], b"");
            let shown = String::from_utf8(out.stdout).unwrap();
            assert!(!shown.contains(root), "{case} {view} shows {root}");
            assert!(!shown.contains(id), "{case} {view} shows {id}");
        }
    }
}

#[test]
fn bad_lines_are_counted_and_read_over() {
    let input = format!("noise\n{CHUNK}\n{{\"type\":\n\u{0}\n{CHUNK}\n");
    let out = narrows(&["parse", "--view", "events"], input.as_bytes());
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(stderr(&out), "narrows: not parsed: 3 malformed lines\n");
    let bad: Vec<Value> = lines(&out).into_iter().filter(|e| e["type"] == "malformed").collect();
    assert_eq!(bad[0]["reason"], "not a JSON value");
    assert_eq!(bad[1]["position"]["line"], 3);
    assert_eq!(bad[1]["reason"], "cut short");
}

#[test]
fn hostile_lines_neither_stop_nor_fill_it() {
    let mut input = b"{\"type\":\"agent_message_chunk\",\"content\":".to_vec();
    input.extend(std::iter::repeat_n(b'[', 100_000));
    input.extend(b"\n{\"a\":");
    input.extend(std::iter::repeat_n(b'[', 100_000));
    input.extend(std::iter::repeat_n(b']', 100_000));
    input.extend(b"}\n\xff\xfe\n\"\xed\xa0\x80\"\n");
    input.extend(std::iter::repeat_n(b'x', 65 << 20));
    input.push(b'\n');
    input.extend(CHUNK.as_bytes());
    let out = narrows(&["parse", "--view", "events"], &input);
    assert!(out.status.success());
    let events = lines(&out);
    let reasons: Vec<&str> = events.iter().filter_map(|e| e["reason"].as_str()).collect();
    assert_eq!(reasons, ["cut short", "not UTF-8", "not UTF-8", "line too long"]);
    assert_eq!(events.last().unwrap()["text"], "Hi.");
    assert_eq!(events.iter().filter(|e| e["type"] == "unknown").count(), 1);
    assert_eq!(events[4]["length"], 65 << 20);
}

#[test]
fn io_errors_are_1_and_usage_errors_2() {
    let out = narrows(&["parse", "/no/such/file"], b"");
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).starts_with("narrows: cannot read /no/such/file: "), "{}", stderr(&out));
    assert_eq!(narrows(&["parse", "--view", "nonsense"], b"").status.code(), Some(2));
    assert_eq!(narrows(&["nonsense"], b"").status.code(), Some(2));
    let directory = env!("CARGO_MANIFEST_DIR");
    assert_eq!(narrows(&["parse", directory], b"").status.code(), Some(1));
}

#[test]
fn help_has_examples() {
    for command in ["parse", "sanitize"] {
        let out = narrows(&[command, "--help"], b"");
        assert!(out.status.success());
        assert!(String::from_utf8_lossy(&out.stdout).contains("Examples:"));
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in [&["parse", "--view", "events"][..], &["sanitize"]] {
        let mut child = spawn(args);
        let mut stdin = child.stdin.take().unwrap();
        drop(child.stdout.take());
        // Endless input: it must end because nobody reads the output.
        while stdin.write_all(format!("{CHUNK}\n").repeat(100).as_bytes()).is_ok() {}
        let status = child.wait().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success(), "{args:?}: {status}");
        assert_eq!(said, "");
    }
}

#[test]
fn output_comes_while_input_is_open() {
    let mut child = spawn(&["parse", "--view", "events"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"agent_message\",\"content\":\"now\"}\n").unwrap();
    let mut first = [0; 21];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"{\"type\":\"text_chunk\",");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn sanitize_is_a_filter() {
    let text = "cd /srv/ada/work && ls /srv/ada/work/src\nno end";
    let out = narrows(&["sanitize", "--root", "/srv/ada/work"], text.as_bytes());
    assert_eq!(String::from_utf8_lossy(&out.stdout), "cd . && ls src\nno end");
    let paths = "/srv/ada/work/a.rs\n/home/ada/x\n/a/b/c/d\n";
    let out = narrows(&["sanitize", "--path", "--root", "/srv/ada/work"], paths.as_bytes());
    assert_eq!(String::from_utf8_lossy(&out.stdout), "a.rs\n~/x\nb/c/d\n");
    let bytes = b"caf\xc3\xa9 \xff /workspace/sessions/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/x";
    let out = narrows(&["sanitize"], bytes);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "café \u{fffd} x");
}

/// A file of its own for one test.
fn scratch(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_report_has_kinds_and_counts_and_no_text() {
    let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
    let input = format!("cd /srv/run/x1/a\n{token} {token}\nhunter\n\u{1b}[2J");
    for args in [
        &["sanitize", "--report", "--root", "/srv/run/x1"][..],
        &["sanitize", "--report", "--root", "/srv/run/x1", "-"],
    ] {
        let out = narrows(args, input.as_bytes());
        assert!(out.status.success(), "{}", stderr(&out));
        let report = stdout(&out);
        let rows: Vec<Vec<&str>> = report.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows, [["escape", "1"], ["github-token", "2"], ["path", "1"], ["total", "4"]]);
    }
    let out = narrows(&["sanitize", "--report"], b"nothing here\n");
    assert_eq!(stdout(&out), "nothing to redact\n");
}

#[test]
fn a_config_adds_rules_values_roots_and_exceptions() {
    let config = scratch(
        "config.toml",
        r#"
[sanitize]
roots = ["/srv/run/x1"]
home = "/home/ada"
allow = ["AKIAIOSFODNN7EXAMPLE"]
known = ["correct horse battery"]
[[sanitize.rule]]
kind = "acme-token"
keyword = "acme_"
regex = 'acme_[0-9a-f]{8}'
"#,
    );
    let config = config.to_str().unwrap();
    let input =
        "/srv/run/x1/a /home/ada/b AKIAIOSFODNN7EXAMPLE correct horse battery acme_00ff00ff\n";
    let out = narrows(&["sanitize", "--config", config], input.as_bytes());
    let shown = stdout(&out);
    let (start, end) = ("a ~/b AKIAIOSFODNN7EXAMPLE [redacted:known-value:", "]\n");
    assert!(shown.starts_with(start) && shown.ends_with(end), "{shown}");
    assert!(shown.contains("] [redacted:acme-token:"), "{shown}");

    let chunk = CHUNK.replace("Hi.", "acme_00ff00ff /srv/run/x1/a");
    let out = narrows(&["parse", "--config", config], chunk.as_bytes());
    assert!(lines(&out)[0]["content"].as_str().unwrap().ends_with("] a"), "{}", stdout(&out));
}

#[test]
fn a_bad_config_is_refused_with_its_line_and_without_its_values() {
    let bad = [
        ("[sanitize]\nknown = [\"hunter2\"]", "known value 1 is shorter than 8 characters"),
        ("[sanitize]\nsecrets = [\"s3cr3t\"]", "line 2: unknown field `secrets`"),
        (
            "[sanitize]\n[[sanitize.rule]]\nkind = \"A b\"\nkeyword = \"abc\"\nregex = 'x'",
            "the kind is",
        ),
        (
            "[sanitize]\n[[sanitize.rule]]\nkind = \"a\"\nkeyword = \"ab\"\nregex = 'x'",
            "at least 3",
        ),
        (
            "[sanitize]\n[[sanitize.rule]]\nkind = \"a\"\nkeyword = \"abc\"\nregex = '('",
            "rule \"a\"",
        ),
        ("[sanitize\n", "line 1"),
    ];
    for (i, (text, message)) in bad.into_iter().enumerate() {
        let config = scratch(&format!("bad{i}.toml"), text);
        let out = narrows(&["sanitize", "--config", config.to_str().unwrap()], b"");
        assert_eq!(out.status.code(), Some(1));
        let said = stderr(&out);
        assert!(said.contains(message), "{text}: {said}");
        assert!(!said.contains("s3cr3t") && !said.contains("hunter2"), "{said}");
    }
    let out = narrows(&["sanitize", "--config", "/does/not/exist.toml"], b"");
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn values_of_secret_variables_are_hidden() {
    let run = |args: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_narrows"))
            .args(args)
            .env("MY_APP_TOKEN", "plain words as token")
            .env("OTHER", "other plain words")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = b"x plain words as token y other plain words\n";
        child.stdin.take().unwrap().write_all(input).unwrap();
        stdout(&child.wait_with_output().unwrap())
    };
    let shown = run(&["sanitize"]);
    assert!(shown.starts_with("x [redacted:known-value:"), "{shown}");
    assert!(shown.ends_with("] y other plain words\n"), "{shown}");
    assert!(run(&["sanitize", "--no-env"]).contains("plain words as token"));
}
