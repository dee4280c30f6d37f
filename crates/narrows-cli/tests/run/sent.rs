//! Messages: turns, queues, keys, cursors.

use crate::helper::{BOTH, Running, last, said};
use serde_json::{Value, json};

#[test]
fn a_turn_is_told_and_kept() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let packets =
            running.turn(&id, "say Hello\nedit outputs/a.md some words\nbash echo from the shell");
        assert_eq!(packets[0]["type"], "user_message_chunk", "{agent}");
        assert_eq!(last(&packets)["type"], "prompt_response", "{agent}");
        assert_eq!(last(&packets)["stopReason"], "end_turn", "{agent}");
        assert!(said(&packets).contains("Hello"), "{agent}");
        let items = running.items(&id);
        let kinds: Vec<&str> = items.iter().filter_map(|i| i["type"].as_str()).collect();
        assert_eq!(kinds.iter().filter(|k| **k == "user_message").count(), 1, "{agent}: {kinds:?}");
        assert!(kinds.contains(&"tool_call"), "{agent}: {kinds:?}");
        let text = serde_json::to_string(&items).expect("text");
        let root = running.folder.path().display().to_string();
        assert!(!text.contains(&root), "{agent}: the root is seen");
        assert!(text.contains("from the shell"), "{agent}");
        // The second turn is of the same process and the same session.
        let packets = running.turn(&id, "recall");
        assert!(said(&packets).contains("Hello"), "{agent}: {packets:?}");
        assert_eq!(running.run(&id)["state"], "idle", "{agent}");
    }
}

#[test]
fn an_agent_that_was_ended_takes_the_session_up_again() {
    let mut running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        running.turn(&id, "say the first one");
        let (_, stopped) = running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
        assert_eq!(stopped["done"], true);
        assert_eq!(running.run(&id)["state"], "ended");
        let packets = running.turn(&id, "recall");
        assert!(said(&packets).contains("the first one"), "{agent}: {packets:?}");
        // Also after the server was killed.
        running.again();
        let packets = running.turn(&id, "recall");
        assert!(said(&packets).contains("the first one"), "{agent}: {packets:?}");
        let items = running.items(&id);
        let prompts: Vec<&Value> = items.iter().filter(|i| i["type"] == "user_message").collect();
        assert_eq!(prompts.len(), 3, "{agent}: nothing is there twice: {prompts:?}");
    }
    // One that cannot is told so.
    let id = running.session("no-load");
    running.turn(&id, "say one");
    running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    running.turn(&id, "say two");
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    assert!(text.contains("cannot take up a session"), "{text}");
}

#[test]
fn a_message_waits_for_the_turn_before_it() {
    let running = Running::start("");
    let id = running.session("acp");
    running.tell(&id, "wait 400\nsay first");
    let second = running.tell(&id, "say second");
    let third = running.tell(&id, "say third");
    assert_eq!(second["state"], "queued");
    let run = running.run(&id);
    let waiting: Vec<&str> =
        run["queue"].as_array().expect("queue").iter().filter_map(|q| q["text"].as_str()).collect();
    assert!(waiting.ends_with(&["say second", "say third"]), "{run}");
    let path = format!("/api/sessions/{id}/queue/{}", third["id"].as_str().expect("id"));
    assert_eq!(running.served.delete(&path).expect("taken back").1["done"], true);
    assert_eq!(running.served.delete(&path).expect("taken back").1["done"], false);
    running.until(&id, "idle", |run| run["state"] == "idle" && run["queue"] == json!([]));
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    let (first, second) = (text.find("say first"), text.find("say second"));
    assert!(first.is_some() && first < second, "in their order");
    assert!(!text.contains("say third"));
}

#[test]
fn the_same_key_sends_a_message_once() {
    let running = Running::start("");
    let id = running.session("acp");
    let (_, frames) = running.frames(&id, "wait 100\nsay once", Some("k"));
    let first: Vec<Value> = frames.map(|(_, p)| p).collect();
    for _ in 0..3 {
        let (status, frames) = running.frames(&id, "wait 100\nsay once", Some("k"));
        assert_eq!(status, 200);
        assert_eq!(frames.map(|(_, p)| p).collect::<Vec<_>>(), first, "the same turn again");
    }
    let (status, _) = running.frames(&id, "say other", Some("k"));
    assert_eq!(status, 422, "another message with the same key");
    // At the same time, too.
    let at_once = |_| {
        let (_, frames) = running.frames(&id, "say together", Some("t"));
        frames.map(|(_, p)| p).collect::<Vec<_>>()
    };
    let answers: Vec<Vec<Value>> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..4).map(|n| scope.spawn(move || at_once(n))).collect();
        tasks.into_iter().map(|t| t.join().expect("turn")).collect()
    });
    assert!(answers.iter().all(|a| *a == answers[0] && !a.is_empty()));
    let prompts = running.items(&id).into_iter().filter(|i| i["type"] == "user_message").count();
    assert_eq!(prompts, 2);
}

