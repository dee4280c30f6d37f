//! Agents that use an id twice: an answer reaches the request that somebody saw, or none.

use crate::helper::{BOTH, Running, said};
use serde_json::{Value, json};

/// A line that asks for leave with this id.
fn leave(id: &Value, command: &str) -> String {
    let call = json!({"toolCallId": format!("call-{command}"), "title": "A call", "kind": "execute",
        "rawInput": {"command": command}});
    let options = json!([
        {"optionId": "allow_once", "kind": "allow_once", "name": "Allow once"},
        {"optionId": "reject_once", "kind": "reject_once", "name": "Reject"},
    ]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    let ask = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
    format!("raw {ask}\n")
}

fn form(id: &Value, words: &str) -> String {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}}});
    let params = json!({"mode": "form", "message": words, "requestedSchema": schema});
    let ask = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    format!("raw {ask}\n")
}

/// The same in the words of Claude Code.
fn control(id: &str, command: &str) -> String {
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash",
        "tool_use_id": format!("call-{command}"), "input": {"command": command}});
    let ask = json!({"type": "control_request", "request_id": id, "request": request});
    format!("raw {ask}\n")
}

fn open(running: &Running, id: &str) -> Vec<(String, String)> {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let is_open = |item: &&Value| {
        item["type"] == "permission" || item["type"] == "question" && item["answers"].is_null()
    };
    let items = running.items(id);
    let all = items.iter().filter(is_open).map(|item| {
        let words = match &item["toolCall"]["command"] {
            Value::String(command) => command.clone(),
            _ => item["questions"][0]["question"].as_str().unwrap_or_default().to_owned(),
        };
        (text(item, "requestId"), words)
    });
    all.collect()
}

fn asked(running: &Running, id: &str, request: &str, words: &str) {
    running.until(id, "asked", |run| run["requests"] == json!([request]));
    assert_eq!(open(running, id), [(request.to_owned(), words.to_owned())]);
}

