//! A request that writes a session.

use super::came_before::{asked_before, place_it, with_key};
use super::live::{Live, unprintable};
use super::open::{Rows, withdrawn};
use super::same_body::SameBody;
use super::{Intake, Reading};
use narrows::event::{Body, Position, ToolEvent};
use narrows::time::Time;
use narrows::tool::{Fresh, ToolCall, ToolStatus};
use narrows::{Given, Packet, Packets, Raw, Step};
use narrows_store::{BodyDigest, Error, KeptRequest, Request, Result, Session};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use tokio::sync::{OwnedMutexGuard, oneshot};
use utoipa::ToSchema;

/// Lines over HTTP.
pub(crate) const MAX_LINE: usize = 16 << 20;
/// Appends of one request that may be on their way.
const MAX_ON_THE_WAY: usize = 64;
/// One is written, and another one waits to be.
const ENOUGH_ON_THE_WAY: usize = 2;

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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PacketAnswer)]
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

/// A request that writes a session.
#[derive(Debug)]
pub struct Take {
    intake: Intake,
    live: OwnedMutexGuard<Option<Live>>,
    packets: Packets,
    reading: Reading,
    /// The place before the request's first packet.
    base: u64,
    /// The request came before and was answered.
    known: Option<Answer>,
    /// The request was answered before, but is read again.
    before: Option<Answer>,
    /// Whether it is the body of its key.
    body: Option<Box<SameBody>>,
    steps: Vec<Step>,
    answer: Answer,
    on_the_way: VecDeque<oneshot::Receiver<Result<u64>>>,
    fault: Option<Error>,
}

impl Take {
    pub(super) async fn begin(
        intake: &Intake,
        guard: OwnedMutexGuard<Option<Live>>,
        session: &Session,
        reading: Reading,
    ) -> Result<Take> {
        match Take::begin_at(intake, guard, session, reading).await {
            Err(error) => Err(with_key(&intake.inner.store, session, error).await),
            begun => begun,
        }
    }

    async fn begin_at(
        intake: &Intake,
        mut guard: OwnedMutexGuard<Option<Live>>,
        session: &Session,
        reading: Reading,
    ) -> Result<Take> {
        let store = &intake.inner.store;
        if let Some(live) = guard.as_mut() {
            // Somebody went away before this was durable. It may be this very request.
            live.land().await;
        }
        let (mut first, mut known, mut before) = (reading.first, None, None);
        let mut told: Option<BodyDigest> = None;
        loop {
            let asked = asked_before(store, session, &reading).await?;
            let is_new = asked.is_none();
            if let Some(KeptRequest { first: at, answer, digest }) = asked {
                (first, told) = (Some(at), digest);
                known = answer.and_then(|a| serde_json::from_str(&a).ok());
            }
            let usable = guard.as_ref().is_some_and(|live| !live.broken.load(Ordering::Relaxed));
            let now = if usable && store.is_shared() && !reading.trust {
                Some(store.session(&session.id).await?)
            } else {
                None
            };
            let is_stale = |live: &Live| now.as_ref().is_some_and(|now| live.is_stale(now));
            let old = !usable || guard.as_ref().is_some_and(is_stale);
            if old {
                // Packets that were read before come again: what they began is understood anew.
                let again = reading.wrapped || reading.placed || reading.lost || first.is_some();
                let mut live =
                    Live::load(store, &intake.inner.hidden, session, &reading, again).await?;
                // Another node may have kept this very request after it was asked for, and before the
                // session was read. What it keeps from now on is refused when this is appended.
                if is_new && asked_before(store, session, &reading).await?.is_some() {
                    *guard = None;
                    continue;
                }
                let rest = live.marks.get(&0).map_or(0, |main| main.rest);
                place_it(&mut live, &reading, first, rest)?;
                *guard = Some(live);
            } else if let Some(live) = guard.as_mut() {
                let fed = live.marks.get(&0).map_or(0, |main| main.fed);
                place_it(live, &reading, first, fed)?;
            }
            break;
        }
        // A session that is in memory learns of a root that only this request names.
        if let Some(live) = guard.as_mut() {
            live.at_once = reading.placed && reading.end;
            live.placed = reading.placed;
            live.arrived = reading.heard;
            live.found = reading.heard.is_some() && live.seq == 0;
            live.by_arrival = reading.arrival == Arrival::Now;
            live.fence = reading.fence;
            let known = live.roots.clone();
            let new = reading.roots.iter().filter(|root| !known.contains(root));
            new.for_each(|root| live.pipeline.add_root(root));
        }
        let main = guard.as_ref().and_then(|l| l.marks.get(&0)).copied().unwrap_or_default();
        if main.fed < main.read && known.as_ref().is_some_and(|k: &Answer| k.read > main.fed) {
            // It was answered, but what was held back of it is gone: it is read once more.
            before = known.take();
        }
        let over = known.is_some() || before.is_some();
        let body = reading.key.as_ref().map(|_| Box::new(SameBody::new(told, over)));
        let mut base = main.read;
        if let Some(first) = first {
            if first == 0 || first > base + 1 {
                let next = base + 1;
                return Err(Error::Invalid(format!("packets are missing: the next one is {next}")));
            }
            base = first - 1;
        }
        Ok(Take {
            intake: intake.clone(),
            live: guard,
            packets: Packets::new(MAX_LINE),
            reading,
            base,
            known,
            before,
            body,
            steps: Vec::new(),
            answer: Answer::default(),
            on_the_way: VecDeque::new(),
            fault: None,
        })
    }