#[test]
fn the_stream_of_a_turn_is_the_packets_of_its_session() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let mut told = Vec::new();
        let words = "think hm\nsay Hello\nedit outputs/a.md some words\nbash echo out; exit 3";
        for words in [words, "say half\nexit 3", "say again"] {
            let (status, frames) = running.frames(&id, words, None);
            assert_eq!(status, 200);
            told.extend(frames);
        }
        let ends =
            told.iter().filter(|(_, p)| p["type"] == "prompt_response" || p["type"] == "error");
        let ends: Vec<&str> = ends.filter_map(|(_, p)| p["type"].as_str()).collect();
        assert_eq!(ends, ["prompt_response", "error", "prompt_response"], "{agent}");
        let (first, _) = &told[0];
        let rest = running.stream(&id, first);
        assert_eq!(told[1..], rest, "{agent}");
        let edit =
            |(_, p): &&(String, Value)| p["type"] == "tool_call_start" && p["kind"] == "edit";
        assert_eq!(told.iter().filter(edit).count(), 1, "{agent}");
        let bash = |(_, p): &&(String, Value)| p["kind"] == "execute" && p["status"] == "failed";
        let (_, failed) = told.iter().find(bash).expect("a command that failed");
        assert_eq!(failed["rawOutput"]["metadata"]["exit"], 3, "{agent}: {failed}");
        assert_eq!(failed["rawInput"]["command"], "echo out; exit 3", "{agent}: {failed}");
    }
}

#[test]
fn whoever_leaves_picks_the_turn_up_by_its_cursor() {
    let running = Running::start("");
    let id = running.session("acp");
    let (_, mut frames) = running.frames(&id, "say one\nwait 300\nsay two\nsay three", None);
    let (cursor, _) = frames.next().expect("the prompt");
    drop(frames);
    running.until(&id, "idle", |run| run["state"] == "idle");
    let rest: Vec<Value> = running.stream(&id, &cursor).into_iter().map(|(_, p)| p).collect();
    assert!(said(&rest).contains("one") && said(&rest).contains("three"), "{rest:?}");
    assert_eq!(last(&rest)["type"], "prompt_response");
    assert!(rest.iter().all(|p| p["type"] != "user_message_chunk"), "not what was told before");
}

#[test]
fn a_turn_is_cancelled() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (_, mut frames) =
            running.frames(&id, "say begun\nbash true\nwait 60000\nsay never", None);
        let mut packets = vec![frames.next().expect("prompt").1];
        while !said(&packets).contains("begun") {
            packets.push(frames.next().expect("packet").1);
        }
        let (_, done) = running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        assert_eq!(done["done"], true, "{agent}");
        packets.extend(frames.map(|(_, p)| p));
        assert!(!said(&packets).contains("never"), "{agent}");
        assert!(
            ["prompt_response", "error"].contains(&last(&packets)["type"].as_str().expect("type")),
            "{agent}"
        );
        // The agent is there still, and goes on.
        assert!(said(&running.turn(&id, "say alive")).contains("alive"), "{agent}");
        assert_eq!(running.run(&id)["state"], "idle");
        let (_, done) = running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        assert_eq!(done["done"], false, "{agent}: nothing runs");
    }
}

/// The texts of messages that wait, and whether they are held.
fn waits(run: &Value) -> (Vec<&str>, bool) {
    let queue = run["queue"].as_array().expect("queue");
    let texts = queue.iter().filter_map(|q| q["text"].as_str()).collect();
    (texts, run["held"].as_bool().expect("held"))
}

