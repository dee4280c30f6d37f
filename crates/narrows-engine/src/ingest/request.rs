//! One request that writes a session: bytes or packets in, durable events out. Steps wait in the request
//! until they are persisted; a request that is dropped leaves its appends to the next one.

use super::body_digest::BodyCheck;
use super::item_flush::{FlushPolicy, cancelled_call, withdrawal};
use super::options::{ArrivalTime, IngestOptions, IngestReceipt, MAX_PACKET_BYTES};
use super::persist::serialize_error;
use super::session_writer::{AppendAck, SessionWriter};
use super::{Ingest, WriterGuard};
use narrows::event::{Body, Position};
use narrows::time::Time;
use narrows::{Given, Packet, Packets, Raw, Step};
use narrows_store::{Error, Request, Result};
use std::collections::VecDeque;

/// Appends of one request that may be in flight.
const MAX_IN_FLIGHT: usize = 64;
/// From this many appends in flight, one is being committed and another one waits.
const BUSY_IN_FLIGHT: usize = 2;

/// A request that writes a session.
#[derive(Debug)]
pub struct IngestRequest {
    ingest: Ingest,
    writer: WriterGuard,
    packets: Packets,
    options: IngestOptions,
    /// The number of the packet before the request's first one.
    base: u64,
    /// The receipt of an earlier request with the same key: this one is only read to its end.
    earlier_receipt: Option<IngestReceipt>,
    /// The receipt of an earlier request with the same key whose packets must be read again.
    replayed_receipt: Option<IngestReceipt>,
    /// Compares the body with that of the earlier request.
    body: Option<Box<BodyCheck>>,
    /// Steps that are not persisted yet.
    steps: Vec<Step>,
    receipt: IngestReceipt,
    in_flight: VecDeque<AppendAck>,
    fault: Option<Error>,
}

impl IngestRequest {
    pub(super) fn new(
        ingest: &Ingest,
        writer: WriterGuard,
        options: IngestOptions,
        base: u64,
        earlier_receipt: Option<IngestReceipt>,
        replayed_receipt: Option<IngestReceipt>,
        body: Option<Box<BodyCheck>>,
    ) -> IngestRequest {
        IngestRequest {
            ingest: ingest.clone(),
            writer,
            packets: Packets::new(MAX_PACKET_BYTES),
            options,
            base,
            earlier_receipt,
            replayed_receipt,
            body,
            steps: Vec::new(),
            receipt: IngestReceipt::default(),
            in_flight: VecDeque::new(),
            fault: None,
        }
    }

