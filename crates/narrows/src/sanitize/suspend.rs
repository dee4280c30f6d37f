//! A source that is silent: at its end for now, or a while after its turn was answered. What has clearly
//! begun to be something to hide stays held back, as what goes on would complete it.

use super::Clean;
use super::begun::Begun;
use super::seam::{Seam, ends_in_mark};
use super::{Sanitizer, event};
use crate::change::Items;
use crate::event::{Body, Event, ToolEvent};
use crate::id::EventId;
use crate::item::{Item, ItemBody};
use crate::tool::Output;

impl Sanitizer {
    /// The input is over for now. Texts whose turn was not answered stay open, so that what goes on is
    /// understood together with them, and what has clearly begun to be something to hide is not shown;
    /// where all of it can be read `again`, neither is what may have begun: what goes on then reads as
    /// if it had never ended.
    pub(crate) fn suspend(&mut self, again: bool, out: &mut Vec<Event>) {
        let Sanitizer { cleaner, text, outputs, order, .. } = self;
        let mut show = |seam: &mut Seam| {
            if again { seam.pause_reread(cleaner) } else { seam.suspend(cleaner, Begun::CLEAR) }
        };
        if let Some(open) = text.as_mut().filter(|open| !open.is_over) {
            let rest = show(&mut open.seam);
            open.tell(rest, out);
        }
        for id in order.iter() {
            let Some(open) = outputs.get_mut(id) else { continue };
            let rest = show(&mut open.seam);
            out.extend(rest.and_then(|rest| open.more(rest)));
        }
        self.settle_answered(out);
        let mut aside = self.growing.suspend(&self.cleaner);
        aside.extend(self.snapshots.suspend(&self.cleaner));
        out.extend(aside.into_iter().map(|event| event::clean(&mut self.cleaner, event, None)));
    }

    /// Whether something of a text is held back though its turn was answered.
    pub(crate) fn waits_answered(&self) -> bool {
        self.text.as_ref().is_some_and(|open| open.is_over && !open.is_at_rest())
    }

    /// A while has passed since the turn was answered, and nothing came: the text is over, unless
    /// something to hide stands there in part and would be seen.
    pub(crate) fn settle_answered(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.text.as_mut().filter(|open| open.is_over) else { return };
        if let Some(begun) = open.seam.can_end(&mut self.cleaner, Begun::IN_PART) {
            self.behind = begun.then(|| open.shell.body.kind());
            return self.end_text(out);
        }
        let rest = open.seam.suspend(&mut self.cleaner, Begun::IN_PART);
        open.tell(rest, out);
    }

    /// The session goes on behind these items, and its last turn was answered.
    pub(crate) fn resume_answered(&mut self, items: &Items) {
        self.snapshots.answered = true;
        let last = items.iter().max_by_key(|item| item.order);
        self.behind = last.and_then(|item| match &item.body {
            ItemBody::Text { content, .. } if ends_in_mark(content) => Some("text_chunk"),
            ItemBody::Thinking { content, .. } if ends_in_mark(content) => Some("thinking_chunk"),
            _ => None,
        });
    }

    /// Packets were read again. What was shown when the source was silent is more than what the packets
    /// alone give: it is known by the log, or by the items.
    pub(crate) fn recall_shown(&mut self, shown: &Shown) {
        if let Some(open) = &mut self.text {
            let (kind, parent) = (open.shell.body.kind(), &open.shell.parent);
            let is_of = |e: &Event| e.body.kind() == kind && e.parent == *parent;
            let began = open.shell.began;
            if let Some(text) = shown.in_log(began, |e| text(&e.body).filter(|_| is_of(e))) {
                open.seam.recall(&mut self.cleaner, &text, open.told_len);
                (open.told, open.told_len) = (open.told || !text.is_empty(), text.len());
            } else if let Some(text) = shown.in_items(&open.shell)
                && let Some(more) = text.get(open.told_len..)
                && open.seam.recall_more(&mut self.cleaner, more)
            {
                (open.told, open.told_len) = (true, text.len());
            }
        }
        for (id, open) in &mut self.outputs {
            if let Some(text) = shown.in_log(open.began, |piece| output(piece, id)) {
                open.seam.recall(&mut self.cleaner, &text, open.told_len);
                open.told_len = text.len();
            }
        }
    }
}

/// What a session had shown when it was cut.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The last item with a text: its id, its block and what it says.
    last: Option<(Clean, Option<Clean>, Clean)>,
    /// The last pieces of text in the log.
    pieces: Vec<Event>,
    /// The first of these events in the log.
    from: Option<EventId>,
}

impl Shown {
    /// By the items.
    pub(crate) fn of_items(items: &Items) -> Shown {
        let text = |item: &Item| match &item.body {
            ItemBody::Text { content: text, block_id, .. }
            | ItemBody::Thinking { content: text, block_id, .. }
            | ItemBody::UserMessage { text, block_id, .. } => {
                Some((item.id.clone(), block_id.clone(), text.clone()))
            }
            _ => None,
        };
        let last = items.iter().filter(|item| text(item).is_some()).max_by_key(|item| item.order);
        Shown { last: last.and_then(text), ..Shown::default() }
    }

    /// By the last events of the log, one of which is given.
    pub(crate) fn add(&mut self, event: &Event, is_first: bool) {
        if self.from.is_none() {
            // All of the log is given where it begins with this one.
            self.from = Some(if is_first { EventId::default() } else { event.id });
        }
        let is_output = |tool: &ToolEvent| tool.call.output.is_some();
        if event.body.is_streamed() || event.body.tool().is_some_and(is_output) {
            self.pieces.push(event.clone());
        }
    }

    /// What the log has of something that is open, when it has all of it.
    fn in_log<'a>(
        &'a self,
        began: EventId,
        of: impl Fn(&'a Event) -> Option<&'a Clean>,
    ) -> Option<Clean> {
        self.from.filter(|from| from.source == began.source && *from < began)?;
        let is_of = |piece: &&Event| piece.id.source == began.source && piece.id >= began;
        let parts: Vec<_> = self.pieces.iter().filter(is_of).filter_map(of).collect();
        Some(Clean::concat(&parts))
    }

    /// What the items have of an open text.
    fn in_items(&self, open: &Event) -> Option<Clean> {
        let (id, block, text) = self.last.as_ref()?;
        let own = match &open.body {
            Body::UserMessage(message) => &message.block_id,
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => &chunk.block_id,
            _ => &None,
        };
        let is_same = id.ends_with(&format!("-{}", open.began)) || (own.is_some() && own == block);
        is_same.then(|| text.clone())
    }
}

/// The next part of a call's output; the first one is the whole of it up to there.
fn output<'a>(event: &'a Event, call: &str) -> Option<&'a Clean> {
    match event.body.tool().filter(|tool| *tool.id == *call)?.call.output.as_ref()? {
        Output::More(part) | Output::Whole(part) => Some(part),
    }
}

fn text(body: &Body) -> Option<&Clean> {
    match body {
        Body::UserMessage(message) => Some(&message.text),
        Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => Some(&chunk.text),
        _ => None,
    }
}
