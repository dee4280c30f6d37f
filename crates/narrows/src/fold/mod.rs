//! The fold: events to changes of items.
//!
//! It runs once for each event, live or stored, and never looks at a format. Its work is of the
//! size of the event and its state is bounded: items themselves are kept by whoever applies the
//! changes. An event that was folded already changes nothing.

mod beside;
mod text;
mod tools;
mod turns;

use crate::change::{Change, Items};
use crate::event::{Body, Event};
use crate::id::EventId;
use crate::item::{Item, ItemBody};
use crate::recent::Recent;
use crate::sanitize::Clean;
use crate::session::{SessionInfo, Status};
use std::collections::BTreeMap;

/// Open calls that are remembered for the end of their turn.
const MAX_OPEN: usize = 1 << 14;
/// Plans that are remembered, to update them in place.
const MAX_PLANS: usize = 64;
/// Questions and background tasks that are remembered, to update them in place.
const MAX_BESIDE: usize = 256;

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
    keyed: Vec<Clean>,
    /// The text that is the last thing on the screen.
    tail: Option<text::OpenText>,
    /// The text or prompt that began last: what was held back of it may come late.
    recent: Option<Clean>,
    prompt: Option<text::LastPrompt>,
    todo: Option<turns::OpenTodo>,
    calls: Recent<tools::OpenCall>,
    asks: Vec<tools::OpenAsk>,
    /// The documents of plans, by call.
    plans: Recent<Option<Clean>>,
    /// Questions and background tasks, by item.
    beside: Recent<Option<Item>>,
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
            calls: Recent::new(MAX_OPEN),
            asks: Vec::new(),
            plans: Recent::new(MAX_PLANS),
            beside: Recent::new(MAX_BESIDE),
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

    fn fold(&mut self, event: &Event, out: &mut Vec<Change>) {
        if event.body.ends_text() && !self.goes_on(event) {
            self.close_text(out);
        }
        match &event.body {
            Body::UserMessage(message) => self.user(event, message, out),
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => self.chunk(event, chunk, out),
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => self.tool(event, tool, out),
            Body::PlanUpdate(plan) => self.plan(event, plan, out),
            Body::PromptResponse(response) => self.answered(response, out),
            Body::ArtifactCreated(made) => {
                let id = match made.artifact.id.as_str() {
                    "" => self.name("artifact", event),
                    _ => Clean::concat(&[&Clean::literal("artifact-"), &made.artifact.id]),
                };
                self.put(event, id, ItemBody::Artifact { artifact: made.artifact.clone() }, out);
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
                let id = self.name("compaction", event);
                self.put(event, id, ItemBody::Compaction((**note).clone()), out);
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
                    self.info.error = Some(failure.message.clone());
                    self.end_turn(out);
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

    /// Something of the session itself is being worked on.
    fn running(&mut self, event: &Event) {
        let runs = event.parent.is_none() && !self.info.answered;
        if runs && self.info.status != Status::Running {
            self.info.status = Status::Running;
            self.news = true;
        }
    }

    fn put(&mut self, event: &Event, id: Clean, body: ItemBody, out: &mut Vec<Change>) {
        let item = Item {
            id,
            order: self.order,
            parent: event.parent.clone(),
            time: event.time.clone(),
            body,
        };
        self.order += 1;
        self.prompt = None;
        self.tail = None;
        out.push(Change::Put { item: Box::new(item) });
    }
}
