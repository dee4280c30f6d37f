//! Bare inserts of the rows that a server wrote: tables without an index, under the same keys.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as Named, State};
use axum::routing::post;
use narrows_store::events_of;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(crate) type Event = (i64, String, Value, Value, Value);
pub(crate) type Item = (i64, String, String, Value);

/// A text as it was before it was packed: packing is part of what a server does.
fn plain(value: Value) -> Value {
    match value {
        Value::Blob(kept) => {
            Value::Text(String::from_utf8_lossy(&narrows_store::plain(&kept)).into_owned())
        }
        other => other,
    }
}

/// What a server wrote.
pub(crate) struct Rows {
    pub(crate) events: Vec<Event>,
    pub(crate) items: Vec<Item>,
}

impl Rows {
    /// In the order in which writers that take turns send them, so many at a time.
    pub(crate) fn read(from: &Path, turn: usize, most: usize) -> Rows {
        let source = Connection::open(from.join("narrows.db")).expect("open");
        let taking_turns = "((key & 0xffffffff) - 1) / ?2, key LIMIT ?1";
        let events = events(&source, turn, most);
        let mut query = source
            .prepare(&format!("SELECT key, id, kind, body FROM item ORDER BY {taking_turns}"))
            .expect("query");
        let items = query
            .query_map([most, turn], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, plain(r.get(3)?))))
            .expect("rows")
            .map(|r| r.expect("row"))
            .collect();
        Rows { events, items }
    }
}

/// Rows of the log, one an event, as they are before they are put together and packed.
fn events(source: &Connection, turn: usize, most: usize) -> Vec<Event> {
    let mut query =
        source.prepare("SELECT key, kind, event, changes, activity FROM event").expect("query");
    let mut kept = query.query([]).expect("rows");
    let mut events = Vec::new();
    while let Some(row) = kept.next().expect("row") {
        let key: i64 = row.get(0).expect("key");
        let kind: String = row.get(1).expect("kind");
        let [event, changes, activity] = [2, 3, 4].map(|at| {
            let value = row.get_ref(at).expect("value");
            value.as_bytes_or_null().expect("bytes").map(<[u8]>::to_vec)
        });
        let event = event.unwrap_or_default();
        let rows = events_of(key, &kind, &event, changes.as_deref(), activity.as_deref());
        events.extend(rows.expect("events").into_iter().map(|row| {
            let text = |part: &[u8]| Value::Text(String::from_utf8_lossy(part).into_owned());
            let part = |part: Option<bytes::Bytes>| part.map_or(Value::Null, |part| text(&part));
            let session = key >> 32 << 32;
            let key = session | i64::try_from(row.seq).expect("seq");
            (key, row.kind.into_owned(), text(&row.event), part(row.changes), part(row.activity))
        }));
    }
    let turn = i64::try_from(turn).expect("few");
    events.sort_by_key(|event| (((event.0 & 0xffff_ffff) - 1) / turn, event.0));
    events.truncate(most);
    events
}

/// A database of nothing but these two tables.
pub(crate) struct Bare {
    db: Connection,
}

impl Bare {
    pub(crate) fn new(at: &Path) -> Bare {
        let path = at.join("bare.db");
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        let db = Connection::open(path).expect("open");
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE event (key INTEGER PRIMARY KEY, kind TEXT, event TEXT, changes TEXT, activity TEXT);
             CREATE TABLE item (key INTEGER PRIMARY KEY, session INTEGER, id TEXT, seq INTEGER, kind TEXT,
                                open INTEGER, indexed INTEGER, body TEXT);",
        )
        .expect("tables");
        Bare { db }
    }

    /// One transaction.
    pub(crate) fn insert(&self, events: &[Event], items: &[Item]) {
        let db = &self.db;
        db.execute_batch("BEGIN").expect("begin");
        let mut insert =
            db.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)").expect("insert");
        let mut put = db
            .prepare_cached("INSERT INTO item VALUES (?1, 1, ?2, ?1, ?3, 0, 0, ?4)")
            .expect("insert");
        for (key, kind, event, changes, activity) in events {
            insert.execute(params![key, kind, event, changes, activity]).expect("row");
        }
        for (key, id, kind, body) in items {
            put.execute(params![key, id, kind, body]).expect("row");
        }
        db.execute_batch("COMMIT").expect("commit");
    }

    /// All of them, so many a transaction; returns events a second.
    pub(crate) fn all(&self, events: &[Event], items: &[Item], batch: usize) -> f64 {
        let batch = batch.max(1);
        let began = Instant::now();
        for (at, some) in events.chunks(batch).enumerate() {
            let end = items.len().min((at + 1) * batch);
            self.insert(some, &items[end.min(at * batch)..end]);
        }
        events.len() as f64 / began.elapsed().as_secs_f64()
    }
}

struct Next {
    bare: Bare,
    rows: Rows,
    at: usize,
}

/// A server that inserts the next rows for each request, and answers when they are durable.
pub(crate) async fn serve(from: &Path, to: &Path) {
    let next = Next { bare: Bare::new(to), rows: Rows::read(from, 1, usize::MAX >> 1), at: 0 };
    let router = Router::new()
        .route("/api/sessions", post(async || (http::StatusCode::CREATED, "{\"id\":\"x\"}")))
        .route("/insert/{rows}", post(insert))
        .with_state(Arc::new(Mutex::new(next)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    crate::announce(listener.local_addr().expect("address"));
    axum::serve(listener, router).await.expect("serve");
}

async fn insert(
    State(next): State<Arc<Mutex<Next>>>,
    Named(rows): Named<usize>,
    body: Bytes,
) -> String {
    let done = tokio::task::spawn_blocking(move || {
        let mut next = next.lock().expect("one at a time");
        let from = next.at.min(next.rows.events.len());
        let to = (next.at + rows).min(next.rows.events.len());
        next.at = to;
        let items = next.rows.items.len();
        next.bare
            .insert(&next.rows.events[from..to], &next.rows.items[from.min(items)..to.min(items)]);
    });
    done.await.expect("inserted");
    format!("{{\"bytes\":{}}}", body.len())
}
