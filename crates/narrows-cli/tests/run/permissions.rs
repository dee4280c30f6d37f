//! Questions of agents.

use crate::helper::{BOTH, Running, last, said};
use serde_json::{Value, json};

fn allow(agent: &str) -> Value {
    json!({"optionId": if agent == "claude" { "allow" } else { "allow_once" }})
}

fn reject(agent: &str) -> Value {
    json!({"optionId": if agent == "claude" { "deny" } else { "reject_once" }})
}

#[test]
fn leave_is_given_and_refused() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        for (answer, words) in [(allow(agent), "allowed"), (reject(agent), "rejected")] {
            let (_, frames) = running.frames(&id, "ask May I", None);
            let request = running.asked(&id);
            let items = running.items(&id);
            let asked = items.iter().find(|i| i["type"] == "permission").expect("a question");
            assert_eq!(asked["requestId"], json!(request), "{agent}");
            let (status, told) = running.answer(&id, &request, &json!({"optionId": "no-such"}));
            assert_eq!(status, 400, "{told}");
            let (status, told) = running.answer(&id, &request, &answer);
            assert_eq!(status, 200, "{told}");
            let (status, told) = running.answer(&id, &request, &answer);
            assert_eq!((status, &told["error"]["code"]), (409, &json!("ALREADY_ANSWERED")));
            let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
            assert!(said(&packets).contains(words), "{agent}: {packets:?}");
            assert!(running.items(&id).iter().all(|i| i["type"] != "permission"), "{agent}");
        }
        let (status, _) = running.answer(&id, "nothing", &allow(agent));
        assert_eq!(status, 404);
    }
}

#[test]
fn what_is_asked_for_is_told_to_the_letter() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (_, frames) = running.frames(&id, "ask May I", None);
        let request = running.asked(&id);
        let items = running.items(&id);
        let asked = items.iter().find(|i| i["type"] == "permission").expect("a question");
        assert_eq!(asked["toolCall"]["command"], "echo May I", "{agent}: {asked}");
        running.answer(&id, &request, &allow(agent));
        frames.for_each(drop);
    }
}

#[test]
fn a_plan_is_asked_about_in_words_of_our_own() {
    let running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (_, frames) = running.frames(&id, "plan Just a formality | Sink every boat", None);
        let request = running.asked(&id);
        let items = running.items(&id);
        let asked = items.iter().find(|i| i["type"] == "permission").expect("a question");
        assert_eq!(asked["title"], "Leave plan mode", "{agent}: {asked}");
        assert_eq!(asked["toolCall"]["plan"], "Sink every boat", "{agent}: {asked}");
        let allow = json!({"optionId": if agent == "claude" { "allow" } else { "default" }});
        running.answer(&id, &request, &allow);
        let packets: Vec<Value> = frames.map(|(_, packet)| packet).collect();
        assert!(said(&packets).contains("planned"), "{agent}: {packets:?}");
    }
}

#[test]
fn claude_is_allowed_for_good_and_refused_with_words() {
    let running = Running::start("");
    let id = running.session("claude");
    let (_, frames) = running.frames(&id, "ask May I", None);
    let request = running.asked(&id);
    assert_eq!(running.run(&id)["denyReasons"], true);
    let items = running.items(&id);
    let asked = items.iter().find(|i| i["type"] == "permission").expect("a question");
    assert_eq!(asked["title"], "echo May I");
    let always = asked["options"].as_array().expect("options");
    let always = always.iter().find(|o| o["kind"] == "allow_always").expect("for good");
    let words = "Always allow Bash(echo May I) in this project (.claude/settings.local.json)";
    assert_eq!(always["name"], words);
    let with_words = json!({"optionId": "allow", "message": "why not"});
    assert_eq!(running.answer(&id, &request, &with_words).0, 400);
    let none = json!({"optionId": "allow_always:7"});
    assert_eq!(running.answer(&id, &request, &none).0, 400);
    assert_eq!(running.answer(&id, &request, &json!({"optionId": always["optionId"]})).0, 200);
    let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
    assert!(said(&packets).contains("allowed: allow_always"), "{packets:?}");
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    assert!(text.contains(&format!("\"option\":\"{words}\"")), "{text}");

    let (_, frames) = running.frames(&id, "ask May I", None);
    let request = running.asked(&id);
    let refusal = json!({"optionId": "deny", "message": "put it into src instead"});
    let (status, told) = running.answer(&id, &request, &refusal);
    assert_eq!(status, 200, "{told}");
    frames.for_each(drop);
    // The agent gives it back as what came of its call.
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    assert!(text.contains("put it into src instead"), "{text}");

    // The protocol of the others has no words for it.
    let id = running.session("acp");
    let (_, frames) = running.frames(&id, "ask May I", None);
    let request = running.asked(&id);
    let refusal = json!({"optionId": "reject_once", "message": "not so"});
    let (status, told) = running.answer(&id, &request, &refusal);
    assert!(status == 400 && told.to_string().contains("denyReasons"), "{told}");
    running.answer(&id, &request, &reject("acp"));
    frames.for_each(drop);
}

