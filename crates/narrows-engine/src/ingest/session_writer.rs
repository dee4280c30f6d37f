//! The state of a session that is being written: its pipeline and what the next append must contain.
//! Packets enter in `accept`; `persist` encodes steps and queues them for the store.

use super::accounting::SessionAccounting;
use super::checkpoint::{MAIN_SOURCE, SourceCheckpoints, last_event};
use super::item_flush::{FlushPolicy, PendingItems};
use super::options::{ArrivalTime, IngestOptions, RedactionConfig};
use super::row_encoder::last_elapsed_seconds;
use super::seen_records::SeenRecords;
use crate::live::Hub;
use narrows::id::EventId;
use narrows::session::SessionInfo;
use narrows::view::{Activity, ActivityConfig};
use narrows::{Config, Event, Format, Pipeline, stored};
use narrows_store::{Pen, Result, Session, SourceMark, Store};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Items that are loaded to resume a session.
const MAX_RESUMED_ITEMS: usize = 2000;
/// Events of the last turn that are loaded to resume its activity.
const MAX_RESUMED_EVENTS: usize = 4096;
/// Time between two progress messages, on the session's own clock.
const PROGRESS_INTERVAL_MS: u64 = 5000;

/// The receiver of an append's result.
pub(super) type AppendAck = oneshot::Receiver<Result<u64>>;

/// The writer of one session.
#[derive(Debug)]
pub(super) struct SessionWriter {
    pub(super) session: Session,
    pub(super) pipeline: Pipeline,
    pub(super) activity: Activity,
    /// The seq at which the log ends when all appends are committed.
    pub(super) seq: u64,
    /// Roots that are redacted in this session.
    pub(super) roots: Vec<String>,
    pub(super) context: RequestContext,
    pub(super) header: HeaderState,
    pub(super) items: PendingItems,
    pub(super) sources: SourceCheckpoints,
    pub(super) records: SeenRecords,
    pub(super) accounting: SessionAccounting,
    pub(super) end: SourceEnd,
    pub(super) lease: WriterLease,
    /// When the last new packet arrived, in milliseconds since 1970.
    pub(super) last_arrival_ms: Option<i64>,
    /// Acks of appends whose request was cancelled.
    pub(super) orphaned_acks: VecDeque<AppendAck>,
    /// An append failed: the pipeline is ahead of the log and must not be used again.
    pub(super) poisoned: Arc<AtomicBool>,
}

/// How the packets of the current request arrive.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestContext {
    /// Packets come from files, which can be read again.
    pub(super) from_files: bool,
    /// Packets are many and old, as those of a complete file: no preview is needed.
    pub(super) bulk: bool,
    /// When packets arrived, if not now, in milliseconds since 1970.
    pub(super) arrived_ms: Option<i64>,
    /// The first packets of a file that is found.
    pub(super) is_discovered: bool,
    /// Packets arrive from an agent at work, not from its files.
    pub(super) is_live: bool,
}

impl RequestContext {
    pub(super) fn new(options: &IngestOptions, log_is_empty: bool) -> Self {
        RequestContext {
            from_files: options.placed,
            bulk: options.placed && options.end,
            arrived_ms: options.heard,
            is_discovered: options.heard.is_some() && log_is_empty,
            is_live: options.arrival == ArrivalTime::Now,
        }
    }
}

/// The header of the session: title, model, usage and the like.
#[derive(Debug)]
pub(super) struct HeaderState {
    pub(super) info: SessionInfo,
    /// Differs from what the store has.
    pub(super) changed: bool,
}

/// Whether the source has ended.
#[derive(Debug)]
pub(super) struct SourceEnd {
    pub(super) ended: bool,
    /// `ended` as the store has it.
    pub(super) stored: bool,
    /// The packet that is being pushed was not read before.
    pub(super) has_new_packet: bool,
}

/// The right of this writer to append.
#[derive(Debug)]
pub(super) struct WriterLease {
    /// The writer token, where other nodes can write too.
    pub(super) token: Option<Pen>,
    /// The fencing token of the node that runs the session's agent.
    pub(super) fencing_token: Option<u64>,
}

