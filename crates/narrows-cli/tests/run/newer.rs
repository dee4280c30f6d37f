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
    let change = json!({"mode": "plan", "options": {"web": true, "effort": "high", "none": "x"}});
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
    running.served.patch(&format!("/api/sessions/{id}/run"), &change);
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
    let kept = std::fs::read_dir(running.folder.path().join("state-wide")).expect("state");
    let kept = kept.flatten().find(|f| f.file_name().to_string_lossy().starts_with("folders"));
    let kept = std::fs::read_to_string(kept.expect("told").path()).expect("text");
    let told: Vec<Value> = kept.lines().map(|l| serde_json::from_str(l).expect(l)).collect();
    let methods: Vec<&Value> = told.iter().map(|t| &t["method"]).collect();
    assert_eq!(methods, ["session/new", "session/resume"]);
    assert!(told.iter().all(|t| t["folders"] == json!([beside])), "{kept}");
    // One that cannot is not asked to, and the session says so.
    let id = running.session("wide-old");
    running.turn(&id, "say hello");
    assert!(serde_json::to_string(&running.items(&id)).expect("text").contains("other folders"));
}
