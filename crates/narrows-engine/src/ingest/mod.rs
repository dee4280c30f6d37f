//! Packets into a session's log. `Ingest` holds one `SessionWriter` per session that is being written;
//! an `IngestRequest` has exclusive use of it. Rows go to the store and, once durable, to `live`, the
//! only other module that this one imports. Read on in `request`, then `session_writer`.

mod accept;
mod accounting;
mod begin;
mod body_digest;
mod checkpoint;
mod envelope;
mod eviction;
mod flush;
mod item_flush;
mod options;
mod persist;
mod request;
mod row_encoder;
mod seen_records;
mod session_writer;

pub use checkpoint::HOST_SOURCE;
pub use envelope::SourceEnvelope;
pub use eviction::{MAX_FILE_WRITERS, MAX_QUIET_BYTES, MAX_QUIET_WRITERS, MAX_WRITERS};
pub(crate) use item_flush::cancelled_call;
pub use item_flush::withdrawal;
pub use options::{ArrivalTime, IngestOptions, IngestReceipt, MAX_PACKET_BYTES, RedactionConfig};
pub use request::IngestRequest;

// Former names, until their last users are renamed.
pub use Ingest as Intake;
pub use envelope::SourceEnvelope as Wrapped;
pub use options::{
    ArrivalTime as Arrival, IngestOptions as Reading, MAX_PACKET_BYTES as MAX_LINE,
    RedactionConfig as Hidden,
};
pub use request::IngestRequest as Take;

use crate::live::Hub;
use narrows::TextCleaner;
use narrows_store::{Error, Result, Session, Store};
use session_writer::SessionWriter;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::error::Elapsed;

/// How long a request waits for another one that writes the same session.
const WRITER_LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// How long `close` waits for the request that writes a session.
const CLOSE_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// After the end of a turn, its held-back text is flushed when nothing follows for this time.
pub const ANSWER_HOLD_TIMEOUT: Duration = Duration::from_secs(3);

/// The sessions that are being written. Clones share them.
#[derive(Debug, Clone)]
pub struct Ingest {
    inner: Arc<IngestInner>,
}

#[derive(Debug)]
struct IngestInner {
    store: Store,
    hub: Hub,
    redaction: RedactionConfig,
    writers: Mutex<HashMap<i64, WriterSlot>>,
    /// Sessions with item rows that wait to be flushed.
    pending_flushes: Mutex<BTreeSet<i64>>,
    /// Sessions whose agents run here, with the number of their guards.
    attended: Mutex<HashMap<i64, usize>>,
    /// Held by the request that evicts writers.
    eviction: AsyncMutex<()>,
}

/// Exclusive use of a session's writer, if there is one in memory.
type WriterGuard = OwnedMutexGuard<Option<SessionWriter>>;

#[derive(Debug, Clone)]
struct WriterSlot {
    writer: Arc<AsyncMutex<Option<SessionWriter>>>,
    last_used: Instant,
    /// Its packets come from files, which can be read again.
    from_files: bool,
}

impl Ingest {
    /// An ingest into a store; durable rows are published through the hub.
    pub fn new(store: Store, hub: Hub, redaction: RedactionConfig) -> Self {
        Ingest {
            inner: Arc::new(IngestInner {
                store,
                hub,
                redaction,
                writers: Mutex::default(),
                pending_flushes: Mutex::default(),
                attended: Mutex::default(),
                eviction: AsyncMutex::default(),
            }),
        }
    }

    /// Begins a request. One request at a time writes a session; others wait, up to a timeout.
    pub async fn open(&self, session: &Session, options: IngestOptions) -> Result<IngestRequest> {
        if self.is_full(session.key, options.placed) {
            // Boxed: eviction is rare, and its state is large.
            Box::pin(self.evict_for(options.placed)).await;
        }
        let guard = self.lock_writer(session.key, WRITER_LOCK_TIMEOUT).await;
        self.set_from_files(session.key, options.placed);
        IngestRequest::begin(self, guard.map_err(|_| Error::Busy)?, session, options).await
    }

