//! Sockets: several subscriptions, the list, errors that leave the socket open.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{TestServer, fixture};
use futures_util::SinkExt;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn one_socket_follows_several_sessions() {
    let server = TestServer::start().await;
    let (one, two) = (server.session().await, server.session().await);
    server.packets(&one, "arrived=none&end=true", &fixture("acp/opencode-1.18-c-files")).await;
    let mut ws = server.ws().await;
    ws.send(&json!({"type": "subscribe", "sessionId": one, "view": "events", "subscription": "a"}))
        .await;
    ws.send(&json!({"type": "subscribe", "sessionId": two, "view": "items", "subscription": "b"}))
        .await;
    ws.send(&json!({"type": "subscribe", "sessionId": one})).await;
    let (mut of_a, mut of_one, mut ready) = (Vec::new(), Vec::new(), 0);
    while ready < 3 {
        let message = ws.next().await.expect("a message");
        match (message["type"].as_str(), message["subscription"].as_str()) {
            (Some("ready"), _) => ready += 1,
            (Some("subscription_confirmed" | "cursor" | "ended"), _) => {}
            (_, Some("a")) => of_a.push(message),
            (_, Some("1")) => of_one.push(message),
            other => panic!("{other:?}: {message}"),
        }
    }
    let truth = common::expected(&server, &fixture("acp/opencode-1.18-c-files"), &one, None);
    let plain = |messages: Vec<Value>| -> Vec<Value> {
        let strip = |mut m: Value| {
            let object = m.as_object_mut().expect("object");
            assert!(object.remove("cursor").is_some());
            object.remove("subscription");
            m
        };
        messages.into_iter().map(strip).collect()
    };
    assert_eq!(plain(of_a), truth.events);
    assert_eq!(plain(of_one), truth.activity);
    // What comes for the other session comes under its own name.
    let unsubscribe = json!({"type": "unsubscribe", "sessionId": one});
    ws.send(&unsubscribe).await;
    for _ in 0..2 {
        let between = ws.until("unsubscribed").await;
        assert!(between.iter().all(|m| m["type"] == "ended"), "{between:?}");
    }
    let line = b"{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"x\",\"title\":\"bash\",\"kind\":\"execute\",\"status\":\"completed\"}\n";
    server.packets(&one, "", line).await;
    server.packets(&two, "", line).await;
    let next = ws.next().await.expect("a message");
    assert_eq!((&next["type"], &next["subscription"]), (&json!("changes"), &json!("b")));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_a_code_and_leave_the_socket_open() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    for (message, code) in [
        (json!("text"), "INVALID_MESSAGE"),
        (json!({"type": "nonsense"}), "INVALID_MESSAGE"),
        (json!({"type": "subscribe"}), "INVALID_MESSAGE"),
        (json!({"type": "subscribe", "sessionId": "x", "view": "nonsense"}), "INVALID_MESSAGE"),
        (json!({"type": "subscribe", "workOrderId": "nobody"}), "NOT_FOUND"),
        (json!({"type": "unsubscribe", "subscription": "none"}), "NOT_FOUND"),
    ] {
        ws.send(&message).await;
        let error = ws.next().await.expect("an answer");
        assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!(code)), "{message}");
    }
    let broken = tokio_tungstenite::tungstenite::Message::Text("{nonsense".into());
    ws.socket.send(broken).await.expect("send");
    assert_eq!(ws.next().await.expect("an answer")["code"], "PARSE_ERROR");
    ws.send(&json!({"type": "ping"})).await;
    assert_eq!(ws.next().await.expect("an answer"), json!({"type": "pong"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_sessions_is_followed() {
    let server = TestServer::start().await;
    let first = server.session().await;
    let mut ws = server.ws().await;
    ws.send(&json!({"type": "subscribe", "view": "sessions"})).await;
    let told = ws.until("ready").await;
    assert_eq!((told.len(), &told[1]["session"]["id"]), (2, &json!(first)));
    let second = server.session().await;
    let put = ws.next().await.expect("a message");
    assert_eq!((&put["type"], &put["session"]["id"]), (&json!("session"), &json!(second)));
    server.packets(&first, "end=true", &fixture("acp/opencode-1.18-c-files")).await;
    let put = ws.next().await.expect("a message");
    assert_eq!(
        (&put["session"]["id"], &put["session"]["info"]["agent"]),
        (&json!(first), &json!("OpenCode"))
    );
    server.send("DELETE", &format!("/api/sessions/{second}"), b"").await;
    loop {
        let told = ws.next().await.expect("a message");
        if told["type"] == "removed" {
            assert_eq!(told["sessionId"], json!(second));
            break;
        }
    }
}
