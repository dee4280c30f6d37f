//! A session that was recorded between its agent and a client, and lies on disk too.

use crate::home::{Machine, SOON, Script, within};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// What passes between the agent and its client: the same words that the file has.
fn record(machine: &Machine, script: &Script, asked: &str, said: &str) -> PathBuf {
    let session = &script.id;
    let cwd = json!({"cwd": script.cwd, "mcpServers": []});
    let (asked, said) =
        (json!({"type": "text", "text": asked}), json!({"type": "text", "text": said}));
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": said});
    let messages = [
        ("client->agent", json!({"id": 1, "method": "session/new", "params": cwd})),
        ("agent->client", json!({"id": 1, "result": {"sessionId": session}})),
        (
            "client->agent",
            json!({"id": 2, "method": "session/prompt", "params": {"sessionId": session, "prompt": [asked]}}),
        ),
        (
            "agent->client",
            json!({"method": "session/update", "params": {"sessionId": session, "update": update}}),
        ),
        ("agent->client", json!({"id": 2, "result": {"stopReason": "end_turn"}})),
    ];
    let lines = messages.map(|(dir, mut msg)| {
        msg["jsonrpc"] = "2.0".into();
        json!({"ts": jiff::Timestamp::now().to_string(), "dir": dir, "msg": msg}).to_string() + "\n"
    });
    let path = machine.path("recorded.jsonl");
    fs::write(&path, lines.concat()).expect("write");
    path
}

fn json_of(machine: &Machine, words: &[&str]) -> Vec<Value> {
    let text = machine.out(words);
    let mut found = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value.expect("JSON") {
            Value::Array(all) => found.extend(all),
            one => found.push(one),
        }
    }
    found
}

fn is_once(machine: &Machine, what: &str) {
    assert_eq!(machine.rows().len(), 1, "{what}: {:?}", machine.rows());
    assert_eq!(machine.rows()[0]["live"], false, "{what}");
    let hits = json_of(machine, &["search", "--json", "floors"]);
    assert_eq!(hits.len(), 1, "{what}: {hits:?}");
    let stats = json_of(machine, &["stats", "--json", "--by", "project"]);
    let sum = |name: &str| stats.iter().filter_map(|r| r[name].as_u64()).sum::<u64>();
    assert_eq!((sum("sessions"), sum("answers"), sum("input")), (1, 1, 3), "{what}: {stats:?}");
}

#[test]
fn what_came_by_two_ways_is_one_session() {
    let script = Script::new(1, "Build a tower").says("It has seven floors.");
    for file_first in [true, false] {
        let machine = Machine::new();
        if file_first {
            machine.write(&script);
            assert_eq!(machine.rows().len(), 1);
        }
        let path = record(&machine, &script, "Build a tower", "It has seven floors.");
        machine.out(&["ingest", path.to_str().expect("path")]);
        if !file_first {
            assert_eq!(machine.rows().len(), 1);
            machine.write(&script);
        }
        is_once(&machine, &format!("file first: {file_first}"));
    }
}

#[test]
fn a_server_lists_what_came_by_two_ways_once() {
    let script = Script::new(1, "Build a tower").says("It has seven floors.");
    for file_first in [true, false] {
        let machine = Machine::new();
        let server = machine.serve(&[]);
        let what = format!("file first: {file_first}");
        if file_first {
            machine.write(&script);
            within(SOON, "the session", || server.session(&script));
        }
        let path = record(&machine, &script, "Build a tower", "It has seven floors.");
        machine.out(&["ingest", path.to_str().expect("path")]);
        if !file_first {
            machine.write(&script);
            // It goes on where nobody records it: the file tells more.
            machine.grow(&script, script.clone().asks("Higher").says("It has nine storeys."));
            within(SOON, "the file is listed", || server.session(&script));
        }
        let listed = server.sessions();
        assert_eq!(listed.len(), 1, "{what}: {listed:?}");
        assert_eq!(listed[0]["nativeId"], script.id, "{what}");
        assert_eq!(server.get("/api/facets")["total"], 1, "{what}");
        // Whoever has the address of the other one is told so.
        let found = within(SOON, "it can be found", || {
            let found = server.get("/api/search?q=floors&limit=10");
            found["hits"].as_array().filter(|hits| !hits.is_empty()).cloned()
        });
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert_eq!(found[0]["sessionId"], listed[0]["id"], "{what}");
    }
}

#[test]
fn what_was_sent_under_two_labels_is_one_session_and_readable_by_both() {
    let script = Script::new(1, "Build a tower").says("It has seven floors.");
    for with_file in [true, false] {
        let machine = Machine::new();
        let copy = machine.path("copy.jsonl");
        fs::write(&copy, &script.text).expect("write");
        let copy = copy.to_str().expect("path");
        if with_file {
            machine.write(&script);
            assert_eq!(machine.rows().len(), 1);
        }
        for label in ["one", "two"] {
            machine.out(&["ingest", "--label", label, copy]);
            is_once(&machine, &format!("{label}, with its file: {with_file}"));
        }
        for label in ["one", "two"] {
            assert!(machine.out(&["show", label]).contains("seven floors"), "{label} {with_file}");
        }
    }
}