    /// Waits for exclusive use of a session's writer.
    async fn lock_writer(
        &self,
        session: i64,
        timeout: Duration,
    ) -> std::result::Result<WriterGuard, Elapsed> {
        tokio::time::timeout(timeout, async {
            loop {
                let guard = self.slot_writer(session).lock_owned().await;
                // The previous holder may have removed the slot: later requests lock another one.
                let current = self.slot(session);
                if current.is_some_and(|s| Arc::ptr_eq(&s.writer, WriterGuard::mutex(&guard))) {
                    return guard;
                }
            }
        })
        .await
    }

    /// A redactor for text that is shown outside of a session's log.
    pub(crate) fn cleaner(&self, root: &str) -> TextCleaner {
        let mut paths = self.inner.redaction.paths.clone();
        paths.add_root(root);
        TextCleaner::shared(paths, Arc::clone(&self.inner.redaction.secrets))
    }

    /// Whether no request writes a session now.
    pub fn is_free(&self, session: i64) -> bool {
        self.writers().get(&session).is_none_or(|slot| slot.writer.try_lock().is_ok())
    }

    /// Marks a session whose agent runs here, until the guard is dropped.
    pub(crate) fn attend(&self, session: i64) -> AttendedSession {
        *self.inner.attended().entry(session).or_default() += 1;
        AttendedSession { inner: Arc::clone(&self.inner), session }
    }

    /// Whether the agent of a session runs here.
    pub(crate) fn is_attended(&self, session: i64) -> bool {
        self.inner.attended().contains_key(&session)
    }

    fn writers(&self) -> MutexGuard<'_, HashMap<i64, WriterSlot>> {
        self.inner.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot_writer(&self, session: i64) -> Arc<AsyncMutex<Option<SessionWriter>>> {
        let mut writers = self.writers();
        let slot = writers.entry(session).or_insert_with(|| WriterSlot {
            writer: Arc::default(),
            last_used: Instant::now(),
            from_files: false,
        });
        slot.last_used = Instant::now();
        Arc::clone(&slot.writer)
    }

    /// Closes the writer of a session after it has stored everything.
    pub async fn release(&self, session: i64) {
        if let Ok(mut guard) = self.lock_writer(session, WRITER_LOCK_TIMEOUT).await {
            self.close_writer(&mut guard, session).await;
        }
    }

    /// Drops the writer of a session that was deleted.
    pub async fn forget(&self, session: i64) {
        let writer = self.slot_writer(session);
        if let Ok(mut guard) = tokio::time::timeout(WRITER_LOCK_TIMEOUT, writer.lock()).await {
            *guard = None;
        }
        self.writers().remove(&session);
    }

    /// Closes all writers. Held-back text is not stored: it is not redacted yet, and a source that
    /// continues sends it again.
    pub async fn close(&self) {
        for (session, slot) in self.slots() {
            let guard = tokio::time::timeout(CLOSE_LOCK_TIMEOUT, slot.writer.lock_owned()).await;
            if let Ok(mut guard) = guard {
                self.close_writer(&mut guard, session).await;
            }
        }
    }

    /// The number of sessions that are being written.
    pub fn count(&self) -> usize {
        self.writers().len()
    }

    fn slot(&self, session: i64) -> Option<WriterSlot> {
        self.writers().get(&session).cloned()
    }

    fn slots(&self) -> Vec<(i64, WriterSlot)> {
        self.writers().iter().map(|(key, slot)| (*key, slot.clone())).collect()
    }

    async fn close_writer(&self, guard: &mut WriterGuard, session: i64) {
        if let Some(mut writer) = guard.take() {
            writer.close(&self.inner.store, &self.inner.hub).await;
        }
        self.writers().remove(&session);
    }
}

impl IngestInner {
    fn attended(&self) -> MutexGuard<'_, HashMap<i64, usize>> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a session whose agent runs here: it has not ended, however long it is silent.
#[derive(Debug)]
pub(crate) struct AttendedSession {
    inner: Arc<IngestInner>,
    session: i64,
}

impl Drop for AttendedSession {
    fn drop(&mut self) {
        let mut attended = self.inner.attended();
        if let Some(count) = attended.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                attended.remove(&self.session);
            }
        }
    }
}