#[test]
fn what_waits_does_not_begin_when_a_turn_is_cancelled() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let send = |text: &str| running.tell(&id, text);
        let begun = |run: &Value| !run["turn"].is_null();
        send("wait 60000");
        running.until(&id, "at work", begun);
        send("say second");
        send("say third");
        assert_eq!(waits(&running.run(&id)), (vec!["say second", "say third"], false));
        running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        let run = running.until(&id, "idle", |run| run["state"] == "idle");
        assert_eq!(waits(&run), (vec!["say second", "say third"], true), "{agent}");
        // What is said now is meant first; then the others go on.
        assert!(said(&running.turn(&id, "say instead")).contains("instead"), "{agent}");
        running.until(&id, "all said", |run| run["state"] == "idle" && waits(run).0.is_empty());
        let items = running.items(&id);
        let all = ["wait 60000", "say instead", "say second", "say third"];
        let prompts = items.iter().filter_map(|i| i["text"].as_str());
        // An agent may note that it was interrupted.
        let prompts: Vec<&str> = prompts.filter(|text| !text.starts_with('[')).collect();
        assert_eq!(prompts, all, "{agent}");

        // Released, or taken back.
        send("wait 60000");
        running.until(&id, "at work", begun);
        send("say released");
        running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        running.until(&id, "held", |run| run["state"] == "idle" && waits(run).1);
        running.change(&id, &json!({"hold": false}));
        running.until(&id, "said", |run| run["state"] == "idle" && waits(run).0.is_empty());
        assert!(serde_json::to_string(&running.items(&id)).expect("text").contains("say released"));
        send("wait 60000");
        running.until(&id, "at work", begun);
        let waiting = send("say taken back")["id"].as_str().expect("id").to_owned();
        running.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        running.until(&id, "held", |run| run["state"] == "idle" && waits(run).1);
        let path = format!("/api/sessions/{id}/queue/{waiting}");
        assert_eq!(running.served.delete(&path).expect("taken back").1["done"], true);
        assert_eq!(waits(&running.run(&id)), (vec![], false), "{agent}");
    }
}

#[test]
fn modes_and_models_are_chosen() {
    let running = Running::start("");
    for agent in ["acp", "options", "claude"] {
        let id = running.session(agent);
        running.turn(&id, "say hello");
        running.change(&id, &json!({"mode": "plan"}));
        let run = running.until(&id, "in the mode", |run| run["mode"] == "plan");
        assert!(run["modes"].as_array().is_some_and(|m| m.len() > 1), "{agent}: {run}");
        running.turn(&id, "say again");
    }
}

#[test]
fn files_that_change_are_told() {
    let running = Running::start("");
    let id = running.session("acp");
    running.turn(&id, "bash echo hi > outputs/report.md; mkdir -p outputs/site; echo x > outputs/site/index.html; echo y > plain.txt\nwait 800");
    let events = running.served.events(&id);
    let changed: Vec<&str> = events
        .iter()
        .filter(|e| e["type"] == "file_changed")
        .filter_map(|e| e["path"].as_str())
        .collect();
    for path in ["outputs/report.md", "outputs/site/index.html", "plain.txt"] {
        assert!(changed.contains(&path), "{path}: {changed:?}");
    }
    let made: Vec<(&str, &str)> = events
        .iter()
        .filter(|e| e["type"] == "artifact_created")
        .filter_map(|e| Some((e["artifact"]["type"].as_str()?, e["artifact"]["path"].as_str()?)))
        .collect();
    assert!(made.contains(&("file", "outputs/report.md")), "{made:?}");
    assert!(made.contains(&("web_app", "outputs/site")), "{made:?}");
}

#[test]
fn pictures_are_sent_along() {
    // One pixel.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let path = format!("/api/sessions/{id}/send-message?wait=false");
        let image = json!({"mimeType": "image/png", "data": data});
        let (status, told) =
            running.post(&path, &json!({"content": "say seen", "images": [image]}));
        assert_eq!(status, 202, "{told}");
        running.until(&id, "idle", |run| run["state"] == "idle" && run["queue"] == json!([]));
        let items = running.items(&id);
        let prompt = items.iter().find(|i| i["type"] == "user_message").expect("a prompt");
        assert_eq!(prompt["images"].as_array().map(Vec::len), Some(1), "{agent}: {prompt}");
        assert_eq!(prompt["text"], "say seen", "{agent}");
    }
}

