//! The least server that could do it: each event is formatted once and its bytes are shared. Where it is
//! told to, it keeps them before it shares them: one row an event, one commit for what has come.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::BodyExt;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

#[derive(Clone)]
struct Shared {
    events: broadcast::Sender<(Bytes, Utf8Bytes)>,
    count: Arc<AtomicU64>,
    kept: Option<Arc<Mutex<Connection>>>,
}

/// A database of one table.
fn database(at: &Path) -> Connection {
    let db = Connection::open(at.join("kept.db")).expect("open");
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE event (key INTEGER PRIMARY KEY, event TEXT);",
    )
    .expect("table");
    db
}

fn keep(db: &Mutex<Connection>, events: &[(Bytes, Utf8Bytes)]) {
    let db = db.lock().expect("one at a time");
    db.execute_batch("BEGIN").expect("begin");
    let mut insert = db.prepare_cached("INSERT INTO event (event) VALUES (?1)").expect("insert");
    for (_, text) in events {
        insert.execute([text.as_str()]).expect("row");
    }
    db.execute_batch("COMMIT").expect("commit");
}

pub(crate) async fn serve(data: Option<&Path>) {
    let kept = data.map(|at| Arc::new(Mutex::new(database(at))));
    let shared = Shared { events: broadcast::channel(1 << 17).0, count: Arc::default(), kept };
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
        let (mut used, mut formatted) = (0, Vec::new());
        for end in memchr::memchr_iter(b'\n', &held) {
            let line = String::from_utf8_lossy(&held[used..end]);
            used = end + 1;
            let seq = shared.count.fetch_add(1, Ordering::Relaxed) + 1;
            let line = line.trim_end_matches('}');
            let data = format!("{line},\"seq\":{seq}}}");
            let sse = Bytes::from(format!("id: epoch-{seq}\ndata: {data}\n\n"));
            let ws = format!("{line},\"seq\":{seq},\"cursor\":\"epoch-{seq}\"}}").into();
            if shared.kept.is_some() {
                formatted.push((sse, ws));
            } else {
                let _ = shared.events.send((sse, ws));
            }
        }
        held.drain(..used);
        if let Some(kept) = shared.kept.clone().filter(|_| !formatted.is_empty()) {
            let kept = tokio::task::spawn_blocking(move || {
                keep(&kept, &formatted);
                formatted
            });
            for event in kept.await.expect("kept") {
                let _ = shared.events.send(event);
            }
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
