//! Reading over HTTP: windows, long texts, pictures, search, a reader that stops.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{TestServer, fixture};
use serde_json::{Value, json};

fn chunk(text: &str) -> String {
    let content = json!({"type": "text", "text": text});
    json!({"sessionUpdate": "agent_message_chunk", "content": content}).to_string() + "\n"
}

fn call(id: &str, output: &str) -> String {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "bash", "kind": "execute",
        "status": "completed", "rawInput": {"command": "x"}, "rawOutput": {"output": output}})
    .to_string()
        + "\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_go_both_ways_and_long_texts_come_by_reference() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let long = "0123456789".repeat(5000);
    let body: String =
        (0..30).map(|n| call(&format!("c{n}"), if n == 7 { &long } else { "ok" })).collect();
    server.packets(&session, "end=true", body.as_bytes()).await;
    let path = |query: &str| format!("/api/sessions/{session}/items?{query}");
    let orders = |page: &Value| -> Vec<u64> {
        let items = page["items"].as_array().expect("items");
        items.iter().map(|i| i["order"].as_u64().expect("order")).collect()
    };
    let last = server.get(&path("limit=10")).await;
    assert_eq!(
        (orders(&last), &last["before"], &last["after"]),
        ((20..30).collect(), &json!(true), &json!(false))
    );
    let back = server.get(&path("limit=10&before=20")).await;
    assert_eq!(
        (orders(&back), &back["before"], &back["after"]),
        ((10..20).collect(), &json!(true), &json!(true))
    );
    let first = server.get(&path("limit=10&from=0")).await;
    assert_eq!(
        (orders(&first), &first["before"], &first["after"]),
        ((0..10).collect(), &json!(false), &json!(true))
    );
    let around = server.get(&path("limit=4&around=15")).await;
    assert_eq!(orders(&around), [13, 14, 15, 16]);
    // Cut in the window, whole by itself.
    let cut = &first["items"][7];
    assert_eq!(cut["clipped"], json!({"toolCall.rawOutput": 50_000}));
    assert_eq!(cut["toolCall"]["rawOutput"].as_str().map(str::len), Some(16 << 10));
    let whole = server.get(&format!("/api/sessions/{session}/items/c7")).await;
    assert_eq!(whole["toolCall"]["rawOutput"], json!(long));
    let missing = server.send("GET", &format!("/api/sessions/{session}/items/nope"), b"").await;
    assert_eq!(missing.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_served_as_the_picture_it_is() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.packets(&session, "end=true", &fixture("acp/opencode-1.18-u-user-image")).await;
    let items = server.items(&session).await;
    let image = items.iter().find_map(|i| i["images"].get(0)).expect("an image");
    let (hash, size) =
        (image["blob"].as_str().expect("hash"), image["size"].as_u64().expect("size"));
    let path = format!("/api/sessions/{session}/blobs/{hash}");
    let reply = server.send("GET", &path, b"").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["content-type"], image["mimeType"].as_str().expect("type"));
    assert_eq!((reply.body.len() as u64, &reply.body[1..4]), (size, &b"PNG"[..]));
    // Another session does not have it.
    let other = server.session().await;
    let path = format!("/api/sessions/{other}/blobs/{hash}");
    assert_eq!(server.send("GET", &path, b"").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn search_names_the_item_and_marks_the_hit() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let body = [
        chunk("Look at `fn retry_backoff(` in 東京タワー."),
        call("c1", "nothing"),
        chunk("Else."),
    ]
    .concat();
    server.packets(&session, "end=true", body.as_bytes()).await;
    for (query, marked) in [
        ("RETRY_back", "retry_back"),
        ("%E6%9D%B1%E4%BA%AC", "東京"),
        ("backoff%20%22fn%20re%22", "backoff"),
    ] {
        let found = server.get(&format!("/api/search?q={query}")).await;
        let hits = found["hits"].as_array().expect("hits");
        assert_eq!(hits.len(), 1, "{query}: {found}");
        assert_eq!(
            (&hits[0]["sessionId"], &hits[0]["field"]),
            (&json!(session), &json!("content"))
        );
        let parts = hits[0]["parts"].as_array().expect("parts");
        assert!(
            parts.iter().any(|p| p["hit"] == true && p["text"] == marked),
            "{query}: {parts:?}"
        );
        let item = hits[0]["itemId"].as_str().expect("item");
        let item = server.get(&format!("/api/sessions/{session}/items/{item}")).await;
        assert!(item["content"].as_str().expect("content").contains("東京"));
    }
    assert_eq!(server.get("/api/search?q=absent").await["hits"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_is_cut_off_and_goes_on_where_it_was() {
    let server = TestServer::with(|config| config.limits.stalled_seconds = 1).await;
    let session = server.session().await;
    let path = format!("/api/sessions/{session}/events?view=events");
    let mut stopped = server.sse(&path, None).await;
    stopped.until_ready().await;
    // Far more than the buffers of both sides hold; nobody else is held up by it.
    let long = "x".repeat(200_000);
    for n in 0..120 {
        server.packets(&session, "", call(&format!("c{n}"), &long).as_bytes()).await;
    }
    common::until("it is cut off", async || {
        let metrics = server.send("GET", "/metrics", b"").await.text();
        metrics.lines().any(|line| line == "narrows_streams 0")
    })
    .await;
    let mut seqs = Vec::new();
    while let Some(frame) = stopped.next().await {
        seqs.extend(frame.json()["seq"].as_u64());
    }
    assert!(!seqs.is_empty() && seqs.len() < 120, "cut off after {}", seqs.len());
    let mut again = server.sse(&path, stopped.last_id.as_deref()).await;
    seqs.extend(again.until_ready().await.iter().filter_map(|f| f.json()["seq"].as_u64()));
    assert_eq!(seqs, (1..=120).collect::<Vec<u64>>());
}
