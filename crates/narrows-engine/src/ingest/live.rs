//! A session that is being written: its pipeline, and what it makes for the store.

use super::open::{OpenItems, Rows};
use super::places::{Mark, last_event, mark, source_mark};
use super::printed::{Printed, last_elapsed};
use super::sums::Sums;
use super::{Arrival, Hidden, Reading};
use crate::live::{Delivery, Hub};
use narrows::change::Change;
use narrows::id::EventId;
use narrows::session::SessionInfo;
use narrows::view::{Activity, ActivityConfig};
use narrows::{Clean, Config, Event, Format, Pipeline, Row, Step, stored};
use narrows_store::{
    Append, Error, EventRow, NewBlob, Pen, Request, Result, Session, SessionFacts, Store, UsageRow,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Items that are read to go on with a session.
const RECENT_ITEMS: usize = 2000;
/// Events that are read to go on with its activity.
const RECENT_EVENTS: usize = 4096;
/// Seconds of a session's own time between two messages of progress.
const PROGRESS_MS: u64 = 5000;

/// The state of one session's pipeline.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: Session,
    pub(super) pipeline: Pipeline,
    pub(super) activity: Activity,
    pub(super) open: OpenItems,
    pub(super) info: SessionInfo,
    /// Where the log ends when everything on its way is there.
    pub(super) seq: u64,
    pub(super) marks: BTreeMap<u32, Mark>,
    pub(super) facts_changed: bool,
    /// After so many of the steps that wait, nothing was held back.
    pub(super) rest_after: Option<usize>,
    pub(super) roots: Vec<String>,
    /// What is read is old, and much: nobody waits for it.
    pub(super) at_once: bool,
    /// Records that were read up to the rest that is still to be made into rows, and up to the last.
    pub(super) resting_records: Vec<u64>,
    pub(super) rested_records: Vec<u64>,
    /// Those that were read since, and whether the store has others.
    pub(super) loose_records: Vec<u64>,
    pub(super) loose_changed: bool,
    /// Those that were read since the last rest, before this pipeline began: they come again.
    pub(super) before_records: Vec<u64>,
    /// It is read from files, which can be read again.
    pub(super) placed: bool,
    /// The order of the next item, as the store has it.
    kept_order: u64,
    /// Whether no item names a call above it, as far as is known.
    flat: bool,
    /// Who writes, where other nodes can too.
    pen: Option<Pen>,
    /// With which number a node runs the session's agent.
    pub(super) fence: Option<u64>,
    sums: Sums,
    /// What is final of answers that were printed before.
    pub(super) used_again: Vec<UsageRow>,
    /// What is on its way to the store, and whose writer has gone away.
    pub(super) left: VecDeque<oneshot::Receiver<Result<u64>>>,
    /// Something could not be written: what is here is ahead of the log.
    pub(super) broken: Arc<AtomicBool>,
    pub(super) ended: bool,
    /// A packet that was not read before is being read.
    pub(super) news: bool,
    /// As the store has it.
    pub(super) ended_kept: bool,
    /// When what is read now arrived, unless it arrives just now, in milliseconds since 1970.
    pub(super) arrived: Option<i64>,
    /// A file is read of which nothing was read before.
    pub(super) found: bool,
    /// What is read comes from an agent at work, and not from what was kept of it.
    pub(super) by_arrival: bool,
    /// When the last packet that was new arrived.
    pub(super) heard: Option<i64>,
}

