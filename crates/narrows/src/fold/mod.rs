//! Folds events into changes of items.
//!
//! The fold runs once for each event, live or stored, and knows no format. Its cost follows the size of
//! the event and its state is bounded: the items themselves are kept by the code that applies the
//! changes. An event that was folded before changes nothing.

mod blocks;
mod permissions;
mod prompts;
mod side_items;
mod text;
mod text_items;
mod text_resume;
mod todos;
mod tool_items;
mod turns;

use crate::bounded_map::BoundedMap;
use crate::limits::MAX_TRACKED_CALLS;
use crate::model::change::{Change, Items};
use crate::model::event::{Body, Event};
use crate::model::id::EventId;
use crate::model::item::{Item, ItemBody};
use crate::model::session::{SessionInfo, SessionStatus};
use crate::sanitize::Clean;
use std::collections::BTreeMap;

/// Plan documents that can be updated in place.
const MAX_PLANS: usize = 64;
/// Questions, background tasks and artifacts that can be updated in place.
const MAX_SIDE_ITEMS: usize = 256;
/// An event within this time after the answer of a turn still belongs to the turn.
const LATE_WINDOW_MS: i64 = 3000;

/// The fold of one session.
#[derive(Debug)]
pub struct Fold {
    info: SessionInfo,
    /// The header changed and must be emitted.
    header_dirty: bool,
    /// The last folded event of each source.
    last: BTreeMap<u32, EventId>,
    /// Order of the next item.
    next_order: u64,
    open_text: Option<text::StreamingText>,
    /// Texts with an id of their own that are still streaming.
    open_blocks: Vec<blocks::OpenBlock>,
    /// The text of the last item, if the last item is one.
    last_text: Option<text::StreamingText>,
    /// The text or prompt that started last: held-back text of it may come late.
    last_started: Option<text_items::TextItems>,
    last_prompt: Option<prompts::LastPrompt>,
    open_todos: Option<todos::OpenTodos>,
    open_calls: BoundedMap<tool_items::OpenCall>,
    /// Bytes of output that the item of each call shows.
    shown_output: BoundedMap<usize>,
    open_permissions: Vec<permissions::OpenPermission>,
    /// Plan documents by tool call.
    plans: BoundedMap<Option<Clean>>,
    /// Questions, background tasks and the like, by item.
    side_items: BoundedMap<Option<Item>>,
}

impl Default for Fold {
    fn default() -> Self {
        Fold {
            info: SessionInfo::default(),
            header_dirty: false,
            last: BTreeMap::new(),
            next_order: 0,
            open_text: None,
            open_blocks: Vec::new(),
            last_text: None,
            last_started: None,
            last_prompt: None,
            open_todos: None,
            open_calls: BoundedMap::new(MAX_TRACKED_CALLS),
            shown_output: BoundedMap::new(MAX_TRACKED_CALLS),
            open_permissions: Vec::new(),
            plans: BoundedMap::new(MAX_PLANS),
            side_items: BoundedMap::new(MAX_SIDE_ITEMS),
        }
    }
}

impl Fold {
    /// The fold of an empty session.
    pub fn new() -> Self {
        Fold::default()
    }

    /// The fold of a session in which the events up to `last`, of each source, made `items`.
    pub fn resume(items: &Items, last: impl IntoIterator<Item = EventId>) -> Self {
        let info = items.info().clone();
        let last = last.into_iter().map(|id| (id.source, id)).collect();
        let next_order = items.next_order();
        let mut fold = Fold { info, last, next_order, ..Fold::default() };
        for item in items.iter() {
            fold.resume_text(item);
            fold.resume_call(item);
            fold.resume_permission(item);
            fold.resume_todos(item);
            fold.resume_side_item(item);
        }
        fold
    }

