//! Answers over a socket.

use crate::helper::Running;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Sends messages over a socket; what is answered to each.
fn exchange(running: &Running, token: &str, messages: &[Value]) -> Vec<Value> {
    let url = format!("{}/api/ws", running.served.url.replacen("http", "ws", 1));
    let mut request = url.into_client_request().expect("request");
    let bearer = format!("Bearer {token}").parse().expect("header");
    request.headers_mut().insert("authorization", bearer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("runtime").block_on(async {
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.expect("socket");
        let mut answers = Vec::new();
        for message in messages {
            socket.send(Message::text(message.to_string())).await.expect("send");
            loop {
                let next = socket.next().await.expect("open").expect("message");
                if let Message::Text(text) = next {
                    answers.push(serde_json::from_str(&text).expect("JSON"));
                    break;
                }
            }
        }
        answers
    })
}

#[test]
fn a_question_is_answered_over_a_socket() {
    let running = Running::start("");
    let id = running.session("acp");
    let (_, frames) = running.frames(&id, "ask May I", None);
    let request = running.asked(&id);
    let answer = |option: &str| json!({"type": "answer", "sessionId": id, "requestId": request, "optionId": option});
    // Who may only read may not answer.
    let (status, made) =
        running.post("/api/tokens", &json!({"name": "reader", "scopes": ["read"]}));
    assert!(status < 300, "{made}");
    let reader = made["token"].as_str().expect("token").to_owned();
    let told = exchange(&running, &reader, &[answer("allow_once")]);
    assert_eq!(told[0]["code"], "FORBIDDEN", "{told:?}");
    let messages = [answer("none"), answer("reject_once"), answer("allow_once")];
    let told = exchange(&running, &running.served.token, &messages);
    assert_eq!(told[0]["code"], "INVALID_REQUEST", "{told:?}");
    assert_eq!((&told[1]["type"], &told[1]["requestId"]), (&json!("answered"), &json!(request)));
    assert_eq!(told[2]["code"], "ALREADY_ANSWERED", "{told:?}");
    let said: String = frames
        .filter(|(_, p)| p["type"] == "agent_message_chunk")
        .filter_map(|(_, p)| p["content"]["text"].as_str().map(str::to_owned))
        .collect();
    assert!(said.contains("rejected"), "{said}");
}

#[test]
fn a_form_is_filled_in_over_a_socket() {
    let running = Running::start("");
    for agent in crate::helper::BOTH {
        let id = running.session(agent);
        let form = json!({"mode": "form", "message": "Where to?", "requestedSchema": {
            "type": "object", "required": ["zone"], "properties": {
                "zone": {"type": "string", "pattern": "^[a-z]{2}-\\d$"},
                "nodes": {"type": "integer", "maximum": 9}}}});
        let (_, frames) = running.frames(&id, &format!("elicit {form}"), None);
        let request = running.asked(&id);
        let answer = |given: Value| {
            let mut message = json!({"type": "answer", "sessionId": id, "requestId": request});
            message
                .as_object_mut()
                .expect("object")
                .extend(given.as_object().cloned().expect("object"));
            message
        };
        let messages = [
            answer(json!({"answers": {"zone": "Europe"}})),
            answer(json!({"answers": {"zone": "eu-1", "nodes": 10}})),
            answer(json!({"answers": {"zone": "eu-1", "nodes": 3}})),
            answer(json!({"outcome": "declined"})),
        ];
        let told = exchange(&running, &running.served.token, &messages);
        for (at, word) in [(0, "pattern"), (1, "at most 9")] {
            assert_eq!(told[at]["code"], "INVALID_REQUEST", "{agent}: {told:?}");
            assert!(told[at].to_string().contains(word), "{agent}: {told:?}");
        }
        assert_eq!(told[2]["type"], "answered", "{agent}: {told:?}");
        assert_eq!(told[3]["code"], "ALREADY_ANSWERED", "{agent}: {told:?}");
        let said: String = frames
            .filter(|(_, p)| p["type"] == "agent_message_chunk")
            .filter_map(|(_, p)| p["content"]["text"].as_str().map(str::to_owned))
            .collect();
        let got: Value =
            serde_json::from_str(said.strip_prefix("got ").expect("got")).expect("JSON");
        let expected = json!({"action": "accept", "content": {"zone": "eu-1", "nodes": 3}});
        assert_eq!(got, expected, "{agent}: {said}");
    }
}
