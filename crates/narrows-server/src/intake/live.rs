//! A session that is being written.

use super::open::OpenItems;
use super::wrapped::Wrapped;
use super::{Hidden, Reading};
use crate::hub::{Delivery, Hub};
use bytes::Bytes;
use narrows::change::Change;
use narrows::event::{Malformed, Position};
use narrows::id::EventId;
use narrows::session::SessionInfo;
use narrows::time::Time;
use narrows::view::{Activity, ActivityConfig};
use narrows::{Config, Format, Given, Packet, Packets, Pipeline, Row, Step, stored};
use narrows_store::{
    Append, Error, EventRow, NewBlob, Request, Result, Session, SessionFacts, SourceMark, Store,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedMutexGuard, oneshot};
use utoipa::ToSchema;

/// Items that are read to go on with a session.
const RECENT_ITEMS: usize = 2000;
/// Events that are read to go on with its activity.
const RECENT_EVENTS: usize = 4096;
/// Lines over HTTP.
pub(crate) const MAX_LINE: usize = 16 << 20;
/// Appends of one request that may be on their way.
const MAX_ON_THE_WAY: usize = 8;
/// Seconds of a session's own time between two messages of progress.
const PROGRESS_MS: u64 = 5000;

/// Which time packets get that have none of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// The time at which they came.
    #[default]
    Now,
    /// None.
    None,
}

/// What a request did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Packets of the request.
    pub packets: u64,
    /// Events that were appended.
    pub events: u64,
    /// The place of the last packet that was read.
    pub read: u64,
    /// The place of the last packet none of whose text is held back: what comes after it is sent
    /// again after a crash.
    pub acknowledged: u64,
    /// Follow the log from here.
    pub cursor: String,
}

/// The state of one session's pipeline.
#[derive(Debug)]
pub(super) struct Live {
    session: Session,
    pipeline: Pipeline,
    activity: Activity,
    open: OpenItems,
    info: SessionInfo,
    /// Where the log ends when everything on its way is there.
    seq: u64,
    marks: BTreeMap<u32, Mark>,
    facts_changed: bool,
    /// After so many of the steps that wait, nothing was held back.
    rest_after: Option<usize>,
    roots: Vec<String>,
    /// Something could not be written: what is here is ahead of the log.
    broken: Arc<AtomicBool>,
    ended: bool,
}

/// How far one file of a session was read.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    read: u64,
    rest: u64,
    offset: u64,
    last: Option<EventId>,
    /// The last packet that this pipeline was fed.
    fed: u64,
    /// The order of the next item at that rest.
    rest_order: u64,
    /// The place of a rest whose steps are still to be made into rows.
    resting: u64,
    changed: bool,
}

/// A request that writes a session.
#[derive(Debug)]
pub struct Take {
    store: Store,
    hub: Hub,
    live: OwnedMutexGuard<Option<Live>>,
    packets: Packets,
    reading: Reading,
    /// The place before the request's first packet.
    base: u64,
    /// The request came before and was answered.
    known: Option<Answer>,
    steps: Vec<Step>,
    answer: Answer,
    on_the_way: VecDeque<oneshot::Receiver<Result<u64>>>,
    fault: Option<Error>,
}

impl Live {
    /// Reads what is needed to go on. With `again`, packets since the last rest are given again.
    async fn load(
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
        let marks = sources.iter().map(|s| (s.number, mark(s, again))).collect();
        let turn = store.last_turn(session.key, RECENT_EVENTS).await?;
        let turn =
            turn.iter().filter_map(|row| stored::event(std::str::from_utf8(&row.event).ok()?).ok());
        let activity = Activity::resume(activity_config(&session), &kept.items, turn);
        let info = kept.items.info().clone();
        let since = |id: &str| kept.unsettled.iter().find(|(i, _)| i == id).map(|(_, seq)| *seq);
        let open = kept.items.iter().filter(|i| i.is_open() || since(&i.id).is_some());
        let open =
            OpenItems::resume(open.map(|i| (i.clone(), since(&i.id))), kept.seq, kept.next_order);
        Ok(Live {
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
            broken: Arc::default(),
            ended: false,
        })
    }