    /// The last folded event of each source.
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
        if std::mem::take(&mut self.header_dirty) {
            out.push(Change::Info { info: Box::new(self.info.clone()) });
        }
    }

    /// The changes that a text chunk would make, without making them.
    pub(crate) fn preview(&self, event: &Event) -> Vec<Change> {
        if !matches!(event.body, Body::TextChunk(_) | Body::ThinkingChunk(_)) {
            return Vec::new();
        }
        let mut copy = Fold {
            info: self.info.clone(),
            next_order: self.next_order,
            open_text: self.open_text.as_ref().map(text::StreamingText::without_text),
            open_blocks: self.open_blocks.iter().map(blocks::OpenBlock::without_text).collect(),
            last_text: self.last_text.as_ref().map(text::StreamingText::without_text),
            last_started: self.last_started.clone(),
            ..Fold::default()
        };
        let mut out = Vec::new();
        copy.fold(event, &mut out);
        out.retain(|change| matches!(change, Change::Put { .. } | Change::Append { .. }));
        out
    }

    fn fold(&mut self, event: &Event, out: &mut Vec<Change>) {
        if event.body.ends_text() && !self.continues_open_text(event) {
            self.close_text(out);
        }
        match &event.body {
            Body::UserMessage(message) => self.fold_prompt(event, message, out),
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => {
                self.fold_chunk(event, chunk, out);
            }
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                self.fold_call(event, tool, out);
            }
            Body::PlanUpdate(plan) => self.fold_plan(event, plan, out),
            Body::PromptResponse(response) => self.fold_turn_end(event, response, out),
            Body::ArtifactCreated(created) => self.fold_artifact(event, &created.artifact, out),
            Body::PermissionRequest(request) => self.fold_permission_request(event, request, out),
            Body::PermissionAnswer(answer) => self.fold_permission_decision(answer, out),
            Body::SessionInfo(info) => self.update_header(info),
            Body::Usage(usage) => self.fold_usage(event, usage),
            Body::Compaction(compaction) => self.fold_compaction(event, compaction, out),
            Body::BackgroundTask(task) => self.fold_background_task(event, task, out),
            Body::QuestionRequest(question) => self.fold_question(event, question, out),
            Body::QuestionAnswer(answer) => self.fold_question_answer(answer, out),
            Body::Notice(notice) => {
                let id = self.item_id("notice", event);
                let (kind, text) = (notice.kind.clone(), notice.text.clone());
                self.put_item(event, id, ItemBody::Notice { kind, text }, out);
            }
            Body::Error(error) => self.fold_error(event, error, out),
            Body::FileChanged(_) | Body::PlanFile(_) | Body::SkillFile(_) => {}
            Body::Unknown(_) => {
                self.info.unknown += 1;
                self.header_dirty = true;
            }
            Body::Malformed(_) => {
                self.info.malformed += 1;
                self.header_dirty = true;
            }
        }
    }

    /// The id of an item that has none in its source.
    fn item_id(&self, kind: &'static str, event: &Event) -> Clean {
        let mut name = Clean::literal(kind);
        name.push(&Clean::literal("-"));
        let id = if event.began.packet > 0 { event.began } else { event.id };
        if id.packet == 0 {
            name.push(&Clean::number(self.next_order));
        } else {
            name.push(&Clean::from(id));
        }
        name
    }

    /// Whether an event comes too long after the last answer to belong to its turn.
    fn is_past_late_window(&self, event: &Event) -> bool {
        let times = event.time.as_ref().zip(self.info.answered_at);
        times.is_some_and(|(time, answered)| time.millis() - answered >= LATE_WINDOW_MS)
    }

    /// Sets the status to running for work of the session itself. After an answer, work is a late part
    /// of the same turn unless it starts the next one.
    fn mark_running(&mut self, event: &Event, starts_turn: bool) {
        if event.parent.is_some() || self.info.answered && !starts_turn {
            return;
        }
        if self.info.answered || self.info.status != SessionStatus::Running {
            self.info.answered = false;
            self.info.status = SessionStatus::Running;
            self.header_dirty = true;
        }
    }

    fn put_item(&mut self, event: &Event, id: Clean, body: ItemBody, out: &mut Vec<Change>) {
        self.put_continuation(event, id, None, body, out);
    }

    /// Puts an item that continues the text of another one, if `continues` is set.
    fn put_continuation(
        &mut self,
        event: &Event,
        id: Clean,
        continues: Option<Clean>,
        body: ItemBody,
        out: &mut Vec<Change>,
    ) {
        let item = Item {
            id,
            order: self.next_order,
            parent: event.parent.clone(),
            continues,
            time: event.time.clone(),
            body,
        };
        self.next_order += 1;
        self.last_prompt = None;
        self.last_text = None;
        out.push(Change::Put { item: Box::new(item) });
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Items, Packets, Pipeline};

    /// The session status after each line of a stream without prompts.
    fn statuses(lines: &[&str]) -> Vec<&'static str> {
        let (mut pipeline, mut items) = (Pipeline::new(Config::default()), Items::new());
        let mut packets = Packets::default();
        let mut statuses = Vec::new();
        for line in lines {
            let mut steps = Vec::new();
            packets
                .push(format!("{line}\n").as_bytes(), |framed| pipeline.push(framed, &mut steps));
            steps.into_iter().flat_map(|s| s.changes).for_each(|change| items.apply(change));
            statuses.push(items.info().status.name());
        }
        statuses
    }

    #[test]
    fn status_without_prompts_runs_again_after_late_window() {
        let chunk = |second: u32, text: &str| {
            format!(
                r#"{{"ts":"2026-11-18T07:00:{second:02}Z","dir":"agent","msg":{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}\n"}}}}}}}}}}"#
            )
        };
        let answer = r#"{"ts":"2026-11-18T07:00:02Z","dir":"agent","msg":{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}}"#;
        let lines = [chunk(1, "one"), answer.to_owned(), chunk(2, "late"), chunk(30, "two")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(statuses(&lines), ["running", "idle", "idle", "running"]);
    }
}
