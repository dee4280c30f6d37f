//! What a producer may forget: packets of turns that were answered, when nothing of them is held back.

use crate::common::TestServer;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_text_alone_are_acknowledged_when_they_are_answered() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let chunk = |kind: &str, text: &str| {
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}).to_string() + "\n"
    };
    for turn in 1..=3 {
        let body = [
            chunk("user_message_chunk", "Go on"),
            chunk("agent_message_chunk", "Hello "),
            chunk("agent_message_chunk", "world. "),
            json!({"type": "prompt_response", "stopReason": "end_turn"}).to_string() + "\n",
        ];
        let answer = server.packets(&session, "", body.concat().as_bytes()).await;
        assert_eq!(answer["acknowledged"], json!(4 * turn), "{answer}");
    }
    let items = server.items(&session).await;
    let texts: Vec<_> = items.iter().filter(|i| i["type"] == "text").collect();
    assert_eq!(texts.len(), 3);
    assert!(texts.iter().all(|t| t["content"] == "Hello world. "), "{texts:?}");
}
