//! What is wanted on one node of an agent on another.

use crate::helper::{BOTH, last, said};
use crate::nodes::{nodes, nodes_without_bus};
use serde_json::{Value, json};

fn allow(agent: &str) -> Value {
    json!({"optionId": if agent == "claude" { "allow" } else { "allow_once" }})
}

#[test]
fn a_turn_is_streamed_from_another_node() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    for agent in BOTH {
        let id = a.session(agent);
        a.turn(&id, "say Hello");
        assert!(!nodes.agents_of(a).is_empty() && nodes.agents_of(b).is_empty());
        let packets = b.turn(&id, "say from afar\nwait 200\nsay and on");
        assert_eq!(packets[0]["type"], "user_message_chunk", "{agent}");
        assert_eq!(last(&packets)["type"], "prompt_response", "{agent}: {packets:?}");
        assert!(said(&packets).contains("from afar"), "{agent}");
        assert!(said(&packets).contains("and on"), "{agent}");
        // It was the same process, and the log is the same everywhere.
        assert!(nodes.agents_of(b).is_empty(), "{:?}", nodes.agents_of(b));
        assert!(said(&b.turn(&id, "recall")).contains("Hello"), "{agent}");
        assert_eq!(a.served.events(&id), b.served.events(&id), "{agent}");
        // The same key is the same message, wherever it is sent.
        let (_, frames) = b.frames(&id, "say once", Some("k"));
        let first: Vec<Value> = frames.map(|(_, p)| p).collect();
        for node in [a, b] {
            let (status, frames) = node.frames(&id, "say once", Some("k"));
            assert_eq!(status, 200);
            assert_eq!(frames.map(|(_, p)| p).collect::<Vec<_>>(), first, "{agent}");
        }
        assert_eq!(b.frames(&id, "say other", Some("k")).0, 422, "{agent}");
        a.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
}

#[test]
fn a_turn_ends_before_the_next_one_wherever_it_is_followed() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    a.turn(&id, "say hello");
    let streams: Vec<_> = (0..6)
        .map(|n| {
            let node = [a, b][n % 2];
            node.frames(&id, &format!("say number {n}"), None).1
        })
        .collect();
    for (n, frames) in streams.into_iter().enumerate() {
        let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
        let kinds = |kind: &str| packets.iter().filter(|p| p["type"] == kind).count();
        assert_eq!((kinds("user_message_chunk"), kinds("prompt_response")), (1, 1), "{packets:?}");
        assert_eq!(said(&packets), format!("number {n}"));
    }
}

#[test]
fn nothing_depends_on_the_bus() {
    let Some(nodes) = nodes_without_bus() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    let (_, frames) = a.frames(&id, "ask May I", None);
    let request = b.asked(&id);
    assert_eq!(b.answer(&id, &request, &allow("acp")).0, 200);
    assert_eq!(frames.last().expect("packets").1["type"], "prompt_response");
    let packets = b.turn(&id, "say from afar");
    assert!(said(&packets).contains("from afar"), "{packets:?}");
    assert_eq!(last(&packets)["type"], "prompt_response");
    assert_eq!(b.post(&format!("/api/sessions/{id}/stop"), &json!({})).1["done"], true);
}

#[test]
fn a_question_is_answered_on_another_node() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    for agent in BOTH {
        let id = a.session(agent);
        let (_, frames) = a.frames(&id, "ask May I", None);
        let request = b.asked(&id);
        let (status, told) = b.answer(&id, &request, &json!({"optionId": "no-such"}));
        assert_eq!(status, 400, "{told}");
        assert_eq!(b.answer(&id, "nothing", &allow(agent)).0, 404);
        let (status, told) = b.answer(&id, &request, &allow(agent));
        assert_eq!(status, 200, "{agent}: {told}");
        let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
        assert!(said(&packets).contains("allowed"), "{agent}: {packets:?}");
        let (status, told) = b.answer(&id, &request, &allow(agent));
        assert_eq!((status, &told["error"]["code"]), (409, &json!("ALREADY_ANSWERED")));
    }
}

#[test]
fn the_first_of_two_answers_counts_wherever_it_is_given() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    for round in 0..5 {
        let (_, frames) = a.frames(&id, "ask May I", None);
        let request = b.asked(&id);
        let mut statuses: Vec<u16> = std::thread::scope(|scope| {
            let give = |node: usize| {
                let (node, option) = [(a, "allow_once"), (b, "reject_once")][node];
                node.answer(&id, &request, &json!({"optionId": option})).0
            };
            let tasks: Vec<_> = (0..2).map(|n| scope.spawn(move || give(n))).collect();
            tasks.into_iter().map(|t| t.join().expect("answer")).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "round {round}");
        assert_eq!(frames.last().expect("packets").1["type"], "prompt_response");
    }
    let events = b.served.events(&id);
    let answers = crate::nodes::count(&events, |e| e["type"] == "permission_answer");
    assert_eq!(answers, 5, "one of each question");
}

