//! Test support: temporary stores, and a session that is written as the server does it.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use narrows::{Change, Config, Item, Items, Packets, Pipeline, Row, Step, stored};
use narrows_store::{
    Append, EventRow, ItemWrite, NewBlob, NewSession, Options, Result, Session, SessionFacts,
    Store, Window,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub mod full;
pub mod older;
pub mod postgres;
pub mod written;

/// How long background work may take.
const BACKGROUND_TIMEOUT: Duration = Duration::from_mins(2);

/// An empty store in a temporary directory.
pub fn temp_store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    (dir, store)
}

/// The data directory of a test.
pub fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}

/// Opens the store of a directory, on SQLite, or on PostgreSQL if `NARROWS_TEST_STORE` says so.
pub fn open(dir: &TempDir) -> Store {
    try_open(dir).unwrap()
}

/// Like [`open`], for stores that may fail to open.
pub fn try_open(dir: &TempDir) -> Result<Store> {
    if is_postgres() {
        return postgres::connect(&data(dir), &postgres::url(dir.path()));
    }
    Store::open(&data(dir), &Options::default())
}

/// Whether the tests run on PostgreSQL; tests of SQLite's files are skipped then.
pub fn is_postgres() -> bool {
    std::env::var("NARROWS_TEST_STORE").is_ok_and(|store| store == "postgres")
}

/// The number of cases a test runs. A query takes about a millisecond on PostgreSQL, and most of
/// what the cases cover is common to both databases.
pub fn cases(all: usize, with_postgres: usize) -> usize {
    if is_postgres() { with_postgres } else { all }
}

/// Executes SQL on the database of a store, bypassing it. Returns the rows with `|` between the
/// columns.
pub fn raw_sql(store: &Store, sql: &str) -> Vec<String> {
    if is_postgres() {
        let dir = store.dir().path().parent().unwrap();
        return postgres::ask(dir, sql).lines().map(str::to_owned).collect();
    }
    let db = rusqlite::Connection::open(store.dir().database()).unwrap();
    db.busy_timeout(BACKGROUND_TIMEOUT).unwrap();
    let whole = db.unchecked_transaction().unwrap();
    let mut lines = Vec::new();
    for sql in sql.split("; ") {
        let mut statement = db.prepare(sql).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let told = (0..width).map(|at| match row.get(at).unwrap() {
                rusqlite::types::Value::Integer(n) => n.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => panic!("{sql}: {other:?}"),
            });
            lines.push(told.collect::<Vec<_>>().join("|"));
        }
    }
    whole.commit().unwrap();
    lines
}

/// Appends and waits until the append is durable.
pub async fn append(store: &Store, append: Append) -> Result<u64> {
    store.append(append).await?.await.unwrap()
}

pub async fn session(store: &Store, label: &str, tags: &[&str]) -> Session {
    let tags = tags.iter().map(|t| (*t).to_owned()).collect();
    store.create(NewSession { label: Some(label.to_owned()), tags }).await.unwrap().0
}

/// Waits for a condition, with a timeout.
pub async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < BACKGROUND_TIMEOUT, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until all items are indexed and all deleted rows removed.
pub async fn wait_for_maintenance(store: &Store) {
    wait_until("the store is settled", async || store.is_settled().await.unwrap()).await;
}

