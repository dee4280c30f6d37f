//! Turns that fail and turns that end at a limit, whichever way an agent speaks.

use crate::helper::{BOTH, Running, last, narrows};
use serde_json::{Value, json};

/// The items of these types, without prompts.
fn said(running: &Running, id: &str) -> Vec<(String, String)> {
    let items = running.items(id).into_iter().filter(|item| item["type"] != "user_message");
    let of = |item: Value| {
        let words = ["content", "message", "text"].into_iter().find_map(|key| item[key].as_str());
        let kind = item["kind"].as_str().or(item["type"].as_str());
        (kind.unwrap_or_default().to_owned(), words.unwrap_or_default().to_owned())
    };
    items.map(of).collect()
}

fn pair(kind: &str, words: &str) -> (String, String) {
    (kind.to_owned(), words.to_owned())
}

#[test]
fn a_turn_that_fails_has_one_end_and_one_error() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let packets = running.turn(&id, "say begun\nfail Credit balance is too low");
        let ends = ["error", "prompt_response"];
        let ends: Vec<&Value> = packets
            .iter()
            .map(|packet| &packet["type"])
            .filter(|kind| ends.contains(&kind.as_str().unwrap_or_default()))
            .collect();
        assert_eq!(ends, ["error"], "{agent}: {packets:?}");
        assert_eq!(last(&packets)["message"], "Credit balance is too low", "{agent}");
        let expected = [pair("text", "begun"), pair("error", "Credit balance is too low")];
        assert_eq!(said(&running, &id), expected, "{agent}");
        let (_, row) = running.served.get(&format!("/api/sessions/{id}")).expect("session");
        assert_eq!(row["info"]["status"], "failed", "{agent}: {row}");
        assert_eq!(row["info"]["error"], "Credit balance is too low", "{agent}: {row}");
        // The next one does not.
        running.turn(&id, "say done");
        let (_, row) = running.served.get(&format!("/api/sessions/{id}")).expect("session");
        assert_eq!(row["info"]["status"], "idle", "{agent}: {row}");
    }
}

#[test]
fn the_exit_code_tells_that_a_turn_failed() {
    let running = Running::start("");
    let data = running.folder.path().join("data");
    let run = |agent: &str, words: &str, more: &[&str]| {
        let output = narrows()
            .args(["run", "--agent", agent, "--data"])
            .arg(&data)
            .args(more)
            .arg(words)
            .env("HOME", running.folder.path().join("home"))
            .current_dir(running.folder.path())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("run");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for agent in BOTH {
        let failing = "say begun\nfail Credit balance is too low";
        let (code, shown) = run(agent, failing, &[]);
        assert_eq!(code, Some(1), "{agent}: {shown}");
        let (code, lines) = run(agent, failing, &["--json"]);
        assert_eq!(code, Some(1), "{agent}: {lines}");
        let errors = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let errors = errors.filter(|event| event["type"] == "error").count();
        assert_eq!(errors, 1, "{agent}: {lines}");
        let (code, shown) = run(agent, "say half\nstop max_tokens", &[]);
        assert_eq!(code, Some(0), "{agent}: {shown}");
        assert!(shown.contains("cut off at the token limit"), "{agent}: {shown}");
    }
}

#[test]
fn a_limit_leaves_a_mark() {
    let running = Running::start("");
    let all = [
        ("max_tokens", "max_tokens", "The answer was cut off at the token limit."),
        ("refusal", "refusal", "The model refused to go on."),
    ];
    for agent in BOTH {
        for (reason, kind, words) in all {
            let id = running.session(agent);
            running.turn(&id, &format!("say half\nstop {reason}"));
            let expected = [pair("text", "half"), pair(kind, words)];
            assert_eq!(said(&running, &id), expected, "{agent}: {reason}");
            for form in ["md", "html", "text"] {
                let url = format!("{}/api/sessions/{id}/export?format={form}", running.served.url);
                let request = running.served.agent.get(url);
                let bearer = format!("Bearer {}", running.served.token);
                let mut answer = request.header("authorization", bearer).call().expect("export");
                let shown = answer.body_mut().read_to_string().expect("text");
                assert!(shown.contains(words), "{agent}: {form}: {shown}");
            }
        }
    }
    let id = running.session("acp");
    running.turn(&id, "say half\nstop max_turn_requests");
    let expected = [pair("text", "half"), pair("max_turns", "The limit of turns was reached.")];
    assert_eq!(said(&running, &id), expected);
}

#[test]
fn a_turn_that_ends_without_a_reason_is_over() {
    let running = Running::start("");
    let id = running.session("acp");
    let packets = running.turn(&id, "say done\nstop null");
    assert_eq!(last(&packets)["type"], "prompt_response", "{packets:?}");
    assert_eq!(running.run(&id)["state"], "idle");
    let (_, session) = running.served.get(&format!("/api/sessions/{id}")).expect("session");
    let stands = (&session["info"]["status"], &session["live"], &session["ended"]);
    assert_eq!(stands, (&json!("idle"), &json!(false), &json!(false)), "{session}");
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    assert!(text.contains("did not say why its turn ended"), "{text}");
}