impl Live {
    /// Reads what is needed to go on. With `again`, packets since the last rest are given again.
    pub(super) async fn load(
        store: &Store,
        hidden: &Hidden,
        session: &Session,
        reading: &Reading,
        again: bool,
    ) -> Result<Live> {
        // What was read about the session may be old by now.
        let session = store.session(&session.id).await?;
        let kept = store.kept(session.key, RECENT_ITEMS).await?;
        let mut sources = store.sources(session.key).await?;
        // The one that was read last comes last.
        sources.sort_by_key(|s| s.at);
        let main = sources.iter().find(|s| s.number == 0);
        let mut config = Config { format: reading.format, ..Config::default() };
        if config.format == Format::Auto
            && let Some(known) = main.and_then(|m| m.format.as_deref()).and_then(Format::named)
        {
            config.format = known;
        }
        (config.paths, config.secrets) = (hidden.paths.clone(), Arc::clone(&hidden.secrets));
        let mut roots: Vec<String> =
            main.iter().flat_map(|m| m.roots.lines()).map(str::to_owned).collect();
        let more: Vec<String> =
            reading.roots.iter().filter(|r| !roots.contains(r)).cloned().collect();
        roots.extend(more);
        roots.iter().for_each(|root| config.paths.add_root(root));
        let since = main.map_or(u64::MAX, |m| m.rest_order);
        let last: Vec<EventId> = sources.iter().filter_map(last_event).collect();
        let mut pipeline =
            Pipeline::reread(config, &kept.items, last, if again { since } else { u64::MAX });
        sources.iter().for_each(|s| pipeline.was_read(s.number, s.read));
        let (seen, mut before_records) = store.seen(session.key).await?;
        pipeline.recall_records(seen);
        let mut rested_records = Vec::new();
        if !again {
            pipeline.recall_records(before_records.iter().copied());
            rested_records = std::mem::take(&mut before_records);
        }
        let marks = sources.iter().map(|s| (s.number, mark(s, again))).collect();
        let turn = store.last_turn(session.key, RECENT_EVENTS).await?;
        let events: Vec<Event> = turn
            .iter()
            .filter_map(|row| stored::event(std::str::from_utf8(&row.event).ok()?).ok())
            .collect();
        pipeline.recall_log(&events, events.len() as u64 == kept.seq);
        let mut activity = Activity::resume(activity_config(&session), &kept.items, events);
        if reading.arrival == Arrival::Now {
            activity.go_on_from(last_elapsed(&turn));
        }
        let (info, ended) = (kept.items.info().clone(), session.ended);
        let since = |id: &str| kept.unsettled.iter().find(|(i, _)| i == id).map(|(_, seq)| *seq);
        let open = kept.items.iter().filter(|i| i.is_open() || since(&i.id).is_some());
        let open =
            OpenItems::resume(open.map(|i| (i.clone(), since(&i.id))), kept.seq, kept.next_order);
        let pen = if store.is_shared() { Some(Pen::new(session.pen)?) } else { None };
        Ok(Live {
            kept_order: open.next_order,
            flat: kept.seq == 0,
            seq: kept.seq,
            session,
            pipeline,
            activity,
            open,
            info,
            marks,
            facts_changed: false,
            rest_after: None,
            roots,
            at_once: false,
            resting_records: Vec::new(),
            loose_records: Vec::new(),
            loose_changed: !rested_records.is_empty(),
            rested_records,
            before_records,
            placed: reading.placed,
            pen,
            fence: reading.fence,
            sums: Sums::default(),
            used_again: Vec::new(),
            left: VecDeque::new(),
            broken: Arc::default(),
            ended,
            news: false,
            ended_kept: ended,
            arrived: reading.heard,
            found: false,
            by_arrival: reading.arrival == Arrival::Now,
            heard: None,
        })
    }

    /// Waits for what somebody left on its way. If it failed, this is broken now.
    pub(super) async fn land(&mut self) {
        while let Some(left) = self.left.front_mut() {
            let _ = left.await;
            self.left.pop_front();
        }
    }

    /// Whether another node has written since.
    pub(super) fn is_stale(&self, now: &Session) -> bool {
        self.pen.is_some_and(|pen| !pen.knows(now.pen))
    }

