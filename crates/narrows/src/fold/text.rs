//! Streamed texts without an id: opened, extended, closed.

use super::Fold;
use super::text_items::{TextItems, TextKind, continuation_body, text_body};
use crate::model::change::{Change, ItemPatch};
use crate::model::event::{Body, Event, TextChunk};
use crate::model::time::Time;
use crate::model::tool::Image;
use crate::sanitize::Clean;

/// Longest text that is retained to recognize its final form, in bytes.
pub(super) const MAX_RETAINED_TEXT: usize = 1 << 20;

/// The text that the next chunk may extend.
#[derive(Debug, Clone)]
pub(super) struct StreamingText {
    pub(super) items: TextItems,
    /// Order of its last item.
    pub(super) order: u64,
    pub(super) kind: TextKind,
    pub(super) block_id: Option<Clean>,
    pub(super) parent: Option<Clean>,
    /// The text so far; none if it is too long.
    pub(super) text: Option<String>,
    /// Images of its last item.
    pub(super) images: Vec<Image>,
    /// The turn was answered: the text is shown as done, but may still continue.
    pub(super) shown_as_done: bool,
    /// Time of its start, in milliseconds since 1970.
    pub(super) started_ms: Option<i64>,
}

impl StreamingText {
    /// Copies everything but the text.
    pub(super) fn without_text(&self) -> StreamingText {
        StreamingText {
            items: self.items.clone(),
            order: self.order,
            kind: self.kind,
            block_id: self.block_id.clone(),
            parent: self.parent.clone(),
            text: None,
            images: self.images.clone(),
            shown_as_done: self.shown_as_done,
            started_ms: self.started_ms,
        }
    }
}

impl Fold {
    /// Whether the event is the next chunk of the open text.
    pub(super) fn continues_open_text(&self, event: &Event) -> bool {
        let Some(open) = &self.open_text else { return false };
        let (kind, block_id) = match &event.body {
            Body::TextChunk(c) => (TextKind::Text, &c.block_id),
            Body::ThinkingChunk(c) => (TextKind::Thinking, &c.block_id),
            _ => return false,
        };
        if self.is_of_next_turn(event) {
            return false;
        }
        let is_last = !open.shown_as_done || open.order + 1 == self.next_order;
        is_last && open.kind == kind && open.block_id == *block_id && open.parent == event.parent
    }

    /// Whether a chunk comes too late after the answer to continue the text of that turn.
    fn is_of_next_turn(&self, event: &Event) -> bool {
        let open = self.open_text.as_ref().filter(|open| open.shown_as_done);
        let Some(open) = open else { return false };
        self.info.answered
            && self.is_past_late_window(event)
            && open.started_ms < self.info.answered_at
    }

    pub(super) fn close_text(&mut self, out: &mut Vec<Change>) {
        // A text of an answered turn is shown as done already. It may continue until another item
        // follows it.
        if let Some(open) = self.open_text.take_if(|open| !open.shown_as_done) {
            out.push(Change::Set { id: open.items.last_id(), set: ItemPatch::IsStreaming(false) });
        }
    }

    /// Closes the open text at the end of a turn. Only the last item can still continue.
    pub(super) fn close_text_at_answer(&mut self, out: &mut Vec<Change>) {
        self.close_text(out);
        self.open_text = self.last_text.clone();
    }

    pub(super) fn fold_chunk(&mut self, event: &Event, chunk: &TextChunk, out: &mut Vec<Change>) {
        let is_of_next_turn = self.is_of_next_turn(event);
        // In a stream without prompts, a text starts the next turn.
        self.mark_running(event, self.info.turns == 0 && self.is_past_late_window(event));
        let kind = match event.body {
            Body::ThinkingChunk(_) => TextKind::Thinking,
            _ => TextKind::Text,
        };
        if let Some(block_id) = chunk.block_id.as_ref().filter(|_| chunk.has_block_id) {
            return self.fold_block_chunk(event, chunk, kind, block_id, out);
        }
        if chunk.whole {
            return self.fold_final_text(event, chunk, kind, out);
        }
        if is_of_next_turn || !self.continues_open_text(event) {
            if self.append_held_back(kind.name(), event, "content", &chunk.text, out) {
                return;
            }
            self.open_text = None;
        }
        if let Some(open) = self.open_text.take() {
            self.open_text = Some(self.extend_text(event, chunk, open, out));
            return;
        }
        let items = self.start_text(event, chunk, kind, !self.info.answered, out);
        self.open_text = Some(self.open_text_of(event, chunk, kind, items));
    }