pub fn print(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    narrows::json::print(&mut bytes, value).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A log row of an event without changes.
pub fn event(seq: u64, text: &str) -> EventRow {
    let event = json!({ "seq": seq, "text": text }).to_string().into();
    EventRow { seq, kind: "notice".into(), event, changes: None, activity: None }
}

/// A text item, complete or streaming.
pub fn text_item(id: &str, order: u64, content: &str, is_streaming: bool) -> Value {
    json!({
        "type": "text", "id": id, "order": order, "timestamp": null,
        "content": content, "isStreaming": is_streaming,
    })
}

/// The steps of a recorded session.
pub fn steps(fixture: &str) -> Vec<Step> {
    let case =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures").join(fixture);
    let input = std::fs::read(case.join("input.jsonl")).unwrap();
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps = Vec::new();
    packets.push(&input, |given| pipeline.push(given, &mut steps));
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    steps
}

/// Every item of a session, as the store returns it.
pub async fn all(store: &Store, session: i64) -> Vec<String> {
    let page = store.items(session, Window::End, usize::MAX - 1).await.unwrap();
    page.items.iter().map(|row| print(&row.item)).collect()
}

/// An item and the changes its row lacks.
struct Open {
    item: Item,
    since: Option<u64>,
    last: u64,
}

/// The writer of a session: as in the server, item rows are written when items close.
pub struct TestSession {
    pub session: Session,
    /// The expected items.
    pub items: Items,
    pub seq: u64,
    /// The row of an open item is written when it is this many events behind.
    pub max_lag: u64,
    open: HashMap<String, Open>,
    patches: HashMap<String, Vec<(u64, Change)>>,
    removed: Vec<String>,
    /// The order of the next item after the last append.
    kept_order: u64,
    next: Append,
}

impl TestSession {
    pub async fn new(store: &Store, label: &str) -> TestSession {
        TestSession::of(session(store, label, &[]).await)
    }

    /// For a session without events.
    pub fn of(session: Session) -> TestSession {
        TestSession {
            session,
            items: Items::new(),
            seq: 0,
            max_lag: u64::MAX,
            open: HashMap::new(),
            patches: HashMap::new(),
            removed: Vec::new(),
            kept_order: 0,
            next: Append::default(),
        }
    }

    pub fn key(&self) -> i64 {
        self.session.key
    }

    /// The expected items as JSON.
    pub fn printed(&self) -> Vec<String> {
        self.items.iter().map(print).collect()
    }

    /// Adds a step of a pipeline.
    pub fn step(&mut self, step: Step) {
        let row = print(&Row::new(self.seq + 1, &self.session.id, &step.event));
        self.next.blobs.extend(step.blobs.into_iter().map(|blob| NewBlob {
            hash: blob.hash,
            mime: blob.mime_type,
            bytes: blob.bytes.into(),
        }));
        self.event(step.event.body.kind(), row, step.changes);
    }

    /// Adds an event with changes given as JSON.
    pub fn change(&mut self, changes: &Value) {
        let changes = stored::changes(&changes.to_string()).unwrap();
        self.event("notice", "{}".to_owned(), changes);
    }

    /// Adds an event that puts an item.
    pub fn put(&mut self, item: &Value) {
        self.change(&json!([{ "change": "put", "item": item }]));
    }

    /// Adds a complete text.
    pub fn say(&mut self, id: &str, content: &str) {
        let order = self.items.next_order();
        self.put(&text_item(id, order, content, false));
    }

    /// Adds a change of header fields.
    pub fn head(&mut self, fields: &Value) {
        let mut info = serde_json::to_value(self.items.info()).unwrap();
        info.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.change(&json!([{ "change": "info", "info": info }]));
    }

    fn event(&mut self, kind: &'static str, event: String, changes: Vec<Change>) {
        self.seq += 1;
        let printed = (!changes.is_empty()).then(|| print(&changes).into());
        let row = EventRow {
            seq: self.seq,
            kind: kind.into(),
            event: event.into(),
            changes: printed,
            activity: None,
        };
        self.next.events.push(row);
        for change in changes {
            self.items.apply(change.clone());
            match change {
                Change::Info { info } => {
                    let own =
                        |t: &Option<narrows::Clean>| t.as_ref().map(|t| t.as_str().to_owned());
                    self.next.facts = Some(SessionFacts {
                        info: print(&info),
                        state: String::from_utf8(stored::print_info(&info)).unwrap(),
                        title: own(&info.title),
                        agent: own(&info.agent),
                        model: own(&info.model),
                        status: Some(info.status.name().to_owned()),
                        ..SessionFacts::default()
                    });
                }
                change => self.take(change),
            }
        }
    }

    fn take(&mut self, change: Change) {
        let (seq, id) = (self.seq, change.item().unwrap().as_str().to_owned());
        if let Change::Remove { .. } = change {
            self.open.remove(&id);
            self.patches.remove(&id);
            self.removed.push(id);
        } else if let Some(open) = self.open.get_mut(&id) {
            open.item.apply(change);
            open.since.get_or_insert(seq);
            open.last = seq;
        } else if let Change::Put { item } = change {
            self.open.insert(id, Open { item: *item, since: Some(seq), last: seq });
        } else {
            self.patches.entry(id).or_default().push((seq, change));
        }
    }

    /// Builds the next append; with `rest`, open items get rows too.
    pub fn next(&mut self, rest: bool) -> Append {
        let mut next = std::mem::take(&mut self.next);
        next.session = self.session.key;
        next.after = self.seq - next.events.len() as u64;
        next.items = self.removed.drain(..).map(|id| ItemWrite::Remove { id }).collect();
        // In order, so that every run writes the same.
        let mut open: Vec<&mut Open> = self.open.values_mut().collect();
        open.sort_by_key(|open| open.item.order);
        for open in open {
            let lag = open.since.map(|since| self.seq - since);
            if lag.is_some_and(|lag| rest || !open.item.is_open() || lag >= self.max_lag) {
                let item = Box::new(open.item.clone());
                next.items.push(ItemWrite::Put { item, seq: open.last });
                open.since = None;
            }
        }
        self.open.retain(|_, open| open.item.is_open());
        let patches = self.patches.drain();
        next.items.extend(patches.map(|(id, changes)| ItemWrite::Patch { id, changes }));
        let first = self.open.values().filter_map(|open| open.since).min();
        next.settled = first.map_or(self.seq, |first| first - 1);
        next.new_from = Some(self.kept_order);
        next.next_order = self.items.next_order();
        self.kept_order = next.next_order;
        next
    }

    /// Appends the events and leaves item rows behind where possible.
    pub async fn note(&mut self, store: &Store) {
        if !self.removed.is_empty() || !self.patches.is_empty() {
            return self.keep(store).await;
        }
        let mut next = std::mem::take(&mut self.next);
        next.session = self.session.key;
        next.after = self.seq - next.events.len() as u64;
        let first = self.open.values().filter_map(|open| open.since).min();
        next.settled = first.map_or(self.seq, |first| first - 1);
        next.new_from = Some(self.kept_order);
        next.next_order = self.items.next_order();
        assert_eq!(append(store, next).await, Ok(self.seq));
    }

    /// Appends the events.
    pub async fn keep(&mut self, store: &Store) {
        let next = self.next(false);
        assert_eq!(append(store, next).await, Ok(self.seq));
    }

    /// Appends the events, with rows for open items.
    pub async fn rest(&mut self, store: &Store) {
        let next = self.next(true);
        assert_eq!(append(store, next).await, Ok(self.seq));
    }
}

/// A text that hardly compresses.
pub fn noise(length: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + (state % 75) as u8)
    };
    (0..length).map(|_| letter()).map(|c| if c == '\\' { '/' } else { c }).collect()
}