    /// Turns steps into what is to be kept.
    fn append(&mut self, steps: &mut Vec<Step>, all: bool) -> Result<(Append, Vec<EventRow>)> {
        let after = self.seq;
        let mut append = Append { session: self.session.key, after, ..Append::default() };
        let mut rows = Vec::with_capacity(steps.len());
        let rest = self.rest_after.take();
        for (at, step) in steps.drain(..).enumerate() {
            if rest == Some(at) {
                self.rested();
            }
            let id = step.event.id;
            let mark = self.marks.entry(id.source).or_default();
            (mark.last, mark.changed) = (Some(id), true);
            self.seq += 1;
            rows.push(self.row(step, &mut append)?);
        }
        if rest.is_some_and(|at| at == rows.len()) {
            self.rested();
        }
        append.items = self.open.writes(self.seq, all);
        append.settled = self.open.settled(self.seq);
        append.next_order = self.open.next_order;
        if std::mem::take(&mut self.facts_changed) {
            append.facts = Some(facts(&self.info)?);
        }
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

    fn row(&mut self, step: Step, append: &mut Append) -> Result<EventRow> {
        let Step { event, changes, blobs } = step;
        let row = print(&Row::new(self.seq, &self.session.id, &event))?;
        let printed = if changes.is_empty() { None } else { Some(print(&changes)?) };
        let mut messages = Vec::new();
        self.activity.push(self.seq, &event, &mut messages);
        let mut activity = Vec::new();
        for message in &messages {
            if !activity.is_empty() {
                activity.push(b'\n');
            }
            narrows::json::print(&mut activity, message).map_err(unprintable)?;
        }
        for change in changes {
            match change {
                Change::Info { info } => {
                    self.info = *info;
                    self.facts_changed = true;
                }
                change => self.open.take(self.seq, change),
            }
        }
        append.blobs.extend(blobs.into_iter().map(|blob| NewBlob {
            hash: blob.hash,
            mime: blob.mime_type,
            bytes: blob.bytes.into(),
        }));
        Ok(EventRow {
            seq: self.seq,
            kind: event.body.kind().into(),
            event: row,
            changes: printed,
            activity: (!activity.is_empty()).then(|| activity.into()),
        })
    }

    /// Queues steps for the store; what is durable goes on to the hub.
    async fn keep(
        &mut self,
        store: &Store,
        hub: &Hub,
        steps: &mut Vec<Step>,
        request: Option<Request>,
        all: bool,
    ) -> Result<Option<oneshot::Receiver<Result<u64>>>> {
        // Until the store has it, this pipeline is ahead: if the caller goes away now, it is not used again.
        let broken = Arc::clone(&self.broken);
        broken.store(true, Ordering::Relaxed);
        let (mut append, rows) = self.append(steps, all)?;
        append.request = request;
        let idle = append.events.is_empty() && append.items.is_empty() && append.sources.is_empty();
        if idle && append.request.is_none() && append.facts.is_none() {
            broken.store(false, Ordering::Relaxed);
            return Ok(None);
        }
        let durable = store.append(append).await?;
        broken.store(false, Ordering::Relaxed);
        let (told, answer) = oneshot::channel();
        hub.deliver(&self.session, Delivery { rows, durable, told, broken: Arc::clone(&broken) });
        Ok(Some(answer))
    }

    /// Writes the rows of open items.
    pub(super) async fn settle(&mut self, store: &Store, hub: &Hub) {
        if self.open.settled(self.seq) < self.seq && !self.broken.load(Ordering::Relaxed) {
            let _ = self.keep(store, hub, &mut Vec::new(), None, true).await;
        }
    }

    /// Lets everything go that is held back, and waits until it is kept.
    pub(super) async fn rest(&mut self, store: &Store, hub: &Hub) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let mut steps = Vec::new();
        self.pipeline.finish(&mut steps);
        self.look_for_rest(steps.len());
        if let Ok(Some(durable)) = self.keep(store, hub, &mut steps, None, true).await {
            let _ = durable.await;
        }
    }
}

impl Take {
    pub(super) async fn begin(
        store: &Store,
        hub: &Hub,
        hidden: &Hidden,
        mut guard: OwnedMutexGuard<Option<Live>>,
        session: &Session,
        reading: Reading,
    ) -> Result<Take> {
        let (mut first, mut known) = (reading.first, None);
        if let Some(key) = &reading.key
            && let Some((at, answer)) = store.request(session.key, key).await?
        {
            first = Some(at);
            known = answer.and_then(|a| serde_json::from_str(&a).ok());
        }
        let broken = |live: &Live| live.broken.load(Ordering::Relaxed);
        if guard.as_ref().is_none_or(broken) {
            // Packets that were read before come again: what they began is understood anew.
            let again = reading.wrapped || first.is_some();
            *guard = Some(Live::load(store, hidden, session, &reading, again).await?);
        }
        let mut base = guard.as_ref().and_then(|l| l.marks.get(&0)).map_or(0, |m| m.read);
        if let Some(first) = first {
            if first == 0 || first > base + 1 {
                let next = base + 1;
                return Err(Error::Invalid(format!("packets are missing: the next one is {next}")));
            }
            base = first - 1;
        }
        Ok(Take {
            store: store.clone(),
            hub: hub.clone(),
            live: guard,
            packets: Packets::new(MAX_LINE),
            reading,
            base,
            known,
            steps: Vec::new(),
            answer: Answer::default(),
            on_the_way: VecDeque::new(),
            fault: None,
        })
    }