    /// Appends a chunk to the open text.
    fn extend_text(
        &mut self,
        event: &Event,
        chunk: &TextChunk,
        mut open: StreamingText,
        out: &mut Vec<Change>,
    ) -> StreamingText {
        if !chunk.text.is_empty() {
            retain_text(&mut open.text, &chunk.text);
            let (kind, streams) = (open.kind, !open.shown_as_done);
            let make = |text, is_last| continuation_body(chunk, kind, text, is_last && streams);
            let (text, items) = (&chunk.text, &mut open.items);
            if self.append_text(event, items, "content", text, &make, out) {
                (open.order, open.images) = (self.next_order - 1, Vec::new());
                self.last_started = Some(open.items.clone());
                self.last_text =
                    Some(StreamingText { text: None, shown_as_done: true, ..open.clone() });
            }
        }
        let last_text = self.last_text.as_mut();
        let last_text = last_text.filter(|last| last.items.first_id() == open.items.first_id());
        if !chunk.images.is_empty() {
            open.images.extend(chunk.images.iter().cloned());
            let (id, images) = (open.items.last_id(), open.images.clone());
            out.push(Change::Set { id, set: ItemPatch::Images(images) });
        }
        if let Some(last_text) = last_text {
            last_text.images.clone_from(&open.images);
            last_text.items.clone_from(&open.items);
        }
        open
    }

    /// Folds a text that comes at once. It replaces what was streamed of it, and is closed.
    fn fold_final_text(
        &mut self,
        event: &Event,
        chunk: &TextChunk,
        kind: TextKind,
        out: &mut Vec<Change>,
    ) {
        let replaces = |open: &StreamingText| {
            let has_id = open.block_id.is_some();
            let extends =
                open.text.as_ref().is_some_and(|text| chunk.text.starts_with(text.as_str()));
            !open.shown_as_done && open.kind == kind && (has_id || extends)
        };
        match self.open_text.take() {
            Some(open) if replaces(&open) => {
                let make = |text, _| continuation_body(chunk, kind, text, false);
                let streamed = open.text.as_deref();
                self.complete_text(event, &open.items, streamed, &chunk.text, &make, out);
            }
            open => {
                self.open_text = open;
                self.close_text(out);
                let items = self.start_text(event, chunk, kind, false, out);
                self.open_text =
                    self.info.answered.then(|| self.open_text_of(event, chunk, kind, items));
            }
        }
    }

    fn start_text(
        &mut self,
        event: &Event,
        chunk: &TextChunk,
        kind: TextKind,
        is_streaming: bool,
        out: &mut Vec<Change>,
    ) -> TextItems {
        let id = self.item_id(kind.name(), event);
        let make = |text, is_last| text_body(chunk, kind, text, is_last, is_last && is_streaming);
        let items = self.put_text(event, id, &chunk.text, &make, out);
        let open = self.open_text_of(event, chunk, kind, items.clone());
        self.last_text = Some(StreamingText { text: None, shown_as_done: true, ..open });
        self.last_started = Some(items.clone());
        items
    }

    fn open_text_of(
        &self,
        event: &Event,
        chunk: &TextChunk,
        kind: TextKind,
        items: TextItems,
    ) -> StreamingText {
        StreamingText {
            items,
            order: self.next_order - 1,
            shown_as_done: self.info.answered,
            started_ms: event.time.as_ref().map(Time::millis),
            kind,
            block_id: chunk.block_id.clone(),
            parent: event.parent.clone(),
            text: (chunk.text.len() <= MAX_RETAINED_TEXT).then(|| chunk.text.to_string()),
            images: chunk.images.clone(),
        }
    }

    /// Appends text that redaction held back while other events came to the item where it belongs.
    /// Returns false if the text is of another item.
    pub(super) fn append_held_back(
        &self,
        kind: &'static str,
        event: &Event,
        field: &'static str,
        text: &Clean,
        out: &mut Vec<Change>,
    ) -> bool {
        let started = self.last_started.as_ref().filter(|_| event.began.packet > 0);
        let Some(started) = started else { return false };
        let belongs = *started.first_id() == self.item_id(kind, event);
        if belongs {
            // Held-back text is short, and other items follow it: it never starts a new item.
            out.push(Change::Append { id: started.last_id(), field, text: text.clone() });
        }
        belongs
    }
}

/// Appends to a retained text, or drops it when it gets too long.
pub(super) fn retain_text(retained: &mut Option<String>, more: &str) {
    match retained {
        Some(text) if text.len() + more.len() <= MAX_RETAINED_TEXT => text.push_str(more),
        _ => *retained = None,
    }
}
