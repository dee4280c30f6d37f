//! Nothing of an agent outlives its keeper or whoever started that: real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod agents;

use agents::{MARK, NARROWS, Talk, agent, catches_term, kill, mark, marked, stat, until, zombies};
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};

/// A grace, in milliseconds, that a test does not outlive.
const LONG: &str = "3600000";

/// `narrows __supervise` with options, a mark and an agent.
fn keep(mark: &str, options: &[&str], argv: &[&str]) -> Command {
    let mut command = Command::new(NARROWS);
    command.arg("__supervise").args(options).arg("--").args(argv).env(MARK, mark);
    command
}

/// Runs a shell under a keeper.
fn shell(mark: &str, options: &[&str], script: &str) -> Output {
    let mut command = keep(mark, options, &["sh", "-c", script]);
    command.stdin(Stdio::null()).output().expect("keeper")
}

/// Starts a command that runs the scripted agent, and has it play a prompt until it says `ready`.
fn playing(command: &mut Command, prompt: &str) -> Talk {
    let mut talk = Talk::start(command);
    talk.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}));
    talk.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}));
    let session = talk.find(|message| message["id"] == 1)["result"]["sessionId"].clone();
    let prompt = json!([{"type": "text", "text": format!("{prompt}\nsay ready\nhang")}]);
    talk.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": prompt}}));
    talk.find(|message| text(message) == "ready");
    talk
}

fn text(message: &Value) -> &str {
    message["params"]["update"]["content"]["text"].as_str().unwrap_or_default()
}

fn scripted() -> String {
    agent("scripted_acp").display().to_string()
}

#[test]
fn the_code_is_the_agents() {
    let mark = mark();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        assert_eq!(shell(&mark, &[], script).status.code(), Some(code), "{script}");
    }
    for (program, code) in [("/no/such/agent", 127), ("/etc/passwd", 126)] {
        let output = keep(&mark, &[], &[program]).output().expect("keeper");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.starts_with(&format!("narrows: cannot start {program}: ")), "{said}");
    }
    assert_eq!(keep(&mark, &[], &[]).output().expect("keeper").status.code(), Some(2));
}

#[test]
fn asked_to_end_it_ends_everything() {
    let mark = mark();
    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut talk =
            playing(&mut keep(&mark, &["--grace", LONG], &[&scripted()]), "fork\ndaemon");
        until("keeper, agent, child and daemon", || marked(&mark).len() == 4);
        kill(signal, talk.child.id());
        assert_eq!(talk.exit(), Some(143));
        assert_eq!(marked(&mark), Vec::<u32>::new());
    }
}

#[test]
fn the_deaf_are_killed_after_the_grace() {
    let mark = mark();
    let mut talk =
        playing(&mut keep(&mark, &["--grace", "500"], &[&scripted()]), "deaf\nfork\ndaemon");
    until("four processes that are deaf", || {
        let all = marked(&mark);
        all.len() == 4 && all.into_iter().all(catches_term)
    });
    kill("-TERM", talk.child.id());
    assert_eq!(talk.exit(), Some(137));
    assert_eq!(marked(&mark), Vec::<u32>::new());
    // They are asked before.
    let script = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.02; done";
    let mut talk = Talk::start(&mut keep(&mark, &["--grace", "500"], &["sh", "-c", script]));
    assert_eq!(talk.line().as_deref(), Some("ready"));
    kill("-TERM", talk.child.id());
    assert_eq!(talk.line().as_deref(), Some("asked"));
    assert_eq!(talk.exit(), Some(137));
}

#[test]
fn without_its_parent_it_ends_everything() {
    let mark = mark();
    let script = r#"exec 3<&0; "$0" __supervise --grace 300 --parent $$ -- "$1" <&3 & wait"#;
    let mut between = Command::new("sh");
    between.args(["-c", script, NARROWS, &scripted()]).env(MARK, &mark);
    let mut talk = playing(&mut between, "deaf\nfork\ndaemon");
    until("five processes", || marked(&mark).len() == 5);
    kill("-KILL", talk.child.id());
    until("all are gone", || marked(&mark).is_empty());
    assert_eq!(talk.exit(), None);
}

#[test]
fn without_a_parent_it_does_not_start() {
    let mark = mark();
    let output = shell(&mark, &["--parent", "1"], "echo started");
    assert_eq!(output.status.code(), Some(126));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "narrows: cannot start the agent: the parent process has exited\n");
}