impl SessionWriter {
    /// Loads what is needed to resume a session. With `replay`, packets after the last checkpoint are
    /// pushed again.
    pub(super) async fn load(
        store: &Store,
        redaction: &RedactionConfig,
        session: &Session,
        options: &IngestOptions,
        replay: bool,
    ) -> Result<SessionWriter> {
        // The caller's copy of the session may be old.
        let session = store.session(&session.id).await?;
        let state = store.kept(session.key, MAX_RESUMED_ITEMS).await?;
        let mut sources = store.sources(session.key).await?;
        // The source that was read last comes last.
        sources.sort_by_key(|s| s.at);
        let main = sources.iter().find(|s| s.number == MAIN_SOURCE);
        let (config, roots) = pipeline_config(redaction, options, main);
        let replay_from_order =
            if replay { main.map_or(u64::MAX, |m| m.rest_order) } else { u64::MAX };
        let last_events: Vec<EventId> = sources.iter().filter_map(last_event).collect();
        let mut pipeline = Pipeline::reread(config, &state.items, last_events, replay_from_order);
        sources.iter().for_each(|s| pipeline.was_read(s.number, s.read));
        let (checkpointed, uncheckpointed) = store.seen(session.key).await?;
        pipeline.recall_records(checkpointed);
        if !replay {
            pipeline.recall_records(uncheckpointed.iter().copied());
        }
        let turn = store.last_turn(session.key, MAX_RESUMED_EVENTS).await?;
        let events: Vec<Event> = turn
            .iter()
            .filter_map(|row| stored::event(std::str::from_utf8(&row.event).ok()?).ok())
            .collect();
        pipeline.recall_log(&events, events.len() as u64 == state.seq);
        let mut activity = Activity::resume(activity_config(&session), &state.items, events);
        if options.arrival == ArrivalTime::Now {
            activity.go_on_from(last_elapsed_seconds(&turn));
        }
        let first_unwritten =
            |id: &str| state.unsettled.iter().find(|(i, _)| i == id).map(|(_, seq)| *seq);
        let pending =
            state.items.iter().filter(|i| i.is_open() || first_unwritten(&i.id).is_some());
        let pending = pending.map(|i| (i.clone(), first_unwritten(&i.id)));
        let items = PendingItems::resume(pending, state.seq, state.next_order);
        let token = if store.is_shared() { Some(Pen::new(session.pen)?) } else { None };
        let ended = session.ended;
        Ok(SessionWriter {
            seq: state.seq,
            pipeline,
            activity,
            roots,
            context: RequestContext::new(options, false),
            header: HeaderState { info: state.items.info().clone(), changed: false },
            items,
            sources: SourceCheckpoints::load(&sources, replay),
            records: SeenRecords::load(uncheckpointed, replay),
            accounting: SessionAccounting::default(),
            end: SourceEnd { ended, stored: ended, has_new_packet: false },
            lease: WriterLease { token, fencing_token: options.fence },
            last_arrival_ms: None,
            orphaned_acks: VecDeque::new(),
            poisoned: Arc::default(),
            session,
        })
    }

    /// Applies the options of the request that uses this writer now.
    pub(super) fn set_request(&mut self, options: &IngestOptions) {
        self.context = RequestContext::new(options, self.seq == 0);
        self.lease.fencing_token = options.fence;
        let new_roots = options.roots.iter().filter(|root| !self.roots.contains(root));
        new_roots.for_each(|root| self.pipeline.add_root(root));
    }

    /// Whether the pipeline is ahead of the log and must not be used again.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    pub(super) fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Whether another node has written since.
    pub(super) fn is_stale(&self, now: &Session) -> bool {
        self.lease.token.is_some_and(|token| !token.knows(now.pen))
    }

    /// Whether all that was read is emitted, and the next packets can be understood without it.
    pub(super) fn is_quiescent(&self) -> bool {
        self.pipeline.is_at_rest() && self.is_caught_up()
    }

    /// Whether no packets are still to be pushed again.
    pub(super) fn is_caught_up(&self) -> bool {
        self.sources.is_caught_up()
    }