    /// The answer, when the same request was answered before.
    pub fn known(&self) -> Option<&Answer> {
        self.known.as_ref()
    }

    /// Takes the next bytes of the request. Returns when there is room for more.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let now = self.now();
        let Take { live, packets, reading, base, steps, answer, fault, .. } = self;
        let Some(live) = live.as_mut() else { return Err(Error::Closed) };
        packets.push(bytes, |given| {
            answer.packets += 1;
            if let Err(e) = live.take(given, reading, *base, now.as_ref(), steps) {
                fault.get_or_insert(e);
            }
        });
        self.keep(None, false).await
    }

    /// The request is over. Returns when everything is durable.
    pub async fn finish(mut self) -> Result<Answer> {
        let now = self.now();
        let Take { live, packets, reading, base, steps, answer, fault, .. } = &mut self;
        let Some(live) = live.as_mut() else { return Err(Error::Closed) };
        packets.finish(|given| {
            answer.packets += 1;
            if let Err(e) = live.take(given, reading, *base, now.as_ref(), steps) {
                fault.get_or_insert(e);
            }
        });
        let all = reading.end;
        if all {
            live.pipeline.finish(steps);
            live.look_for_rest(steps.len());
        }
        live.ended = all;
        self.keep(None, all).await?;
        let Some(live) = self.live.as_mut() else { return Err(Error::Closed) };
        let main = live.marks.get(&0).copied().unwrap_or_default();
        self.answer.read = main.read;
        self.answer.acknowledged = main.rest;
        self.answer.cursor = format!("{}-{}", live.session.epoch, live.seq);
        if self.reading.key.is_some() {
            let answer = serde_json::to_string(&self.answer).map_err(unprintable)?;
            self.keep(Some(answer), false).await?;
        }
        while let Some(durable) = self.on_the_way.pop_front() {
            durable.await.map_err(|_| Error::Closed)??;
        }
        Ok(self.answer.clone())
    }

    fn now(&self) -> Option<Time> {
        (self.reading.arrival == Arrival::Now).then(|| Time::from_millis(narrows_store::now()))
    }

    async fn keep(&mut self, answer: Option<String>, all: bool) -> Result<()> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let Some(live) = self.live.as_mut() else { return Err(Error::Closed) };
        if live.broken.load(Ordering::Relaxed) {
            // What is on its way tells why.
            while let Some(durable) = self.on_the_way.pop_front() {
                durable.await.map_err(|_| Error::Closed)??;
            }
            return Err(Error::Closed);
        }
        let first = self.base + 1;
        let request = self.reading.key.clone().map(|key| Request { key, first, answer });
        let before = live.seq;
        let sent = live.keep(&self.store, &self.hub, &mut self.steps, request, all).await?;
        self.answer.events += live.seq - before;
        self.on_the_way.extend(sent);
        while self.on_the_way.len() > MAX_ON_THE_WAY {
            if let Some(durable) = self.on_the_way.pop_front() {
                durable.await.map_err(|_| Error::Closed)??;
            }
        }
        Ok(())
    }
}

impl Live {
    /// Takes what a request gave: a packet that was read before is passed over.
    fn take(
        &mut self,
        given: Given<'_>,
        reading: &Reading,
        base: u64,
        now: Option<&Time>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        match given {
            Given::Packet(packet) if reading.wrapped => self.take_wrapped(packet.bytes, now, steps),
            Given::Packet(mut packet) => {
                packet.position.line += base;
                packet.arrived = now;
                if self.is_next(0, packet.position) {
                    self.pipeline.push(Given::Packet(packet), steps);
                    self.look_for_rest(steps.len());
                }
                Ok(())
            }
            Given::Fault(mut fault) => {
                fault.position.line += base;
                if self.is_next(0, fault.position) {
                    self.pipeline.push(Given::Fault(fault), steps);
                    self.look_for_rest(steps.len());
                }
                Ok(())
            }
        }
    }

