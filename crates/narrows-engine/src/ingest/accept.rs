//! Packets into the pipeline of a session writer. Packets that the pipeline has already are skipped; a
//! checkpoint is noted whenever the pipeline holds nothing back.

use super::checkpoint::{HOST_SOURCE, MAIN_SOURCE, PacketNovelty};
use super::envelope::SourceEnvelope;
use super::options::IngestOptions;
use super::session_writer::SessionWriter;
use narrows::event::{Body, Malformed, Position};
use narrows::time::Time;
use narrows::{Given, Packet, Raw, Step, Told};
use narrows_store::{Error, Result};

impl SessionWriter {
    /// Pushes a packet of a request whose packets follow the packet `base`.
    pub(super) fn accept(
        &mut self,
        framed: Given<'_>,
        options: &IngestOptions,
        base: u64,
        now: Option<&Time>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        match framed {
            Given::Packet(packet) if options.wrapped => {
                self.accept_envelope(packet.bytes, now, steps)
            }
            Given::Packet(mut packet) => {
                packet.position.line += base;
                packet.arrived = now;
                if self.advance(MAIN_SOURCE, packet.position) {
                    self.push(Given::Packet(packet), steps);
                }
                Ok(())
            }
            Given::Fault(mut fault) => {
                fault.position.line += base;
                if self.advance(MAIN_SOURCE, fault.position) {
                    self.push(Given::Fault(fault), steps);
                }
                Ok(())
            }
        }
    }

    fn accept_envelope(
        &mut self,
        line: &[u8],
        now: Option<&Time>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let invalid = |what: &str| Err(Error::Invalid(format!("invalid packet envelope: {what}")));
        let Ok(envelope) = serde_json::from_slice::<SourceEnvelope>(line) else {
            return invalid("cannot parse it");
        };
        if let (Some(name), Some(text)) = (&envelope.output, &envelope.text) {
            self.pipeline.offloaded(name, text, steps);
            return Ok(());
        }
        let Some(number) = envelope.line else { return invalid("`line` is missing") };
        let position = Position { line: number, column: 0, offset: envelope.offset.unwrap_or(0) };
        let progress = self.sources.get(envelope.source);
        if progress.is_replaying() && number > progress.read {
            // The text that was held back of the packets between is lost.
            return Err(Error::Resend { acknowledged: progress.checkpoint, key: None });
        }
        if !self.advance(envelope.source, position) {
            return Ok(());
        }
        if let Some(length) = envelope.too_long {
            let source = envelope.source;
            let fault = Malformed { reason: "line too long", position, length, source };
            self.push(Given::Fault(fault), steps);
            return Ok(());
        }
        let Some(content) = envelope.content() else { return invalid("`packet` is missing") };
        let mut packet = Packet::new(&content, position);
        packet.arrived = now;
        packet.source = envelope.source;
        packet.parent = envelope.parent.as_deref();
        self.push(Given::Packet(packet), steps);
        Ok(())
    }

    /// Pushes a packet that carries its own position, as those of files do.
    pub(super) fn accept_positioned(&mut self, framed: Given<'_>, steps: &mut Vec<Step>) {
        let (source, position) = match &framed {
            Given::Packet(packet) => (packet.source, packet.position),
            Given::Fault(fault) => (fault.source, fault.position),
        };
        if self.advance(source, position) {
            self.push(framed, steps);
        }
    }

    fn push(&mut self, framed: Given<'_>, steps: &mut Vec<Step>) {
        let before = steps.len();
        self.pipeline.push(framed, steps);
        // A new packet without any effect does not reopen a session that has ended.
        let is_new = std::mem::take(&mut self.end.has_new_packet);
        if is_new && (steps.len() > before || !self.pipeline.is_at_rest()) {
            self.end.ended = false;
        }
        self.note_checkpoint(steps.len());
    }

    /// Pushes an event of narrows itself, after everything that the agent has sent so far.
    pub(super) fn push_host_event(
        &mut self,
        body: Body<Raw>,
        time: Option<Time>,
        steps: &mut Vec<Step>,
    ) {
        let line = self.sources.entry(HOST_SOURCE).pushed + 1;
        if self.advance(HOST_SOURCE, Position { line, column: 0, offset: 0 }) {
            self.pipeline.tell(Told { source: HOST_SOURCE, line, time, body }, steps);
            (self.end.has_new_packet, self.end.ended) = (false, false);
            self.note_checkpoint(steps.len());
        }
    }

    /// Skips a packet: only the token usage of its answer counts.
    pub(super) fn skip(&mut self, packet: &Packet<'_>, steps: usize) {
        if self.advance(packet.source, packet.position) {
            if let Some(event) = self.pipeline.used_again(packet) {
                self.accounting.add_replayed(&event);
            }
            self.note_checkpoint(steps);
        }
    }

    /// Advances a source to a packet; returns whether it is to be pushed.
    fn advance(&mut self, source: u32, position: Position) -> bool {
        match self.sources.advance(source, position) {
            PacketNovelty::Pushed => return false,
            PacketNovelty::Replayed => {}
            PacketNovelty::New => {
                self.end.has_new_packet = true;
                // A file with a date in the future was written by now.
                let now = narrows_store::now();
                let arrived = self.context.arrived_ms.map_or(now, |at| at.min(now));
                self.last_arrival_ms = self.last_arrival_ms.max(Some(arrived));
            }
        }
        true
    }

    /// Sets the pending checkpoint after these steps, if nothing is held back. Not while packets are
    /// replayed: the stored state is ahead of them.
    pub(super) fn note_checkpoint(&mut self, steps: usize) {
        if self.is_quiescent() {
            self.sources.set_pending(steps);
            self.records.add(self.pipeline.records());
            self.records.set_pending();
        }
    }

    /// Commits the pending checkpoint: the steps before it are encoded as rows.
    pub(super) fn commit_checkpoint(&mut self) {
        self.sources.commit(self.items.next_order);
        self.records.commit();
    }

    /// Ends the replay of all other sources: their packets are not sent again.
    pub(super) fn limit_sources(&mut self, sources: &[u32]) {
        if self.sources.limit_to(sources) {
            let records = self.records.end_replay();
            self.pipeline.recall_records(records);
        }
    }
}
