//! A server that ends within a secret or a root, and a producer that goes on: real processes.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod served;

use serde_json::{Value, json};
use served::{Served, serve};

const ROOT: &str = "/srv/acme-q7-checkout/app";

fn packet(text: &str) -> String {
    let content = json!({"type": "text", "text": text});
    format!("{}\n", json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

/// A text of which each border lies within something to hide.
fn packets() -> Vec<String> {
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let (head, tail) = token.split_at(12);
    let end = json!({"type": "prompt_response", "stopReason": "end_turn"});
    vec![
        packet(&format!("the token is {head}")),
        packet(&format!("{tail} and it lies in /srv/acme-q7-")),
        packet("checkout/app/keys.txt, done."),
        format!("{end}\n"),
    ]
}

fn items(served: &Served, session: &str) -> Vec<Value> {
    let page = served.get(&format!("/api/sessions/{session}/items?limit=100")).expect("items").1;
    page["items"].as_array().expect("items").clone()
}

fn send(served: &Served, session: &str, more: &str, packets: &[String]) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/packets?arrived=none&root={ROOT}{more}");
    served.post(&path, packets.concat().as_bytes()).expect("answer")
}

fn text_of(items: &[Value]) -> &str {
    items[0]["content"].as_str().expect("a text")
}

#[test]
fn a_server_that_ends_within_a_secret_shows_nothing_of_it_and_asks_for_it_again() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let mut served = serve(&data, &[], &["--no-follow"]).expect("server");
    let all = packets();
    let uncut = served.session("uncut").expect("session");
    assert_eq!(send(&served, &uncut, "&end=true", &all).0, 200);
    let truth = items(&served, &uncut);
    assert!(text_of(&truth).ends_with("keys.txt, done."), "{truth:?}");
    for (number, at) in [1, 2].into_iter().cycle().take(8).enumerate() {
        let session = served.session(&format!("cut-{number}")).expect("session");
        // With places, with a key, and by somebody who notices nothing.
        let (place, key) = (format!("&first={}", at + 1), format!("k{number}"));
        let answer = send(&served, &session, "", &all[..at]);
        assert_eq!((answer.0, &answer.1["read"]), (200, &json!(at)), "{}", answer.1);
        assert!(answer.1["acknowledged"].as_u64() < Some(at as u64), "{}", answer.1);
        if number % 4 < 2 {
            assert!(served.terminate().success());
        } else {
            served.kill();
        }
        let log = served.log();
        served = serve(&data, &[], &["--no-follow"]).expect("server");
        let state = served.get(&format!("/api/sessions/{session}/packets")).expect("state").1;
        let source = &state["sources"][0];
        assert!(source["acknowledged"].as_u64() < source["read"].as_u64(), "{state}");
        let more = if number % 2 == 0 { place.as_str() } else { "" };
        let (status, refused) = send(&served, &session, more, &all[at..=at]);
        let error = &refused["error"];
        assert_eq!((status, &error["code"]), (409, &json!("RESEND")), "{key}: {refused}");
        assert_eq!(error["retryable"], true);
        // The one step that is documented.
        let first = error["first"].as_u64().expect("a place");
        let from = usize::try_from(first - 1).expect("small");
        let again = send(&served, &session, &format!("&first={first}&end=true"), &all[from..]);
        assert_eq!(again.0, 200, "{}", again.1);
        let shown = items(&served, &session);
        assert_eq!(text_of(&shown), text_of(&truth), "cut after {at}");
        let events = Value::from(served.events(&session)).to_string();
        for part in ["16C7e42F", "2c6912E7", "8347Ae17", "acme-q7"] {
            assert!(!events.contains(part) && !log.contains(part), "{part} is shown");
            let found = served.get(&format!("/api/search?q={part}")).expect("search").1;
            assert_eq!(found["hits"], json!([]), "{part} is found");
        }
    }
}
