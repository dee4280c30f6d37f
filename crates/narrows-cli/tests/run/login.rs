//! Agents that need a login.

use crate::helper::{BOTH, Running, last, narrows, said};
use serde_json::{Value, json};

/// The last error of a session.
fn error(running: &Running, id: &str) -> Value {
    let items = running.items(id);
    items.into_iter().rfind(|item| item["type"] == "error").expect("an error")
}

#[test]
fn a_login_that_is_missing_says_what_to_do() {
    let running = Running::start("");
    for agent in ["login", "login-late"] {
        let id = running.session(agent);
        let packets = running.turn(&id, "say hello");
        assert_eq!(last(&packets)["type"], "error", "{agent}: {packets:?}");
        let error = error(&running, &id);
        assert_eq!(error["code"], "LOGIN_REQUIRED", "{agent}: {error}");
        let words = error["message"].as_str().expect("words");
        assert!(words.contains("needs a login: Authentication required"), "{words}");
        assert!(words.contains("- Scripted account: run `"), "{words}");
        assert!(words.contains("--log-in`"), "{words}");
        assert!(words.contains("- Browser: Opens a page to log in"), "{words}");
        assert!(words.contains("- Scripted key: set SCRIPTED_API_KEY"), "{words}");
        let run = running.run(&id);
        assert_eq!(run["state"], "ended");
        assert!(run["error"].as_str().is_some_and(|e| e.contains("--log-in")), "{run}");
        let kinds: Vec<Value> =
            running.items(&id).iter().map(|item| item["type"].clone()).collect();
        assert_eq!(kinds, ["user_message", "error"], "each is said once");
        let (_, row) = running.served.get(&format!("/api/sessions/{id}")).expect("session");
        assert_eq!(row["prompt"], "say hello", "{row}");
    }
    assert!(running.alive().is_empty(), "{:?}", running.alive());
}

/// The same for Claude Code, also in what it keeps itself.
#[test]
fn a_login_that_claude_code_misses_has_the_same_code() {
    let running = Running::start("");
    let id = running.session("login-claude");
    for n in 1..3 {
        let packets = running.turn(&id, "say hello");
        assert_eq!(last(&packets)["type"], "error", "{packets:?}");
        let error = error(&running, &id);
        assert_eq!(error["code"], "LOGIN_REQUIRED", "{error}");
        let words = error["message"].as_str().expect("words");
        assert!(words.contains("needs a login: Not logged in"), "{words}");
        assert!(words.contains("set ANTHROPIC_API_KEY"), "{words}");
        assert_eq!(running.run(&id)["state"], "ended");
        let kinds: Vec<Value> =
            running.items(&id).iter().map(|item| item["type"].clone()).collect();
        assert_eq!(kinds, ["user_message", "error"].repeat(n), "each is said once");
    }
    assert!(running.alive().is_empty(), "{:?}", running.alive());
    let folder = running.folder.path().join("state-login-claude");
    let file = std::fs::read_dir(folder).expect("kept").flatten().next().expect("a file").path();
    let args = ["parse", "--view", "items"];
    let output = narrows().args(args).arg(file).output().expect("parse");
    let items = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        items.contains("LOGIN_REQUIRED") && !items.contains("authentication_failed"),
        "{items}"
    );
}

#[test]
fn what_was_said_to_an_agent_that_does_not_begin_is_kept() {
    let running = Running::start("");
    for agent in ["dead", "mute"] {
        let id = running.session(agent);
        let path = format!("/api/sessions/{id}/send-message?wait=false");
        let picture = json!({"mimeType": "image/png", "data": "iVBORw0KGgo="});
        let message = json!({"content": "say hello", "images": [picture]});
        assert_eq!(running.post(&path, &message).0, 202);
        running.tell(&id, "say more");
        // What waits when the agent ends is held. The agent may have ended before it was sent.
        let run = running.until(&id, "held, or over", |run| {
            let is_over = run["queue"] == json!([]) && run["turn"].is_null();
            is_over || run["held"] == true && run["state"] == "ended"
        });
        if run["held"] == true {
            running.change(&id, &json!({"hold": false}));
        }
        running.until(&id, "over", |run| run["queue"] == json!([]) && run["turn"].is_null());
        let items = running.items(&id);
        let said: Vec<(&str, &str)> = items
            .iter()
            .map(|item| (item["type"].as_str().expect("type"), item["text"].as_str().unwrap_or("")))
            .collect();
        let expected = [
            ("user_message", "say hello\n[picture: image/png]"),
            ("error", ""),
            ("user_message", "say more"),
            ("error", ""),
        ];
        assert_eq!(said, expected, "{agent}: {items:?}");
    }
}

/// The next process begins the session: there is nothing that it could take up.
#[test]
fn an_agent_that_died_before_it_said_anything_begins_anew() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(&format!("once-{agent}"));
        running.tell(&id, "say hello");
        running.until(&id, "over", |run| run["queue"] == json!([]) && run["turn"].is_null());
        let errors = running.items(&id).iter().filter(|item| item["type"] == "error").count();
        assert_eq!(errors, 1, "{agent}");
        let turn = running.turn(&id, "say again");
        assert!(said(&turn).contains("again"), "{agent}: {turn:?}");
    }
}

#[test]
fn a_login_that_needs_nobody_is_done() {
    let running = Running::start("");
    let id = running.session("login-key");
    assert!(said(&running.turn(&id, "say hello")).contains("hello"));
    assert!(!running.items(&id).iter().any(|item| item["type"] == "error"));
    // Also by the next process, which takes the session up.
    running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    assert!(said(&running.turn(&id, "recall")).contains("hello"));
}

#[test]
fn an_agent_that_says_nothing_may_need_a_login() {
    let running = Running::start("silence_seconds = 1");
    let id = running.session("login-key");
    running.tell(&id, "hang");
    let path = format!("/api/sessions/{id}/items?limit=500");
    let began = std::time::Instant::now();
    let notice = loop {
        let page = running.served.get(&path).expect("items").1;
        let items = page["items"].as_array().expect("items").clone();
        if let Some(notice) = items.into_iter().find(|item| item["type"] == "notice") {
            break notice;
        }
        assert!(began.elapsed() < crate::agents::PATIENCE, "nothing is said");
    };
    let words = notice["text"].as_str().expect("words");
    assert!(words.contains("said nothing for 1 s") && words.contains("--log-in"), "{words}");
    assert_eq!(running.run(&id)["state"], "running", "the turn goes on");
    // One that has spoken is not told so, nor one that names no login.
    for (agent, words) in
        [("login-key", "say a word of it\nbash sleep 1.5\nsay end"), ("acp", "wait 1500\nsay end")]
    {
        let id = running.session(agent);
        running.turn(&id, words);
        let items = running.items(&id);
        assert!(!items.iter().any(|item| item["type"] == "notice"), "{agent}: {items:?}");
    }
}

#[test]
fn an_agent_that_does_not_even_introduce_itself_may_need_a_login() {
    let running = Running::start("silence_seconds = 1");
    let id = running.session("mute");
    running.turn(&id, "say hello");
    let items = running.items(&id);
    let notice = items.iter().find(|item| item["type"] == "notice");
    let words = notice.and_then(|notice| notice["text"].as_str()).expect("a notice");
    assert!(words.contains("said nothing for 1 s") && words.contains("login"), "{words}");
}
