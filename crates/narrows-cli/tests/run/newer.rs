//! What newer agents can do: options of any kind, sessions that are resumed and closed.

use crate::helper::{Running, last, said};
use serde_json::{Value, json};

#[test]
fn options_of_any_kind_are_offered_and_chosen() {
    let running = Running::start("");
    let id = running.session("options");
    running.turn(&id, "say hello");
    let run = running.run(&id);
    assert_eq!((&run["mode"], &run["model"]), (&json!("build"), &json!("small")), "{run}");
    let expected = json!([
        {"id": "web", "name": "Web search", "value": false, "choices": []},
        {"id": "effort", "name": "Effort", "category": "thought_level", "value": "low", "choices": [
            {"id": "low", "name": "Low", "group": "Fast"}, {"id": "high", "name": "High", "group": "Slow"}]},
    ]);
    assert_eq!(run["options"], expected, "{run}");
    let change = json!({"mode": "plan", "options": {"web": true, "effort": "high"}});
    let (status, done) = running.served.patch(&format!("/api/sessions/{id}/run"), &change);
    assert_eq!((status, &done["done"]), (200, &json!(true)), "{done}");
    let is = |run: &Value| {
        run["mode"] == "plan"
            && run["options"][0]["value"] == true
            && run["options"][1]["value"] == "high"
    };
    running.until(&id, "chosen", is);
    // A value that is not on offer changes nothing.
    let change = json!({"options": {"web": "yes", "effort": "none"}});
    assert_eq!(running.patch(&id, &change).0, 422);
    running.turn(&id, "say hello");
    running.until(&id, "as before", is);
}

#[test]
fn a_session_is_resumed_without_a_replay_and_closed() {
    let running = Running::start("");
    let id = running.session("newer");
    assert!(said(&running.turn(&id, "say hello")).contains("hello"));
    let (status, _) = running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    assert_eq!(status, 200);
    let state = running.folder.path().join("state-newer");
    let marks = std::fs::read_dir(&state).expect("state").flatten();
    let marks = marks.filter(|m| m.file_name().to_string_lossy().starts_with("closed-"));
    assert_eq!(marks.count(), 1, "it was asked to let go");
    let packets = running.turn(&id, "recall");
    assert!(said(&packets).contains("say hello"), "{packets:?}");
    assert_eq!(last(&packets)["type"], "prompt_response");
    let said: Vec<Value> =
        running.items(&id).into_iter().filter(|item| item["type"] == "user_message").collect();
    assert_eq!(said.len(), 2, "{said:?}");
}

/// Where the agent keeps which folders it was told of.
fn told_of(running: &Running) -> std::path::PathBuf {
    let kept = std::fs::read_dir(running.folder.path().join("state-wide")).expect("state");
    let kept = kept.flatten().find(|f| f.file_name().to_string_lossy().starts_with("folders"));
    kept.expect("told").path()
}

