//! Messages that wait when their agent, or its server, ends.

use crate::agents::kill;
use crate::helper::{BOTH, Running, said};
use serde_json::{Value, json};

/// The texts of messages that wait, and whether they are held.
fn waits(run: &Value) -> (Vec<&str>, bool) {
    let queue = run["queue"].as_array().expect("queue");
    let texts = queue.iter().filter_map(|q| q["text"].as_str()).collect();
    (texts, run["held"].as_bool().expect("held"))
}

/// What was said to the agent, in order.
fn prompts(running: &Running, id: &str) -> Vec<String> {
    let items = running.items(id);
    let prompts = items.iter().filter(|item| item["type"] == "user_message");
    let prompts = prompts.filter_map(|item| item["text"].as_str());
    // An agent may note that it was interrupted.
    prompts.filter(|text| !text.starts_with('[')).map(str::to_owned).collect()
}

/// A turn runs, and two messages wait behind it; the stream of the first of them, and the id of the
/// second.
fn behind_a_turn(
    running: &Running,
    id: &str,
) -> (impl Iterator<Item = (String, Value)> + use<>, String) {
    running.tell(id, "wait 60000");
    running.until(id, "at work", |run| run["state"] == "running");
    let (status, frames) = running.frames(id, "say second", Some("second"));
    assert_eq!(status, 200);
    running.until(id, "in the queue", |run| run["queue"].as_array().is_some_and(|q| q.len() == 1));
    let third = running.tell(id, "say third")["id"].as_str().expect("id").to_owned();
    (frames, third)
}

fn all_said(run: &Value) -> bool {
    run["state"] == "idle" && waits(run) == (Vec::new(), false)
}

#[test]
fn what_waits_is_held_when_the_agent_is_stopped() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (frames, _) = behind_a_turn(&running, &id);
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
        let run = running.run(&id);
        assert_eq!(run["state"], "ended", "{agent}: nothing starts it again");
        assert_eq!(waits(&run), (vec!["say second", "say third"], true), "{agent}");
        let end = frames.last().expect("an end").1;
        let told = (&end["type"], &end["details"]["code"], &end["details"]["retryable"]);
        assert_eq!(told, (&json!("error"), &json!("HELD"), &json!(true)), "{agent}: {end}");
        // What is said now is meant first; then the others go on.
        assert!(said(&running.turn(&id, "say instead")).contains("instead"), "{agent}");
        running.until(&id, "all said", all_said);
        let all = ["wait 60000", "say instead", "say second", "say third"];
        assert_eq!(prompts(&running, &id), all, "{agent}");
    }
}

#[test]
fn what_waits_is_held_when_the_server_ends() {
    for signal in ["-TERM", "-KILL"] {
        let mut running = Running::start("");
        for agent in BOTH {
            let id = running.session(agent);
            let (frames, third) = behind_a_turn(&running, &id);
            kill(signal, running.served.child.id());
            drop(frames);
            running.served.child.wait().expect("an end");
            running.again();
            let run = running.run(&id);
            assert_eq!(run["state"], "ended", "{agent} {signal}");
            let waiting = (vec!["say second", "say third"], true);
            assert_eq!(waits(&run), waiting, "{agent} {signal}: {run}");
            // Whoever sends it again by its key sends no other one, and is told that it is held.
            let (status, again) = running.frames(&id, "say second", Some("second"));
            assert_eq!(status, 200);
            let told: Vec<Value> = again.map(|(_, packet)| packet).collect();
            assert_eq!(told.len(), 1, "{agent} {signal}: {told:?}");
            assert_eq!(told[0]["details"]["code"], "HELD", "{agent} {signal}: {told:?}");
            assert_eq!(waits(&running.run(&id)), waiting, "{agent} {signal}");
            // No agent is there, and one is taken back all the same.
            let path = format!("/api/sessions/{id}/queue/{third}");
            assert_eq!(running.served.delete(&path).expect("taken back").1["done"], true);
            assert_eq!(running.served.delete(&path).expect("taken back").1["done"], false);
            assert_eq!(waits(&running.run(&id)), (vec!["say second"], true), "{agent} {signal}");
            running.change(&id, &json!({"hold": false}));
            let (_, again) = running.frames(&id, "say second", Some("second"));
            let turn: Vec<Value> = again.map(|(_, packet)| packet).collect();
            assert!(said(&turn).contains("second"), "{agent} {signal}: {turn:?}");
            running.until(&id, "all said", all_said);
            assert_eq!(prompts(&running, &id), ["wait 60000", "say second"], "{agent} {signal}");
        }
    }
}

#[test]
fn what_waits_is_taken_back_before_anything_else_is_done() {
    let mut running = Running::start("");
    let id = running.session("acp");
    let (frames, third) = behind_a_turn(&running, &id);
    running.again();
    drop(frames);
    let path = format!("/api/sessions/{id}/queue/{third}");
    assert_eq!(running.served.delete(&path).expect("taken back").1["done"], true);
    // It stays so.
    running.again();
    assert_eq!(waits(&running.run(&id)), (vec!["say second"], true));
    let (status, told) = running.served.delete(&path).expect("an answer");
    assert_eq!((status, &told["error"]["code"]), (409, &json!("AGENT_NOT_RUNNING")), "{told}");
}

#[test]
fn what_is_held_is_said_to_be_held_to_whoever_sends_it_again() {
    let running = Running::start("");
    let id = running.session("acp");
    let (first, _) = behind_a_turn(&running, &id);
    running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
    let waiting = (vec!["say second", "say third"], true);
    let run = running.until(&id, "cancelled", |run| run["state"] == "idle");
    assert_eq!(waits(&run), waiting);
    for _ in 0..2 {
        let (status, again) = running.frames(&id, "say second", Some("second"));
        let told: Vec<Value> = again.map(|(_, packet)| packet).collect();
        assert_eq!((status, &told[0]["details"]["code"]), (200, &json!("HELD")), "{told:?}");
    }
    assert_eq!(waits(&running.run(&id)), waiting, "it releases nothing");
    running.change(&id, &json!({"hold": false}));
    let turn: Vec<Value> = first.map(|(_, packet)| packet).collect();
    assert!(said(&turn).contains("second"), "{turn:?}");
}

#[test]
fn what_waits_is_held_when_the_agent_ends_by_itself() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (status, broken) = running.frames(&id, "say begun\nwait 400\nexit 3", None);
        assert_eq!(status, 200);
        running.until(&id, "at work", |run| run["state"] == "running");
        let (_, second) = running.frames(&id, "say second", Some("second"));
        let waiting = |run: &Value| run["queue"].as_array().is_some_and(|queue| !queue.is_empty());
        running.until(&id, "in the queue", waiting);
        let end = broken.last().expect("an end").1;
        assert_eq!(end["details"]["code"], "AGENT_EXITED", "{agent}: {end}");
        let told = second.last().expect("an end").1;
        assert_eq!(told["details"]["code"], "HELD", "{agent}: {told}");
        let run = running.run(&id);
        assert_eq!(run["state"], "ended", "{agent}: {run}");
        assert_eq!(waits(&run), (vec!["say second"], true), "{agent}");
        running.change(&id, &json!({"hold": false}));
        let (_, again) = running.frames(&id, "say second", Some("second"));
        let turn: Vec<Value> = again.map(|(_, packet)| packet).collect();
        assert!(said(&turn).contains("second"), "{agent}: {turn:?}");
        running.until(&id, "all said", all_said);
    }
}
