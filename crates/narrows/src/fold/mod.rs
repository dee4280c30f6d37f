//! The fold: events to changes of items.
//!
//! It runs once for each event, live or stored, and never looks at a format. Its work is of the
//! size of the event and its state is bounded: items themselves are kept by whoever applies the
//! changes. An event that was folded already changes nothing.

mod side_items;
mod text;
mod text_parts;
mod tool_items;
mod turns;

use crate::bounded_map::BoundedMap;
use crate::model::change::{Change, Items};
use crate::model::event::{Body, Event};
use crate::model::id::EventId;
use crate::model::item::{Item, ItemBody};
use crate::model::session::{SessionInfo, Status};
use crate::sanitize::Clean;
use std::collections::BTreeMap;

/// Open calls that are remembered for the end of their turn.
const MAX_OPEN: usize = crate::limits::CALLS;
/// Calls whose output grows, of which is remembered how long it is.
const MAX_OUTPUTS: usize = crate::limits::CALLS;
/// Plans that are remembered, to update them in place.
const MAX_PLANS: usize = 64;
/// Questions and background tasks that are remembered, to update them in place.
const MAX_BESIDE: usize = 256;

/// What comes within so many milliseconds of an answer belongs to it.
const LATE_MS: i64 = 3000;

/// The state of one session's fold.
#[derive(Debug)]
pub struct Fold {
    info: SessionInfo,
    /// Whether the header has changed.
    news: bool,
    /// The last event that was folded, of each source.
    last: BTreeMap<u32, EventId>,
    /// The order of the next item.
    order: u64,
    text: Option<text::OpenText>,
    /// The items of open blocks that have an id of their own.
    keyed: Vec<text::OpenBlock>,
    /// The text that is the last thing on the screen.
    tail: Option<text::OpenText>,
    /// The text or prompt that began last: what was held back of it may come late.
    recent: Option<text_parts::Place>,
    prompt: Option<text::LastPrompt>,
    todo: Option<turns::OpenTodo>,
    calls: BoundedMap<tool_items::OpenCall>,
    /// Bytes of output that calls show.
    outputs: BoundedMap<usize>,
    asks: Vec<tool_items::OpenAsk>,
    /// The documents of plans, by call.
    plans: BoundedMap<Option<Clean>>,
    /// Questions and background tasks, by item.
    beside: BoundedMap<Option<Item>>,
}

impl Default for Fold {
    fn default() -> Self {
        Fold {
            info: SessionInfo::default(),
            news: false,
            last: BTreeMap::new(),
            order: 0,
            text: None,
            keyed: Vec::new(),
            tail: None,
            recent: None,
            prompt: None,
            todo: None,
            calls: BoundedMap::new(MAX_OPEN),
            outputs: BoundedMap::new(MAX_OUTPUTS),
            asks: Vec::new(),
            plans: BoundedMap::new(MAX_PLANS),
            beside: BoundedMap::new(MAX_BESIDE),
        }
    }
}

impl Fold {
    /// The fold of an empty session.
    pub fn new() -> Self {
        Fold::default()
    }

    /// The fold of a session whose events up to `last`, of each source, made `items`.
    pub fn resume(items: &Items, last: impl IntoIterator<Item = EventId>) -> Self {
        let info = items.info().clone();
        let last = last.into_iter().map(|id| (id.source, id)).collect();
        let mut fold = Fold { info, last, order: items.next_order(), ..Fold::default() };
        for item in items.iter() {
            fold.resume_text(item);
            fold.resume_tool(item);
            fold.resume_todo(item);
            fold.resume_beside(item);
        }
        fold
    }

    /// The last event that was folded, of each source.
    pub fn last(&self) -> impl Iterator<Item = EventId> {
        self.last.values().copied()
    }

    /// Folds one event into changes.
    pub fn push(&mut self, event: &Event, out: &mut Vec<Change>) {
        if event.id.packet > 0 {
            let last = self.last.entry(event.id.source).or_default();
            if event.id <= *last {
                return;
            }
            *last = event.id;
        }
        self.fold(event, out);
        if std::mem::take(&mut self.news) {
            out.push(Change::Info { info: Box::new(self.info.clone()) });
        }
    }

    /// What a piece of text would change; nothing changes by it.
    pub(crate) fn preview(&self, event: &Event) -> Vec<Change> {
        if !matches!(event.body, Body::TextChunk(_) | Body::ThinkingChunk(_)) {
            return Vec::new();
        }
        let mut other = Fold {
            info: self.info.clone(),
            order: self.order,
            text: self.text.as_ref().map(text::OpenText::without_text),
            keyed: self.keyed.iter().map(text::OpenBlock::without_text).collect(),
            tail: self.tail.as_ref().map(text::OpenText::without_text),
            recent: self.recent.clone(),
            ..Fold::default()
        };
        let mut out = Vec::new();
        other.fold(event, &mut out);
        out.retain(|change| matches!(change, Change::Put { .. } | Change::Append { .. }));
        out
    }

