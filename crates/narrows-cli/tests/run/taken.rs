//! Sessions that an agent keeps by itself: listed, and gone on with.

use crate::helper::{Running, narrows, said};
use serde_json::{Value, json};

/// A session that only its agent has: its id there.
fn begun_elsewhere(running: &Running, agent: &str, words: &str) -> String {
    let before = listed(running, agent);
    let id = running.session(agent);
    running.turn(&id, words);
    running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    assert_eq!(running.served.delete(&format!("/api/sessions/{id}")).expect("gone").0, 204);
    let new = listed(running, agent).into_iter().find(|session| !before.contains(session));
    new.expect("listed")
}

/// The sessions that an agent lists.
fn listed(running: &Running, agent: &str) -> Vec<String> {
    let path = format!("/api/agents/{agent}/sessions");
    let (status, told) = running.served.get(&path).expect("list");
    assert_eq!(status, 200, "{told}");
    let sessions = told["sessions"].as_array().expect("sessions");
    sessions.iter().map(|s| s["id"].as_str().expect("id").to_owned()).collect()
}

fn words(running: &Running, id: &str) -> Vec<String> {
    let of = |item: Value| {
        let text = item["text"].as_str().or(item["content"].as_str()).unwrap_or_default();
        format!("{}: {text}", item["type"].as_str().unwrap_or_default())
    };
    let items = running.items(id).into_iter();
    items.filter(|item| item["type"] != "notice").map(of).collect()
}

#[test]
fn a_session_of_an_agent_is_gone_on_with_and_told_once() {
    let running = Running::start("");
    let work = running.folder.path().join("work");
    std::fs::create_dir(&work).expect("work");
    // One tells where its session works, the other could resume without telling what was said.
    for (agent, cwd) in [("lists", None), ("newer", Some(&work))] {
        let native = begun_elsewhere(&running, agent, "say hello");
        let body = json!({"agent": agent, "nativeId": native, "cwd": cwd});
        let (status, made) = running.post("/api/runs", &body);
        assert_eq!(status, 201, "{made}");
        let id = made["id"].as_str().expect("id").to_owned();
        // Before anybody says more.
        running.until(&id, "ready", |run| run["state"] == "idle");
        let before = ["user_message: say hello", "text: hello"];
        assert_eq!(words(&running, &id), before, "{agent}");
        let items = running.items(&id);
        assert_eq!(items[0]["kind"], "taken_up", "{agent}: {items:?}");
        let (_, row) = running.served.get(&format!("/api/sessions/{id}")).expect("session");
        assert_eq!((&row["info"]["status"], &row["info"]["turns"]), (&json!("idle"), &json!(1)));
        assert_eq!(row["nativeId"], json!(native), "{row}");
        // Neither the next turn nor the next process tells it again.
        for n in 1..3 {
            assert!(said(&running.turn(&id, "recall")).contains("say hello"), "{agent}");
            assert_eq!(words(&running, &id).len(), 2 + 2 * n, "{agent}: {:?}", running.items(&id));
            running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
        }
        // There is one session of it, whoever asks.
        let again: Vec<(u16, Value)> = std::thread::scope(|scope| {
            let ask = || scope.spawn(|| running.post("/api/runs", &body));
            let asked = [ask(), ask()];
            asked.into_iter().map(|one| one.join().expect("answer")).collect()
        });
        assert!(again.iter().all(|(s, told)| *s == 200 && told["id"] == json!(id)), "{again:?}");
        assert_eq!(words(&running, &id).len(), 6, "{agent}");
    }
}