    /// Turns steps into what is to be kept.
    fn append(&mut self, steps: &mut Vec<Step>, which: Rows) -> Result<(Append, Vec<EventRow>)> {
        let after = self.seq;
        let mut append = Append { session: self.session.key, after, ..Append::default() };
        let mut printed = Printed::for_rows(steps.len());
        let rest = self.rest_after.take();
        let ends = self.ended && !self.ended_kept;
        let (last, kept) = (steps.len().saturating_sub(1), self.pipeline.is_kept());
        for (at, step) in steps.drain(..).enumerate() {
            if rest == Some(at) {
                self.rested();
            }
            let known = (&self.info, kept);
            self.sums.take(&self.session.id, self.seq + 1, &step.event, known, &mut append);
            let id = step.event.id;
            let mark = self.marks.entry(id.source).or_default();
            (mark.last, mark.changed) = (Some(id), true);
            self.seq += 1;
            self.row(step, ends && at == last, &mut append, &mut printed)?;
        }
        if rest.is_some_and(|at| at == printed.len()) {
            self.rested();
        }
        let rows = printed.rows();
        self.sums.give(&mut append, which == Rows::All);
        append.usage.append(&mut self.used_again);
        append.items = self.open.writes(self.seq, which);
        append.settled = self.open.settled(self.seq);
        append.new_from = Some(self.kept_order);
        append.flat = self.flat;
        append.next_order = self.open.next_order;
        // None of the items from there on has a row as long as none is written.
        if !append.items.is_empty() {
            self.kept_order = self.open.next_order;
        }
        // What is over does not run, whatever its last word was; what goes on does again.
        self.facts_changed |= self.ended != self.ended_kept;
        if std::mem::take(&mut self.facts_changed) {
            let project = self.pipeline.project();
            let project = project.as_ref().map(Clean::as_str);
            append.facts = Some(SessionFacts::of(&self.info, self.ended, project)?);
        }
        append.waiting = Some(self.open.requests().count() as u64);
        // What is found is as old as it says, whenever its file was copied here; what grows is new.
        let newest = append.times.filter(|_| self.found).map(|(_, newest)| newest);
        append.heard = self.heard.map(|heard| newest.map_or(heard, |newest| heard.min(newest)));
        // What arrives now is new, whatever its agent's clock says; what was kept has dates of its own.
        if self.by_arrival && !self.pipeline.is_kept() {
            append.times = append.times.and(append.heard).map(|heard| (heard, heard));
        }
        append.seen = std::mem::take(&mut self.rested_records);
        append.loose = self.new_loose();
        append.ended = Some(self.ended);
        append.events.clone_from(&rows);
        for root in self.pipeline.roots() {
            if !self.roots.contains(root) {
                self.roots.push(root.clone());
            }
        }
        let format = self.pipeline.format();
        for (number, mark) in self.marks.iter_mut().filter(|(_, m)| m.changed) {
            mark.changed = false;
            append.sources.push(source_mark(*number, mark, &self.roots, format, self.seq));
        }
        Ok((append, rows))
    }

    fn row(
        &mut self,
        step: Step,
        is_last: bool,
        append: &mut Append,
        printed: &mut Printed,
    ) -> Result<()> {
        let Step { event, changes, blobs } = step;
        let mut messages = Vec::new();
        self.activity.push(self.seq, &event, &mut messages);
        if is_last {
            self.activity.finish(self.seq, &mut messages);
        }
        let row = Row::new(self.seq, &self.session.id, &event);
        let bytes = printed.add(self.seq, event.body.kind(), &row, &changes, &messages)?;
        let share = bytes / changes.len().max(1);
        for change in changes {
            match change {
                Change::Info { info } => {
                    self.info = *info;
                    self.facts_changed = true;
                }
                change => {
                    let below = matches!(&change, Change::Put { item } if item.parent.is_some());
                    self.flat = self.flat && !below;
                    self.open.take(self.seq, change, share);
                }
            }
        }
        append.blobs.extend(blobs.into_iter().map(|blob| NewBlob {
            hash: blob.hash,
            mime: blob.mime_type,
            bytes: blob.bytes.into(),
        }));
        Ok(())
    }

