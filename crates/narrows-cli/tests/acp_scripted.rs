//! `narrows acp` between an editor and an agent that loads its sessions again and asks for leave.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "acp/editor.rs"]
mod editor;
mod served;

use editor::{Editor, packets, spools, start, until};
use serde_json::{Value, json};
use served::{NARROWS, serve, truth};
use std::path::Path;

/// Asks the agent; gives leave on the way. Returns the answer and the updates before it.
fn ask(editor: &mut Editor, id: u64, method: &str, params: &Value) -> (Value, Vec<Value>) {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    editor.write(format!("{request}\n").as_bytes());
    let mut updates = Vec::new();
    loop {
        let message: Value = serde_json::from_str(&editor.line()).expect("a message");
        match message["method"].as_str() {
            None if message["id"] == id => return (message, updates),
            Some("session/request_permission") => {
                let options = message["params"]["options"].as_array().expect("options");
                let allow = options.iter().find(|o| o["kind"] == "allow_once").expect("option");
                let outcome = json!({ "outcome": "selected", "optionId": allow["optionId"] });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"],
                    "result": { "outcome": outcome } });
                editor.write(format!("{answer}\n").as_bytes());
            }
            _ => updates.push(message),
        }
    }
}

fn prompt(editor: &mut Editor, id: u64, session: &str, words: &str) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": words }] });
    let (answer, _) = ask(editor, id, "session/prompt", &params);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

fn kinds(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|e| e["type"] == kind).cloned().collect()
}

#[test]
fn two_processes_run_one_session() {
    let agent = Path::new(NARROWS).parent().expect("folder").join("examples/scripted_acp");
    assert!(agent.exists(), "cargo build -p narrows-cli --examples");
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let served = serve(&data, &[], &[]).expect("server");
    let words = format!("exec {} --state {}", agent.display(), dir.path().join("state").display());
    let begin = || {
        let mut editor = start(&data, dir.path(), &words);
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        ask(&mut editor, 0, "initialize", &hello);
        editor
    };
    // What the first process says is read before it ends: then its file is gone.
    let lines = |count: usize| {
        let there = || spools(&data).pop().map(|file| packets(&file)).unwrap_or_default();
        let asked = |lines: &[String]| {
            lines.iter().filter(|l| l.contains("\"stopReason\"")).count() == count
        };
        until("it is written", || asked(&there()));
        there()
    };
    let cwd = dir.path().to_str().expect("path");
    let mut editor = begin();
    let new = json!({ "cwd": cwd, "mcpServers": [] });
    let (answer, _) = ask(&mut editor, 1, "session/new", &new);
    let session = answer["result"]["sessionId"].as_str().expect("session").to_owned();
    prompt(&mut editor, 2, &session, "say hello there\nask remove it\nedit a.txt some words");
    prompt(&mut editor, 3, &session, "chunks 50\nbash echo done");
    let mut all = lines(2);
    assert_eq!(editor.end().code(), Some(0));
    let mut editor = begin();
    let load = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    let (_, replay) = ask(&mut editor, 1, "session/load", &load);
    assert!(replay.len() > 3, "the agent repeats: {replay:?}");
    prompt(&mut editor, 2, &session, "ask remove more\nsay over");
    all.extend(lines(1));
    assert_eq!(editor.end().code(), Some(0));
    assert!(spools(&data).is_empty());
    let (_, page) = served.get("/api/sessions").expect("sessions");
    assert_eq!(page["sessions"].as_array().map(Vec::len), Some(1), "{page}");
    let id = page["sessions"][0]["id"].as_str().expect("id");
    let events = served.events(id);
    assert_eq!(kinds(&events, "user_message").len(), 3);
    let asked = kinds(&events, "permission_request");
    let answered = kinds(&events, "permission_answer");
    assert_eq!((asked.len(), answered.len()), (2, 2));
    assert_ne!(asked[0]["requestId"], asked[1]["requestId"]);
    let ids = |events: &[Value]| events.iter().map(|e| e["requestId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&asked), ids(&answered));
    assert_eq!(events, truth(&all, id));
}
