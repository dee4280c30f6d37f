//! Long texts and large windows: live, stored and exported alike, within the limits that are told.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{TestServer, applied};
use serde_json::{Value, json};

fn chunk(text: &str) -> String {
    let content = json!({"type": "text", "text": text});
    json!({"sessionUpdate": "agent_message_chunk", "content": content}).to_string() + "\n"
}

fn joined(items: &[Value]) -> String {
    items.iter().map(|item| item["content"].as_str().expect("a text")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_is_the_same_in_parts_live_and_stored_and_one_in_exports() {
    let server = TestServer::start().await;
    let limits = server.get("/api/v1/limits").await;
    let memory = |name: &str| -> usize {
        limits["memory"][name].as_u64().expect("a limit").try_into().expect("a size")
    };
    let (part, window) = (memory("itemTextBytes"), memory("windowBytes"));
    assert_eq!(limits["requests"], server.get("/api/limits").await);
    let session = server.session().await;
    let mut watcher = server.sse(&format!("/api/sessions/{session}/events?view=items"), None).await;
    watcher.until_ready().await;
    let line = "one line of a long text, with é and 日本語 in it\n";
    let lines = (window + part) / line.len() + 1;
    let text = line.repeat(lines);
    for some in text.as_bytes().chunks(line.len() * 2000) {
        let body: String = std::str::from_utf8(some)
            .expect("whole lines")
            .split_inclusive('\n')
            .collect::<Vec<_>>()
            .chunks(200)
            .map(|lines| chunk(&lines.concat()))
            .collect();
        server.packets(&session, "", body.as_bytes()).await;
    }
    server.packets(&session, "end=true", b"").await;

    // Windows have as many bytes as is said, about, and say that there is more.
    let path = |query: &str| format!("/api/sessions/{session}/items?limit=50&preview=0&{query}");
    let mut items = Vec::new();
    let mut page = server.get(&path("")).await;
    assert_eq!(page["before"], json!(true));
    loop {
        let found = page["items"].as_array().expect("items").clone();
        assert!(joined(&found).len() <= window + part);
        let first = found.first().expect("one item")["order"].clone();
        items.splice(0..0, found);
        if page["before"] == json!(false) {
            break;
        }
        page = server.get(&path(&format!("before={first}"))).await;
    }
    assert!(items.len() > 4 && joined(&items) == text, "{} items", items.len());
    for (before, item) in items.iter().zip(&items[1..]) {
        assert_eq!(item["continues"], before["id"]);
        assert!(before["content"].as_str().expect("a text").len() <= part);
    }

    let mut frames = Vec::new();
    while let Some(frame) = watcher.next().await {
        if frame.is("ended") {
            break;
        }
        frames.push(frame.json());
    }
    assert!(applied(frames.iter()) == items, "live is not what is stored");

    let export =
        server.send("GET", &format!("/api/sessions/{session}/export?format=jsonl"), b"").await;
    let export: Vec<Value> =
        export.text().lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(export.len(), 1);
    assert!(export[0]["content"] == text.as_str());
}