    /// Queues steps for the store; what is durable goes on to the hub.
    pub(super) async fn keep(
        &mut self,
        store: &Store,
        hub: &Hub,
        steps: &mut Vec<Step>,
        request: impl FnOnce(&Live) -> Result<Option<Request>>,
        which: Rows,
    ) -> Result<Option<oneshot::Receiver<Result<u64>>>> {
        // Until the store has it, this pipeline is ahead: if the caller goes away now, it is not used again.
        let broken = Arc::clone(&self.broken);
        broken.store(true, Ordering::Relaxed);
        let (mut append, rows) = self.append(steps, which)?;
        let preview = self.preview();
        hub.preview(&self.session, self.seq, preview, rows.is_empty());
        append.request = request(self)?;
        append.at_once = self.at_once;
        append.waits = which == Rows::Later;
        append.fence = self.fence;
        self.pen.iter_mut().for_each(Pen::goes_on);
        append.pen = self.pen;
        let ended_as_known = self.ended == self.ended_kept;
        let idle = ended_as_known
            && append.events.is_empty()
            && append.items.is_empty()
            && append.active.is_empty()
            && append.sources.is_empty()
            && append.seen.is_empty()
            && append.loose.is_none();
        if idle && append.request.is_none() && append.facts.is_none() {
            broken.store(false, Ordering::Relaxed);
            return Ok(None);
        }
        let durable = store.append(append).await?;
        self.ended_kept = self.ended;
        broken.store(false, Ordering::Relaxed);
        let (told, answer) = oneshot::channel();
        hub.deliver(
            &self.session,
            Delivery { rows, durable, told, broken: Arc::clone(&broken), ended: self.ended },
        );
        Ok(Some(answer))
    }

    /// What can be shown of what is held back, printed.
    fn preview(&mut self) -> Option<String> {
        if self.ended || self.at_once {
            return None;
        }
        let changes = self.pipeline.preview();
        let mut printed = Vec::new();
        narrows::json::print(&mut printed, &changes).ok().filter(|()| !changes.is_empty())?;
        String::from_utf8(printed).ok()
    }

    /// Whether rows of closed items wait.
    pub(super) fn rows_wait(&self) -> bool {
        self.open.closed_wait()
    }

    /// Writes the rows that wait; with [`Rows::All`], those of open items too. Returns when they are
    /// durable; if they could not be written, this is broken then.
    pub(super) async fn settle(&mut self, store: &Store, hub: &Hub, which: Rows) {
        self.land().await;
        let waits = match which {
            Rows::All => self.open.settled(self.seq) < self.seq || self.sums.wait(),
            Rows::Closed | Rows::Later => self.open.closed_wait(),
        };
        if waits && !self.broken.load(Ordering::Relaxed) {
            let sent = self.keep(store, hub, &mut Vec::new(), |_| Ok(None), which).await;
            // Whoever comes next waits for it, if this is cut off.
            self.left.extend(sent.ok().flatten());
            self.land().await;
        }
    }

    /// Whether the end of an answer is held back, and nothing is being read again.
    pub(super) fn waits_answered(&self) -> bool {
        self.pipeline.waits_answered() && self.is_caught_up()
    }

    /// A while has passed since the turn was answered: tells the rest of its text.
    pub(super) async fn settle_answered(&mut self, store: &Store, hub: &Hub) {
        if !self.waits_answered() {
            return;
        }
        self.land().await;
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let mut steps = Vec::new();
        self.pipeline.settle_answered(&mut steps);
        self.look_for_rest(steps.len());
        let sent = self.keep(store, hub, &mut steps, |_| Ok(None), Rows::All).await;
        self.left.extend(sent.ok().flatten());
        self.land().await;
    }

    /// Writes all rows and waits until they are kept. What is held back is not clean, and its source is
    /// not over: it is not among them, and whoever goes on sends it again.
    pub(super) async fn rest(&mut self, store: &Store, hub: &Hub) {
        self.land().await;
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let kept = self.keep(store, hub, &mut Vec::new(), |_| Ok(None), Rows::All).await;
        if let Ok(Some(durable)) = kept {
            let _ = durable.await;
        }
        // Whoever goes on sends it again.
        hub.preview(&self.session, self.seq, None, true);
    }

    /// Bytes that it takes, about.
    pub(super) fn weight(&self) -> usize {
        self.pipeline.weight() + self.open.weight()
    }
}

fn activity_config(session: &Session) -> ActivityConfig {
    ActivityConfig {
        work_order_id: session.label.clone().unwrap_or_else(|| session.id.clone()),
        run_id: session.id.clone(),
        interval_ms: PROGRESS_MS,
    }
}

pub(super) fn unprintable(error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("an event cannot be printed: {error}"))
}
