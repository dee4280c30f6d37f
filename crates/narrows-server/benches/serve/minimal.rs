//! The least server that could do it: each event is formatted once and its bytes are shared.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::broadcast;

#[derive(Clone)]
struct Shared {
    events: broadcast::Sender<(Bytes, Utf8Bytes)>,
    count: Arc<AtomicU64>,
}

pub(crate) async fn serve() {
    let shared = Shared { events: broadcast::channel(1 << 17).0, count: Arc::default() };
    let router = Router::new()
        .route("/publish", post(publish))
        .route("/events", get(events))
        .route("/ws", get(socket))
        .with_state(shared);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    crate::announce(listener.local_addr().expect("address"));
    axum::serve(listener, router).await.expect("serve");
}

async fn publish(State(shared): State<Shared>, mut body: Body) -> String {
    let mut held = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        held.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
        while let Some(end) = memchr::memchr(b'\n', &held) {
            let line: Vec<u8> = held.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            let seq = shared.count.fetch_add(1, Ordering::Relaxed) + 1;
            let line = line.trim_end_matches('}');
            let data = format!("{line},\"seq\":{seq}}}");
            let sse = Bytes::from(format!("id: epoch-{seq}\ndata: {data}\n\n"));
            let ws = format!("{line},\"seq\":{seq},\"cursor\":\"epoch-{seq}\"}}").into();
            let _ = shared.events.send((sse, ws));
        }
    }
    String::new()
}

async fn events(State(shared): State<Shared>) -> Response {
    let events = shared.events.subscribe();
    let ready = Bytes::from_static(b"event: ready\ndata: {}\n\n");
    let stream =
        futures_util::stream::unfold((events, Some(ready)), |(mut events, first)| async move {
            if let Some(first) = first {
                return Some((Ok::<_, std::convert::Infallible>(first), (events, None)));
            }
            let (sse, _) = events.recv().await.ok()?;
            Some((Ok(sse), (events, None)))
        });
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(stream))
        .expect("response")
}

async fn socket(State(shared): State<Shared>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |mut socket| async move {
        let mut events = shared.events.subscribe();
        if socket.send(Message::Text("{\"type\":\"ready\"}".into())).await.is_err() {
            return;
        }
        while let Ok((_, ws)) = events.recv().await {
            if socket.send(Message::Text(ws)).await.is_err() {
                return;
            }
        }
    })
}
