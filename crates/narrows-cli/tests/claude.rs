//! The commands on sessions of Claude Code, as a user runs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn fixture(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures").join(case)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A session as it lies in a home: `project/<id>.jsonl` and `project/<id>/…`.
fn project(name: &str, case: &str, id: &str) -> PathBuf {
    let project = folder(name);
    copy(&fixture(case), &project);
    fs::remove_file(project.join("events.jsonl")).unwrap();
    fs::rename(project.join("input.jsonl"), project.join(format!("{id}.jsonl"))).unwrap();
    project
}

const AGENT: &str = "8f83469a-a29a-4183-90e2-4b52f9bdf127";

#[test]
fn a_session_brings_its_subagents_and_long_outputs() {
    let project = project("subagents", "claude-history/2.1-g-subagent", AGENT);
    let file = project.join(format!("{AGENT}.jsonl"));
    let items = lines(&narrows(&["parse", file.to_str().unwrap()]));
    let inside = |i: &&Value| !i["parentToolCallId"].is_null();
    assert_eq!(items.iter().filter(inside).count(), 6);
    assert!(items.iter().any(|i| i["content"] == "Subagent here, reading."));
    // The folder of the session, and the folder it lies in, stand for it too.
    for path in [project.join(AGENT), project.clone()] {
        assert_eq!(lines(&narrows(&["parse", path.to_str().unwrap()])), items);
    }
    // Alone, the file of the subagent is a session of its own.
    let agent = project.join(AGENT).join("subagents/agent-a6f560469cd457f25.jsonl");
    let alone = lines(&narrows(&["parse", agent.to_str().unwrap()]));
    assert_eq!(alone.len(), 6);

    let long = fixture("claude-history/2.1-d-bash");
    let items = lines(&narrows(&["parse", long.join("input.jsonl").to_str().unwrap()]));
    let longest = items.iter().filter_map(|i| i["toolCall"]["rawOutput"].as_str()).map(str::len);
    assert_eq!(longest.max(), Some(73_890));
}

#[test]
fn subagents_that_nobody_asked_for_are_left_out() {
    // Version 2.0 keeps every subagent beside the session, and warms two up in each run.
    let case = fixture("claude-history/2.0-g-subagent");
    let items = lines(&narrows(&["parse", case.join("input.jsonl").to_str().unwrap()]));
    assert!(!items.iter().any(|i| i.to_string().contains("Warmup")));
    assert!(items.iter().any(|i| i["content"] == "Subagent here, reading."));
}

#[test]
fn several_sessions_in_a_folder_must_be_told_apart() {
    let project = folder("several");
    for name in ["a", "b"] {
        fs::write(project.join(format!("{name}.jsonl")), "{}\n").unwrap();
    }
    let out = narrows(&["parse", project.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("2 sessions in this folder"), "{said}");
    let empty = folder("empty");
    let out = narrows(&["parse", empty.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("no session file"));
}

#[test]
fn a_format_may_be_named() {
    let live = fixture("claude-stream/2.1-c-files/input.jsonl");
    let live = live.to_str().unwrap();
    let auto = lines(&narrows(&["parse", live]));
    assert_eq!(lines(&narrows(&["parse", "--format", "claude-stream", live])), auto);
    assert_eq!(lines(&narrows(&["parse", "--format", "claude-history", live])), auto);
    let other = narrows(&["parse", "--format", "acp", "--view", "events", live]);
    assert_eq!(other.status.code(), Some(3), "nothing of it is ACP");
    assert!(String::from_utf8_lossy(&other.stdout).contains(r#""type":"unknown""#));
}

#[test]
fn the_session_view_tells_tokens_and_cost() {
    let case = fixture("claude-history/2.1-g-subagent/input.jsonl");
    let info = &lines(&narrows(&["parse", "--view", "session", case.to_str().unwrap()]))[0];
    assert_eq!(info["agent"], "Claude Code");
    assert_eq!(info["version"], "2.1.325");
    assert_eq!(info["usage"]["outputTokens"], 121);
    assert_eq!(info["subagentUsage"]["outputTokens"], 205);
    assert_eq!(info["costUsd"], 0.017_123_999_999_999_997);
}

#[test]
fn parity_tells_what_differs() {
    let live = fixture("claude-stream/2.1-c-files/input.jsonl");
    let kept = fixture("claude-history/2.1-c-files/input.jsonl");
    let (live, kept) = (live.to_str().unwrap(), kept.to_str().unwrap());
    let out = narrows(&["check", "parity", live, kept]);
    assert!(out.status.success());
    assert_eq!(
        text(&out),
        "accepted: user_message only in the history (1): prompts are streamed only with \
         --replay-user-messages\n\
         equal otherwise: 9 items live, 10 in the history\n"
    );
    assert_eq!(text(&narrows(&["check", "parity", kept, kept])), "equal: 10 items\n");

    let changed = folder("parity").join("history.jsonl");
    let spoiled =
        fs::read_to_string(kept).unwrap().replace("the quick brown fox 🦊", "a slow snail");
    fs::write(&changed, spoiled).unwrap();
    let out = narrows(&["check", "parity", live, changed.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out).contains("different: tool_call."), "{}", text(&out));

    let out = narrows(&["check", "parity", live, "no-such-file"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("no-such-file"));
}

#[test]
fn drift_names_what_is_new() {
    let out =
        narrows(&["check", "drift", "--exit-code", fixture("claude-history").to_str().unwrap()]);
    // Cases made by hand hold kinds that do not exist.
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out).contains("attachment:from_the_future"), "{}", text(&out));
    let one = fixture("claude-history/2.1-c-files/input.jsonl");
    let out = narrows(&["check", "drift", "--exit-code", one.to_str().unwrap()]);
    assert!(out.status.success());
    assert!(text(&out).ends_with("all kinds and fields are known\n"), "{}", text(&out));
}

#[test]
fn tokens_of_a_fork_count_once() {
    let one = fixture("claude-history/2.1-g-subagent/input.jsonl");
    let row = |out: &Output, name: &str| -> Vec<u64> {
        let text = text(out);
        let line = text.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect()
    };
    let out = narrows(&["usage", one.to_str().unwrap()]);
    assert_eq!(row(&out, "sessions"), [2, 28, 121, 8400, 600, 0]);
    assert_eq!(row(&out, "subagents"), [3, 45, 205, 12900, 900, 0]);

    // A fork copies the records of what it was forked from into a session of its own.
    let folder = folder("forks");
    let fork = fs::read_to_string(fixture("claude-history/2.1-w-fork/input.jsonl")).unwrap();
    fs::write(folder.join("fork.jsonl"), &fork).unwrap();
    let out = narrows(&["usage", folder.to_str().unwrap()]);
    let whole = row(&out, "sessions");
    let first: String = fork
        .lines()
        .take_while(|l| !l.contains("Forked session. [s:f2]\"}"))
        .fold(String::new(), |all, l| all + l + "\n");
    let original = first
        .replace("08447f40-6e59-4c47-85b0-7ab35a521aac", "b16bac1b-e5c3-4366-868d-24a5fa12171d");
    fs::write(folder.join("original.jsonl"), original).unwrap();
    let out = narrows(&["usage", folder.to_str().unwrap()]);
    assert!(text(&out).starts_with("2 sessions"), "{}", text(&out));
    assert_eq!(row(&out, "sessions"), whole);
}
