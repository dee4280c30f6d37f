//! Text blocks: open, grow, close.

use super::Fold;
use super::text_parts::{Kind, Place, is_streaming, part_body, prompt_body, text_body};
use crate::model::change::{Change, Set};
use crate::model::event::{Body, Chunk, Event, Message, Origin};
use crate::model::item::{Item, ItemBody};
use crate::model::time::Time;
use crate::model::tool::Image;
use crate::sanitize::Clean;

/// Blocks with an id of their own that may be open at once.
const MAX_KEYED: usize = 256;
/// Longest text that is remembered to recognise its final form.
const MAX_KEPT: usize = 1 << 20;

/// The text that grows.
#[derive(Debug, Clone)]
pub(super) struct OpenText {
    place: Place,
    /// Of the item in which it ends.
    order: u64,
    kind: Kind,
    block: Option<Clean>,
    parent: Option<Clean>,
    /// What it says so far; none when that is too long.
    kept: Option<String>,
    /// The pictures of the item in which it ends.
    images: Vec<Image>,
    /// Its turn was answered: it is shown as done, but may still go on.
    settled: bool,
    /// When it began, in milliseconds since 1970.
    began: Option<i64>,
}

/// A block with an id of its own that grows.
#[derive(Debug)]
pub(super) struct OpenBlock {
    place: Place,
    /// What it says so far; none when that is too long.
    kept: Option<String>,
}

impl OpenBlock {
    /// The same, without what it says.
    pub(super) fn without_text(&self) -> OpenBlock {
        OpenBlock { place: self.place.clone(), kept: None }
    }
}

impl OpenText {
    /// The same, without what it says.
    pub(super) fn without_text(&self) -> OpenText {
        OpenText {
            place: self.place.clone(),
            order: self.order,
            kind: self.kind,
            block: self.block.clone(),
            parent: self.parent.clone(),
            kept: None,
            images: self.images.clone(),
            settled: self.settled,
            began: self.began,
        }
    }
}

/// The prompt that came last, while nothing came after it.
#[derive(Debug)]
pub(super) struct LastPrompt {
    place: Place,
    block: Option<Clean>,
    parent: Option<Clean>,
    origin: Origin,
    /// What was sent: the agent may say it back.
    text: String,
    images: Vec<Image>,
}

impl Fold {
    /// Whether the event is the next piece of the open text.
    pub(super) fn goes_on(&self, event: &Event) -> bool {
        let Some(open) = &self.text else { return false };
        let (kind, block) = match &event.body {
            Body::TextChunk(c) => (Kind::Text, &c.block_id),
            Body::ThinkingChunk(c) => (Kind::Thinking, &c.block_id),
            _ => return false,
        };
        if self.is_apart(event) {
            return false;
        }
        let last = !open.settled || open.order + 1 == self.order;
        last && open.kind == kind && open.block == *block && open.parent == event.parent
    }

    /// Whether a text comes a while after the answer: it is another one than what was answered with.
    fn is_apart(&self, event: &Event) -> bool {
        let Some(open) = self.text.as_ref().filter(|open| open.settled) else { return false };
        self.info.answered && self.is_after_answer(event) && open.began < self.info.answered_at
    }

    pub(super) fn close_text(&mut self, out: &mut Vec<Change>) {
        // A text whose turn was answered is shown as done already. It can go on until something
        // else comes onto the screen.
        if let Some(open) = self.text.take_if(|open| !open.settled) {
            out.push(Change::Set { id: open.place.id(), set: Set::IsStreaming(false) });
        }
    }

    /// The turn was answered. Only the last thing on the screen can still go on.
    pub(super) fn settle_text(&mut self, out: &mut Vec<Change>) {
        self.close_text(out);
        self.text = self.tail.clone();
    }

    pub(super) fn chunk(&mut self, event: &Event, chunk: &Chunk, out: &mut Vec<Change>) {
        let apart = self.is_apart(event);
        // Where prompts are not seen, a text begins the next turn.
        self.running(event, self.info.turns == 0 && self.is_after_answer(event));
        let kind = match event.body {
            Body::ThinkingChunk(_) => Kind::Thinking,
            _ => Kind::Text,
        };
        if let Some(block) = chunk.block_id.as_ref().filter(|_| chunk.keyed) {
            return self.keyed(event, chunk, kind, block, out);
        }
        if chunk.whole {
            return self.whole(event, chunk, kind, out);
        }
        if apart || !self.goes_on(event) {
            if self.is_late(kind.name(), event, "content", &chunk.text, out) {
                return;
            }
            self.text = None;
        }
        if let Some(open) = self.text.take() {
            self.text = Some(self.goes_on_with(event, chunk, open, out));
            return;
        }
        let place = self.open(event, chunk, kind, !self.info.answered, out);
        self.text = Some(self.opened(event, chunk, kind, place));
    }