    /// Takes the next bytes of the request. Returns when there is room for more.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.feed(bytes);
        self.keep(false, Rows::Closed).await
    }

    /// The calls that something was heard of since this was asked last.
    pub(crate) fn calls(&mut self) -> Vec<narrows::Doing> {
        self.live.as_mut().map(|live| live.pipeline.heard()).unwrap_or_default()
    }

    /// Takes the next bytes of the request; what they make waits for what follows.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(Err(other)) = self.body.as_mut().map(|body| body.push(bytes)) {
            self.fault.get_or_insert(other);
        }
        // A request that was answered before is only read to its end.
        if self.known.is_some() || self.fault.is_some() {
            return;
        }
        let now = self.now();
        let Take { live, packets, reading, base, steps, answer, fault, .. } = self;
        let Some(live) = live.as_mut() else { return };
        packets.push(bytes, |given| {
            answer.packets += 1;
            if let Err(e) = live.take(given, reading, *base, now.as_ref(), steps) {
                fault.get_or_insert(e);
            }
        });
    }

    /// Takes a packet of a file, which says which place it has; it waits until [`Take::flush`].
    pub fn give(&mut self, given: Given<'_>) {
        let Take { live, steps, answer, .. } = self;
        if let Some(live) = live.as_mut() {
            answer.packets += 1;
            live.take_placed(given, steps);
        }
    }

    /// Takes what narrows itself has to tell of the session; it waits until [`Take::flush`].
    pub fn tell(&mut self, body: Body<Raw>) {
        let now = self.now();
        let Take { live, steps, .. } = self;
        if let Some(live) = live.as_mut() {
            live.tell(body, now, steps);
        }
    }

    /// Passes over a packet of a file.
    pub fn skip(&mut self, packet: &Packet<'_>) {
        let Take { live, steps, .. } = self;
        if let Some(live) = live.as_mut() {
            live.pass_over(packet, steps.len());
        }
    }

    /// Takes the text of a file into which the agent put the output of a call; false when nothing
    /// has named the file yet.
    pub fn output(&mut self, name: &str, text: &str) -> bool {
        let Take { live, steps, .. } = self;
        let before = steps.len();
        if let Some(live) = live.as_mut() {
            live.pipeline.offloaded(name, text, steps);
        }
        steps.len() > before
    }

    /// Packets of other sources than these do not come again.
    pub fn only(&mut self, sources: &[u32]) {
        if let Some(live) = self.live.as_mut() {
            live.only(sources);
        }
    }

    /// The lines that were given of a source end here: it can be read on from there.
    pub fn ends_at(&mut self, source: u32, place: Position) {
        if let Some(live) = self.live.as_mut() {
            live.ends_at(source, place);
        }
    }

    /// Whether enough is on its way to the store: what comes meanwhile is better kept together.
    pub fn is_busy(&self) -> bool {
        self.on_the_way.len() >= ENOUGH_ON_THE_WAY
    }

    /// Waits until the first of what is on its way is durable. Nothing is lost by waiting no longer.
    pub async fn landed(&mut self) -> Result<()> {
        let Some(first) = self.on_the_way.front_mut() else { return Ok(()) };
        let landed = first.await;
        self.on_the_way.pop_front();
        landed.map_err(|_| Error::Closed)?.map(|_| ())
    }

    /// Gives the store what was given. Returns when there is room for more.
    pub async fn flush(&mut self) -> Result<()> {
        self.keep(false, Rows::Closed).await
    }

    /// Whether the end of an answer is held back, as long as more may come.
    pub fn waits_answered(&self) -> bool {
        self.steps.is_empty() && self.live.as_ref().is_some_and(Live::waits_answered)
    }

    /// A while has passed since the turn was answered, and nothing came: tells the rest of its text.
    pub async fn settle_answered(&mut self) {
        let (store, hub) = (&self.intake.inner.store, &self.intake.inner.hub);
        if let Some(live) = self.live.as_mut() {
            live.settle_answered(store, hub).await;
        }
    }

    /// The request is over. Returns when everything is durable.
    pub async fn finish(mut self) -> Result<Answer> {
        if let Some(Err(other)) = self.body.as_ref().map(|body| body.finish()) {
            self.fault.get_or_insert(other);
        }
        if self.fault.is_some() {
            self.keep(false, Rows::Closed).await?;
        }
        if let Some(known) = self.known.take() {
            return Ok(known);
        }
        let now = self.now();
        let Take { live, packets, reading, base, steps, answer, fault, .. } = &mut self;
        let Some(live) = live.as_mut() else { return Err(Error::Closed) };
        packets.finish(|given| {
            answer.packets += 1;
            if let Err(e) = live.take(given, reading, *base, now.as_ref(), steps) {
                fault.get_or_insert(e);
            }
        });
        // What ended here before has gone on since, when packets after these were read already.
        let all = reading.end && live.is_caught_up();
        let asks = |step: &Step| {
            matches!(step.event.body, Body::PermissionRequest(_) | Body::QuestionRequest(_))
        };
        if all && (live.open.requests().next().is_some() || steps.iter().any(asks)) {
            // Nobody is left who asks. This request may have asked or answered just now.
            self.keep(false, Rows::Closed).await?;
            self.withdraw();
        }
        let Take { live, steps, reading, .. } = &mut self;
        let Some(live) = live.as_mut() else { return Err(Error::Closed) };
        if all {
            if reading.gone {
                live.pipeline.finish(steps);
            } else {
                live.pipeline.suspend(reading.wrapped || reading.placed, steps);
            }
            live.look_for_rest(steps.len());
        }
        // What adds nothing to a session that is over leaves it so.
        live.ended |= all;
        // Nobody waits for the rows of its items: they are written with those of the next requests.
        self.keep(true, if all { Rows::All } else { Rows::Later }).await?;
        while !self.on_the_way.is_empty() {
            self.landed().await?;
        }
        if let Some(live) = self.live.as_ref().filter(|live| live.rows_wait()) {
            self.intake.settle_soon(live.session.key);
        }
        Ok(self.before.take().unwrap_or_else(|| std::mem::take(&mut self.answer)))
    }

    /// Takes back the requests that nobody can answer any more.
    fn withdraw(&mut self) {
        let requests = self.live.iter().flat_map(|live| live.open.requests());
        let mut requests: Vec<_> =
            requests.filter_map(|item| Some((item.order, withdrawn(item)?))).collect();
        requests.sort_unstable_by_key(|(order, _)| *order);
        for (_, body) in requests {
            // What waited for the answer of a process that has ended does not run any more.
            let call = match &body {
                Body::PermissionAnswer(answer) if self.reading.gone || self.reading.exited => {
                    Some(cancelled_call(answer.tool_call_id.clone()))
                }
                _ => None,
            };
            self.tell(body);
            call.into_iter().for_each(|call| self.tell(call));
        }
    }

    fn now(&self) -> Option<Time> {
        (self.reading.arrival == Arrival::Now).then(|| Time::arrival(narrows_store::now()))
    }

    /// The pipeline is ahead of the log: it is not used again.
    fn give_up(&mut self) {
        self.steps.clear();
        if let Some(live) = self.live.as_ref() {
            live.broken.store(true, Ordering::Relaxed);
        }
    }

    /// With `last` the request is over: its answer is kept with the rest of it.
    async fn keep(&mut self, last: bool, rows: Rows) -> Result<()> {
        if let Some(fault) = self.fault.take() {
            // What was read up to there is not kept: it is read anew.
            if self.known.is_none() {
                self.give_up();
            }
            return Err(fault);
        }
        if self.known.is_some() {
            return Ok(());
        }
        let Some(live) = self.live.as_mut() else { return Err(Error::Closed) };
        if live.broken.load(Ordering::Relaxed) {
            // What is on its way tells why.
            while !self.on_the_way.is_empty() {
                self.landed().await?;
            }
            return Err(Error::Closed);
        }
        self.answer.events += self.steps.len() as u64;
        let (first, key, answer) = (self.base + 1, &self.reading.key, &mut self.answer);
        let again = self.before.is_some();
        let digest = self.body.as_ref().map(|body| body.digest());
        let request = |live: &Live| {
            let main = live.marks.get(&0).copied().unwrap_or_default();
            (answer.read, answer.acknowledged) = (main.read, main.rest);
            answer.cursor = format!("{}-{}", live.session.epoch, live.seq);
            let Some(key) = key.clone() else { return Ok(None) };
            let answer = if last && !again {
                Some(serde_json::to_string(&answer).map_err(unprintable)?)
            } else {
                None
            };
            Ok(Some(Request { key, first, answer, digest }))
        };
        let (store, hub) = (&self.intake.inner.store, &self.intake.inner.hub);
        let only_rows = self.steps.is_empty();
        let sent = live.keep(store, hub, &mut self.steps, request, rows).await?;
        // Nothing follows rows before they are there: without events, the log does not tell whether.
        let most = if only_rows && sent.is_some() { 0 } else { MAX_ON_THE_WAY };
        self.on_the_way.extend(sent);
        while self.on_the_way.len() > most {
            self.landed().await?;
        }
        Ok(())
    }
}

/// A call that will not run.
pub(crate) fn cancelled_call(id: Raw) -> Body<Raw> {
    let call = ToolCall { status: Some(ToolStatus::Cancelled), ..ToolCall::unknown() };
    let fresh = Fresh::default();
    Body::ToolCallProgress(Box::new(ToolEvent {
        id,
        call,
        fresh,
        grew_from: None,
        first: false,
        grows: false,
        repeats: false,
    }))
}

impl Drop for Take {
    fn drop(&mut self) {
        // Whoever comes next waits for it.
        if let Some(live) = self.live.as_mut() {
            live.left.append(&mut self.on_the_way);
        }
        // Somebody has gone away before what was read could be kept.
        if !self.steps.is_empty() {
            self.give_up();
        }
    }
}
