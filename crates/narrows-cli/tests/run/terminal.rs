//! `narrows run` and `narrows agents`.

use crate::agents::kill;
use crate::helper::{BOTH, Running, config, narrows};
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
        assert_eq!(child.wait().expect("end").code(), Some(130));
    }
}

/// `narrows run` in a terminal of its own; what it shows comes out, what is typed goes in.
fn in_a_terminal(folder: &std::path::Path, agent: &str, prompt: &str) -> std::process::Child {
    config(folder, "");
    at_a_terminal(folder, "data", &["--agent", agent, prompt])
}

fn at_a_terminal(folder: &std::path::Path, data: &str, more: &[&str]) -> std::process::Child {
    let (config, data) = (folder.join("config.toml"), folder.join(data));
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let words = [
        crate::served::NARROWS,
        "run",
        "--data",
        data.to_str().expect("text"),
        "--config",
        config.to_str().expect("text"),
    ];
    let line: Vec<String> = words.iter().chain(more).map(|word| quoted(word)).collect();
    std::process::Command::new("script")
        .args(["-q", "-e", "-c", &line.join(" "), "/dev/null"])
        .current_dir(folder)
        .env("HOME", folder.join("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script")
}

/// Reads until some words stand on the screen; what stands there.
fn until_shown(child: &mut std::process::Child, words: &str) -> String {
    use std::io::Read;
    let out = child.stdout.as_mut().expect("output");
    let (mut seen, mut piece) = (Vec::new(), [0; 1024]);
    while !String::from_utf8_lossy(&seen).contains(words) {
        let n = out.read(&mut piece).expect("screen");
        assert!(n > 0, "{words} did not come: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..n]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn a_question_in_the_terminal_shows_what_is_asked_for() {
    use std::io::Write;
    for (agent, typed, words) in [
        ("claude", "y\n", "allowed: allow_once"),
        ("claude", "a\n", "allowed: allow_always"),
        ("claude", "nonsense\nn not like this\n", "rejected"),
        ("acp", "y\n", "allowed: allow_once"),
        ("acp", "n\n", "rejected"),
    ] {
        let folder = tempfile::tempdir().expect("folder");
        let mut child = in_a_terminal(folder.path(), agent, "say begun\nwait 300\nask May I");
        // What is typed before the question is no answer to it.
        until_shown(&mut child, "begun");
        child.stdin.as_mut().expect("input").write_all(b"y\n1\n").expect("typed");
        let seen = until_shown(&mut child, "1–");
        assert!(seen.contains("wants to run this command"), "{agent}: {seen}");
        assert!(seen.contains("    echo May I"), "{agent}: {seen}");
        assert!(!seen.contains("allowed"), "{agent}: {seen}");
        child.stdin.as_mut().expect("input").write_all(typed.as_bytes()).expect("typed");
        until_shown(&mut child, words);
        assert!(child.wait().expect("end").success(), "{agent} {typed:?}");
    }
}

#[test]
fn a_plan_in_the_terminal_is_shown() {
    use std::io::Write;
    for agent in BOTH {
        let folder = tempfile::tempdir().expect("folder");
        let prompt = "plan Just a formality | Sink every boat";
        let mut child = in_a_terminal(folder.path(), agent, prompt);
        let seen = until_shown(&mut child, "1–");
        assert!(seen.contains("wants to leave plan mode and carry out this plan"), "{seen}");
        assert!(seen.contains("    Sink every boat"), "{agent}: {seen}");
        child.stdin.as_mut().expect("input").write_all(b"y\n").expect("typed");
        until_shown(&mut child, "planned");
        assert!(child.wait().expect("end").success(), "{agent}");
    }
}

#[test]
fn a_form_in_the_terminal_is_filled_in() {
    use std::io::Write;
    let folder = tempfile::tempdir().expect("folder");
    let form = r#"{"mode": "form", "message": "Where to?", "requestedSchema": {"type": "object", "required": ["place", "nodes"], "properties": {"place": {"type": "string", "oneOf": [{"const": "eu-1", "title": "Europe"}, {"const": "us-1", "title": "America"}]}, "nodes": {"type": "integer", "maximum": 9}, "why": {"type": "string"}}}}"#;
    let mut child = in_a_terminal(folder.path(), "acp", &format!("elicit {form}"));
    let typed = |child: &mut std::process::Child, after: &str, line: &str| {
        let seen = until_shown(child, after);
        child.stdin.as_mut().expect("input").write_all(line.as_bytes()).expect("typed");
        seen
    };
    let seen = typed(&mut child, "a number of these: ", "Asia\n2\n");
    assert!(seen.contains("? Where to?") && seen.contains("1  Europe"), "{seen}");
    typed(&mut child, "integer: ", "99\n");
    typed(&mut child, "Enter for none: ", "\n");
    // The server says what does not fit, and it is asked again.
    let seen = typed(&mut child, "a number of these: ", "1\n");
    assert!(seen.contains("at most 9"), "{seen}");
    typed(&mut child, "integer: ", "9\n");
    typed(&mut child, "Enter for none: ", "\n");
    let seen = until_shown(&mut child, "narrows show");
    assert!(seen.contains("accept") && seen.contains("eu-1"), "{seen}");
    assert!(child.wait().expect("end").success());
}

#[test]
fn ctrl_c_at_a_question_cancels_the_turn() {
    use std::io::Write;
    let folder = tempfile::tempdir().expect("folder");
    let mut child = in_a_terminal(folder.path(), "claude", "ask May I\nsay never");
    until_shown(&mut child, "1–");
    child.stdin.as_mut().expect("input").write_all(b"\x03").expect("typed");
    let seen = until_shown(&mut child, "narrows show");
    assert!(seen.contains("cancelling") && !seen.contains("never"), "{seen}");
    assert!(!child.wait().expect("end").success());
}

#[test]
fn a_turn_as_json_ends_with_its_end() {
    let folder = tempfile::tempdir().expect("folder");
    let config = config(folder.path(), "");
    for agent in BOTH {
        for (flag, words) in [("--yes", "allowed"), ("--no", "rejected")] {
            let output = narrows()
                .args(["run", "--json", flag, "--agent", agent, "--data"])
                .arg(folder.path().join("data"))
                .arg("--config")
                .arg(&config)
                .arg("say hello\nask May I")
                .current_dir(folder.path())
                .env("HOME", folder.path().join("home"))
                .stdin(Stdio::null())
                .output()
                .expect("run");
            let text = String::from_utf8(output.stdout).expect("text");
            let events: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
            assert!(output.status.success(), "{agent} {flag}: {text}");
            assert_eq!(events[0]["type"], "run", "{text}");
            let session = &events[0]["sessionId"];
            assert!(session.is_string() && events[0]["messageId"].is_string(), "{text}");
            assert!(events[1..].iter().all(|e| e["sessionId"] == *session), "{text}");
            assert_eq!(events.last().expect("an end")["type"], "prompt_response", "{text}");
            assert!(events.iter().any(|e| e["type"] == "permission_request"), "{text}");
            let said: String = events
                .iter()
                .filter(|e| e["type"] == "text_chunk")
                .filter_map(|e| e["text"].as_str())
                .collect();
            assert!(said.contains("hello") && said.contains(words), "{agent} {flag}: {said}");
        }
    }
}

#[test]
fn every_end_has_its_code() {
    let folder = tempfile::tempdir().expect("folder");
    let config = config(folder.path(), "");
    let run = |words: &[&str]| {
        let mut command = narrows();
        command.arg("run").args(["--json", "--data"]).arg(folder.path().join("data"));
        command.arg("--config").arg(&config).args(words).current_dir(folder.path());
        command.env("HOME", folder.path().join("home")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run")
    };
    let lines = |text: &[u8]| -> Vec<serde_json::Value> {
        let text = String::from_utf8_lossy(text);
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    };
    for (words, code, last) in [
        (["--agent", "acp", "say x"], 0, "prompt_response"),
        (["--agent", "claude", "exit 4"], 1, "error"),
        (["--agent", "login", "say x"], 1, "error"),
        (["--agent", "missing", "say x"], 1, "error"),
        (["--agent", "acp", "ask May I"], 4, "prompt_response"),
        (["--agent", "claude", "ask May I"], 4, "prompt_response"),
    ] {
        let output = run(&words).wait_with_output().expect("end");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        let lines = lines(&output.stdout);
        assert_eq!(lines.last().expect("an end")["type"], last, "{words:?}: {lines:?}");
        assert!(code != 4 || said.contains("--yes"), "{said}");
    }
    let mut child = run(&["--agent", "acp", "say begun\nbash true\nwait 60000"]);
    let mut out = BufReader::new(child.stdout.take().expect("output")).lines();
    assert!(out.any(|line| line.is_ok_and(|line| line.contains("tool_call"))));
    kill("-INT", child.id());
    let last = out.map_while(Result::ok).last().expect("an end");
    assert!(last.contains(r#""stopReason":"cancelled""#), "{last}");
    assert_eq!(child.wait().expect("end").code(), Some(130));
}

#[test]
fn what_is_still_asked_when_the_turn_is_over_is_told() {
    let call =
        serde_json::json!({"toolCallId": "c1", "kind": "execute", "rawInput": {"command": "make"}});
    let option = serde_json::json!({"optionId": "yes", "kind": "allow_once", "name": "Allow"});
    let params = serde_json::json!({"toolCall": call, "options": [option]});
    let ask =
        serde_json::json!({"id": 5, "method": "session/request_permission", "params": params});
    let prompt = format!("say begun\nraw {ask}\nsay over");
    let turn = |running: &Running, data: &str, flag: &str| {
        let more = ["--agent", "acp", flag, &prompt];
        // Somebody sits there: else the question would end the turn.
        let child = at_a_terminal(running.folder.path(), data, &more);
        let output = child.wait_with_output().expect("run");
        let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
        let open = text.lines().find(|line| line.starts_with(r#"{"type":"open_request""#));
        let open: Option<serde_json::Value> =
            open.map(|line| serde_json::from_str(line).expect("JSON"));
        (output.status.code(), open, text)
    };
    let running = Running::start("");
    // A running server keeps the agent, and takes the answer.
    let (code, open, text) = turn(&running, "data", "--json");
    let open = open.expect(&text);
    assert_eq!(code, Some(4), "{text}");
    assert_eq!((&open["type"], &open["requestId"]), (&"open_request".into(), &"r1.5".into()));
    let session = open["sessionId"].as_str().expect("id");
    assert!(text.contains("still asks: it wants to run this command: make"), "{text}");
    assert!(text.contains(&format!("(session {session}, request r1.5)")), "{text}");
    let answer = open["answer"].as_str().expect("a way");
    let (status, told) = running.post(answer, &serde_json::json!({"optionId": "yes"}));
    assert_eq!(status, 200, "{told}");
    // Whoever allows everything allows this, too.
    let (code, _, text) = turn(&running, "data", "--yes");
    assert!(code == Some(0) && !text.contains("still asks"), "{text}");
    // Without one it ends with its agent.
    let (code, open, text) = turn(&running, "other", "--json");
    assert_eq!((code, open.map(|open| open["answer"].is_null())), (Some(4), Some(true)), "{text}");
    assert!(text.contains("ended unanswered, with the agent"), "{text}");
}