#[test]
fn what_was_recorded_of_a_session_goes_on() {
    let running = Running::start("");
    let native = begun_elsewhere(&running, "lists", "say hello");
    let id = running.served.session("recorded").expect("session");
    let at = "2026-11-18T09:30:00Z";
    let line = |dir: &str, msg: Value| format!("{}\n", json!({"ts": at, "dir": dir, "msg": msg}));
    let content = |text: &str| json!({"type": "text", "text": text});
    let update = |kind: &str, text: &str| {
        let update = json!({"sessionUpdate": kind, "content": content(text)});
        json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": native, "update": update}})
    };
    let prompt = json!({"sessionId": native, "prompt": [content("say hello")]});
    let packets = [
        line(
            "client->agent",
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/srv"}}),
        ),
        line("agent->client", json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": native}})),
        line(
            "client->agent",
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt}),
        ),
        line("agent->client", update("agent_message_chunk", "hello")),
        line(
            "agent->client",
            json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}}),
        ),
    ];
    let path = format!("/api/sessions/{id}/packets?first=1");
    let (status, told) = running.served.post(&path, packets.concat().as_bytes()).expect("taken");
    assert_eq!(status, 200, "{told}");
    let before = words(&running, &id);
    assert_eq!(before, ["user_message: say hello", "text: hello"]);
    let body = json!({"agent": "lists", "nativeId": native});
    let (status, made) = running.post("/api/runs", &body);
    assert_eq!((status, &made["id"]), (200, &json!(id)), "{made}");
    assert!(said(&running.turn(&id, "recall")).contains("say hello"));
    let after = words(&running, &id);
    assert_eq!(
        after,
        [&before[..], &["user_message: recall".into(), "text: before: say hello".into()]].concat()
    );
}

#[test]
fn a_session_that_cannot_be_gone_on_with_is_not_begun_anew() {
    let running = Running::start("");
    let work = running.folder.path().join("work");
    std::fs::create_dir(&work).expect("work");
    for (agent, native, cwd, status, code) in [
        ("claude", "ses_1", None, 409, "NOT_SUPPORTED"),
        ("acp", "ses_1", None, 409, "NOT_SUPPORTED"),
        ("lists", "ses_none", None, 404, "NOT_FOUND"),
        ("lists", "-rf", None, 400, "INVALID_REQUEST"),
        ("lists", "a b", None, 400, "INVALID_REQUEST"),
        ("lists", "ses_1", Some("/nowhere/at/all"), 400, "INVALID_REQUEST"),
    ] {
        let body = json!({"agent": agent, "nativeId": native, "cwd": cwd});
        let (found, told) = running.post("/api/runs", &body);
        assert_eq!(found, status, "{agent} {native}: {told}");
        assert_eq!(told["error"]["code"], code, "{agent} {native}");
    }
    for (agent, words) in
        [("lists", "does not go on with this session"), ("no-load", "cannot take up")]
    {
        let body = json!({"agent": agent, "nativeId": "ses_none", "cwd": work});
        let (status, made) = running.post("/api/runs", &body);
        assert_eq!(status, 201, "{agent}: {made}");
        let id = made["id"].as_str().expect("id");
        let run = running.until(id, "ended", |run| run["error"].is_string());
        assert!(run["error"].as_str().expect("words").contains(words), "{agent}: {run}");
        let items = running.items(id);
        assert!(items.iter().any(|item| item["type"] == "error"), "{agent}: {items:?}");
        // A message tries it again.
        let packets = running.turn(id, "say hello");
        assert_eq!(packets.last().expect("an end")["type"], "error", "{agent}: {packets:?}");
    }
    assert!(listed(&running, "lists").is_empty(), "no session was begun");
}

#[test]
fn the_terminal_lists_sessions_and_goes_on_with_one() {
    let running = Running::start("");
    let native = begun_elsewhere(&running, "lists", "say hello");
    let data = running.folder.path().join("data");
    let run = |words: &[&str]| {
        let output = narrows()
            .args(words)
            .arg("--data")
            .arg(&data)
            .env("HOME", running.folder.path().join("home"))
            .stdin(std::process::Stdio::null())
            .output()
            .expect("run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = run(&["agents", "lists"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(&native) && out.contains("say hello"), "{out}");
    let (code, out, err) = run(&["agents", "lists", "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let rows: Value = serde_json::from_str(&out).expect("json");
    assert_eq!(rows[0]["id"], json!(native), "{rows}");
    let (code, out, err) = run(&["run", "--agent", "lists", "--resume", &native, "recall"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("before: say hello"), "{out}");
    let (code, _, err) = run(&["run", "--resume", &native, "recall"]);
    assert_eq!(code, Some(2), "{err}");
    let (code, _, err) = run(&["agents", "acp"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("cannot list sessions"), "{err}");
}