    fn fold(&mut self, event: &Event, out: &mut Vec<Change>) {
        if event.body.ends_text() && !self.goes_on(event) {
            self.close_text(out);
        }
        match &event.body {
            Body::UserMessage(message) => self.user(event, message, out),
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => self.chunk(event, chunk, out),
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => self.tool(event, tool, out),
            Body::PlanUpdate(plan) => self.plan(event, plan, out),
            Body::PromptResponse(response) => self.answered(event, response, out),
            Body::ArtifactCreated(made) => {
                let id = match made.artifact.id.as_str() {
                    "" => self.name("artifact", event),
                    _ => Clean::concat(&[&Clean::literal("artifact-"), &made.artifact.id]),
                };
                // Made again, it stays in its place.
                let artifact = made.artifact.clone();
                self.beside(event, &id, out, |_| ItemBody::Artifact { artifact });
            }
            Body::PermissionRequest(ask) => self.ask(event, ask, out),
            Body::PermissionAnswer(answer) => self.answer(answer, out),
            Body::SessionInfo(info) => self.learn(info),
            Body::Usage(gauge) => {
                // A subagent's usage is not the session's.
                if event.parent.is_none() {
                    let info = &mut self.info;
                    info.context_used = gauge.used.or(info.context_used);
                    info.context_size = gauge.size.or(info.context_size);
                    info.cost_usd = gauge.cost_usd.or(info.cost_usd);
                    self.news = true;
                }
                if let Some(answer) = &gauge.answer {
                    self.info.count(|ledger| ledger.add(answer, event.parent.is_some()));
                    self.news = true;
                }
            }
            Body::Compaction(note) => {
                let body = ItemBody::Compaction((**note).clone());
                match &note.id {
                    Some(id) => {
                        let id = Clean::concat(&[&Clean::literal("compaction-"), id]);
                        self.beside(event, &id, out, |_| body);
                    }
                    None => self.put(event, self.name("compaction", event), body, out),
                }
            }
            Body::BackgroundTask(task) => self.background(event, task, out),
            Body::QuestionRequest(question) => self.question(event, question, out),
            Body::QuestionAnswer(answer) => self.question_answer(answer, out),
            Body::Notice(note) => {
                let body = ItemBody::Notice { kind: note.kind.clone(), text: note.text.clone() };
                let id = self.name("notice", event);
                self.put(event, id, body, out);
            }
            Body::Error(failure) => {
                let id = self.name("error", event);
                let body = ItemBody::Error {
                    message: failure.message.clone(),
                    code: failure.code.clone(),
                    details: failure.details.clone(),
                    retryable: failure.retryable,
                };
                self.put(event, id, body, out);
                // What fails in a subagent is its caller's business.
                if event.parent.is_none() {
                    self.info.status = Status::Failed;
                    self.info.ended = false;
                    self.info.error = Some(failure.message.clone());
                    self.end_turn(event, failure.is_end, out);
                }
            }
            Body::FileChanged(_) | Body::PlanFile(_) | Body::SkillFile(_) => {}
            Body::Unknown(_) => {
                self.info.unknown += 1;
                self.news = true;
            }
            Body::Malformed(_) => {
                self.info.malformed += 1;
                self.news = true;
            }
        }
    }

    /// A name for what the source does not name.
    fn name(&self, kind: &'static str, event: &Event) -> Clean {
        let mut name = Clean::literal(kind);
        name.push(&Clean::literal("-"));
        let id = if event.began.packet > 0 { event.began } else { event.id };
        if id.packet == 0 {
            name.push(&Clean::number(self.order));
        } else {
            name.push(&Clean::id(id));
        }
        name
    }

    /// Whether an event comes a while after the last answer: what comes right after it is late.
    fn is_after_answer(&self, event: &Event) -> bool {
        let times = event.time.as_ref().zip(self.info.answered_at);
        times.is_some_and(|(time, answered)| time.millis() - answered >= LATE_MS)
    }

    /// Something of the session itself is being worked on. After an answer that is late news of the
    /// same turn, unless it begins the next one.
    fn running(&mut self, event: &Event, begins_turn: bool) {
        if event.parent.is_some() || self.info.answered && !begins_turn {
            return;
        }
        if self.info.answered || self.info.status != Status::Running {
            self.info.answered = false;
            self.info.status = Status::Running;
            self.news = true;
        }
    }

    fn put(&mut self, event: &Event, id: Clean, body: ItemBody, out: &mut Vec<Change>) {
        self.put_after(event, id, None, body, out);
    }

    /// Puts an item that goes on where another one ended, if it does.
    fn put_after(
        &mut self,
        event: &Event,
        id: Clean,
        continues: Option<Clean>,
        body: ItemBody,
        out: &mut Vec<Change>,
    ) {
        let item = Item {
            id,
            order: self.order,
            parent: event.parent.clone(),
            continues,
            time: event.time.clone(),
            body,
        };
        self.order += 1;
        self.prompt = None;
        self.tail = None;
        out.push(Change::Put { item: Box::new(item) });
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Items, Packets, Pipeline};

    /// The status after each of some lines of a stream in which no prompt is seen.
    fn statuses(lines: &[&str]) -> Vec<&'static str> {
        let (mut pipeline, mut items) = (Pipeline::new(Config::default()), Items::new());
        let mut packets = Packets::default();
        let mut after = Vec::new();
        for line in lines {
            let mut steps = Vec::new();
            packets.push(format!("{line}\n").as_bytes(), |given| pipeline.push(given, &mut steps));
            steps.into_iter().flat_map(|s| s.changes).for_each(|change| items.apply(change));
            after.push(items.info().status.name());
        }
        after
    }

    #[test]
    fn a_stream_without_prompts_runs_again_after_an_answer() {
        let said = |second: u32, text: &str| {
            format!(
                r#"{{"ts":"2026-11-18T07:00:{second:02}Z","dir":"agent","msg":{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}\n"}}}}}}}}}}"#
            )
        };
        let answer = r#"{"ts":"2026-11-18T07:00:02Z","dir":"agent","msg":{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}}"#;
        let lines = [said(1, "one"), answer.to_owned(), said(2, "late"), said(30, "two")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(statuses(&lines), ["running", "idle", "idle", "running"]);
    }
}
