//! Agents that misbehave.

use crate::helper::{BOTH, Running, last, said};
use serde_json::{Value, json};

#[test]
fn an_agent_that_ends_is_told_with_its_last_words() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let home = running.folder.path().join("data/home/secret-place");
        let packets =
            running.turn(&id, &format!("say half\nstderr it broke at {}\nexit 3", home.display()));
        let end = last(&packets);
        assert_eq!(
            (&end["type"], &end["details"]["code"]),
            (&json!("error"), &json!("AGENT_EXITED")),
            "{agent}"
        );
        assert!(end["message"].as_str().is_some_and(|m| m.contains("code 3")), "{end}");
        let details = end["details"]["details"].as_str().unwrap_or_default();
        assert!(details.contains("it broke at ~/secret-place"), "{agent}: {end}");
        let run = running.run(&id);
        assert_eq!(run["state"], "ended");
        assert!(
            run["error"].as_str().is_some_and(|e| e.contains("code 3") && !e.contains("data/home"))
        );
        // The next message starts it again.
        assert!(said(&running.turn(&id, "say alive")).contains("alive"), "{agent}");
    }
}

#[test]
fn an_agent_that_does_not_begin_is_told() {
    let running = Running::start("");
    for (agent, words) in [("mute", "did not begin within 2 s"), ("dead", "code 7")] {
        let id = running.session(agent);
        let packets = running.turn(&id, "say hello");
        assert_eq!(last(&packets)["type"], "error", "{agent}: {packets:?}");
        assert!(
            last(&packets)["message"].as_str().is_some_and(|m| m.contains(words)),
            "{packets:?}"
        );
        assert_eq!(running.run(&id)["state"], "ended");
    }
    let (status, told) = running.post("/api/runs", &json!({"agent": "missing"}));
    assert_eq!((status, &told["error"]["code"]), (422, &json!("NO_SUCH_AGENT")), "{told}");
    let (status, _) = running.post("/api/runs", &json!({"agent": "unheard-of"}));
    assert_eq!(status, 422);
    let (status, _) = running.post("/api/runs", &json!({"agent": "acp", "cwd": "/no/such/folder"}));
    assert_eq!(status, 400);
    let (status, told) =
        running.post("/api/sessions/nothing/send-message", &json!({"content": "x"}));
    assert_eq!((status, &told["error"]["message"]), (404, &json!("session not found")));
    let plain = running.served.session("plain").expect("session");
    let (status, told) =
        running.post(&format!("/api/sessions/{plain}/send-message"), &json!({"content": "x"}));
    assert_eq!((status, &told["error"]["code"]), (409, &json!("NOT_A_RUN")));
    assert!(running.alive().is_empty());
}

#[test]
fn an_agent_that_hangs_is_ended_when_it_is_cancelled() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (_, mut frames) = running.frames(&id, "say begun\nstall", None);
        let stalled = frames.find(|(_, packet)| packet.to_string().contains("stalled"));
        assert!(stalled.is_some(), "{agent}");
        running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        let end = frames.last().expect("end").1;
        assert_eq!(
            (&end["type"], &end["stopReason"]),
            (&json!("prompt_response"), &json!("cancelled")),
            "{agent}"
        );
        assert_eq!(running.run(&id)["state"], "ended", "{agent}");
    }
    assert!(running.alive().is_empty(), "{:?}", running.alive());
}

#[test]
fn garbage_and_closed_pipes_end_in_a_clear_state() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let packets = running.turn(&id, "garbage\nsay after it");
        assert!(said(&packets).contains("after it"), "{agent}");
        let events = running.served.events(&id);
        assert!(events.iter().any(|e| e["type"] == "malformed"), "{agent}: it is seen");
        let packets = running.turn(&id, "close-stdout");
        assert_eq!(last(&packets)["type"], "error", "{agent}: {packets:?}");
        let packets = running.turn(&id, "close-stdin\nsay still here");
        assert!(
            ["prompt_response", "error"].contains(&last(&packets)["type"].as_str().expect("type"))
        );
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
    assert!(running.alive().is_empty(), "{:?}", running.alive());
}

#[test]
fn floods_do_not_hold_anything_up() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let packets = running.turn(&id, "flood-stderr 20000000\nsay dry\nflood 2000000\nsay end");
        assert_eq!(last(&packets)["type"], "prompt_response", "{agent}");
        assert!(said(&packets).ends_with("end"), "{agent}");
        assert!(said(&packets).len() > 500_000, "{agent}: nothing of it is lost");
    }
    // It serves while an agent floods.
    let id = running.session("acp");
    running.tell(&id, "flood 20000000");
    let other = running.session("acp");
    assert!(said(&running.turn(&other, "say meanwhile")).contains("meanwhile"));
}

#[test]
fn a_request_for_leave_that_names_no_call_is_refused_and_told() {
    let running = Running::start("");
    let id = running.session("acp");
    for params in [json!({"sessionId": "s", "options": []}), Value::Null, json!({"toolCall": 7})] {
        let method = "session/request_permission";
        let ask = json!({"jsonrpc": "2.0", "id": 31, "method": method, "params": params});
        let packets = running.turn(&id, &format!("raw {ask}\nawait 31"));
        assert!(said(&packets).contains("-32602"), "{packets:?}");
        assert_eq!(running.run(&id)["requests"], json!([]));
    }
    let items = running.items(&id);
    let told = items.iter().filter(|item| item["type"] == "notice");
    assert_eq!(
        told.filter(|item| item.to_string().contains("for which call")).count(),
        3,
        "{items:?}"
    );
}

#[test]
fn an_agent_that_does_not_cancel_is_ended_with_a_word_of_it() {
    let running = Running::start("");
    let id = running.session("acp");
    let (_, frames) = running.frames(&id, "stall", None);
    let mut frames = frames.map(|(_, packet)| packet);
    frames.find(|packet| packet.to_string().contains("stalled")).expect("at work");
    running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
    let rest: Vec<Value> = frames.collect();
    let told = rest.iter().find(|packet| packet["type"] == "notice").expect("a notice");
    assert!(told.to_string().contains("within 1 s"), "{told}");
    assert_eq!(last(&rest)["stopReason"], "cancelled", "{rest:?}");
}