    fn take_wrapped(
        &mut self,
        line: &[u8],
        now: Option<&Time>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let bad = |what: &str| Err(Error::Invalid(format!("a wrapped line {what}")));
        let Ok(wrapped) = serde_json::from_slice::<Wrapped>(line) else {
            return bad("cannot be read");
        };
        if let (Some(name), Some(text)) = (&wrapped.output, &wrapped.text) {
            self.pipeline.offloaded(name, text, steps);
            return Ok(());
        }
        let Some(number) = wrapped.line else { return bad("has no number") };
        let position = Position { line: number, column: 0, offset: wrapped.offset.unwrap_or(0) };
        if !self.is_next(wrapped.source, position) {
            return Ok(());
        }
        if let Some(length) = wrapped.too_long {
            let fault =
                Malformed { reason: "line too long", position, length, source: wrapped.source };
            self.pipeline.push(Given::Fault(fault), steps);
            self.look_for_rest(steps.len());
            return Ok(());
        }
        let Some(content) = wrapped.content() else { return bad("holds nothing") };
        let mut packet = Packet::new(&content, position);
        packet.arrived = now;
        packet.source = wrapped.source;
        packet.parent = wrapped.parent.as_deref();
        self.pipeline.push(Given::Packet(packet), steps);
        self.look_for_rest(steps.len());
        Ok(())
    }

    /// Remembers that nothing is held back after so many steps. Not while packets come again: what
    /// is known is ahead of them then.
    fn look_for_rest(&mut self, steps: usize) {
        if self.pipeline.is_at_rest() && self.marks.values().all(|m| m.fed >= m.read) {
            self.rest_after = Some(steps);
            self.marks.values_mut().for_each(|m| m.resting = m.fed);
        }
    }

    /// Everything up to the place where nothing was held back has been made into rows.
    fn rested(&mut self) {
        let order = self.open.next_order;
        for mark in self.marks.values_mut().filter(|m| m.resting > m.rest) {
            (mark.rest, mark.rest_order, mark.changed) = (mark.resting, order, true);
        }
    }

    /// Whether this pipeline has not read the packet yet.
    fn is_next(&mut self, source: u32, position: Position) -> bool {
        let mark = self.marks.entry(source).or_default();
        if position.line <= mark.fed {
            return false;
        }
        mark.fed = position.line;
        if position.line > mark.read {
            mark.read = position.line;
            mark.offset = position.offset;
            mark.changed = true;
        }
        true
    }
}

fn last_event(source: &SourceMark) -> Option<EventId> {
    let (packet, index) = source.last.split_once('.')?;
    Some(EventId {
        source: source.number,
        packet: packet.parse().ok()?,
        index: index.parse().ok()?,
    })
}

fn mark(source: &SourceMark, again: bool) -> Mark {
    Mark {
        read: source.read,
        rest: source.rest,
        fed: if again { source.rest } else { source.read },
        offset: source.offset,
        last: last_event(source),
        rest_order: source.rest_order,
        resting: source.rest,
        changed: false,
    }
}

fn source_mark(number: u32, mark: &Mark, roots: &[String], format: Format, at: u64) -> SourceMark {
    SourceMark {
        number,
        format: Some(format.name().to_owned()),
        path: None,
        read: mark.read,
        rest: mark.rest,
        rest_order: mark.rest_order,
        offset: mark.offset,
        last: mark.last.map(|id| format!("{}.{}", id.packet, id.index)).unwrap_or_default(),
        roots: roots.join("\n"),
        at,
    }
}

fn activity_config(session: &Session) -> ActivityConfig {
    ActivityConfig {
        work_order_id: session.label.clone().unwrap_or_else(|| session.id.clone()),
        run_id: session.id.clone(),
        interval_ms: PROGRESS_MS,
    }
}

fn facts(info: &SessionInfo) -> Result<SessionFacts> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(unprintable);
    let own = |t: &Option<narrows::Clean>| t.as_ref().map(|t| t.as_str().to_owned());
    let mut shown = Vec::new();
    narrows::json::print(&mut shown, info).map_err(unprintable)?;
    Ok(SessionFacts {
        info: text(shown)?,
        state: text(stored::print_info(info))?,
        title: own(&info.title),
        agent: own(&info.agent),
        model: own(&info.model),
        status: Some(info.status.name().to_owned()),
    })
}

fn print(value: &impl Serialize) -> Result<Bytes> {
    let mut bytes = Vec::with_capacity(512);
    narrows::json::print(&mut bytes, value).map_err(unprintable)?;
    Ok(bytes.into())
}

fn unprintable(error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("an event cannot be printed: {error}"))
}
