//! Stores with recorded sessions, as a basis for damage tests.

use super::{TestSession, print, steps};
use narrows_store::{EventRow, Result, Store, Window};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub const FIXTURES: [&str; 4] = [
    "acp/opencode-1.18-c-files",
    "acp/claude-acp-g-subagent",
    "claude-stream/2.1-g-subagent",
    "acp/opencode-1.18-f-todos",
];

/// A session as written.
pub struct Written {
    pub key: i64,
    pub id: String,
    pub events: BTreeMap<u64, String>,
    pub items: BTreeMap<String, String>,
}

/// An event in one line.
pub fn one(row: &EventRow) -> String {
    format!("{:?}", (&row.event, &row.changes, &row.activity))
}

pub async fn events(store: &Store, key: i64) -> Result<Vec<EventRow>> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = store.events_after(key, after, 100, 1 << 20).await?;
        let Some(last) = page.rows.last() else { return Ok(all) };
        assert!(last.seq > after, "it does not go on");
        after = last.seq;
        all.extend(page.rows);
        if after >= page.last {
            return Ok(all);
        }
    }
}

/// Reproducible random numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Writes a recorded session.
pub async fn session(store: &Store, fixture: &str) -> Written {
    let mut book = TestSession::new(store, fixture).await;
    for (n, step) in steps(fixture).into_iter().enumerate() {
        book.step(step);
        // Several appends: rows with a single event, and event blocks.
        if n % 7 == 0 {
            book.keep(store).await;
        }
    }
    book.keep(store).await;
    let key = book.key();
    let rows = events(store, key).await.unwrap();
    let items = store.items(key, Window::End, usize::MAX - 1).await.unwrap().items;
    Written {
        key,
        id: book.session.id.clone(),
        events: rows.iter().map(|row| (row.seq, one(row))).collect(),
        items: items.iter().map(|r| (r.item.id.as_str().to_owned(), print(&r.item))).collect(),
    }
}

/// Writes a store: its files after it was closed, and while it was open with the last session in
/// the WAL.
pub async fn written(to: &Path) -> Vec<Written> {
    let (dir, store) = super::temp_store();
    let mut all = Vec::new();
    for fixture in FIXTURES {
        all.push(session(&store, fixture).await);
    }
    super::wait_for_maintenance(&store).await;
    store.close().await;
    copy(&super::data(&dir), &to.join("closed"));
    let store = super::open(&dir);
    let running = to.join("running");
    for fixture in ["acp/claude-acp-c-files", "acp/claude-acp-k-parallel-tools"] {
        all.push(session(&store, fixture).await);
        copy(&super::data(&dir), &running);
        // A store truncates its WAL once after opening, possibly late.
        if std::fs::metadata(running.join("narrows.db-wal")).is_ok_and(|wal| wal.len() > 0) {
            break;
        }
    }
    store.close().await;
    all
}

/// Waits until the store has truncated its WAL, which it does once after opening and once after
/// deleting rows.
pub async fn emptied(store: &Store) {
    let wal = store.dir().path().join("narrows.db-wal");
    super::wait_until("the log is empty", async || {
        let mut gone = TestSession::new(store, "removed").await;
        gone.say("a", "words");
        gone.keep(store).await;
        store.delete(&gone.session.id).await.unwrap();
        super::wait_for_maintenance(store).await;
        // The truncation may have preceded the last append.
        let began = std::time::Instant::now();
        let is_empty = || std::fs::metadata(&wal).is_ok_and(|wal| wal.len() == 0);
        while !is_empty() && began.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        is_empty()
    })
    .await;
}

pub fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let name = file.file_name();
        // Skips files that only a running process needs.
        if name != "narrows.db-shm" && name != "lock" {
            std::fs::copy(file.path(), to.join(name)).unwrap();
        }
    }
}

pub fn flip(path: &Path, dice: &mut Dice) -> u64 {
    let mut bytes = std::fs::read(path).unwrap();
    let at = dice.next(bytes.len() as u64);
    bytes[usize::try_from(at).unwrap()] ^= 1 << dice.next(8);
    std::fs::write(path, bytes).unwrap();
    at
}
