//! `narrows acp` as an editor and an agent see it: not at all.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "acp/editor.rs"]
mod editor;
mod served;

use editor::{Editor, spools, start, until};
use served::Dice;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("folder")
}

fn begin(dir: &TempDir, agent: &str) -> Editor {
    start(&dir.path().join("data"), dir.path(), agent)
}

/// Random bytes, without and with line ends, and long lines.
fn garbage(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        match dice.roll(5) {
            0 => bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n"),
            1 => bytes.extend_from_slice(b"\r\n\n{\"half\": "),
            2 => bytes.extend(std::iter::repeat_n(b'x', dice.roll(100_000) as usize)),
            _ => bytes.extend((0..1000).map(|_| dice.roll(256) as u8)),
        }
    }
    bytes.truncate(length);
    bytes
}

/// Sends bytes to `cat` in pieces; what comes back must be the same.
fn echo(dir: &TempDir, data: &Path, bytes: &[u8]) {
    let mut editor = start(data, dir.path(), "exec cat");
    let mut input = editor.input.take().expect("input");
    let back = std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut dice, mut rest) = (Dice(3), bytes);
            while !rest.is_empty() {
                let n = (1 + dice.roll(200_000) as usize).min(rest.len());
                input.write_all(&rest[..n]).expect("write");
                rest = &rest[n..];
            }
        });
        editor.rest()
    });
    assert!(back == bytes, "{} bytes came back of {}", back.len(), bytes.len());
    assert_eq!(editor.wait().code(), Some(0));
}

#[test]
fn every_byte_passes_both_ways() {
    let dir = folder();
    let data = dir.path().join("data");
    echo(&dir, &data, &garbage(1, 3_000_000));
    let mut long = vec![b'y'; 20_000_000];
    long.extend_from_slice(b"\nafter it\nand no end");
    echo(&dir, &data, &long);
    echo(&dir, &data, b"");
    // A piece of a line goes at once, before its end is there.
    let mut editor = begin(&dir, "exec cat");
    editor.write(b"{\"hal");
    let mut some = [0; 5];
    std::io::Read::read_exact(editor.output.as_mut().expect("output"), &mut some).expect("read");
    assert_eq!(&some, b"{\"hal");
}

#[test]
fn each_side_gets_what_the_other_said() {
    let dir = folder();
    let (to, from) = (garbage(5, 1_000_000), garbage(6, 1_500_000));
    std::fs::write(dir.path().join("from"), &from).expect("file");
    // A command in the background has no input of its own in a shell: it is given again.
    let mut editor = begin(&dir, "exec 3<&0; cat <&3 > to & cat from; wait");
    let mut input = editor.input.take().expect("input");
    let back = std::thread::scope(|scope| {
        scope.spawn(|| {
            input.write_all(&to).expect("write");
            drop(input);
        });
        editor.rest()
    });
    assert!(back == from);
    assert_eq!(editor.wait().code(), Some(0));
    assert!(std::fs::read(dir.path().join("to")).expect("file") == to);
}

#[test]
fn the_end_is_the_agents() {
    let dir = folder();
    for (agent, code) in [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137), ("exit 255", 255)] {
        let mut editor = begin(&dir, agent);
        assert_eq!(editor.rest(), b"");
        assert_eq!(editor.wait().code(), Some(code), "{agent}");
    }
    let missing = Command::new(served::NARROWS)
        .args(["acp", "--data"])
        .arg(dir.path().join("data"))
        .args(["--", "no-such-agent"])
        .output()
        .expect("narrows");
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("narrows: no-such-agent: "));
    let told = Command::new(served::NARROWS)
        .args(["acp", "--", "sh", "-c", "echo $MARK >&2; pwd"])
        .env("MARK", "from the agent")
        .env("NARROWS_DATA", dir.path().join("data"))
        .current_dir("/")
        .output()
        .expect("narrows");
    assert_eq!(
        (told.stderr.as_slice(), told.stdout.as_slice()),
        (&b"from the agent\n"[..], &b"/\n"[..])
    );
    assert!(spools(&dir.path().join("data")).is_empty());
}