    /// Whether this writer holds text back that its source would have to send again.
    pub(super) fn holds_unstored_text(&self) -> bool {
        !self.context.from_files && !self.is_poisoned() && !self.is_quiescent()
    }

    /// Whether the end of a turn's text is held back, and no packets are being pushed again.
    pub(super) fn holds_answer(&self) -> bool {
        self.pipeline.waits_answered() && self.is_caught_up()
    }

    /// Whether rows of closed items are not written yet.
    pub(super) fn has_pending_items(&self) -> bool {
        self.items.has_closed()
    }

    /// Approximate memory of this writer, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.pipeline.weight() + self.items.bytes()
    }

    /// Waits for the appends of cancelled requests. If one failed, this writer is poisoned.
    pub(super) async fn await_in_flight(&mut self) {
        while let Some(ack) = self.orphaned_acks.front_mut() {
            let _ = ack.await;
            self.orphaned_acks.pop_front();
        }
    }

    /// Writes pending item rows and waits until they are durable; on failure this writer is poisoned.
    pub(super) async fn flush_items(&mut self, store: &Store, hub: &Hub, policy: FlushPolicy) {
        self.await_in_flight().await;
        let has_pending = match policy {
            FlushPolicy::All => {
                self.items.materialized_seq(self.seq) < self.seq || self.accounting.has_pending()
            }
            FlushPolicy::Closed | FlushPolicy::Defer => self.has_pending_items(),
        };
        if has_pending && !self.is_poisoned() {
            let ack = self.persist(store, hub, &mut Vec::new(), |_| Ok(None), policy).await;
            // If this future is cancelled, the next request waits for the append.
            self.orphaned_acks.extend(ack.ok().flatten());
            self.await_in_flight().await;
        }
    }

    /// Stores the held-back end of a turn's text: nothing has followed it for a while.
    pub(super) async fn flush_answer(&mut self, store: &Store, hub: &Hub) {
        if !self.holds_answer() {
            return;
        }
        self.await_in_flight().await;
        if self.is_poisoned() {
            return;
        }
        let mut steps = Vec::new();
        self.pipeline.settle_answered(&mut steps);
        self.note_checkpoint(steps.len());
        let ack = self.persist(store, hub, &mut steps, |_| Ok(None), FlushPolicy::All).await;
        self.orphaned_acks.extend(ack.ok().flatten());
        self.await_in_flight().await;
    }

    /// Writes all item rows and waits until they are durable. Held-back text is not stored: it is not
    /// redacted yet, and a source that continues sends it again.
    pub(super) async fn close(&mut self, store: &Store, hub: &Hub) {
        self.await_in_flight().await;
        if self.is_poisoned() {
            return;
        }
        let ack = self.persist(store, hub, &mut Vec::new(), |_| Ok(None), FlushPolicy::All).await;
        if let Ok(Some(ack)) = ack {
            let _ = ack.await;
        }
        hub.set_preview(&self.session, self.seq, None, true);
    }
}

/// The pipeline's configuration, and the roots of a session, the stored ones first.
fn pipeline_config(
    redaction: &RedactionConfig,
    options: &IngestOptions,
    main: Option<&SourceMark>,
) -> (Config, Vec<String>) {
    let mut config = Config { format: options.format, ..Config::default() };
    if config.format == Format::Auto
        && let Some(format) = main.and_then(|m| m.format.as_deref()).and_then(Format::named)
    {
        config.format = format;
    }
    (config.paths, config.secrets) = (redaction.paths.clone(), Arc::clone(&redaction.secrets));
    let mut roots: Vec<String> =
        main.iter().flat_map(|m| m.roots.lines()).map(str::to_owned).collect();
    let new: Vec<String> = options.roots.iter().filter(|r| !roots.contains(r)).cloned().collect();
    roots.extend(new);
    roots.iter().for_each(|root| config.paths.add_root(root));
    (config, roots)
}

fn activity_config(session: &Session) -> ActivityConfig {
    ActivityConfig {
        work_order_id: session.label.clone().unwrap_or_else(|| session.id.clone()),
        run_id: session.id.clone(),
        interval_ms: PROGRESS_INTERVAL_MS,
    }
}
