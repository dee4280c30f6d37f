//! Sessions as files: their names and types, who may have them, and what a slow reader costs.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{Place, bearer, probe, token};
use common::{PATIENCE, TestServer, fixture};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A session of some megabytes: too much for what sockets and pieces hold.
async fn long(server: &TestServer) -> String {
    let id = server.session().await;
    let (mut packets, text) = (String::new(), "word ".repeat(2000));
    for n in 0..1000 {
        let update = json!({"sessionUpdate": "user_message_chunk", "messageId": format!("m{n}"),
            "content": {"type": "text", "text": format!("{n} {text}")}});
        let packet = json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update}});
        let _ = writeln!(packets, "{packet}");
    }
    server.packets(&id, "format=acp&end=true", packets.as_bytes()).await;
    id
}

/// Asks for an export and reads the first bytes of it.
async fn begin(server: &TestServer, id: &str, secret: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.expect("connect");
    let head = format!(
        "GET /api/sessions/{id}/export?format=jsonl HTTP/1.1\r\nhost: {}\r\n\
         authorization: Bearer {secret}\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.expect("send");
    let mut first = [0; 15];
    stream.read_exact(&mut first).await.expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    stream
}

/// Reads to the end; whether the last chunk came, which ends a whole body.
async fn is_whole(mut stream: TcpStream) -> bool {
    let mut all = Vec::new();
    let read = tokio::time::timeout(PATIENCE, async {
        let mut piece = vec![0; 64 << 10];
        loop {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(n) => all.extend_from_slice(&piece[..n]),
            }
            if all.ends_with(b"\r\n0\r\n\r\n") {
                return;
            }
        }
    });
    read.await.expect("in time");
    all.ends_with(b"\r\n0\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_a_type_and_a_plain_name() {
    let server = TestServer::start().await;
    let id = server.session().await;
    server
        .packets(&id, "format=claude-history&end=true", &fixture("claude-history/2.1-c-files"))
        .await;
    for (format, kind, ending) in [
        ("md", "text/markdown; charset=utf-8", "md"),
        ("html", "text/html; charset=utf-8", "html"),
        ("text", "text/plain; charset=utf-8", "txt"),
        ("json", "application/json", "json"),
        ("jsonl", "application/x-ndjson", "jsonl"),
    ] {
        let path = format!("/api/sessions/{id}/export?format={format}");
        let reply = server.send("GET", &path, b"").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.headers["content-type"], kind);
        assert_eq!(reply.headers["cache-control"], "no-store");
        let named = &reply.headers["content-disposition"];
        let name = named.strip_prefix("attachment; filename=\"").and_then(|n| n.strip_suffix('"'));
        let name = name.unwrap_or_else(|| panic!("{named}"));
        let (stem, end) = name.rsplit_once('.').expect("ending");
        assert_eq!(end, ending);
        assert!(stem.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-'), "{stem}");
        match format {
            "json" => {
                let items = reply.json()["items"].as_array().expect("items").len();
                assert_eq!(items, server.items(&id).await.len());
            }
            "jsonl" => {
                let read = |l: &str| serde_json::from_str::<Value>(l).expect("JSON");
                assert_eq!(
                    reply.text().lines().map(read).collect::<Vec<_>>(),
                    server.items(&id).await
                );
            }
            _ => assert!(reply.body.len() > 500),
        }
    }
    let usual = server.send("GET", &format!("/api/sessions/{id}/export"), b"").await;
    assert!(usual.headers["content-type"].starts_with("text/markdown"));
    for query in ["format=pdf", "format=", "form=md", "format=md&format=html"] {
        let reply = server.send("GET", &format!("/api/sessions/{id}/export?{query}"), b"").await;
        assert_eq!(reply.status, 400, "{query}");
    }
    assert_eq!(server.send("GET", "/api/sessions/no-such/export", b"").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_are_written_at_once_and_readers_that_go_make_room() {
    let server = TestServer::with(|c| c.limits.exports = 2).await;
    let id = long(&server).await;
    let first = begin(&server, &id, &server.token).await;
    let second = begin(&server, &id, &server.token).await;
    let path = format!("/api/sessions/{id}/export?format=jsonl");
    let reply = server.send("GET", &path, b"").await;
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert_eq!(reply.json()["error"]["code"], "TOO_MANY_EXPORTS");
    assert!(reply.headers.contains_key("retry-after"));
    // Whoever reads on gets everything; whoever goes makes room.
    assert!(is_whole(first).await);
    drop(second);
    let mut reply = server.send("GET", &path, b"").await;
    common::until("there is room", async || {
        reply = server.send("GET", &path, b"").await;
        reply.status == 200
    })
    .await;
    assert_eq!(reply.text().lines().count(), 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_file_does_not_look_whole() {
    let mut server = TestServer::start().await;
    let id = long(&server).await;
    let (name, secret) = token(&server, json!({"scopes": ["read"]})).await;
    let revoked = begin(&server, &id, &secret).await;
    let reply = server.send("DELETE", &format!("/api/tokens/{name}"), b"").await;
    assert_eq!(reply.status, 204);
    assert!(!is_whole(revoked).await);
    let closed = begin(&server, &id, &server.token).await;
    let ((), whole) = tokio::join!(server.stop(), is_whole(closed));
    assert!(!whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_exports_what_it_sees() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let (_, secret) = token(&server, json!({"scopes": ["read"], "tags": ["home"]})).await;
    let secret = bearer(&secret);
    let get = async |id: &str| {
        let path = format!("/api/sessions/{id}/export?format=md");
        probe(server.address, "GET", &path, &[("authorization", &secret)], b"").await.status
    };
    assert_eq!(get(&home.id).await, 200);
    assert_eq!(get(&other.id).await, 404);
}
