//! Forms that an agent wants to be filled in, addresses to visit, and requests that are taken back.

use crate::agents::until;
use crate::helper::{BOTH, Running, last, said};
use serde_json::{Value, json};

fn form() -> Value {
    json!({"mode": "form", "message": "Where to?", "requestedSchema": {"type": "object",
        "required": ["place"], "properties": {
            "place": {"type": "string", "title": "Place", "oneOf": [{"const": "eu-1", "title": "Europe"}, {"const": "us-1", "title": "America"}]},
            "nodes": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "fast": {"type": "boolean"}}}})
}

fn question(running: &Running, id: &str) -> Value {
    let items = running.items(id);
    items.into_iter().rfind(|item| item["type"] == "question").expect("question")
}

/// What the agent got, when the turn is over.
fn got(running: &Running, id: &str) -> Value {
    running.until(id, "idle", |run| run["state"] == "idle");
    let text = running.items(id);
    let text = text.iter().rfind(|item| item["type"] == "text").expect("text");
    let text = text["content"].as_str().or(text["text"].as_str()).expect("text");
    serde_json::from_str(text.strip_prefix("got ").expect(text)).expect("JSON")
}

#[test]
fn a_form_is_filled_in() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        running.tell(&id, &format!("elicit {}", form()));
        let request = running.asked(&id);
        let open = question(&running, &id);
        assert_eq!((&open["requestId"], &open["answers"]), (&json!(request), &Value::Null));
        let names: Vec<&Value> =
            open["questions"].as_array().expect("questions").iter().map(|q| &q["name"]).collect();
        assert_eq!(names, ["place", "nodes", "fast"]);
        // What does not fit is said, and asked again.
        for (wrong, word) in [
            (json!({"answers": {"nodes": "3"}}), "place"),
            (json!({"answers": {"place": "Asia"}}), "Europe, America"),
            (json!({"answers": {"place": "Europe", "nodes": 99}}), "at most 9"),
            (json!({"answers": {"place": "Europe", "what": 1}}), "these fields"),
            (json!({"optionId": "allow"}), "on offer"),
        ] {
            let (status, said) = running.answer(&id, &request, &wrong);
            assert_eq!(status, 400, "{said}");
            assert!(said.to_string().contains(word), "{said}");
        }
        let answers = json!({"answers": {"place": "Europe", "nodes": "5", "fast": "Yes"}});
        assert_eq!(running.answer(&id, &request, &answers).0, 200);
        assert_eq!(
            got(&running, &id),
            json!({"action": "accept", "content": {"place": "eu-1", "nodes": 5, "fast": true}})
        );
        let done = question(&running, &id);
        let given: Vec<&Value> =
            done["answers"].as_array().expect("answers").iter().map(|a| &a["answer"]).collect();
        assert_eq!(given, ["Europe", "5", "Yes"], "{done}");
        assert_eq!(running.answer(&id, &request, &answers).0, 409);

        for (answer, action) in [
            (json!({"outcome": "declined"}), "decline"),
            (json!({"outcome": "cancelled"}), "cancel"),
        ] {
            running.tell(&id, &format!("elicit {}", form()));
            let request = running.asked(&id);
            assert_eq!(running.answer(&id, &request, &answer).0, 200);
            assert_eq!(got(&running, &id), json!({ "action": action }));
            assert!(question(&running, &id)["answers"].is_array());
        }
    }
}

#[test]
fn an_address_is_visited() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let visit = json!({"mode": "url", "message": "Log in there", "elicitationId": "e1", "url": "https://example.com/login"});
        running.tell(&id, &format!("elicit {visit}"));
        let request = running.asked(&id);
        let part = question(&running, &id)["questions"][0].clone();
        assert_eq!(part["format"], "url");
        assert!(
            part["question"].as_str().is_some_and(|q| q.ends_with("https://example.com/login"))
        );
        assert_eq!(running.answer(&id, &request, &json!({"answers": {}})).0, 200);
        assert_eq!(got(&running, &id), json!({"action": "accept"}));
        // What nobody knows is refused, and the agent goes on.
        let packets = running.turn(&id, r#"elicit {"mode": "_dance", "message": "x"}"#);
        let refused = if agent == "acp" { "-32602" } else { "got null" };
        assert!(said(&packets).contains(refused), "{packets:?}");
    }
}

#[test]
fn a_form_goes_with_its_turn_or_its_agent() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        running.tell(&id, &format!("elicit {}", form()));
        running.asked(&id);
        running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        running.until(&id, "idle", |run| run["state"] == "idle" && run["requests"] == json!([]));
        assert!(question(&running, &id)["answers"].is_array(), "nobody is asked any more");
        running.tell(&id, &format!("elicit {}", form()));
        running.asked(&id);
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
        running.until(&id, "ended", |run| run["state"] == "ended");
        assert!(question(&running, &id)["answers"].is_array(), "nobody is asked any more");
    }
}

#[test]
fn an_agent_takes_a_request_back() {
    let running = Running::start("");
    let folder = running.folder.path().join("work");
    std::fs::create_dir(&folder).expect("folder");
    let body = json!({"agent": "acp", "cwd": folder.display().to_string()});
    let (_, made) = running.post("/api/runs", &body);
    let id = made["id"].as_str().expect("id").to_owned();
    running.tell(&id, &format!("take-back now {}", form()));
    let request = running.asked(&id);
    std::fs::write(folder.join("now"), "").expect("file");
    assert_eq!(got(&running, &id), json!({"action": "cancel"}));
    let (status, _) = running.answer(&id, &request, &json!({"outcome": "declined"}));
    assert_eq!(status, 409, "it is not asked any more");
}

#[test]
fn a_turn_is_taken_back_when_it_is_cancelled_again() {
    let running = Running::start("");
    let id = running.session("stubborn");
    running.tell(&id, "bash true\nwait 60000");
    let begun = || running.items(&id).iter().any(|item| item["type"] == "tool_call");
    until("it has begun", begun);
    for _ in 0..2 {
        let (status, done) = running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        assert_eq!((status, &done["done"]), (200, &json!(true)));
    }
    let run = running.until(&id, "over", |run| run["state"] != "running");
    assert_eq!((&run["state"], &run["error"]), (&json!("idle"), &Value::Null), "{run}");
    let items = running.items(&id);
    assert!(!items.iter().any(|item| item["type"] == "error"), "{items:?}");
    // It goes on.
    assert_eq!(last(&running.turn(&id, "say more"))["type"], "prompt_response");
}

#[test]
fn what_a_subagent_says_is_part_of_the_session() {
    let running = Running::start("");
    let id = running.session("claude");
    running.turn(&id, "subagent The tests are in the folder spec.\nsay done");
    let (_, page) =
        running.served.get(&format!("/api/sessions/{id}/items?limit=500")).expect("items");
    let text = page.to_string();
    assert!(text.contains("The tests are in the folder spec."), "{text}");
}
