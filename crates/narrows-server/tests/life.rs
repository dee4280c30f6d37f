//! Streams that say nothing for long: who answers stays, who does not is let go.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{TestServer, Ws, request};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

/// So often the server asks, and so long it waits for an answer.
const ASKS: Duration = Duration::from_secs(25);
const WAITS: Duration = Duration::from_secs(8);

/// A clock that stands still until it is moved.
struct Clock {
    _hold: Sender<()>,
}

impl Clock {
    fn stop() -> Clock {
        let (sender, receiver) = channel::<()>();
        // While something blocks, the runtime does not move the clock by itself.
        tokio::task::spawn_blocking(move || receiver.recv());
        tokio::time::pause();
        Clock { _hold: sender }
    }
}

/// Moves the clock, and a little more: timers ring at whole milliseconds.
async fn go_on(time: Duration) {
    tokio::time::advance(time + Duration::from_millis(5)).await;
}

/// Everything that was sent before has reached the server when this is over.
async fn settle(server: &TestServer) {
    for _ in 0..2 {
        let reply = request(server.address, "GET", "/healthz", &[], b"").await;
        assert_eq!(reply.status, 200);
    }
}

async fn asked(ws: &mut Ws) {
    match ws.socket.next().await {
        Some(Ok(Message::Ping(_))) => ws.socket.flush().await.expect("an answer"),
        other => panic!("not a ping: {other:?}"),
    }
}

#[tokio::test]
async fn an_idle_socket_that_answers_lives_for_ever() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    ws.send(&json!({"type": "ping"})).await;
    assert_eq!(ws.next().await, Some(json!({"type": "pong"})));
    let _clock = Clock::stop();
    for _ in 0..150 {
        go_on(ASKS).await;
        asked(&mut ws).await;
        settle(&server).await;
        // Longer than it waits, and not yet asked again.
        go_on(WAITS).await;
        settle(&server).await;
        go_on(ASKS.saturating_sub(WAITS)).await;
        asked(&mut ws).await;
        settle(&server).await;
    }
    ws.send(&json!({"type": "ping"})).await;
    assert_eq!(ws.next().await, Some(json!({"type": "pong"})));
}

#[tokio::test]
async fn a_socket_that_does_not_answer_is_closed() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    ws.send(&json!({"type": "ping"})).await;
    assert_eq!(ws.next().await, Some(json!({"type": "pong"})));
    let _clock = Clock::stop();
    go_on(ASKS).await;
    settle(&server).await;
    go_on(WAITS).await;
    settle(&server).await;
    let (mut asked, mut closed) = (0, None);
    while let Some(Ok(message)) = ws.socket.next().await {
        match message {
            Message::Ping(_) => asked += 1,
            Message::Close(frame) => closed = frame.map(|f| u16::from(f.code)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((asked, closed), (1, Some(4008)));
}

#[tokio::test]
async fn an_idle_stream_of_events_gives_signs_of_life() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let mut stream = TcpStream::connect(server.address).await.expect("connect");
    let head = format!(
        "GET /api/sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(head.as_bytes()).await.expect("send");
    let mut seen = Vec::new();
    let mut until = async |what: &str| {
        loop {
            if let Some(at) = seen.windows(what.len()).position(|w| w == what.as_bytes()) {
                seen.drain(..at + what.len());
                return;
            }
            let read = stream.read_buf(&mut seen).await.expect("read");
            assert!(read > 0, "closed: {}", String::from_utf8_lossy(&seen));
        }
    };
    until("event: ready").await;
    settle(&server).await;
    let _clock = Clock::stop();
    for _ in 0..250 {
        go_on(Duration::from_secs(15)).await;
        until(": keep-alive\n\n").await;
        settle(&server).await;
    }
}

#[tokio::test]
#[ignore = "two minutes of real time: `make soak`"]
async fn a_real_socket_stays_open_for_two_minutes() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    let end = tokio::time::Instant::now() + Duration::from_mins(2);
    let mut asked = 0;
    while let Ok(next) = tokio::time::timeout_at(end, ws.socket.next()).await {
        match next {
            Some(Ok(Message::Ping(_))) => asked += 1,
            other => panic!("after {asked} pings: {other:?}"),
        }
    }
    assert!(asked >= 3, "{asked} pings");
    ws.send(&json!({"type": "ping"})).await;
    assert_eq!(ws.next().await, Some(json!({"type": "pong"})));
}

#[tokio::test]
#[ignore = "two minutes of real time: `make soak`"]
async fn a_real_socket_that_does_not_answer_is_closed() {
    let server = TestServer::start().await;
    let mut stream = TcpStream::connect(server.address).await.expect("connect");
    let head = format!(
        "GET /api/ws HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(head.as_bytes()).await.expect("send");
    // It reads, and says nothing more.
    let mut seen = Vec::new();
    let closed = async { while stream.read_buf(&mut seen).await.is_ok_and(|n| n > 0) {} };
    let waited = tokio::time::timeout(Duration::from_mins(2), closed).await;
    let text = String::from_utf8_lossy(&seen);
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    assert!(waited.is_ok(), "still open after two minutes");
}
