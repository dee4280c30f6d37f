//! Requests as all kinds of clients make them: packed bodies, long heads, probes, bodies that stay open.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{bearer, token};
use common::{Reply, TestServer, fixture, request};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(plain).expect("packed");
    gzip.finish().expect("packed")
}

async fn post(server: &TestServer, session: &str, encoding: &str, body: &[u8]) -> Reply {
    let who = bearer(&server.token);
    let headers = [("authorization", who.as_str()), ("content-encoding", encoding)];
    let path = format!("/api/sessions/{session}/packets?arrived=none&end=true");
    request(server.sends_to, "POST", &path, &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_packets_are_the_packets() {
    let server = TestServer::start().await;
    let plain = fixture("acp/opencode-1.18-c-files");
    // Also longer than what is read at once, and in several members.
    let (one, two) = plain.split_at(plain.len() / 2);
    let members = [packed(one), packed(two)].concat();
    let unpacked = server.session().await;
    server.packets(&unpacked, "arrived=none&end=true", &plain).await;
    for (encoding, body) in [
        ("gzip", packed(&plain)),
        ("GZIP", members),
        ("x-gzip", packed(&plain)),
        ("identity", plain),
    ] {
        let session = server.session().await;
        let reply = post(&server, &session, encoding, &body).await;
        assert_eq!(reply.status, 200, "{encoding}: {}", reply.text());
        assert_eq!(server.items(&session).await, server.items(&unpacked).await, "{encoding}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_unpacked_is_refused() {
    let server = TestServer::start().await;
    let plain = fixture("acp/opencode-1.18-c-files");
    let session = server.session().await;
    for encoding in ["br", "deflate", "zstd", "gzip, gzip", "nonsense"] {
        let reply = post(&server, &session, encoding, &plain).await;
        assert_eq!(reply.status, 415, "{encoding}: {}", reply.text());
    }
    let whole = packed(&plain);
    let cut = &whole[..whole.len() - 9];
    for body in [&plain[..], cut, b"\x1f\x8b"] {
        let reply = post(&server, &server.session().await, "gzip", body).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
    assert_eq!(server.items(&session).await.len(), 0);
    // Little that unpacks to far more.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..100 {
        bomb.write_all(&vec![b'\n'; 1 << 20]).expect("packed");
    }
    let bomb = bomb.finish().expect("packed");
    let reply = post(&server, &session, "gzip", &bomb).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (413, &json!("TOO_LARGE")));
    // JSON is sent plain.
    let who = bearer(&server.token);
    let headers = [
        ("authorization", who.as_str()),
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ];
    let reply = request(server.address, "POST", "/api/sessions", &headers, &packed(b"{}")).await;
    assert_eq!(reply.status, 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_object_makes_nothing() {
    let server = TestServer::start().await;
    for body in ["[]", " [ ]", "null", "\"x\"", "1", "[\"label\"]"] {
        let reply = server.send("POST", "/api/sessions", body.as_bytes()).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    assert_eq!(server.get("/api/sessions").await["sessions"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_has_its_limit() {
    let server = TestServer::start().await;
    let head = async |length: usize, in_path: bool| {
        let long = "x".repeat(length);
        let path = if in_path { format!("/healthz?{long}") } else { "/healthz".to_owned() };
        let headers = if in_path { vec![] } else { vec![("x-long", long.as_str())] };
        request(server.address, "GET", &path, &headers, b"").await.status
    };
    assert_eq!(head(60_000, false).await, 200);
    for length in [65_536, 100_000, 200_000] {
        assert_eq!(head(length, false).await, 431, "{length}");
    }
    assert!([414, 431].contains(&head(66_000, true).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_are_answered_by_any_address() {
    let server = TestServer::start().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        for host in ["10.1.2.3:8080", "10.1.2.3", "[fd00::1]", "[fd00::1]:80"] {
            let reply = request(server.address, "GET", path, &[("host", host)], b"").await;
            assert_eq!(
                (reply.status, &reply.json()["status"]),
                (200, &json!("ok")),
                "{path} {host}"
            );
            // A page of that name is a stranger's.
            let origin = format!("http://{host}");
            let headers = [("host", host), ("origin", origin.as_str())];
            assert_eq!(request(server.address, "GET", path, &headers, b"").await.status, 403);
        }
    }
    let who = bearer(&server.token);
    let upper = format!("LOCALHOST:{}", server.address.port());
    for host in ["evil.example", "", "10.1.2.3.nip.io", "10.1.2.3:x"] {
        let reply = request(server.address, "GET", "/healthz", &[("host", host)], b"").await;
        assert_eq!(reply.status, 421, "`{host}`");
    }
    for (host, status) in [("10.1.2.3", 421), (upper.as_str(), 200)] {
        let headers = [("host", host), ("authorization", who.as_str())];
        assert_eq!(request(server.address, "GET", "/api/me", &headers, b"").await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_all_are_not_for_a_token_of_some() {
    let server = TestServer::start().await;
    let session = server.session().await;
    for (rights, status) in [
        (json!({"scopes": ["read"], "sessions": [session]}), 403),
        (json!({"scopes": ["read"], "tags": ["x"]}), 403),
        (json!({"scopes": ["read"]}), 200),
    ] {
        let who = bearer(&token(&server, rights).await.1);
        let headers = [("authorization", who.as_str())];
        assert_eq!(request(server.address, "GET", "/metrics", &headers, b"").await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stays_open_is_ended_with_the_server() {
    let mut server = TestServer::start().await;
    let session = server.session().await;
    let line = "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"x\",\"title\":\"bash\",\"status\":\"completed\"}\n";
    let mut stream = TcpStream::connect(server.sends_to).await.expect("connect");
    let head = format!(
        "POST /api/sessions/{session}/packets HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n{line}\r\n",
        server.sends_to,
        server.token,
        line.len()
    );
    stream.write_all(head.as_bytes()).await.expect("send");
    let writer = tokio::spawn(async move {
        // A writer that never stops gets no more time than one that is silent.
        let (mut read, mut write) = stream.into_split();
        let writing = tokio::spawn(async move {
            while write.write_all(b"1\r\n\n\r\n").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        });
        let mut answer = Vec::new();
        let _ = read.read_to_end(&mut answer).await;
        writing.abort();
        String::from_utf8_lossy(&answer).into_owned()
    });
    while server.items(&session).await.is_empty() {
        tokio::task::yield_now().await;
    }
    server.stop().await;
    let answer = writer.await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("closing"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_body() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let line = |n: usize| {
        format!(
            "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{n}\",\"title\":\"bash\",\"status\":\"completed\"}}\n"
        )
    };
    let path = format!("/api/sessions/{session}/packets");
    let who = bearer(&server.token);
    let send = async |key: &str, encoding: &str, body: &[u8]| {
        let headers = [
            ("authorization", who.as_str()),
            ("idempotency-key", key),
            ("content-encoding", encoding),
        ];
        request(server.sends_to, "POST", &path, &headers, body).await
    };
    let one = line(1) + &line(2);
    let first = send("k", "identity", one.as_bytes()).await;
    assert_eq!(first.status, 200, "{}", first.text());
    for other in [line(1), line(1) + &line(3), one.clone() + &line(3), String::new()] {
        let reply = send("k", "identity", other.as_bytes()).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (422, &json!("IDEMPOTENCY_KEY_REUSED")),
            "{other}"
        );
    }
    // Long ones, which are read as they come, are no different.
    let long: String = (10..6000).map(line).collect();
    assert_eq!(send("k", "identity", long.as_bytes()).await.status, 422);
    // The same again is answered the same, however it is packed, and nothing was added.
    for (encoding, body) in
        [("identity", one.as_bytes().to_vec()), ("gzip", packed(one.as_bytes()))]
    {
        let again = send("k", encoding, &body).await;
        assert_eq!((again.status, again.json()), (200, first.json()));
    }
    assert_eq!(server.items(&session).await.len(), 2);
    // The session goes on.
    assert_eq!(send("k2", "identity", line(3).as_bytes()).await.status, 200);
    assert_eq!(server.items(&session).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_broke_off_goes_on_only_as_itself() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let line = |n: usize| {
        format!(
            "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{n}\",\"title\":\"bash\",\"status\":\"completed\"}}\n"
        )
    };
    let mut stream = TcpStream::connect(server.sends_to).await.expect("connect");
    let begun = line(1);
    let head = format!(
        "POST /api/sessions/{session}/packets HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         idempotency-key: k\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{begun}\r\n",
        server.sends_to,
        server.token,
        begun.len()
    );
    stream.write_all(head.as_bytes()).await.expect("send");
    while server.items(&session).await.is_empty() {
        tokio::task::yield_now().await;
    }
    drop(stream);
    let who = bearer(&server.token);
    let headers = [("authorization", who.as_str()), ("idempotency-key", "k")];
    let path = format!("/api/sessions/{session}/packets");
    let send = async |body: String| {
        request(server.sends_to, "POST", &path, &headers, body.as_bytes()).await
    };
    let reply = send(line(7) + &line(2)).await;
    assert_eq!(reply.status, 422, "{}", reply.text());
    let reply = send(line(1) + &line(2)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let ids: Vec<_> = server.items(&session).await.iter().map(|i| i["id"].clone()).collect();
    assert_eq!(ids, [json!("c1"), json!("c2")]);
}

/// A source that says that it is over takes back what it asked, however its packets were sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_withdraws_requests_of_the_same_and_of_earlier_bodies() {
    let server = TestServer::start().await;
    let prompt = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
        "params": {"sessionId": "x", "prompt": [{"type": "text", "text": "go"}]}});
    let ask = json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission",
        "params": {"sessionId": "x",
            "toolCall": {"toolCallId": "c1", "kind": "execute", "status": "pending",
                "rawInput": {"command": "make"}},
            "options": [{"optionId": "a", "name": "Allow", "kind": "allow_once"}]}});
    let answered = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}});
    let lines = [prompt, ask, answered].map(|line| format!("{line}\n"));
    let mut ends = Vec::new();
    for bodies in [
        vec![lines[..2].concat()],
        vec![lines[..2].concat(), String::new()],
        vec![lines[0].clone(), lines[1].clone(), String::new()],
        vec![lines.concat()],
        vec![lines[..2].concat(), lines[2].clone()],
        vec![lines.concat(), String::new()],
    ] {
        let session = server.session().await;
        for (n, body) in bodies.iter().enumerate() {
            let end = n + 1 == bodies.len();
            let first = 1 + bodies[..n].iter().map(|b| b.lines().count()).sum::<usize>();
            let query = format!("arrived=none&first={first}&end={end}");
            server.packets(&session, &query, body.as_bytes()).await;
        }
        let about = server.get(&format!("/api/sessions/{session}")).await;
        let state = json!([about["ended"], about["live"], about["waiting"]]);
        assert_eq!(state, json!([true, false, 0]), "{bodies:?}");
        let items = server.items(&session).await;
        assert!(!items.iter().any(|item| item["type"] == "permission"), "{bodies:?}: {items:?}");
        ends.push(items);
    }
    // Without the end of the turn, and with it.
    assert!(ends[..3].iter().all(|items| *items == ends[0]), "{ends:?}");
    assert!(ends[3..].iter().all(|items| *items == ends[3]), "{ends:?}");
}