#[test]
fn the_first_of_many_answers_counts() {
    let running = Running::start("");
    let id = running.session("acp");
    let (_, frames) = running.frames(&id, "ask May I", None);
    let request = running.asked(&id);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let give = |n: usize| {
            let option = ["allow_once", "reject_once"][n % 2];
            running.answer(&id, &request, &json!({"optionId": option})).0
        };
        let tasks: Vec<_> = (0..8).map(|n| scope.spawn(move || give(n))).collect();
        tasks.into_iter().map(|t| t.join().expect("answer")).collect()
    });
    assert_eq!(statuses.iter().filter(|s| **s == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|s| **s == 409).count(), 7, "{statuses:?}");
    let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
    assert_eq!(last(&packets)["type"], "prompt_response");
}

#[test]
fn ids_are_not_used_again_by_another_process() {
    let running = Running::start("");
    let id = running.session("acp");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (_, frames) = running.frames(&id, "ask May I", None);
        let request = running.asked(&id);
        assert_eq!(running.answer(&id, &request, &json!({"optionId": "allow_once"})).0, 200);
        assert_eq!(frames.last().expect("packets").1["type"], "prompt_response");
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
        assert!(!seen.contains(&request), "{request} came before");
        seen.push(request);
    }
}

#[test]
fn an_agent_asks_questions_of_its_own() {
    let running = Running::start("");
    let id = running.session("claude");
    // The second one names a path, which people do not see as the agent wrote it.
    let home = running.folder.path().join("data/home/deep/file.txt");
    for (words, seen) in [
        ("Which colour?".to_owned(), "Which colour?"),
        (format!("What of {} now?", home.display()), "What of ~/deep/file.txt now?"),
    ] {
        let (_, frames) = running.frames(&id, &format!("question {words}|Red|Blue"), None);
        let request = running.asked(&id);
        let items = running.items(&id);
        let question = items.iter().rfind(|i| i["type"] == "question").expect("a question");
        assert_eq!(question["questions"][0]["question"], seen);
        let (status, told) = running.answer(&id, &request, &json!({"answers": {seen: "Blue"}}));
        assert_eq!(status, 200, "{told}");
        let packets: Vec<Value> = frames.map(|(_, p)| p).collect();
        assert!(said(&packets).contains("Blue"), "{packets:?}");
    }
}

#[test]
fn a_question_ends_with_its_process() {
    let mut running = Running::start("");
    for agent in BOTH {
        let id = running.session(agent);
        let (_, frames) = running.frames(&id, "ask May I", None);
        let request = running.asked(&id);
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
        drop(frames);
        let (status, told) = running.answer(&id, &request, &allow(agent));
        assert_eq!(status, 409, "{told}");
        assert!(running.items(&id).iter().all(|i| i["type"] != "permission"), "{agent}");
        // And with the server; it is there until then.
        running.tell(&id, "ask May I again");
        running.asked(&id);
        assert!(running.items(&id).iter().any(|i| i["type"] == "permission"), "{agent}");
        running.again();
        assert!(running.items(&id).iter().all(|i| i["type"] != "permission"), "{agent}");
        let run = running.run(&id);
        assert_eq!((&run["state"], &run["requests"]), (&json!("ended"), &json!([])), "{agent}");
        assert_eq!(running.items(&id).last().expect("an item")["type"], "error", "{agent}");
        assert!(said(&running.turn(&id, "say alive")).contains("alive"), "{agent}");
    }
}

#[test]
fn a_question_of_claude_wants_every_answer() {
    let running = Running::start("");
    let id = running.session("claude");
    let (_, frames) = running.frames(&id, "question Which colour?|Red|Blue", None);
    let request = running.asked(&id);
    for answers in [json!({}), json!({"Which colour?": " "})] {
        let (status, told) = running.answer(&id, &request, &json!({"answers": answers}));
        assert_eq!((status, &told["error"]["code"]), (422, &json!("ANSWERS_MISSING")), "{told}");
        assert!(
            told["error"]["message"].as_str().is_some_and(|m| m.contains("question 1")),
            "{told}"
        );
    }
    let answers = json!({"answers": {"Which colour?": "Red"}});
    assert_eq!(running.answer(&id, &request, &answers).0, 200);
    frames.for_each(drop);
}