#[test]
fn when_the_agent_ends_so_does_the_rest() {
    let mark = mark();
    let script =
        "sleep 600 & setsid sleep 600 & (setsid sleep 600 &) ; (trap '' TERM; sleep 600) & exit 3";
    let output = shell(&mark, &["--grace", "300"], script);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(marked(&mark), Vec::<u32>::new());
}

#[test]
fn one_that_is_stopped_and_one_that_forks_on_are_ended() {
    let mark = mark();
    for script in ["kill -STOP $$", "trap '' TERM; while :; do sleep 5 & sleep 0.005; done"] {
        let mut command = keep(&mark, &["--grace", "300"], &["sh", "-c", script]);
        let mut child = command.stdin(Stdio::null()).spawn().expect("keeper");
        until("it is at it", || {
            let all = marked(&mark);
            all.len() > 5 || all.iter().any(|pid| stat(*pid).is_some_and(|(state, _)| state == 'T'))
        });
        kill("-TERM", child.id());
        until("it ends", || marked(&mark).is_empty());
        child.wait().expect("end");
    }
}

#[test]
fn only_three_files_are_open() {
    let mark = mark();
    let script = r#"exec 7</dev/null 9>/dev/null; exec "$0" __supervise -- "$1""#;
    let mut between = Command::new("sh");
    between.args(["-c", script, NARROWS, &scripted()]).env(MARK, &mark);
    let talk = playing(&mut between, "fds");
    let said: String = talk
        .said
        .iter()
        .filter_map(|(_, line)| serde_json::from_str::<Value>(line).ok())
        .map(|message| text(&message).to_owned())
        .collect();
    assert_eq!(said, "0 1 2ready");
}

#[test]
fn a_pipe_that_the_agent_closes_is_closed() {
    let mark = mark();
    let mut talk = Talk::start(&mut keep(&mark, &[], &["sh", "-c", "exec >&-; exec sleep 600"]));
    assert_eq!(talk.line(), None);
    assert_eq!(talk.child.try_wait().expect("wait"), None);
    kill("-TERM", talk.child.id());
    assert_eq!(talk.exit(), Some(143));
}

#[test]
fn limits_end_it_with_a_word() {
    let mark = mark();
    let much = "x=$(head -c 80000000 /dev/zero | tr '\\0' a); sleep 600; echo $x";
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 600 & done; wait";
    for (options, script, words) in [
        (["--memory", "40000000"], much, " bytes of memory, more than 40000000\n"),
        (
            ["--processes", "10"],
            many,
            "narrows: ended the agent: it had 13 processes, more than 10\n",
        ),
    ] {
        let output = shell(&mark, &options, script);
        let said = String::from_utf8_lossy(&output.stderr);
        // A shell whose child is killed before itself has a word for it.
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("narrows: ended the agent: it ") && said.ends_with(words),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(137));
        assert_eq!(marked(&mark), Vec::<u32>::new());
    }
    let within = shell(&mark, &["--memory", "900000000", "--processes", "10"], "sleep 1.5; exit 4");
    assert_eq!((within.status.code(), within.stderr), (Some(4), Vec::new()));
}

#[test]
fn memory_that_processes_share_counts_once() {
    let mark = mark();
    // Each shows a few megabytes, of which nearly all are pages of the same program.
    let script = "for i in $(seq 200); do sleep 600 & done; sleep 2.5; exit 4";
    let output = shell(&mark, &["--memory", "150000000"], script);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert_eq!(marked(&mark), Vec::<u32>::new());
}

#[test]
fn every_byte_passes() {
    let mark = mark();
    let size = 64 << 20;
    let script = format!("head -c {size} /dev/zero >&2 & head -c {size} /dev/zero; wait");
    let output = shell(&mark, &[], &script);
    assert_eq!((output.stdout.len(), output.stderr.len()), (size, size));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn many_lives_leave_nothing() {
    let mark = mark();
    for n in 0..200 {
        let output = shell(&mark, &[], &format!("sleep 600 & exit {}", n % 100));
        assert_eq!(output.status.code(), Some(n % 100));
    }
    assert_eq!(marked(&mark), Vec::<u32>::new());
    // The same within one life: all of these lose their parent.
    let script = "for i in $(seq 200); do (sh -c : &); done; echo done; exec sleep 600";
    let mut talk = Talk::start(&mut keep(&mark, &[], &["sh", "-c", script]));
    assert_eq!(talk.line().as_deref(), Some("done"));
    let keeper = talk.child.id();
    until("all are taken up", || marked(&mark).len() == 2 && zombies(keeper) == 0);
    kill("-TERM", keeper);
    assert_eq!(talk.exit(), Some(143));
    assert_eq!(marked(&mark), Vec::<u32>::new());
}
