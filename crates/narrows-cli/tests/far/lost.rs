//! Nodes that are lost, and such that only seem to be.

use crate::agents::kill;
use crate::helper::{BOTH, Running, last, said};
use crate::nodes::{count, nodes, nodes_to_lose, until};
use serde_json::{Value, json};
use std::time::Duration;

/// How long anything may take before a test fails.
const SOON: Duration = Duration::from_mins(2);

/// Waits until a session says that its run was lost.
fn lost(node: &Running, id: &str) -> Vec<Value> {
    until("the run is lost", SOON, || {
        let events = node.served.events(id);
        events.iter().any(says_lost).then_some(events)
    })
}

fn says_lost(event: &Value) -> bool {
    event.to_string().contains("The node that ran this agent was lost")
}

#[test]
fn the_run_of_a_killed_node_is_closed_and_taken_up() {
    let Some(mut nodes) = nodes_to_lose() else { return };
    for agent in BOTH {
        let id = nodes.a.session(agent);
        nodes.a.turn(&id, "say Hello");
        let (_, frames) = nodes.b.frames(&id, "ask May I", None);
        let request = nodes.b.asked(&id);
        let waits = nodes.b.tell(&id, "say never")["id"].as_str().expect("id").to_owned();
        // One that has nothing to do.
        let idle = nodes.a.session(agent);
        nodes.a.turn(&idle, "say nothing more");
        nodes.a.served.kill();
        let events = lost(&nodes.b, &id);
        let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
        let end = last(&packets);
        let told = (&end["type"], &end["details"]["code"]);
        assert_eq!(told, (&json!("error"), &json!("NODE_LOST")), "{end}");
        assert_eq!(count(&events, says_lost), 1, "{agent}");
        let open = nodes.b.items(&id);
        assert!(open.iter().all(|i| i["type"] != "permission"), "{agent}: {open:?}");
        let run = nodes.b.until(&id, "over", |run| run["state"] == "ended");
        let held = json!([{"id": waits, "text": "say never"}]);
        assert_eq!((&run["queue"], &run["held"]), (&held, &json!(true)), "{run}");
        assert_eq!(run["requests"], json!([]), "{run}");
        assert!(run["error"].as_str().is_some_and(|e| e.contains("lost")), "{run}");
        let (status, told) = nodes.b.answer(&id, &request, &json!({"outcome": "cancelled"}));
        assert_eq!((status, &told["error"]["code"]), (409, &json!("AGENT_NOT_RUNNING")));
        let events = lost(&nodes.b, &idle);
        assert!(events.iter().any(|e| e["type"] == "notice" && says_lost(e)), "{events:?}");
        // What waits is there still, on any node, and is taken back by one of them.
        let path = format!("/api/sessions/{id}/queue/{waits}");
        assert_eq!(nodes.b.served.delete(&path).expect("taken back").1["done"], true);
        // A message starts it again, here.
        let packets = nodes.b.turn(&id, "recall");
        assert!(said(&packets).contains("say Hello"), "{agent}: {packets:?}");
        assert!(!serde_json::to_string(&nodes.b.items(&id)).expect("text").contains("say never"));
        assert!(!nodes.agents_of(&nodes.b).is_empty());
        nodes.start_a();
        nodes.a.until(&id, "idle: what runs elsewhere goes on", |run| run["state"] == "idle");
        assert!(said(&nodes.a.turn(&id, "say back again")).contains("back again"));
        assert!(nodes.agents_of(&nodes.a).is_empty());
        assert_eq!(count(&nodes.b.served.events(&id), says_lost), 1, "{agent}");
    }
}

#[test]
fn whoever_sends_while_a_node_is_lost_is_not_lost() {
    let Some(mut nodes) = nodes_to_lose() else { return };
    let id = nodes.a.session("acp");
    nodes.a.turn(&id, "say Hello");
    nodes.a.served.kill();
    // Its lease goes on for a while: this waits for it, and is done by the node that it was sent to.
    let packets = nodes.b.turn(&id, "say taken up");
    assert!(said(&packets).contains("taken up"), "{packets:?}");
    assert_eq!(last(&packets)["type"], "prompt_response");
    let prompts = nodes.b.items(&id).into_iter().filter(|i| i["type"] == "user_message").count();
    assert_eq!(prompts, 2);
    // The same node again, at once: it is another one.
    nodes.b.served.kill();
    nodes.start_a();
    assert!(said(&nodes.a.turn(&id, "say once more")).contains("once more"));
}

