//! `narrows run` and `narrows agents`.

use crate::agents::kill;
use crate::helper::{BOTH, config, narrows};
use crate::served::serve;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_turn_in_the_terminal() {
    let folder = tempfile::tempdir().expect("folder");
    let config = config(folder.path(), "");
    let (data, work) = (folder.path().join("data"), folder.path().join("work"));
    std::fs::create_dir_all(&work).expect("work");
    let run = |words: &[&str]| {
        let output = narrows()
            .arg("run")
            .arg("--data")
            .arg(&data)
            .arg("--config")
            .arg(&config)
            .args(words)
            .current_dir(&work)
            .env("HOME", folder.path().join("home"))
            .stdin(std::process::Stdio::null())
            .output()
            .expect("run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    for agent in BOTH {
        let (good, out, err) =
            run(&["--agent", agent, "--yes", "say Hello\nedit a.txt words\nask May I\nsay done"]);
        assert!(good, "{agent}: {out}{err}");
        assert!(out.contains("Hello") && out.contains("a.txt") && out.contains("allowed"), "{out}");
        assert!(work.join("a.txt").exists());
        let id = err.split("narrows show ").nth(1).and_then(|t| t.split_whitespace().next());
        // As lists show it.
        let short = &id.expect("id")[..6];
        let (good, out, err) = run(&["--session", short, "recall"]);
        assert!(good && out.contains("Hello"), "{agent}: {out}{err}");
        let (good, _, err) = run(&["--agent", agent, "ask May I"]);
        assert!(!good && err.contains("--yes"), "{agent}: {err}");
        let (good, out, _) = run(&["--agent", agent, "exit 4"]);
        assert!(!good && out.contains("code 4"), "{agent}: {out}");
    }
    let (good, _, err) = run(&["--agent", "missing", "x"]);
    assert!(!good && err.contains("not installed"), "{err}");
    // A running server that does not run agents is not gone round.
    let served = serve(&data, &[], &["--no-follow"]).expect("server");
    let (good, _, err) = run(&["--agent", "acp", "say x"]);
    assert!(!good && err.contains("--allow-run"), "{err}");
    drop(served);
}

#[test]
fn agents_are_listed() {
    let folder = tempfile::tempdir().expect("folder");
    let config = config(folder.path(), "");
    let output =
        narrows().arg("agents").arg("--config").arg(&config).env("HOME", folder.path()).output();
    let text = String::from_utf8_lossy(&output.expect("agents").stdout).into_owned();
    assert!(text.contains("✓ acp") && text.contains("· missing"), "{text}");
    assert!(text.contains("opencode acp") && text.contains("gemini --acp"), "{text}");
}

#[test]
fn ctrl_c_cancels_and_then_ends() {
    let folder = tempfile::tempdir().expect("folder");
    let config = config(folder.path(), "");
    for words in ["say begun\nbash true\nwait 60000", "say begun\nbash true\nhang"] {
        let mut child = narrows()
            .args(["run", "--agent", "acp", "--data"])
            .arg(folder.path().join("data"))
            .arg("--config")
            .arg(&config)
            .arg(words)
            .current_dir(folder.path())
            .env("HOME", folder.path().join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run");
        let mut lines = BufReader::new(child.stdout.take().expect("output")).lines();
        assert!(lines.any(|line| line.is_ok_and(|l| l.contains("begun") && !l.contains("say"))));
        let mut errors = BufReader::new(child.stderr.take().expect("errors")).lines();
        kill("-INT", child.id());
        assert!(errors.any(|line| line.is_ok_and(|l| l.contains("cancelling"))));
        // One that has not ended by the first is ended by the second.
        kill("-INT", child.id());
        assert!(!child.wait().expect("end").success());
    }
}