#[test]
fn an_agent_that_is_stopped_stays_so() {
    let running = Running::start("");
    let id = running.session("acp");
    let (_, frames) = running.frames(&id, "wait 60000", None);
    running.until(&id, "running", |run| run["state"] == "running");
    let (_, waiting) = running.frames(&id, "say never", None);
    running.until(&id, "waiting for its turn", |run| {
        run["queue"].as_array().is_some_and(|q| q.len() == 1)
    });
    assert_eq!(running.post(&format!("/api/sessions/{id}/stop"), &json!({})).1["done"], true);
    assert_eq!(frames.last().expect("an end").1["stopReason"], "cancelled");
    assert_eq!(waiting.last().expect("an end").1["details"]["code"], "HELD");
    let run = running.run(&id);
    assert_eq!(run["state"], "ended");
    assert_eq!(waits(&run), (vec!["say never"], true));
    assert!(!serde_json::to_string(&running.items(&id)).expect("text").contains("never"));
}

#[test]
fn what_one_session_makes_is_no_work_of_another() {
    let running = Running::start("");
    let folder = running.folder.path().join("shared");
    std::fs::create_dir_all(folder.join("outputs")).expect("outputs");
    let session = |agent: &str| {
        let body = json!({"agent": agent, "cwd": folder.display().to_string()});
        let (status, made) = running.post("/api/runs", &body);
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().expect("id").to_owned()
    };
    let (idle, busy) = (session("acp"), session("claude"));
    running.turn(&idle, "say ready");
    running.tell(&busy, "say begun\nbash sleep 60");
    let has_begun = || running.items(&busy).iter().any(|item| item["type"] == "tool_call");
    crate::agents::until("the other one is at work", has_begun);
    for (n, agent) in BOTH.into_iter().enumerate() {
        let author = session(agent);
        let (edited, printed) =
            (format!("outputs/edited-{n}.md"), format!("outputs/printed-{n}.md"));
        let words = format!("edit {edited} words\nbash echo words > {printed}; sleep 1\nsay done");
        running.turn(&author, &words);
        let made = || -> Vec<String> {
            let items = running.items(&author);
            let made = items.iter().filter(|item| item["type"] == "artifact");
            made.filter_map(|item| item["artifact"]["path"].as_str().map(str::to_owned)).collect()
        };
        crate::agents::until("both are its work", || made().len() == 2);
        assert!(made().contains(&edited) && made().contains(&printed), "{agent}: {:?}", made());
        for other in [&idle, &busy] {
            // It is seen there, and that is all.
            let seen = || {
                let events = running.served.events(other);
                events.iter().any(|e| e["type"] == "file_changed" && e["path"] == printed)
            };
            crate::agents::until("it is seen", seen);
            let items = running.items(other);
            assert!(!items.iter().any(|item| item["type"] == "artifact"), "{agent}: {items:?}");
        }
    }
    // What nobody's call has written is nobody's work.
    std::fs::write(folder.join("outputs/by-hand.md"), "words").expect("write");
    let seen = || running.served.events(&idle).iter().any(|e| e["path"] == "outputs/by-hand.md");
    crate::agents::until("it is seen", seen);
    let items = running.items(&idle);
    assert!(!items.iter().any(|item| item["type"] == "artifact"), "{items:?}");
}

#[test]
fn what_is_not_offered_is_refused_with_what_is() {
    let running = Running::start("");
    let id = running.session("options");
    // Which options there are is known once the agent is there.
    let (status, told) = running.patch(&id, &json!({"options": {"web": true}}));
    assert_eq!((status, &told["error"]["code"]), (409, &json!("AGENT_NOT_RUNNING")), "{told}");
    running.turn(&id, "say hello");
    for (change, words) in [
        (json!({"options": {"nope": true}}), "there are: web, effort"),
        (json!({"options": {"web": "x"}}), "`web` is true or false"),
        (json!({"options": {"effort": "enormous"}}), "there are: low, high"),
        (json!({"options": {"effort": true}}), "is one of: low, high"),
        (json!({"mode": "dance", "options": {"web": true}}), "there is no mode `dance`"),
        (json!({"model": "none-such"}), "there is no model `none-such`"),
    ] {
        let (status, told) = running.patch(&id, &change);
        assert_eq!((status, &told["error"]["code"]), (422, &json!("NOT_OFFERED")), "{told}");
        assert!(told["error"]["message"].as_str().is_some_and(|m| m.contains(words)), "{told}");
    }
    let value = |run: &Value| run["options"][0]["value"].clone();
    assert_eq!(value(&running.run(&id)), false, "nothing of it was done");
    running.change(&id, &json!({"options": {"web": true}}));
    running.until(&id, "chosen", |run| value(run) == true);
}