#[test]
fn a_node_that_was_paused_writes_nothing_more() {
    let Some(nodes) = nodes_to_lose() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    // It goes on speaking while nobody of its node listens.
    let words = format!("say begun\n{}", "say in the dark\nbash true\nwait 200\n".repeat(60));
    let (_, frames) = a.frames(&id, &words, None);
    until("it speaks", SOON, || {
        let spoken = |i: &Value| i["type"] == "text" && i.to_string().contains("in the dark");
        b.items(&id).iter().any(spoken).then_some(())
    });
    let pid = a.served.child.id();
    kill("-STOP", pid);
    lost(b, &id);
    // The other one runs it now, and has something to tell when the first comes back.
    let (_, mine) = b.frames(&id, "say mine\nask Still\nsay still mine", None);
    let request = b.asked(&id);
    let before = b.served.events(&id);
    kill("-CONT", pid);
    until("its agent is gone", SOON, || nodes.agents_of(a).is_empty().then_some(()));
    assert_eq!(b.answer(&id, &request, &json!({"optionId": "allow_once"})).0, 200);
    let mine: Vec<Value> = mine.map(|(_, p)| p).collect();
    assert!(said(&mine).ends_with("still mine"), "{mine:?}");
    assert_eq!(last(&mine)["type"], "prompt_response");
    // Whoever waited at the first one is told the end.
    let told: Vec<Value> = frames.map(|(_, p)| p).collect();
    assert_eq!(last(&told)["details"]["code"], "NODE_LOST", "{told:?}");
    // The first one knows whom to ask; by then it has had time to write whatever it would.
    assert!(said(&a.turn(&id, "say together")).contains("together"));
    let events = b.served.events(&id);
    assert_eq!(events[..before.len()], before, "what was told stays");
    assert!(!events[before.len()..].iter().any(|e| e.to_string().contains("in the dark")));
    assert_eq!(count(&events, says_lost), 1);
    let seqs: Vec<u64> = events.iter().filter_map(|e| e["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "nothing is there twice");
    for words in ["still mine", "say mine"] {
        let prompts = b.items(&id).into_iter().filter(|i| i["type"] == "user_message");
        assert_eq!(prompts.filter(|i| i.to_string().contains(words)).count(), 1);
    }
    assert!(nodes.agents_of(a).is_empty() && !nodes.agents_of(b).is_empty());
    assert_eq!(a.served.events(&id), b.served.events(&id));
}

#[test]
fn a_node_that_is_away_for_a_moment_keeps_its_agents() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    let id = a.session("acp");
    let (_, frames) = a.frames(&id, "say begun\nask May I\nsay done", None);
    let request = b.asked(&id);
    for _ in 0..3 {
        kill("-STOP", a.served.child.id());
        // The other node looks for lost runs while it answers these.
        (0..20).for_each(|_| assert!(b.served.events(&id).iter().all(|e| !says_lost(e))));
        kill("-CONT", a.served.child.id());
        assert_eq!(a.run(&id)["state"], "waiting");
    }
    assert_eq!(b.answer(&id, &request, &json!({"optionId": "allow_once"})).0, 200);
    let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
    assert_eq!(last(&packets)["type"], "prompt_response", "{packets:?}");
    assert!(said(&packets).ends_with("done"));
    assert_eq!(count(&b.served.events(&id), says_lost), 0);
}

#[test]
fn connections_to_the_database_that_are_cut_lose_nothing() {
    let Some(nodes) = nodes() else { return };
    let (a, b) = (&nodes.a, &nodes.b);
    for agent in BOTH {
        let id = a.session(agent);
        a.turn(&id, "say hello");
        let lines: Vec<String> =
            (0..40).map(|n| format!("say word{n}.\nbash true\nwait 50\n")).collect();
        let (_, frames) = b.frames(&id, &lines.concat(), None);
        for _ in 0..8 {
            let before =
                b.served.get(&format!("/api/sessions/{id}")).expect("session").1["seq"].clone();
            until("it goes on", SOON, || {
                let (_, shown) = b.served.get(&format!("/api/sessions/{id}")).expect("session");
                (shown["seq"] != before || shown["status"] != "running").then_some(())
            });
            nodes.cut_connections();
        }
        let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
        assert_eq!(last(&packets)["type"], "prompt_response", "{agent}: {packets:?}");
        // Whoever reads just then is told to try again.
        let items = until("it can be read", SOON, || {
            let (status, page) =
                b.served.get(&format!("/api/sessions/{id}/items?limit=500")).expect("answer");
            assert!(status == 200 || status == 503, "{page}");
            page["items"].as_array().cloned()
        });
        let texts = items.iter().filter(|i| i["type"] == "text");
        let text: String = texts.filter_map(|i| i["content"].as_str()).collect();
        for n in 0..40 {
            let found = text.matches(&format!("word{n}.")).count();
            assert_eq!(found, 1, "{agent}: word{n}: {text}");
        }
        let streamed = said(&packets);
        assert!((0..40).all(|n| streamed.matches(&format!("word{n}.")).count() == 1), "{streamed}");
        assert_eq!(count(&b.served.events(&id), says_lost), 0, "{agent}");
        assert!(said(&b.turn(&id, "say on")).contains("on"), "{agent}");
        a.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
}