#[test]
fn an_agent_works_in_other_folders_too() {
    let running = Running::start("");
    let beside = running.folder.path().join("beside");
    std::fs::create_dir(&beside).expect("folder");
    let beside = beside.canonicalize().expect("folder");
    let id = running.session("wide");
    let path = beside.join("note.txt").display().to_string();
    assert!(said(&running.turn(&id, &format!("write {path} hello"))).contains("written"));
    assert_eq!(std::fs::read_to_string(&path).expect("file"), "hello\n");
    let outside = running.folder.path().join("outside.txt").display().to_string();
    assert!(said(&running.turn(&id, &format!("write {outside} no"))).contains("outside"));
    running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    running.turn(&id, "say again");
    let kept = std::fs::read_to_string(told_of(&running)).expect("text");
    let told: Vec<Value> = kept.lines().map(|l| serde_json::from_str(l).expect(l)).collect();
    let methods: Vec<&Value> = told.iter().map(|t| &t["method"]).collect();
    assert_eq!(methods, ["session/new", "session/resume"]);
    assert!(told.iter().all(|t| t["folders"] == json!([beside])), "{kept}");
    // Folders of one session, by the request that makes it; also for the next process.
    let own = running.folder.path().join("own");
    std::fs::create_dir(&own).expect("folder");
    let own = own.canonicalize().expect("folder");
    let body = json!({"agent": "wide", "additionalDirectories": [own, own]});
    let (status, made) = running.post("/api/runs", &body);
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().expect("id").to_owned();
    for text in ["one", "two"] {
        let path = own.join(text).display().to_string();
        assert!(said(&running.turn(&id, &format!("write {path} {text}"))).contains("written"));
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
    assert!(!running.items(&id).iter().any(|i| i.to_string().contains(&own.display().to_string())));
    let kept = std::fs::read_to_string(told_of(&running)).expect("text");
    let last: Vec<Value> = kept.lines().map(|l| serde_json::from_str(l).expect(l)).collect();
    assert_eq!(last[last.len() - 1]["folders"], json!([beside, own]), "{kept}");
    let file = own.join("one").display().to_string();
    for (wrong, word) in [
        (json!(["relative"]), "whole path"),
        (json!(["/nowhere/at/all"]), "not found"),
        (json!([file]), "no folder"),
        (json!(vec![own.clone(); 17]), "more than 16"),
    ] {
        let body = json!({"agent": "wide", "additionalDirectories": wrong});
        let (status, told) = running.post("/api/runs", &body);
        assert_eq!(status, 400, "{told}");
        assert!(told.to_string().contains(word), "{told}");
    }
    // One that cannot is not asked to, and the session says so.
    let id = running.session("wide-old");
    running.turn(&id, "say hello");
    assert!(serde_json::to_string(&running.items(&id)).expect("text").contains("other folders"));
}

#[test]
fn the_sessions_that_an_agent_keeps_are_listed_and_deleted() {
    let running = Running::start("");
    for words in ["say one", "say two at /srv/harbor/app/x"] {
        let id = running.session("newer");
        running.turn(&id, words);
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
    let list = || {
        let (status, told) = running.served.get("/api/agents/newer/sessions").expect("list");
        assert_eq!(status, 200, "{told}");
        told["sessions"].as_array().expect("sessions").clone()
    };
    let both = list();
    let mut titles: Vec<&str> = both.iter().filter_map(|s| s["title"].as_str()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["say one", "say two at x"], "every page, and clean: {both:?}");
    assert!(both.iter().all(|s| s["project"] == "app" && s["updatedAt"].is_string()), "{both:?}");
    let gone = both[0]["id"].as_str().expect("id");
    let path = format!("/api/agents/newer/sessions/{gone}");
    assert_eq!(running.served.delete(&path).expect("answer").0, 200);
    assert_eq!(list(), both[1..], "the other one is left");
    // What is not there, cannot be done, or is not known is said.
    assert_eq!(running.served.delete(&path).expect("answer").0, 502);
    for (path, status, code) in [
        ("/api/agents/acp/sessions", 409, "NOT_SUPPORTED"),
        ("/api/agents/claude/sessions", 409, "NOT_SUPPORTED"),
        ("/api/agents/dead/sessions", 502, "AGENT_FAILED"),
        ("/api/agents/none/sessions", 422, "NO_SUCH_AGENT"),
        ("/api/agents/newer/sessions?cwd=x", 400, "INVALID_REQUEST"),
    ] {
        let (found, told) = running.served.get(path).expect("answer");
        assert_eq!(found, status, "{path}: {told}");
        assert!(told.to_string().contains(code), "{path}: {told}");
    }
    assert!(running.alive().is_empty(), "{:?}", running.alive());
}

#[test]
fn pages_that_lead_back_are_listed_once() {
    let running = Running::start("");
    for words in ["say one", "say two"] {
        let id = running.session("loops");
        running.turn(&id, words);
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
    let (status, told) = running.served.get("/api/agents/loops/sessions").expect("list");
    assert_eq!((status, told["sessions"].as_array().map(Vec::len)), (200, Some(2)), "{told}");
}
