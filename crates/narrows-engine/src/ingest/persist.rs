//! Steps into an append: rows of the log, item rows, checkpoints and sums, queued for the store and, once
//! durable, published through the hub.

use super::item_flush::FlushPolicy;
use super::row_encoder::RowEncoder;
use super::session_writer::{AppendAck, SessionWriter};
use crate::live::{Hub, PendingAppend};
use narrows::change::Change;
use narrows::{Clean, Row, Step};
use narrows_store::{Append, Error, EventRow, NewBlob, Pen, Request, Result, SessionFacts, Store};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

impl SessionWriter {
    /// Queues steps for the store; durable rows are published through the hub. Returns `None` when there
    /// is nothing to store.
    pub(super) async fn persist(
        &mut self,
        store: &Store,
        hub: &Hub,
        steps: &mut Vec<Step>,
        request: impl FnOnce(&SessionWriter) -> Result<Option<Request>>,
        policy: FlushPolicy,
    ) -> Result<Option<AppendAck>> {
        // Until the store has the append, the pipeline is ahead of the log: if this future is cancelled,
        // the writer stays poisoned.
        let poisoned = Arc::clone(&self.poisoned);
        poisoned.store(true, Ordering::Relaxed);
        let (mut append, rows) = self.build_append(steps, policy)?;
        let preview = self.preview();
        hub.set_preview(&self.session, self.seq, preview, rows.is_empty());
        append.request = request(self)?;
        append.at_once = self.context.bulk;
        append.waits = policy == FlushPolicy::Defer;
        append.fence = self.lease.fencing_token;
        self.lease.token.iter_mut().for_each(Pen::goes_on);
        append.pen = self.lease.token;
        let is_empty = self.end.ended == self.end.stored
            && append.events.is_empty()
            && append.items.is_empty()
            && append.active.is_empty()
            && append.sources.is_empty()
            && append.seen.is_empty()
            && append.loose.is_none();
        if is_empty && append.request.is_none() && append.facts.is_none() {
            poisoned.store(false, Ordering::Relaxed);
            return Ok(None);
        }
        let durable = store.append(append).await?;
        self.end.stored = self.end.ended;
        poisoned.store(false, Ordering::Relaxed);
        let (ack, receiver) = oneshot::channel();
        let source_ended = self.end.ended;
        let append = PendingAppend { rows, durable, ack, poisoned, source_ended };
        hub.publish_when_durable(&self.session, append);
        Ok(Some(receiver))
    }

    fn build_append(
        &mut self,
        steps: &mut Vec<Step>,
        policy: FlushPolicy,
    ) -> Result<(Append, Vec<EventRow>)> {
        let mut append = Append { session: self.session.key, after: self.seq, ..Append::default() };
        let rows = self.encode_steps(steps, &mut append)?;
        self.accounting.write_into(&mut append, policy == FlushPolicy::All);
        self.items.write_into(&mut append, self.seq, policy);
        // A session that ends, or continues after its end, changes its status.
        self.header.changed |= self.end.ended != self.end.stored;
        if std::mem::take(&mut self.header.changed) {
            append.facts = Some(self.session_header()?);
        }
        append.waiting = Some(self.items.open_requests().count() as u64);
        self.set_times(&mut append);
        append.seen = self.records.take_committed();
        self.records.add(self.pipeline.records());
        append.loose = self.records.take_uncheckpointed();
        append.ended = Some(self.end.ended);
        append.events.clone_from(&rows);
        for root in self.pipeline.roots() {
            if !self.roots.contains(root) {
                self.roots.push(root.clone());
            }
        }
        let format = self.pipeline.format();
        append.sources = self.sources.take_changed(&self.roots, format, self.seq);
        Ok((append, rows))
    }

    /// Encodes steps as rows, and commits the pending checkpoint when the steps before it are encoded.
    fn encode_steps(
        &mut self,
        steps: &mut Vec<Step>,
        append: &mut Append,
    ) -> Result<Vec<EventRow>> {
        let mut encoder = RowEncoder::with_capacity(steps.len());
        let checkpoint_at = self.sources.take_steps_before_pending();
        let ends_now = self.end.ended && !self.end.stored;
        let (last, kept) = (steps.len().saturating_sub(1), self.pipeline.is_kept());
        for (at, step) in steps.drain(..).enumerate() {
            if checkpoint_at == Some(at) {
                self.commit_checkpoint();
            }
            let header = (&self.header.info, kept);
            self.accounting.add(&self.session.id, self.seq + 1, &step.event, header, append);
            let id = step.event.id;
            self.sources.entry(id.source).set_last_event(id);
            self.seq += 1;
            self.encode_step(step, ends_now && at == last, append, &mut encoder)?;
        }
        if checkpoint_at.is_some_and(|at| at == encoder.len()) {
            self.commit_checkpoint();
        }
        Ok(encoder.into_rows())
    }

    fn encode_step(
        &mut self,
        step: Step,
        is_last: bool,
        append: &mut Append,
        encoder: &mut RowEncoder,
    ) -> Result<()> {
        let Step { event, changes, blobs } = step;
        let mut messages = Vec::new();
        self.activity.push(self.seq, &event, &mut messages);
        if is_last {
            self.activity.finish(self.seq, &mut messages);
        }
        let row = Row::new(self.seq, &self.session.id, &event);
        let bytes = encoder.add(self.seq, event.body.kind(), &row, &changes, &messages)?;
        let bytes_per_change = bytes / changes.len().max(1);
        for change in changes {
            match change {
                Change::Info { info } => {
                    self.header.info = *info;
                    self.header.changed = true;
                }
                change => self.items.apply(self.seq, change, bytes_per_change),
            }
        }
        append.blobs.extend(blobs.into_iter().map(|blob| NewBlob {
            hash: blob.hash,
            mime: blob.mime_type,
            bytes: blob.bytes.into(),
        }));
        Ok(())
    }

    fn session_header(&mut self) -> Result<SessionFacts> {
        let project = self.pipeline.project();
        let project = project.as_ref().map(Clean::as_str);
        SessionFacts::of(&self.header.info, self.end.ended, project)
    }

    /// Sets the times of the session. A discovered file is as old as its events say, whenever it was
    /// copied here; a file that grows is new. Packets that arrive from a running agent are new, whatever
    /// the agent's clock says, unless the agent keeps a file with dates of its own.
    fn set_times(&mut self, append: &mut Append) {
        let newest = append.times.filter(|_| self.context.is_discovered).map(|(_, newest)| newest);
        append.heard = self.last_arrival_ms.map(|at| newest.map_or(at, |newest| at.min(newest)));
        if self.context.is_live && !self.pipeline.is_kept() {
            append.times = append.times.and(append.heard).map(|at| (at, at));
        }
    }

    /// The preview of held-back text, as JSON changes.
    fn preview(&mut self) -> Option<String> {
        if self.end.ended || self.context.bulk {
            return None;
        }
        let changes = self.pipeline.preview();
        if changes.is_empty() {
            return None;
        }
        let mut buffer = Vec::new();
        narrows::json::print(&mut buffer, &changes).ok()?;
        String::from_utf8(buffer).ok()
    }
}

pub(super) fn serialize_error(error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("cannot serialize an event: {error}"))
}