    /// The next piece of the open text.
    fn goes_on_with(
        &mut self,
        event: &Event,
        chunk: &Chunk,
        mut open: OpenText,
        out: &mut Vec<Change>,
    ) -> OpenText {
        if !chunk.text.is_empty() {
            keep(&mut open.kept, &chunk.text);
            let (kind, streams) = (open.kind, !open.settled);
            let make = |text, last| part_body(chunk, kind, text, last && streams);
            let (text, place) = (&chunk.text, &mut open.place);
            if self.grow(event, place, "content", text, &make, out) {
                (open.order, open.images) = (self.order - 1, Vec::new());
                self.recent = Some(open.place.clone());
                self.tail = Some(OpenText { kept: None, settled: true, ..open.clone() });
            }
        }
        let tail = self.tail.as_mut().filter(|tail| tail.place.base() == open.place.base());
        if !chunk.images.is_empty() {
            open.images.extend(chunk.images.iter().cloned());
            let (id, images) = (open.place.id(), open.images.clone());
            out.push(Change::Set { id, set: Set::Images(images) });
        }
        if let Some(tail) = tail {
            tail.images.clone_from(&open.images);
            tail.place.clone_from(&open.place);
        }
        open
    }

    /// A piece of a block with an id of its own, or all of it.
    fn keyed(
        &mut self,
        event: &Event,
        chunk: &Chunk,
        kind: Kind,
        block: &Clean,
        out: &mut Vec<Change>,
    ) {
        let id = block_item(kind, block);
        let open = self.keyed.iter().position(|k| *k.place.base() == id);
        let taken_back = chunk.whole && chunk.text.is_empty() && !chunk.hidden;
        let streams = !chunk.whole;
        let make = |text, last: bool| part_body(chunk, kind, text, last && streams);
        match open {
            Some(at) if chunk.whole => {
                let OpenBlock { place, kept } = self.keyed.remove(at);
                if taken_back {
                    Self::remove_text(&place, out);
                } else {
                    self.complete_text(event, &place, kept.as_deref(), &chunk.text, &make, out);
                }
            }
            Some(at) => {
                let mut open = self.keyed.remove(at);
                keep(&mut open.kept, &chunk.text);
                self.grow(event, &mut open.place, "content", &chunk.text, &make, out);
                self.keyed.insert(at, open);
            }
            None if taken_back => {}
            None => {
                let body = |text, last: bool| text_body(chunk, kind, text, last, last && streams);
                let place = self.put_text(event, id, &chunk.text, &body, out);
                if !chunk.whole {
                    let kept = place.is_one().then(|| chunk.text.to_string());
                    self.keyed.push(OpenBlock { place, kept });
                    if self.keyed.len() > MAX_KEYED {
                        self.close_keyed(1, out);
                    }
                }
            }
        }
    }

    /// The first `n` open blocks will not go on.
    pub(super) fn close_keyed(&mut self, n: usize, out: &mut Vec<Change>) {
        let n = n.min(self.keyed.len());
        for open in self.keyed.drain(..n) {
            out.push(Change::Set { id: open.place.id(), set: Set::IsStreaming(false) });
        }
    }

    fn opened(&self, event: &Event, chunk: &Chunk, kind: Kind, place: Place) -> OpenText {
        OpenText {
            place,
            order: self.order - 1,
            settled: self.info.answered,
            began: event.time.as_ref().map(Time::millis),
            kind,
            block: chunk.block_id.clone(),
            parent: event.parent.clone(),
            kept: (chunk.text.len() <= MAX_KEPT).then(|| chunk.text.to_string()),
            images: chunk.images.clone(),
        }
    }

    /// A text at once. It replaces what was streamed of it, and is closed.
    fn whole(&mut self, event: &Event, chunk: &Chunk, kind: Kind, out: &mut Vec<Change>) {
        let replaces = |open: &OpenText| {
            let named = open.block.is_some();
            let begun =
                open.kept.as_ref().is_some_and(|kept| chunk.text.starts_with(kept.as_str()));
            !open.settled && open.kind == kind && (named || begun)
        };
        match self.text.take() {
            Some(open) if replaces(&open) => {
                let make = |text, _| part_body(chunk, kind, text, false);
                let kept = open.kept.as_deref();
                self.complete_text(event, &open.place, kept, &chunk.text, &make, out);
            }
            open => {
                self.text = open;
                self.close_text(out);
                let place = self.open(event, chunk, kind, false, out);
                self.text = self.info.answered.then(|| self.opened(event, chunk, kind, place));
            }
        }
    }

    fn open(
        &mut self,
        event: &Event,
        chunk: &Chunk,
        kind: Kind,
        is_streaming: bool,
        out: &mut Vec<Change>,
    ) -> Place {
        let id = self.name(kind.name(), event);
        let make = |text, last: bool| text_body(chunk, kind, text, last, last && is_streaming);
        let place = self.put_text(event, id, &chunk.text, &make, out);
        let opened = self.opened(event, chunk, kind, place.clone());
        self.tail = Some(OpenText { kept: None, settled: true, ..opened });
        self.recent = Some(place.clone());
        place
    }