    /// Pushes the next bytes and persists their events. Returns when there is room for more.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.push_buffered(bytes);
        self.persist(false, FlushPolicy::Closed).await
    }

    /// The tool calls that were mentioned since the last call of this method.
    pub(crate) fn calls(&mut self) -> Vec<narrows::Doing> {
        self.writer.as_mut().map(|writer| writer.pipeline.heard()).unwrap_or_default()
    }

    /// Pushes the next bytes; their events wait until [`IngestRequest::flush`].
    pub fn push_buffered(&mut self, bytes: &[u8]) {
        if let Some(Err(error)) = self.body.as_mut().map(|body| body.push(bytes)) {
            self.fault.get_or_insert(error);
        }
        if self.earlier_receipt.is_some() || self.fault.is_some() {
            return;
        }
        let now = self.now();
        let IngestRequest { writer, packets, options, base, steps, receipt, fault, .. } = self;
        let Some(writer) = writer.as_mut() else { return };
        packets.push(bytes, |framed| {
            receipt.packets += 1;
            if let Err(error) = writer.accept(framed, options, *base, now.as_ref(), steps) {
                fault.get_or_insert(error);
            }
        });
    }

    /// Pushes a packet of a file, which carries its own position; its events wait until
    /// [`IngestRequest::flush`].
    pub fn give(&mut self, framed: Given<'_>) {
        let IngestRequest { writer, steps, receipt, .. } = self;
        if let Some(writer) = writer.as_mut() {
            receipt.packets += 1;
            writer.accept_positioned(framed, steps);
        }
    }

    /// Pushes an event of narrows itself; it waits until [`IngestRequest::flush`].
    pub fn tell(&mut self, body: Body<Raw>) {
        let now = self.now();
        let IngestRequest { writer, steps, .. } = self;
        if let Some(writer) = writer.as_mut() {
            writer.push_host_event(body, now, steps);
        }
    }

    /// Skips a packet of a file.
    pub fn skip(&mut self, packet: &Packet<'_>) {
        let IngestRequest { writer, steps, .. } = self;
        if let Some(writer) = writer.as_mut() {
            writer.skip(packet, steps.len());
        }
    }

    /// Pushes the text of a file with the output of a tool call; returns false when no call has named the
    /// file yet.
    pub fn output(&mut self, name: &str, text: &str) -> bool {
        let IngestRequest { writer, steps, .. } = self;
        let before = steps.len();
        if let Some(writer) = writer.as_mut() {
            writer.pipeline.offloaded(name, text, steps);
        }
        steps.len() > before
    }

    /// Announces that only packets of these sources are sent again.
    pub fn only(&mut self, sources: &[u32]) {
        if let Some(writer) = self.writer.as_mut() {
            writer.limit_sources(sources);
        }
    }

    /// Notes that the lines of a source end here: reading can resume at this offset.
    pub fn ends_at(&mut self, source: u32, end: Position) {
        if let Some(writer) = self.writer.as_mut() {
            writer.sources.set_end(source, end);
        }
    }

    /// Whether appends queue at the store: packets that arrive meanwhile are better appended together.
    pub fn is_busy(&self) -> bool {
        self.in_flight.len() >= BUSY_IN_FLIGHT
    }

    /// Waits until the oldest append in flight is durable. Cancelling the future loses nothing.
    pub async fn wait_oldest(&mut self) -> Result<()> {
        let Some(oldest) = self.in_flight.front_mut() else { return Ok(()) };
        let result = oldest.await;
        self.in_flight.pop_front();
        result.map_err(|_| Error::Closed)?.map(|_| ())
    }

    /// Persists the events of buffered packets. Returns when there is room for more.
    pub async fn flush(&mut self) -> Result<()> {
        self.persist(false, FlushPolicy::Closed).await
    }

    /// Whether the end of a turn's text is held back in case more follows.
    pub fn holds_answer(&self) -> bool {
        self.steps.is_empty() && self.writer.as_ref().is_some_and(SessionWriter::holds_answer)
    }

    /// Stores the held-back end of a turn's text: nothing has followed it for a while.
    pub async fn flush_answer(&mut self) {
        let (store, hub) = (&self.ingest.inner.store, &self.ingest.inner.hub);
        if let Some(writer) = self.writer.as_mut() {
            writer.flush_answer(store, hub).await;
        }
    }

    /// Ends the request. Returns when everything is durable.
    pub async fn finish(mut self) -> Result<IngestReceipt> {
        if let Some(Err(error)) = self.body.as_ref().map(|body| body.finish()) {
            self.fault.get_or_insert(error);
        }
        if self.fault.is_some() {
            self.persist(false, FlushPolicy::Closed).await?;
        }
        if let Some(receipt) = self.earlier_receipt.take() {
            return Ok(receipt);
        }
        self.finish_packets()?;
        let ended = self.end_source().await?;
        // Rows of items are not needed for the receipt: they are written with those of the next requests.
        let policy = if ended { FlushPolicy::All } else { FlushPolicy::Defer };
        self.persist(true, policy).await?;
        while !self.in_flight.is_empty() {
            self.wait_oldest().await?;
        }
        if let Some(writer) = self.writer.as_ref().filter(|writer| writer.has_pending_items()) {
            self.ingest.schedule_flush(writer.session.key);
        }
        Ok(self.replayed_receipt.take().unwrap_or_else(|| std::mem::take(&mut self.receipt)))
    }

    /// Pushes the last packet, which may lack its line end.
    fn finish_packets(&mut self) -> Result<()> {
        let now = self.now();
        let IngestRequest { writer, packets, options, base, steps, receipt, fault, .. } = self;
        let Some(writer) = writer.as_mut() else { return Err(Error::Closed) };
        packets.finish(|framed| {
            receipt.packets += 1;
            if let Err(error) = writer.accept(framed, options, *base, now.as_ref(), steps) {
                fault.get_or_insert(error);
            }
        });
        Ok(())
    }

    /// Ends the source if the request says so; returns whether it has. A source that ended here has
    /// continued since when later packets were read already.
    async fn end_source(&mut self) -> Result<bool> {
        let Some(writer) = self.writer.as_ref() else { return Err(Error::Closed) };
        if !self.options.end || !writer.is_caught_up() {
            return Ok(false);
        }
        let asks = |step: &Step| {
            matches!(step.event.body, Body::PermissionRequest(_) | Body::QuestionRequest(_))
        };
        if writer.items.open_requests().next().is_some() || self.steps.iter().any(asks) {
            // The agent that asked is gone. The packets of this request may have asked or answered some.
            self.persist(false, FlushPolicy::Closed).await?;
            self.withdraw_requests();
        }
        let IngestRequest { writer, steps, options, .. } = self;
        let Some(writer) = writer.as_mut() else { return Err(Error::Closed) };
        if options.gone {
            writer.pipeline.finish(steps);
        } else {
            writer.pipeline.suspend(options.wrapped || options.placed, steps);
        }
        writer.note_checkpoint(steps.len());
        writer.end.ended = true;
        Ok(true)
    }

    /// Withdraws the requests of the agent that can no longer be answered.
    fn withdraw_requests(&mut self) {
        let open = self.writer.iter().flat_map(|writer| writer.items.open_requests());
        let mut withdrawals: Vec<_> =
            open.filter_map(|item| Some((item.order, withdrawal(item)?))).collect();
        withdrawals.sort_unstable_by_key(|(order, _)| *order);
        for (_, body) in withdrawals {
            // A call that waited for the answer of an exited process will not run.
            let call = match &body {
                Body::PermissionAnswer(answer) if self.options.gone || self.options.exited => {
                    Some(cancelled_call(answer.tool_call_id.clone()))
                }
                _ => None,
            };
            self.tell(body);
            call.into_iter().for_each(|call| self.tell(call));
        }
    }

    fn now(&self) -> Option<Time> {
        (self.options.arrival == ArrivalTime::Now).then(|| Time::arrival(narrows_store::now()))
    }

    /// Poisons the writer: its pipeline is ahead of the log.
    fn poison(&mut self) {
        self.steps.clear();
        if let Some(writer) = self.writer.as_ref() {
            writer.poison();
        }
    }

    /// Persists the steps. With `is_last` the receipt is stored with them, for requests that repeat the
    /// key.
    async fn persist(&mut self, is_last: bool, policy: FlushPolicy) -> Result<()> {
        if let Some(fault) = self.fault.take() {
            // Packets before the fault are not stored either: they are read again.
            if self.earlier_receipt.is_none() {
                self.poison();
            }
            return Err(fault);
        }
        if self.earlier_receipt.is_some() {
            return Ok(());
        }
        let Some(writer) = self.writer.as_mut() else { return Err(Error::Closed) };
        if writer.is_poisoned() {
            // The failed append has the reason.
            while !self.in_flight.is_empty() {
                self.wait_oldest().await?;
            }
            return Err(Error::Closed);
        }
        self.receipt.events += self.steps.len() as u64;
        let (first, key, receipt) = (self.base + 1, &self.options.key, &mut self.receipt);
        let is_replay = self.replayed_receipt.is_some();
        let digest = self.body.as_ref().map(|body| body.digest());
        let request = |writer: &SessionWriter| {
            let main = writer.sources.main();
            (receipt.read, receipt.acknowledged) = (main.read, main.checkpoint);
            receipt.cursor = format!("{}-{}", writer.session.epoch, writer.seq);
            let Some(key) = key.clone() else { return Ok(None) };
            let answer = if is_last && !is_replay {
                Some(serde_json::to_string(&receipt).map_err(serialize_error)?)
            } else {
                None
            };
            Ok(Some(Request { key, first, answer, digest }))
        };
        let (store, hub) = (&self.ingest.inner.store, &self.ingest.inner.hub);
        let has_no_events = self.steps.is_empty();
        let ack = writer.persist(store, hub, &mut self.steps, request, policy).await?;
        // An append without events does not advance the log, so nothing may follow it before it is
        // durable.
        let max = if has_no_events && ack.is_some() { 0 } else { MAX_IN_FLIGHT };
        self.in_flight.extend(ack);
        while self.in_flight.len() > max {
            self.wait_oldest().await?;
        }
        Ok(())
    }
}

impl Drop for IngestRequest {
    fn drop(&mut self) {
        // The next request waits for these appends.
        if let Some(writer) = self.writer.as_mut() {
            writer.orphaned_acks.append(&mut self.in_flight);
        }
        // The request was cancelled before these steps were persisted.
        if !self.steps.is_empty() {
            self.poison();
        }
    }
}