#[test]
fn a_turn_is_cancelled_and_an_agent_ended_from_another_node() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    let (_, mut frames) = a.frames(&id, "say begun\nbash true\nwait 60000\nsay never", None);
    let mut packets = vec![frames.next().expect("prompt").1];
    while !said(&packets).contains("begun") {
        packets.push(frames.next().expect("packet").1);
    }
    let (status, done) = b.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
    assert_eq!((status, &done["done"]), (200, &json!(true)), "{done}");
    packets.extend(frames.map(|(_, p)| p));
    assert_eq!(last(&packets)["stopReason"], "cancelled");
    assert!(!said(&packets).contains("never"));
    let (_, done) = b.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
    assert_eq!(done["done"], false, "nothing runs");
    let (_, done) = b.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    assert_eq!(done["done"], true);
    assert!(nodes.agents_of(a).is_empty());
    assert_eq!(b.run(&id)["state"], "ended");
    // A mode is chosen from afar too, and everybody sees it.
    b.turn(&id, "say again");
    let body = json!({"mode": "plan"}).to_string();
    let request = b.served.agent.patch(format!("{}/api/sessions/{id}/run", b.served.url));
    let request = request.header("authorization", format!("Bearer {}", b.served.token));
    let answer = request.header("content-type", "application/json").send(&body).expect("answer");
    assert_eq!(answer.status().as_u16(), 200);
    for node in [a, b] {
        node.until(&id, "in the mode", |run| run["mode"] == "plan");
    }
}

#[test]
fn what_waits_is_seen_and_taken_back_on_another_node() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    a.tell(&id, "wait 1500\nsay first");
    b.until(&id, "running", |run| run["state"] == "running");
    let second = b.tell(&id, "say second");
    let third = b.tell(&id, "say third");
    assert_eq!((&second["state"], &third["state"]), (&json!("queued"), &json!("queued")));
    let run = b.run(&id);
    let waiting: Vec<&str> =
        run["queue"].as_array().expect("queue").iter().filter_map(|q| q["text"].as_str()).collect();
    assert_eq!(waiting, ["say second", "say third"], "whoever sent it sees it: {run}");
    let path = format!("/api/sessions/{id}/queue/{}", third["id"].as_str().expect("id"));
    assert_eq!(b.served.delete(&path).expect("taken back").1["done"], true);
    assert_eq!(b.served.delete(&path).expect("taken back").1["done"], false);
    let rest = |run: &Value| run["state"] == "idle" && run["queue"] == json!([]);
    b.until(&id, "idle", rest);
    let text = serde_json::to_string(&b.items(&id)).expect("text");
    let (first, second) = (text.find("say first"), text.find("say second"));
    assert!(first.is_some() && first < second && !text.contains("say third"), "{text}");
}

#[test]
fn a_run_is_watched_on_another_node() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    assert_eq!(b.run(&id)["state"], "ended");
    a.turn(&id, "say hello");
    let idle = b.until(&id, "idle", |run| run["state"] == "idle");
    assert_eq!(idle, a.run(&id), "the same everywhere");
    // Whoever waits for a change is told at once.
    let version = idle["version"].as_u64().expect("version");
    let waits = std::thread::scope(|scope| {
        let path = format!("/api/sessions/{id}/run?after={version}");
        let served = &b.served;
        let waits = scope.spawn(move || served.get(&path).expect("run").1);
        a.tell(&id, "wait 300");
        waits.join().expect("answer")
    });
    assert!(waits["version"].as_u64() > Some(version), "{waits}");
    // Versions go on when another node runs it.
    a.until(&id, "idle", |run| run["state"] == "idle");
    crate::agents::kill("-TERM", a.served.child.id());
    let given = b.until(&id, "given back", |run| run["state"] == "ended");
    assert!(given["version"].as_u64() > Some(version), "{given}");
    // A lease that was given back is not waited for: it would outlast the test.
    assert!(said(&b.turn(&id, "recall")).contains("say hello"));
    assert!(b.run(&id)["version"].as_u64() > given["version"].as_u64());
}

#[test]
fn a_node_that_runs_nothing_passes_on() {
    let Some(nodes) = nodes() else { return };
    let (a, guest) = (&nodes.a, nodes.guest());
    let id = a.session("acp");
    let send = format!("/api/sessions/{id}/send-message?wait=false");
    let (status, told) = guest.post(&send, br#"{"content":"say hello"}"#).expect("answer");
    assert_eq!((status, &told["error"]["code"]), (403, &json!("RUN_NOT_ALLOWED")), "{told}");
    a.turn(&id, "say hello");
    let (status, told) = guest.post(&send, br#"{"content":"say passed on"}"#).expect("answer");
    assert_eq!(status, 202, "{told}");
    a.until(&id, "idle", |run| run["state"] == "idle" && run["queue"] == json!([]));
    assert!(serde_json::to_string(&a.items(&id)).expect("text").contains("passed on"));
}

#[test]
fn a_folder_that_is_not_here_is_told_in_words() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let folder = tempfile::tempdir().expect("folder");
    let body = json!({"agent": "acp", "cwd": folder.path()});
    let (status, made) = a.post("/api/runs", &body);
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().expect("id");
    let path = folder.path().display().to_string();
    drop(folder);
    for node in [a, b] {
        let send = format!("/api/sessions/{id}/send-message");
        let (status, told) = node.post(&send, &json!({"content": "say hello"}));
        assert_eq!((status, &told["error"]["code"]), (409, &json!("NO_FOLDER")), "{told}");
        let text = told.to_string();
        assert!(!text.contains(&path) && !text.contains("os error"), "{text}");
    }
}
