//! Text blocks: open, grow, close.

use super::Fold;
use crate::change::{Change, Set};
use crate::event::{Body, Chunk, Event, Message, Origin};
use crate::item::{Item, ItemBody};
use crate::sanitize::Clean;
use crate::tool::Image;

/// Blocks with an id of their own that may be open at once.
const MAX_KEYED: usize = 256;
/// Longest text that is remembered to recognise its final form.
const MAX_KEPT: usize = 1 << 20;

/// Which text grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Thinking => "thinking",
        }
    }
}

/// The text that grows.
#[derive(Debug, Clone)]
pub(super) struct OpenText {
    id: Clean,
    order: u64,
    kind: Kind,
    block: Option<Clean>,
    parent: Option<Clean>,
    /// What it says so far; none when that is too long.
    kept: Option<String>,
    images: Vec<Image>,
    /// Its turn was answered: it is shown as done, but may still go on.
    settled: bool,
}

/// A block with an id of its own that grows.
#[derive(Debug)]
pub(super) struct OpenBlock {
    id: Clean,
    /// What it says so far; none when that is too long.
    kept: Option<String>,
}

/// The prompt that came last, while nothing came after it.
#[derive(Debug)]
pub(super) struct LastPrompt {
    id: Clean,
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
        let last = !open.settled || open.order + 1 == self.order;
        last && open.kind == kind && open.block == *block && open.parent == event.parent
    }

    pub(super) fn close_text(&mut self, out: &mut Vec<Change>) {
        // A text whose turn was answered is shown as done already. It can go on until something
        // else comes onto the screen.
        if let Some(open) = self.text.take_if(|open| !open.settled) {
            out.push(Change::Set { id: open.id, set: Set::IsStreaming(false) });
        }
    }

    /// The turn was answered. Only the last thing on the screen can still go on.
    pub(super) fn settle_text(&mut self, out: &mut Vec<Change>) {
        self.close_text(out);
        self.text = self.tail.clone();
    }

    pub(super) fn chunk(&mut self, event: &Event, chunk: &Chunk, out: &mut Vec<Change>) {
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
        if !self.goes_on(event) {
            if self.is_late(kind.name(), event, "content", &chunk.text, out) {
                return;
            }
            self.text = None;
        }
        if let Some(open) = &mut self.text {
            if !chunk.text.is_empty() {
                keep(&mut open.kept, &chunk.text);
                let (id, text) = (open.id.clone(), chunk.text.clone());
                out.push(Change::Append { id, field: "content", text });
            }
            if !chunk.images.is_empty() {
                open.images.extend(chunk.images.iter().cloned());
                if let Some(tail) = self.tail.as_mut().filter(|tail| tail.id == open.id) {
                    tail.images.clone_from(&open.images);
                }
                let (id, images) = (open.id.clone(), open.images.clone());
                out.push(Change::Set { id, set: Set::Images(images) });
            }
            return;
        }
        let id = self.open(event, chunk, kind, !self.info.answered, out);
        self.text = Some(self.opened(event, chunk, kind, id));
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
        let open = self.keyed.iter().position(|k| k.id == id);
        let taken_back = chunk.whole && chunk.text.is_empty() && !chunk.hidden;
        match open {
            Some(at) if chunk.whole => {
                let open = self.keyed.remove(at);
                if taken_back {
                    out.push(Change::Remove { id });
                    return;
                }
                complete(&id, open.kept.as_deref(), &chunk.text, out);
                out.push(Change::Set { id, set: Set::IsStreaming(false) });
            }
            Some(at) => {
                if let Some(open) = self.keyed.get_mut(at) {
                    keep(&mut open.kept, &chunk.text);
                }
                let text = chunk.text.clone();
                out.push(Change::Append { id, field: "content", text });
            }
            None if taken_back => {}
            None => {
                let body = text_body(chunk, kind, !chunk.whole);
                self.put(event, id.clone(), body, out);
                if !chunk.whole {
                    self.keyed.push(OpenBlock { id, kept: Some(chunk.text.to_string()) });
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
            out.push(Change::Set { id: open.id, set: Set::IsStreaming(false) });
        }
    }

    fn opened(&self, event: &Event, chunk: &Chunk, kind: Kind, id: Clean) -> OpenText {
        OpenText {
            id,
            order: self.order - 1,
            settled: self.info.answered,
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
                complete(&open.id, open.kept.as_deref(), &chunk.text, out);
                out.push(Change::Set { id: open.id, set: Set::IsStreaming(false) });
            }
            open => {
                self.text = open;
                self.close_text(out);
                let id = self.open(event, chunk, kind, false, out);
                self.text = self.info.answered.then(|| self.opened(event, chunk, kind, id));
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
    ) -> Clean {
        let id = self.name(kind.name(), event);
        self.put(event, id.clone(), text_body(chunk, kind, is_streaming), out);
        let opened = self.opened(event, chunk, kind, id.clone());
        self.tail = Some(OpenText { kept: None, settled: true, ..opened });
        self.recent = Some(id.clone());
        id
    }

    /// Somebody asked something. What the agent merely says back is dropped.
    pub(super) fn user(&mut self, event: &Event, message: &Message, out: &mut Vec<Change>) {
        if message.origin == Origin::Agent
            && let Some(last) = &mut self.prompt
        {
            let echo = last.origin == Origin::Client
                && last.text.contains(message.text.as_str())
                && message.images.iter().all(|i| last.images.contains(i));
            if echo {
                return;
            }
            if last.origin == Origin::Agent
                && last.block == message.block_id
                && last.parent == event.parent
            {
                if !message.text.is_empty() {
                    let (id, text) = (last.id.clone(), message.text.clone());
                    out.push(Change::Append { id, field: "text", text });
                }
                if !message.images.is_empty() {
                    last.images.extend(message.images.iter().cloned());
                    let (id, images) = (last.id.clone(), last.images.clone());
                    out.push(Change::Set { id, set: Set::Images(images) });
                }
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
        let body = ItemBody::UserMessage {
            text: message.text.clone(),
            images: message.images.clone(),
            origin: message.origin,
            block_id: message.block_id.clone(),
        };
        self.put(event, id.clone(), body, out);
        self.recent = Some(id.clone());
        self.prompt = Some(LastPrompt {
            id,
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
        let late = *recent == self.name(kind, event);
        if late {
            out.push(Change::Append { id: recent.clone(), field, text: text.clone() });
        }
        late
    }

    pub(super) fn resume_text(&mut self, item: &Item) {
        match &item.body {
            ItemBody::Text { .. } | ItemBody::Thinking { .. } | ItemBody::UserMessage { .. } => {
                self.recent = Some(item.id.clone());
            }
            _ => {}
        }
        let (id, parent) = (item.id.clone(), item.parent.clone());
        let settled = self.info.answered && item.order + 1 == self.order;
        if let ItemBody::Text { block_id: Some(block), content, .. }
        | ItemBody::Thinking { block_id: Some(block), content, .. } = &item.body
        {
            let kinds = [Kind::Text, Kind::Thinking];
            if kinds.iter().any(|kind| block_item(*kind, block) == item.id) {
                if is_streaming(item) {
                    let kept = (content.len() <= MAX_KEPT).then(|| content.to_string());
                    self.keyed.push(OpenBlock { id, kept });
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
                    id,
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
        let kept = (streams && kept.len() <= MAX_KEPT).then(|| kept.to_string());
        let open = OpenText { id, order, kind, block, parent, kept, images, settled };
        if order + 1 == self.order {
            self.tail = Some(OpenText { kept: None, settled: true, ..open.clone() });
        }
        if settled || is_streaming(item) {
            self.text = Some(open);
        }
    }
}

/// The whole text of an item has come: adds what was not told, or replaces what was told otherwise.
fn complete(id: &Clean, kept: Option<&str>, text: &Clean, out: &mut Vec<Change>) {
    let id = id.clone();
    let kept = kept.filter(|kept| text.starts_with(kept));
    match kept.and_then(|kept| text.after(kept.len())) {
        Some(rest) if rest.is_empty() => {}
        Some(text) => out.push(Change::Append { id, field: "content", text }),
        None => out.push(Change::Set { id, set: Set::Content(text.clone()) }),
    }
}

/// The item of a block with an id of its own.
fn block_item(kind: Kind, block: &Clean) -> Clean {
    Clean::concat(&[&Clean::literal(kind.name()), &Clean::literal("-"), block])
}

fn text_body(chunk: &Chunk, kind: Kind, is_streaming: bool) -> ItemBody {
    let (content, block_id) = (chunk.text.clone(), chunk.block_id.clone());
    match kind {
        Kind::Thinking => {
            ItemBody::Thinking { content, is_streaming, block_id, hidden: chunk.hidden }
        }
        Kind::Text => {
            ItemBody::Text { content, is_streaming, block_id, images: chunk.images.clone() }
        }
    }
}

fn is_streaming(item: &Item) -> bool {
    match &item.body {
        ItemBody::Text { is_streaming, .. } | ItemBody::Thinking { is_streaming, .. } => {
            *is_streaming
        }
        _ => false,
    }
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