#[test]
fn signals_are_the_agents() {
    let dir = folder();
    for (name, code) in [("-TERM", 3), ("-INT", 4), ("-HUP", 5)] {
        let agent = "trap 'echo bye; exit 3' TERM; trap 'exit 4' INT; trap 'exit 5' HUP; \
                     echo ready; while :; do sleep 0.02; done";
        let mut editor = begin(&dir, agent);
        assert_eq!(editor.line(), "ready\n");
        editor.signal(name);
        assert_eq!(editor.wait().code(), Some(code), "{name}");
    }
}

#[test]
fn an_agent_that_leaves_something_behind_has_ended() {
    let dir = folder();
    let mut editor = begin(&dir, "sleep 600 & echo $!; exit 6");
    let left = editor.line();
    assert_eq!(editor.wait().code(), Some(6));
    assert!(
        Command::new("kill").arg(left.trim()).status().expect("kill").success(),
        "it had ended"
    );
}

#[test]
fn a_side_that_closes_is_closed_for_the_other() {
    let dir = folder();
    // The agent has nothing more to say, but lives on.
    let mut editor = begin(&dir, "exec 1>&-; cat > heard; exit 8");
    assert_eq!(editor.rest(), b"");
    assert!(editor.child.try_wait().expect("wait").is_none());
    editor.write(b"still here\n");
    assert_eq!(editor.end().code(), Some(8));
    assert_eq!(std::fs::read(dir.path().join("heard")).expect("file"), b"still here\n");
    // It hears nothing more.
    let mut editor = begin(&dir, "exec 0<&-; echo deaf; sleep 1; exit 9");
    assert_eq!(editor.line(), "deaf\n");
    let mut input = editor.input.take().expect("input");
    until("the editor is told", || input.write_all(&[b'x'; 1000]).is_err());
    assert_eq!(editor.wait().code(), Some(9));
    // The editor reads nothing more: an agent that says something is told.
    let mut editor = begin(&dir, "trap '' PIPE; while echo more; do :; done 2>/dev/null; exit 10");
    editor.output = None;
    assert_eq!(editor.wait().code(), Some(10));
}

#[test]
fn the_agent_ends_when_nobody_is_there() {
    for kill in ["the editor", "narrows"] {
        let dir = folder();
        let mut editor = begin(&dir, "echo ready; cat > /dev/null; echo over > over");
        assert_eq!(editor.line(), "ready\n");
        if kill == "narrows" {
            editor.child.kill().expect("kill");
        } else {
            (editor.input, editor.output) = (None, None);
        }
        until(kill, || dir.path().join("over").exists());
    }
}

#[test]
fn nothing_that_happens_to_the_recording_is_felt() {
    let dir = folder();
    let data = dir.path().join("data");
    let session = r#"{"id":1,"method":"session/new","params":{"cwd":"/a"}}
{"id":1,"method":"session/load","params":{"sessionId":"A","cwd":"/a"}}
"#;
    let update = r#"{"method":"session/update","params":{"sessionId":"A","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"…"}}}}
"#;
    let mut bytes = session.as_bytes().to_vec();
    bytes.extend_from_slice(update.repeat(20_000).as_bytes());
    // Nothing can be written there.
    echo(&dir, Path::new("/dev/null/nothing"), &bytes);
    // Somebody else has the folder's name.
    std::fs::create_dir_all(&data).expect("folder");
    std::fs::write(data.join("spool"), "").expect("file");
    echo(&dir, &data, &bytes);
    std::fs::remove_file(data.join("spool")).expect("file");
    // The recorder waits for a store that never answers; much more passes than may wait.
    assert!(Command::new("mkfifo").arg(data.join("narrows.db")).status().expect("fifo").success());
    let mut editor = start(&data, dir.path(), "exec cat");
    let mut input = editor.input.take().expect("input");
    let mut much = session.as_bytes().to_vec();
    much.extend_from_slice(update.repeat(800_000).as_bytes());
    let back = std::thread::scope(|scope| {
        scope.spawn(|| input.write_all(&much).expect("write"));
        let mut back = vec![0; much.len()];
        std::io::Read::read_exact(editor.output.as_mut().expect("output"), &mut back).expect("all");
        back
    });
    assert!(back == much);
    let status = std::fs::read_to_string(format!("/proc/{}/status", editor.child.id()));
    let status = status.unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|p| p.split_whitespace().next()).and_then(|p| p.parse::<u64>().ok());
    assert!(peak.is_none_or(|kb| kb < 250 << 10), "it takes {peak:?} kB");
    drop(input);
    assert_eq!(editor.wait().code(), Some(0));
}