#[test]
fn an_id_that_comes_again_is_another_request() {
    let mut running = Running::start("");
    let id = running.session("acp");
    let allow = json!({"optionId": "allow_once"});
    let eight = json!(8);
    let words = leave(&eight, "one") + "await 8\n" + &leave(&eight, "two") + "await 8";
    let (_, frames) = running.frames(&id, &words, None);
    asked(&running, &id, "r1.8", "one");
    assert_eq!(running.answer(&id, "r1.8", &allow).0, 200);
    asked(&running, &id, "r1.8-2", "two");
    // Whoever answers what is over answers nothing else.
    assert_eq!(running.answer(&id, "r1.8", &allow).0, 409);
    let reject = json!({"optionId": "reject_once"});
    assert_eq!(running.answer(&id, "r1.8-2", &reject).0, 200);
    let packets: Vec<Value> = frames.map(|(_, packet)| packet).collect();
    let told = said(&packets);
    assert!(told.contains("allow_once") && told.contains("reject_once"), "{told}");

    // In the next turn, and by a form.
    let words = form(&eight, "Which word?") + "await 8\n" + &leave(&eight, "three") + "await 8";
    let (_, frames) = running.frames(&id, &words, None);
    asked(&running, &id, "r1.8-3", "Which word?");
    let answers = json!({"answers": {"word": "harbor"}});
    assert_eq!(running.answer(&id, "r1.8-3", &answers).0, 200);
    asked(&running, &id, "r1.8-4", "three");
    let items = running.items(&id);
    assert_eq!(running.answer(&id, "r1.8-4", &allow).0, 200);
    let packets: Vec<Value> = frames.map(|(_, packet)| packet).collect();
    assert!(said(&packets).contains("harbor"), "{packets:?}");
    assert_eq!(open(&running, &id), []);
    let decided = |items: &[Value]| -> Vec<String> {
        let calls = items.iter().filter(|item| item["type"] == "tool_call");
        calls.map(|item| item["toolCall"]["permission"]["decision"].to_string()).collect()
    };
    assert_eq!(decided(&items), [r#""allowed""#, r#""rejected""#, "null"]);
    let items = running.items(&id);
    assert_eq!(decided(&items), [r#""allowed""#, r#""rejected""#, r#""allowed""#]);
    running.again();
    assert_eq!(running.items(&id), items);
}

#[test]
fn an_id_of_an_open_request_is_refused() {
    let running = Running::start("");
    let id = running.session("acp");
    let seven = json!(7);
    let words = leave(&seven, "safe")
        + &leave(&seven, "harmful")
        + &form(&seven, "Which word?")
        + "await 7\nawait 7\nsay then it waits\nawait 7";
    let (_, frames) = running.frames(&id, &words, None);
    let mut frames = frames.map(|(_, packet)| packet);
    let mut packets: Vec<Value> = Vec::new();
    while !said(&packets).contains("then") {
        packets.push(frames.next().expect("a packet"));
    }
    assert_eq!(said(&packets).matches("-32600").count(), 2, "{packets:?}");
    asked(&running, &id, "r1.7", "safe");
    let told = running.items(&id);
    let notices = told.iter().filter(|item| item["type"] == "notice").count();
    assert_eq!(notices, 2, "{told:?}");
    assert_eq!(running.answer(&id, "r1.7", &json!({"optionId": "allow_once"})).0, 200);
    packets.extend(frames);
    assert!(said(&packets).contains("allow_once"), "{packets:?}");
}

#[test]
fn one_that_looks_like_another_is_another() {
    let running = Running::start("");
    let id = running.session("acp");
    let (number, text) = (json!(5), json!("5"));
    let words = leave(&number, "one") + &leave(&text, "two") + "await 5\nawait \"5\"";
    let (_, frames) = running.frames(&id, &words, None);
    running.until(&id, "asked", |run| run["requests"] == json!(["r1.5", "r1.5-2"]));
    assert_eq!(running.answer(&id, "r1.5-2", &json!({"optionId": "reject_once"})).0, 200);
    asked(&running, &id, "r1.5", "one");
    assert_eq!(running.answer(&id, "r1.5", &json!({"optionId": "allow_once"})).0, 200);
    let packets: Vec<Value> = frames.map(|(_, packet)| packet).collect();
    let told = said(&packets);
    let (first, second) = told.split_once("[\"5\"").expect("both");
    assert!(first.contains("allow_once") && second.contains("reject_once"), "{told}");
}

#[test]
fn a_request_that_comes_again_is_taken_back_by_its_id() {
    let running = Running::start("");
    let id = running.session("acp");
    let nine = json!(9);
    let back = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 9}});
    let words = leave(&nine, "one")
        + "await 9\n"
        + &leave(&nine, "two")
        + &format!("wait 300\nraw {back}\nawait 9");
    let (_, frames) = running.frames(&id, &words, None);
    asked(&running, &id, "r1.9", "one");
    assert_eq!(running.answer(&id, "r1.9", &json!({"optionId": "allow_once"})).0, 200);
    let packets: Vec<Value> = frames.map(|(_, packet)| packet).collect();
    assert!(said(&packets).contains("cancelled"), "{packets:?}");
    assert_eq!(open(&running, &id), []);
}

#[test]
fn claude_asks_once_with_an_id() {
    let running = Running::start("");
    let id = running.session("claude");
    let ask = |call: &str| control("q", call);
    let words = ask("one") + &ask("two") + "await q\n" + &ask("three") + "wait 300\nsay over";
    let (_, frames) = running.frames(&id, &words, None);
    asked(&running, &id, "q", "one");
    assert_eq!(running.answer(&id, "q", &json!({"optionId": "allow"})).0, 200);
    let packets: Vec<Value> = frames.map(|(_, packet)| packet).collect();
    assert!(said(&packets).contains(r#""command":"one""#), "{packets:?}");
    assert_eq!(open(&running, &id), []);
    let items = running.items(&id);
    let calls = items.iter().filter(|item| item["type"] == "tool_call");
    assert_eq!(calls.map(|call| &call["id"]).collect::<Vec<_>>(), ["call-one"], "{items:?}");
    let notices = items.iter().filter(|item| item["type"] == "notice");
    assert_eq!(notices.count(), 1, "{items:?}");
}

#[test]
fn none_that_is_open_disappears_when_too_many_ask() {
    let running = Running::start("");
    let (_, limits) = running.served.get("/api/v1/limits").expect("limits");
    let most = limits["memory"]["openRequests"].as_u64().expect("a limit");
    for agent in BOTH {
        let id = running.session(agent);
        let more = 3;
        let ask = |n: u64| {
            if agent == "claude" {
                return control(&format!("q{n}"), &format!("one-{n}"));
            }
            leave(&json!(1000 + n), &format!("one-{n}"))
        };
        let words: String = (0..most + more).map(ask).collect();
        let (_, frames) = running.frames(&id, &(words + "wait 60000"), None);
        let mut frames = frames.map(|(_, packet)| packet);
        let refused = |packet: &Value| {
            packet["type"] == "notice" && packet.to_string().contains("one more was refused")
        };
        for _ in 0..more {
            frames.find(refused).expect("a notice");
        }
        let requests = running.run(&id)["requests"].as_array().expect("requests").len();
        assert_eq!(requests as u64, most, "{agent}");
        let (_, session) = running.served.get(&format!("/api/sessions/{id}")).expect("session");
        assert_eq!(session["waiting"], most, "{agent}");
        let items = running.all_items(&id);
        let open: Vec<&Value> = items.iter().filter(|i| i["type"] == "permission").collect();
        assert_eq!(open.len() as u64, most, "{agent}");
        assert_eq!(open[0]["toolCall"]["command"], "one-0", "{agent}");
        let cancelled = items.iter().filter(|i| i["toolCall"]["status"] == "cancelled");
        let cancelled: Vec<&Value> = cancelled.map(|i| &i["toolCall"]["command"]).collect();
        let last = (most..most + more).map(|n| json!(format!("one-{n}"))).collect::<Vec<_>>();
        assert_eq!(cancelled, last.iter().collect::<Vec<_>>(), "{agent}");
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
}
