//! A server that ends within a secret or a root, and a producer that goes on: real processes.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod served;

use serde_json::{Value, json};
use served::{Served, serve};
use std::io::Write;
use std::process::Stdio;

const ROOT: &str = "/srv/acme-q7-checkout/app";

fn packet(text: &str) -> String {
    let content = json!({"type": "text", "text": text});
    format!("{}\n", json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

/// A text of which each border lies within something to hide.
fn packets() -> Vec<String> {
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let (head, tail) = token.split_at(12);
    let end = json!({"type": "prompt_response", "stopReason": "end_turn"});
    vec![
        packet(&format!("the token is {head}")),
        packet(&format!("{tail} and it lies in /srv/acme-q7-")),
        packet("checkout/app/keys.txt, done."),
        format!("{end}\n"),
    ]
}

fn items(served: &Served, session: &str) -> Vec<Value> {
    let page = served.get(&format!("/api/sessions/{session}/items?limit=100")).expect("items").1;
    page["items"].as_array().expect("items").clone()
}

fn send(served: &Served, session: &str, more: &str, packets: &[String]) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/packets?arrived=none&root={ROOT}{more}");
    served.post(&path, packets.concat().as_bytes()).expect("answer")
}

fn text_of(items: &[Value]) -> &str {
    items[0]["content"].as_str().expect("a text")
}

#[test]
fn a_server_that_ends_within_a_secret_shows_nothing_of_it_and_asks_for_it_again() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let mut served = serve(&data, &[], &["--no-follow"]).expect("server");
    let all = packets();
    let uncut = served.session("uncut").expect("session");
    assert_eq!(send(&served, &uncut, "&end=true", &all).0, 200);
    let truth = items(&served, &uncut);
    assert!(text_of(&truth).ends_with("keys.txt, done."), "{truth:?}");
    for (number, at) in [1, 2].into_iter().cycle().take(8).enumerate() {
        let session = served.session(&format!("cut-{number}")).expect("session");
        // With places, with a key, and by somebody who notices nothing.
        let (place, key) = (format!("&first={}", at + 1), format!("k{number}"));
        let answer = send(&served, &session, "", &all[..at]);
        assert_eq!((answer.0, &answer.1["read"]), (200, &json!(at)), "{}", answer.1);
        assert!(answer.1["acknowledged"].as_u64() < Some(at as u64), "{}", answer.1);
        if number % 4 < 2 {
            assert!(served.terminate().success());
        } else {
            served.kill();
        }
        let log = served.log();
        served = serve(&data, &[], &["--no-follow"]).expect("server");
        let state = served.get(&format!("/api/sessions/{session}/packets")).expect("state").1;
        let source = &state["sources"][0];
        assert!(source["acknowledged"].as_u64() < source["read"].as_u64(), "{state}");
        let more = if number % 2 == 0 { place.as_str() } else { "" };
        let (status, refused) = send(&served, &session, more, &all[at..=at]);
        let error = &refused["error"];
        assert_eq!((status, &error["code"]), (409, &json!("RESEND")), "{key}: {refused}");
        assert_eq!(error["retryable"], true);
        // The one step that is documented.
        let first = error["first"].as_u64().expect("a place");
        let from = usize::try_from(first - 1).expect("small");
        let again = send(&served, &session, &format!("&first={first}&end=true"), &all[from..]);
        assert_eq!(again.0, 200, "{}", again.1);
        let shown = items(&served, &session);
        assert_eq!(text_of(&shown), text_of(&truth), "cut after {at}");
        let events = Value::from(served.events(&session)).to_string();
        for part in ["16C7e42F", "2c6912E7", "8347Ae17", "acme-q7"] {
            assert!(!events.contains(part) && !log.contains(part), "{part} is shown");
            let found = served.get(&format!("/api/search?q={part}")).expect("search").1;
            assert_eq!(found["hits"], json!([]), "{part} is found");
        }
    }
}

/// `narrows ingest` without a server: of a file that grows, and of standard input in two parts.
#[test]
fn what_ingest_reads_in_two_parts_shows_no_half_of_a_secret() {
    let dir = tempfile::tempdir().expect("folder");
    let (data, file) = (dir.path().join("data"), dir.path().join("session.jsonl"));
    let narrows = |args: &[&str], input: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_narrows"));
        command.args(args).args(["--data".as_ref(), data.as_os_str()]).env("HOME", dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("narrows");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
        child.wait_with_output().expect("its end")
    };
    let all = packets();
    for at in [1, 2] {
        let label = format!("file-{at}");
        for lines in [&all[..at], &all] {
            std::fs::write(&file, lines.concat()).expect("a file");
            let name = file.to_str().expect("a name");
            let done = narrows(&["ingest", "--label", &label, "--root", ROOT, name], "");
            assert!(done.status.success(), "{done:?}");
        }
        let label = format!("input-{at}");
        let ingest = ["ingest", "--label", &label, "--root", ROOT, "-"];
        assert!(narrows(&ingest, &all[..at].concat()).status.success());
        let refused = narrows(&ingest, &all[at..].concat());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        // The one step that it names.
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("`first=1`") && said.contains("--first"), "{said}");
        let again = [&ingest[..], &["--first", "1"]].concat();
        assert!(narrows(&again, &all.concat()).status.success());
        for label in [format!("file-{at}"), format!("input-{at}")] {
            let shown = narrows(&["show", "--no-scan", &label], "");
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            assert!(shown.contains("keys.txt, done."), "{label}: {shown}");
            for part in ["16C7e42F", "2c6912E7", "8347Ae17", "acme-q7"] {
                assert!(!shown.contains(part), "{label}: {part} is shown: {shown}");
            }
        }
    }
    // A file that grows within a line, and after an answer, reads as if it had been whole.
    let end = json!({"type": "prompt_response", "stopReason": "end_turn"});
    let whole = [
        packet("one two thr"),
        format!("{end}\n"),
        packet("ee four"),
        packet(" five."),
        format!("{end}\n"),
    ]
    .concat();
    let mut ends: Vec<usize> = (20..whole.len()).step_by(67).collect();
    ends.extend([
        whole.find(&end.to_string()).expect("an end") + end.to_string().len() + 1,
        whole.len(),
    ]);
    ends.sort_unstable();
    for end in ends {
        std::fs::write(&file, &whole[..end]).expect("a file");
        let name = file.to_str().expect("a name");
        let done = narrows(&["ingest", "--label", "grown", "--format", "acp", name], "");
        assert!(done.status.code().is_some_and(|code| code == 0 || code == 3), "{end}: {done:?}");
    }
    let shown = narrows(&["show", "--no-scan", "grown"], "");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("one two three four five."), "{shown}");
    let wrong = narrows(&["ingest", "--first", "2", file.to_str().expect("a name")], "");
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
}
