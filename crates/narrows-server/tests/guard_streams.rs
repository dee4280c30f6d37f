//! Streams end with the token that opened them; nobody takes more than the limits give.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{Call, Place, UPGRADE, bearer, browser, probe, request_ticket, ticket, token};
use common::{Sse, TestServer, Ws};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

/// What is told of the end must be told by then.
const SOON: Duration = common::PATIENCE;

/// Every kind of stream, open and quiet.
struct Streams {
    events: Sse,
    list: Sse,
    socket: Ws,
}

impl Streams {
    /// Opens them with a header that says who it is.
    async fn open(address: SocketAddr, place: &Place, who: (&'static str, &str)) -> Streams {
        let own = format!("http://{address}");
        let headers = [who, ("origin", own.as_str())];
        let path = format!("/api/sessions/{}/events", place.id);
        let mut events = Sse::open(address, &path, &headers).await;
        assert_eq!(events.status, 200);
        let mut list = Sse::open(address, "/api/sessions/stream", &headers).await;
        assert_eq!(list.status, 200);
        let mut request = format!("ws://{address}/api/ws").into_client_request().expect("request");
        for (name, value) in headers {
            request.headers_mut().insert(name, value.parse().expect("header"));
        }
        let (socket, _) = tokio_tungstenite::connect_async(request).await.expect("socket");
        let mut socket = Ws { socket };
        for view in ["items", "sessions"] {
            let subscribe = json!({"type": "subscribe", "sessionId": place.id, "view": view});
            socket.send(&subscribe).await;
            socket.until("ready").await;
        }
        events.until_ready().await;
        list.until_ready().await;
        Streams { events, list, socket }
    }

    /// All of them are closed soon, and say why.
    async fn are_closed(self, reason: &str) {
        // Signs of life come without end: only a clock tells that nothing else does.
        tokio::time::timeout(SOON, self.end(reason)).await.expect("they are closed soon");
    }

    async fn end(mut self, reason: &str) {
        for stream in [&mut self.events, &mut self.list] {
            let mut last = None;
            while let Some(frame) = stream.next().await {
                last = Some(frame);
            }
            let last = last.expect("a last frame");
            assert!(last.is("closed"), "{last:?}");
            assert_eq!(last.json(), json!({"type": "closed", "reason": reason}));
        }
        let close = closed(&mut self.socket).await.expect("a reason");
        assert_eq!((u16::from(close.code), close.reason.as_str()), (4001, reason));
    }
}

/// How a socket was closed.
async fn closed(socket: &mut Ws) -> Option<CloseFrame> {
    loop {
        let next = tokio::time::timeout(SOON, socket.socket.next()).await.expect("in time");
        match next {
            Some(Ok(Message::Close(frame))) => return frame,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return None,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_token_closes_its_streams_and_no_others() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let (id, secret) = token(&server, json!({"scopes": ["read"], "tags": ["home"]})).await;
    let who = bearer(&secret);
    let streams = Streams::open(server.address, &place, ("authorization", &who)).await;
    let (_, other) = token(&server, json!({"scopes": ["read"]})).await;
    let other = bearer(&other);
    let mut stays = Streams::open(server.address, &place, ("authorization", &other)).await;
    let reply = server.send("DELETE", &format!("/api/tokens/{id}"), b"").await;
    assert_eq!(reply.status, 204);
    streams.are_closed("revoked").await;
    let me = probe(server.address, "GET", "/api/me", &[("authorization", &who)], b"").await;
    assert_eq!(me.status, 401);
    // What another token opened goes on.
    server.send("PATCH", &format!("/api/sessions/{}", place.id), br#"{"addTags":["x"]}"#).await;
    assert!(stays.list.next().await.expect("a frame").data.expect("data").contains(&place.id));
    stays.socket.send(&json!({"type": "ping"})).await;
    stays.socket.until("pong").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_closes_its_streams() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let (_, secret) = token(&server, json!({"scopes": ["read"], "ttlSeconds": 5})).await;
    let who = bearer(&secret);
    let streams = Streams::open(server.address, &place, ("authorization", &who)).await;
    streams.are_closed("revoked").await;
    let me = probe(server.address, "GET", "/api/me", &[("authorization", &who)], b"").await;
    assert_eq!(me.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_has_streams_of_its_own_origin_until_it_logs_out() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let secret = browser(&server, &ticket(&server).await).await;
    let who = bearer(&secret);
    let streams = Streams::open(server.address, &place, ("authorization", &who)).await;
    let by_ticket = |ticket: &str| format!("/api/sessions/stream?limit=5&ticket={ticket}");
    let own = format!("http://{}", server.address);
    let from = [("origin", own.as_str())];
    let path = by_ticket(&request_ticket(&server, &secret).await);
    let mut list = Sse::open(server.address, &path, &from).await;
    assert_eq!(list.status, 200);
    list.until_ready().await;
    let unused = request_ticket(&server, &secret).await;
    let headers = [("authorization", who.as_str())];
    let reply = probe(server.address, "POST", "/api/logout", &headers, b"").await;
    assert_eq!(reply.status, 204);
    streams.are_closed("revoked").await;
    while let Some(frame) = list.next().await {
        assert!(!frame.is("session"), "{frame:?}");
    }
    let reply = probe(server.address, "GET", "/api/me", &headers, b"").await;
    assert_eq!(reply.status, 401, "the token is void, not only forgotten");
    assert_eq!(probe(server.address, "GET", &by_ticket(&unused), &from, b"").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_for_a_request_opens_one_and_only_what_needs_it() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let other = Place::make(&server, "other").await;
    let (_, secret) = token(&server, json!({"scopes": ["read"], "tags": ["home"]})).await;
    let once = [
        "/api/sessions/stream",
        "/api/sessions/{id}/events",
        "/api/sessions/{id}/blobs/{hash}",
        "/api/sessions/{id}/export",
        "/api/ws",
    ];
    for route in narrows_server::route_list().into_iter().filter(|route| route.scope.is_some()) {
        let mut call = Call::new(&server, &route, &place, true).await;
        let ticket = request_ticket(&server, &secret).await;
        let sign = if call.path.contains('?') { '&' } else { '?' };
        call.path = format!("{}{sign}ticket={ticket}", call.path);
        let opens = route.method == http::Method::GET && once.contains(&route.path);
        let about = format!("{} {}", route.method, route.path);
        if opens {
            // Whoever only asks what there is does not use it up, and learns nothing.
            let head = common::request(server.address, "HEAD", &call.path, &[], b"").await;
            assert_eq!(head.status, 401, "HEAD {about}");
        }
        let reply = call.send(&server, &[]).await;
        assert_eq!(reply.status, if opens { call.good } else { 401 }, "{about}: {}", reply.text());
        let again = call.send(&server, &[]).await;
        assert_eq!(again.status, 401, "{about}: twice");
    }
    // It is worth what the token is, and no login.
    let path =
        |place: &Place, ticket: &str| format!("/api/sessions/{}/export?ticket={ticket}", place.id);
    let hidden = path(&other, &request_ticket(&server, &secret).await);
    assert_eq!(probe(server.address, "GET", &hidden, &[], b"").await.status, 404);
    let ticket = request_ticket(&server, &secret).await;
    assert_eq!(callers::login(&server, &ticket).await.status, 401);
    let who = bearer(&ticket);
    let me = probe(server.address, "GET", "/api/me", &[("authorization", &who)], b"").await;
    assert_eq!(me.status, 401);
    // Nor is a way into a browser one for a request.
    let into = callers::ticket(&server).await;
    assert_eq!(probe(server.address, "GET", &path(&place, &into), &[], b"").await.status, 401);
    // A page of another origin cannot use it.
    let ticket = request_ticket(&server, &secret).await;
    for from in [("origin", "http://127.0.0.1:9"), ("sec-fetch-site", "same-site")] {
        let reply = probe(server.address, "GET", &path(&place, &ticket), &[from], b"").await;
        assert_eq!(reply.status, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_takes_its_token_among_the_protocols_and_does_not_tell_it_back() {
    let server = TestServer::start().await;
    let (_, secret) = token(&server, json!({"scopes": ["read"]})).await;
    let (_, writer) = token(&server, json!({"scopes": ["write"]})).await;
    let open = async |protocols: &str, more: &[(&str, &str)]| {
        let headers = [&UPGRADE[..], &[("sec-websocket-protocol", protocols)], more].concat();
        probe(server.address, "GET", "/api/ws", &headers, b"").await
    };
    let reply = open(&format!("narrows, bearer.{secret}"), &[]).await;
    assert_eq!(reply.status, 101);
    assert_eq!(reply.headers["sec-websocket-protocol"], "narrows");
    assert!(!format!("{reply:?}").contains(&secret));
    assert_eq!(open("narrows", &[]).await.status, 401);
    assert_eq!(open(&format!("narrows, bearer.{secret}x"), &[]).await.status, 401);
    assert_eq!(open(&format!("narrows, bearer.{writer}"), &[]).await.status, 403);
    let evil = [("origin", "http://evil.com")];
    assert_eq!(open(&format!("narrows, bearer.{secret}"), &evil).await.status, 403);
    // In an address it would stand in logs and histories.
    for path in ["/api/me?token=", "/api/me?access_token=", "/api/ws?token="] {
        let reply = probe(server.address, "GET", &format!("{path}{secret}"), &UPGRADE, b"").await;
        assert_eq!(reply.status, 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_opens_only_so_many_streams() {
    let server = TestServer::with(|c| c.limits.streams_per_token = 3).await;
    let place = Place::make(&server, "home").await;
    let (_, secret) = token(&server, json!({"scopes": ["read"]})).await;
    let (who, owner) = (bearer(&secret), bearer(&server.token));
    let streams = Streams::open(server.address, &place, ("authorization", &who)).await;
    let events = format!("/api/sessions/{}/events", place.id);
    let paths = [events.as_str(), "/api/sessions/stream", "/api/ws"];
    let open = async |path: &str, who: &str| {
        let mut headers = vec![("authorization", who)];
        headers.extend(UPGRADE.into_iter().filter(|_| path == "/api/ws"));
        probe(server.address, "GET", path, &headers, b"").await
    };
    for path in paths {
        let reply = open(path, &who).await;
        assert_eq!(reply.status, 429, "{path}");
        assert_eq!(reply.json()["error"]["code"], "TOO_MANY_STREAMS");
        assert_eq!(reply.json()["error"]["retryable"], true);
        assert!(reply.headers["retry-after"].parse::<u64>().is_ok_and(|s| s > 0));
        let reply = open(path, &owner).await;
        assert!(reply.status < 300, "others are not held up: {path} {}", reply.status);
    }
    // A stream that ends makes room.
    drop(streams);
    common::until("room is made", async || open(paths[1], &who).await.status != 429).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_end_is_cut_off() {
    let server = TestServer::with(|c| c.limits.head_seconds = 1).await;
    let half = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n", server.address);
    for drip in [false, true] {
        let stream = TcpStream::connect(server.address).await.expect("connect");
        let (mut reading, mut writing) = stream.into_split();
        writing.write_all(half.as_bytes()).await.expect("send");
        // A byte now and then buys no time.
        let dripping = tokio::spawn(async move {
            while drip && writing.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            std::future::pending::<()>().await;
        });
        let mut rest = Vec::new();
        let end = tokio::time::timeout(SOON, reading.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "still open");
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
        dripping.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_headers_is_refused() {
    let server = TestServer::start().await;
    let many: String = (0..2000).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = format!("x-long: {}\r\n", "a".repeat(128 << 10));
    for flood in [many, long] {
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n{flood}\r\n", server.address);
        let mut stream = TcpStream::connect(server.address).await.expect("connect");
        // The door may be shut before all of it is sent: that is a refusal too.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut reply = Vec::new();
        let read = tokio::time::timeout(SOON, stream.read_to_end(&mut reply)).await;
        let _ = read.expect("it is shut");
        let reply = String::from_utf8_lossy(&reply);
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 4"), "{reply}");
    }
    assert_eq!(server.send("GET", "/healthz", b"").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_told_or_not() {
    let server = TestServer::with(|c| c.limits.body_bytes = 1000).await;
    let owner = bearer(&server.token);
    let long = json!({ "label": "a".repeat(1000) }).to_string();
    let reply = server.send("POST", "/api/sessions", long.as_bytes()).await;
    assert_eq!(reply.status, 413, "{}", reply.text());
    assert_eq!(reply.json()["error"]["code"], "TOO_LARGE");
    // In chunks its length is not told beforehand.
    let head = format!(
        "POST /api/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: {owner}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        server.address
    );
    let chunked = format!("{head}{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    assert_eq!(callers::raw(server.address, chunked.as_bytes()).await.status, 413);
    // Just short enough, it is read, and only then found wrong.
    let short = json!({ "label": "a".repeat(900) }).to_string();
    assert_eq!(server.send("POST", "/api/sessions", short.as_bytes()).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_limit_closes_the_socket() {
    let server = TestServer::with(|c| c.limits.message_bytes = 1000).await;
    let mut socket = server.ws().await;
    let ping = |length: usize| json!({"type": "ping", "more": "a".repeat(length)});
    socket.send(&ping(900)).await;
    socket.until("pong").await;
    socket.send(&ping(1000)).await;
    let close = closed(&mut socket).await.expect("a reason");
    assert_eq!(u16::from(close.code), 1009, "{close:?}");
    // In pieces that are each short enough.
    let mut socket = server.ws().await;
    for at in 0..3 {
        let kind = if at == 0 { Data::Text } else { Data::Continue };
        let piece = Frame::message(vec![b'a'; 500], OpCode::Data(kind), at == 2);
        // It may be closed before the last piece.
        let _ = socket.socket.send(Message::Frame(piece)).await;
    }
    let close = closed(&mut socket).await.expect("a reason");
    assert_eq!(u16::from(close.code), 1009, "{close:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_has_only_so_many_subscriptions() {
    let server = TestServer::start().await;
    let id = server.session().await;
    let mut socket = server.ws().await;
    for _ in 0..64 {
        socket.send(&json!({"type": "subscribe", "sessionId": id})).await;
        socket.until("subscription_confirmed").await;
    }
    socket.send(&json!({"type": "subscribe", "sessionId": id})).await;
    while let Some(message) = socket.next().await {
        assert_ne!(message["type"], "subscription_confirmed");
        if message["type"] == "error" {
            assert_eq!(message["code"], "INVALID_MESSAGE");
            return;
        }
    }
    panic!("the socket was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_saw_a_session_by_a_tag_that_it_lost_is_asked_again() {
    let server = TestServer::start().await;
    let made = server.send("POST", "/api/sessions", br#"{"tags":["team"]}"#).await.json();
    let session = made["id"].as_str().expect("id").to_owned();
    let body = br#"{"name":"viewer","scopes":["read","write"],"tags":["team"]}"#;
    let viewer = server.send("POST", "/api/tokens", body).await.json();
    let token = format!("Bearer {}", viewer["token"].as_str().expect("token"));
    let path = format!("/api/sessions/{session}/events");
    let mut stream = common::Sse::open(server.address, &path, &[("authorization", &token)]).await;
    stream.until_ready().await;
    // It cannot give the session a tag of its own choice.
    let forged = br#"{"label":"x","tags":["team","other"]}"#;
    server.send("POST", "/api/sessions", br#"{"label":"x","tags":["team"]}"#).await;
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    let refused = common::request(server.address, "POST", "/api/sessions", &headers, forged).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let change = br#"{"removeTags":["team"]}"#;
    let patched = server.send("PATCH", &format!("/api/sessions/{session}"), change).await;
    assert_eq!(patched.status, 200);
    assert!(stream.next().await.expect("a frame").is("closed"));
    let headers = [("authorization", token.as_str())];
    let again = common::request(server.address, "GET", &path, &headers, b"").await;
    assert_eq!(again.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_writes_ends_when_its_token_does() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let body = br#"{"name":"writer","scopes":["write"]}"#;
    let writer = server.send("POST", "/api/tokens", body).await.json();
    let path = format!("/api/sessions/{session}/packets");
    let owner = server.token.clone();
    let mut as_writer = server;
    as_writer.token = writer["token"].as_str().expect("token").to_owned();
    let mut post = common::Post::open(&as_writer, &path, &[]).await;
    post.push(b"{\"sessionUpdate\":\"plan\",\"entries\":[]}\n").await;
    as_writer.token = owner;
    let id = writer["id"].as_str().expect("id");
    let gone = as_writer.send("DELETE", &format!("/api/tokens/{id}"), b"").await;
    assert_eq!(gone.status, 204);
    // What comes after is not taken: the answer is there before the body ends.
    let reply = post.finish().await;
    assert_eq!(reply.status, 401, "{}", reply.text());
}