    /// Somebody asked something. What the agent merely says back is dropped.
    pub(super) fn user(&mut self, event: &Event, message: &Message, out: &mut Vec<Change>) {
        if message.origin == Origin::Agent
            && let Some(mut last) = self.prompt.take()
        {
            let echo = last.origin == Origin::Client
                && last.text.contains(message.text.as_str())
                && message.images.iter().all(|i| last.images.contains(i));
            let more = last.origin == Origin::Agent
                && last.block == message.block_id
                && last.parent == event.parent;
            if !echo && more {
                let make = |text, _| prompt_body(message, text, false);
                if self.grow(event, &mut last.place, "text", &message.text, &make, out) {
                    last.images.clear();
                    self.recent = Some(last.place.clone());
                }
                if !message.images.is_empty() {
                    last.images.extend(message.images.iter().cloned());
                    let (id, images) = (last.place.id(), last.images.clone());
                    out.push(Change::Set { id, set: Set::Images(images) });
                }
            }
            self.prompt = Some(last);
            if echo || more {
                return;
            }
        }
        if self.is_late("user", event, "text", &message.text, out) {
            return;
        }
        // What a subagent is asked is no turn of the session.
        if event.parent.is_none() {
            self.begin_turn();
        }
        let id = self.name("user", event);
        let make = |text, last| prompt_body(message, text, last);
        let place = self.put_text(event, id, &message.text, &make, out);
        self.recent = Some(place.clone());
        self.prompt = Some(LastPrompt {
            place,
            block: message.block_id.clone(),
            parent: event.parent.clone(),
            origin: message.origin,
            text: sent(&message.text, message.origin),
            images: message.images.clone(),
        });
    }

    /// Adds text that was held back while other things came to the item where it belongs.
    fn is_late(
        &self,
        kind: &'static str,
        event: &Event,
        field: &'static str,
        text: &Clean,
        out: &mut Vec<Change>,
    ) -> bool {
        let Some(recent) = self.recent.as_ref().filter(|_| event.began.packet > 0) else {
            return false;
        };
        let late = *recent.base() == self.name(kind, event);
        if late {
            // It is short, and other things have come after it: it begins no new part.
            out.push(Change::Append { id: recent.id(), field, text: text.clone() });
        }
        late
    }

    pub(super) fn resume_text(&mut self, item: &Item) {
        let place = match &item.body {
            ItemBody::Text { content: text, .. }
            | ItemBody::Thinking { content: text, .. }
            | ItemBody::UserMessage { text, .. } => Place::of(item, text),
            _ => return,
        };
        self.recent = Some(place.clone());
        let parent = item.parent.clone();
        let settled = self.info.answered && item.order + 1 == self.order;
        if let ItemBody::Text { block_id: Some(block), content, .. }
        | ItemBody::Thinking { block_id: Some(block), content, .. } = &item.body
        {
            let kinds = [Kind::Text, Kind::Thinking];
            if kinds.iter().any(|kind| block_item(*kind, block) == *place.base()) {
                if is_streaming(&item.body) {
                    let whole = place.is_one() && content.len() <= MAX_KEPT;
                    let kept = whole.then(|| content.to_string());
                    self.keyed.push(OpenBlock { place, kept });
                }
                return;
            }
        }
        let (kind, kept, block, images) = match &item.body {
            ItemBody::Text { content, block_id, images, .. } => {
                (Kind::Text, content, block_id.clone(), images.clone())
            }
            ItemBody::Thinking { content, block_id, .. } => {
                (Kind::Thinking, content, block_id.clone(), Vec::new())
            }
            ItemBody::UserMessage { text, images, origin, block_id }
                if item.order + 1 == self.order && !self.info.answered =>
            {
                self.prompt = Some(LastPrompt {
                    place,
                    block: block_id.clone(),
                    parent,
                    origin: *origin,
                    text: sent(text, *origin),
                    images: images.clone(),
                });
                return;
            }
            _ => return,
        };
        let (order, streams) = (item.order, !settled);
        let kept = (streams && place.is_one() && kept.len() <= MAX_KEPT).then(|| kept.to_string());
        let began = item.time.as_ref().map(Time::millis);
        let open = OpenText { place, order, kind, block, parent, kept, images, settled, began };
        if order + 1 == self.order {
            self.tail = Some(OpenText { kept: None, settled: true, ..open.clone() });
        }
        if settled || is_streaming(&item.body) {
            self.text = Some(open);
        }
    }
}

/// The item of a block with an id of its own.
fn block_item(kind: Kind, block: &Clean) -> Clean {
    Clean::concat(&[&Clean::literal(kind.name()), &Clean::literal("-"), block])
}

/// What an agent could say back: only what a client sent.
fn sent(text: &Clean, origin: Origin) -> String {
    if origin == Origin::Client { text.to_string() } else { String::new() }
}

fn keep(kept: &mut Option<String>, more: &str) {
    match kept {
        Some(text) if text.len() + more.len() <= MAX_KEPT => text.push_str(more),
        _ => *kept = None,
    }
}
