//! Completing tool calls: packets say only what changed, events say what is known.
//!
//! Every event of a call tells its light fields (title, status, file …). Heavy ones (arguments,
//! output, diffs) are told when they change, and all of them once more in the event that ends
//! the call. So the work is of the size of the packet, and the last event stands for itself.

mod activity;
mod evicted;
mod late_updates;
mod permission_title;
mod resume;
mod turn_end;

pub use activity::Doing;
pub(crate) use resume::said_of;

use crate::bounded_map::BoundedMap;
use crate::limits::CALLS;
use crate::model::artifact;
use crate::model::event::{
    Answer, Artifact, ArtifactInfo, Body, Decision, Event, FileAction, FileChange, ToolEvent,
};
use crate::model::id::EventId;
use crate::model::time::Time;
use crate::model::tool::{
    Diff, DiffAction, Fresh, Output, Permission, Scope, ToolCall, ToolKind, ToolName, ToolStatus,
    Tri, by_name, title_of,
};
use crate::sanitize::Clean;
use ecow::EcoString;
use evicted::Brief;
use std::collections::{BTreeMap, VecDeque};

/// Artifacts that are remembered.
const MAX_ARTIFACTS: usize = 4096;
/// Bytes of heavy fields kept for one open call, and for all of them. What is larger is told when
/// it comes and not repeated at the end.
const MAX_HELD: usize = 16 << 20;
const MAX_HELD_ALL: usize = 64 << 20;
/// Calls that are remembered for those who ask what was heard of; the last ones.
const MAX_HEARD: usize = 256;

/// The calls of one session.
#[derive(Debug)]
pub struct Calls {
    calls: BoundedMap<State>,
    /// Those of them that have ended, the last one last.
    ended: VecDeque<EcoString>,
    /// Those that ended before these, and those that were too many.
    brief: Brief,
    held: usize,
    /// Calls that have not ended, in the order they began.
    open: BTreeMap<u64, Clean>,
    began: u64,
    /// Calls that were refused and have not ended.
    refused: Vec<Clean>,
    /// How many had begun when the last turn ended.
    settled: u64,
    /// What was made for people, by its path.
    artifacts: BoundedMap<()>,
    /// Files that calls of this turn have changed.
    edited: BoundedMap<()>,
    /// The turn has ended with an error, and nothing was said since.
    failed: bool,
    /// Ended calls that keep their heavy fields.
    late: VecDeque<Clean>,
    /// Calls that something was heard of since somebody asked.
    heard: VecDeque<Clean>,
}

#[derive(Debug)]
struct State {
    number: u64,
    parent: Option<Clean>,
    known: ToolCall,
    began: Option<Time>,
    /// Since when it waits for leave.
    asked: Option<Time>,
    /// The time is that of the beginning, not of the end.
    whole: bool,
    /// The time came after the first event, so that the item does not tell it.
    late: bool,
    held: usize,
    /// How often all that is known can be told again after the end; 0 while it has not ended.
    again: u8,
    /// Known from its item: what is read again of it is in there.
    resumed: bool,
    /// Most of what was known of it is forgotten.
    brief: bool,
    /// It is one of those that something was heard of.
    heard: bool,
}

impl Default for State {
    fn default() -> Self {
        State {
            number: 0,
            parent: None,
            known: ToolCall::default(),
            began: None,
            asked: None,
            whole: false,
            late: false,
            held: 0,
            again: 0,
            resumed: false,
            brief: false,
            heard: false,
        }
    }
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            calls: BoundedMap::new(CALLS),
            ended: VecDeque::new(),
            brief: Brief::default(),
            held: 0,
            open: BTreeMap::new(),
            began: 0,
            refused: Vec::new(),
            settled: 0,
            artifacts: BoundedMap::new(MAX_ARTIFACTS),
            edited: BoundedMap::new(MAX_ARTIFACTS),
            failed: false,
            late: VecDeque::new(),
            heard: VecDeque::new(),
        }
    }
}

impl Calls {
    /// Completes an event; one that says nothing new is dropped.
    pub fn merge(&mut self, mut event: Event, out: &mut Vec<Event>) {
        match &mut event.body {
            Body::UserMessage(_) => {
                self.failed &= event.parent.is_some();
                out.push(event);
            }
            // What a subagent says does not go on with the turn that failed.
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => {
                self.failed &= chunk.text.is_empty() || event.parent.is_some();
                out.push(event);
            }
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                let mut changes = Vec::new();
                if self.complete(tool, event.time.as_ref(), event.parent.as_ref(), &mut changes) {
                    let (time, parent) = (event.time.clone(), event.parent.clone());
                    self.failed &= !tool.first || parent.is_some();
                    // Agents may tell the beginning twice or not at all: events tell it once.
                    event.body = match event.body {
                        Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) if tool.first => {
                            Body::ToolCallStart(tool)
                        }
                        Body::ToolCallStart(tool) => Body::ToolCallProgress(tool),
                        body => body,
                    };
                    out.push(event);
                    let bodies = changes.into_iter().flat_map(|change| {
                        let made = self.made(&change);
                        self.edited.open_shared(&change.path);
                        [Some(Body::FileChanged(Box::new(change))), made].into_iter().flatten()
                    });
                    out.extend(bodies.map(|body| Event {
                        id: EventId::default(),
                        began: EventId::default(),
                        time: time.clone(),
                        parent: parent.clone(),
                        body,
                    }));
                }
            }
            Body::PermissionRequest(ask) => {
                if let Some(state) = self.calls.get_mut(&ask.tool_call_id) {
                    ask.call = Some(Box::new(state.known.for_permission()));
                    ask.title = permission_title::title(&state.known).or(ask.title.take());
                    state.asked = state.asked.take().or_else(|| event.time.clone());
                }
                out.push(event);
            }
            Body::PermissionAnswer(answer) => {
                if let Some(state) = self.calls.get_mut(&answer.tool_call_id) {
                    if answer.decision != Decision::Allowed && self.refused.len() < CALLS {
                        self.refused.push(answer.tool_call_id.clone());
                    }
                    let asked = state.asked.take().zip(event.time.as_ref());
                    let waited = asked.and_then(|(asked, at)| at.since(&asked));
                    let before = state.known.permission.as_ref().and_then(|p| p.waited_ms);
                    answer.waited_ms = waited.map(|ms| ms + before.unwrap_or(0)).or(before);
                    state.known.permission = Some(permission(answer));
                }
                // After its turn, nothing else tells that the call will not go on.
                let over = self.calls.get(&answer.tool_call_id);
                let over = over.is_some_and(|state| state.number <= self.settled);
                let withdrawn = answer.decision == Decision::Cancelled && over;
                let time = event.time.clone();
                out.push(event);
                if withdrawn {
                    self.cancel(false, time.as_ref(), out);
                }
            }
            // Whoever watches the files sees what a call has told.
            Body::FileChanged(change) => {
                if self.edited.take(&change.path).is_some() {
                    return;
                }
                // What no call wrote is nobody's work.
                let wrote = change.tool_call_id.is_some().then(|| change.clone());
                let made = wrote.and_then(|change| self.made(&change));
                let (time, parent) = (event.time.clone(), event.parent.clone());
                out.push(event);
                let (id, began) = (EventId::default(), EventId::default());
                out.extend(made.map(|body| Event { id, began, time, parent, body }));
            }
            Body::PromptResponse(response) => {
                self.edited = BoundedMap::new(MAX_ARTIFACTS);
                self.fail_late(response, event.time.as_ref(), out);
                let cancelled = response.stop_reason.as_deref() == Some("cancelled");
                self.cancel(cancelled, event.time.as_ref(), out);
                self.settled = self.began;
                out.push(event);
            }
            Body::Error(failure) if event.parent.is_none() => {
                let all = failure.is_end;
                self.cancel(all, event.time.as_ref(), out);
                self.failed = true;
                out.push(event);
            }
            _ => out.push(event),
        }
    }

    /// What a changed file makes for people, the first time.
    fn made(&mut self, change: &FileChange) -> Option<Body> {
        if change.action == FileAction::Deleted {
            return None;
        }
        let path = change.path.as_str();
        let made = artifact::of(path)?;
        let path = change.path.before(made.end)?;
        if !self.artifacts.open_shared(&path).1 {
            return None;
        }
        let artifact = ArtifactInfo {
            id: path.clone(),
            r#type: Clean::literal(made.kind),
            name: path.after(made.name)?,
            path,
            preview_url: None,
        };
        Some(Body::ArtifactCreated(Box::new(Artifact { artifact })))
    }

    /// The turn is over: what was refused, or cut off by a cancelled turn, will not go on.
    fn cancel(&mut self, all: bool, time: Option<&Time>, out: &mut Vec<Event>) {
        let refused = std::mem::take(&mut self.refused);
        let ids = if all { self.open.values().cloned().collect() } else { refused };
        for id in ids {
            let open = |s: &&mut State| !s.known.status.is_some_and(ToolStatus::is_final);
            let Some(state) = self.calls.get_mut(&id).filter(open) else {
                continue;
            };
            let parent = state.parent.clone();
            let mut call = ToolCall::default();
            call.status = Some(ToolStatus::Cancelled);
            let fresh = Fresh::default();
            let tool = Box::new(ToolEvent {
                id,
                call,
                fresh,
                grew_from: None,
                first: false,
                grows: false,
            });
            let body = Body::ToolCallProgress(tool);
            let event = Event {
                id: EventId::default(),
                began: EventId::default(),
                time: time.cloned(),
                parent,
                body,
            };
            self.merge(event, out);
        }
    }

    /// Fills in what is known; false when the event says nothing new.
    fn complete(
        &mut self,
        tool: &mut ToolEvent,
        time: Option<&Time>,
        parent: Option<&Clean>,
        changes: &mut Vec<FileChange>,
    ) -> bool {
        self.make_room(&tool.id);
        let (state, new) = self.calls.open_shared(&tool.id);
        if !std::mem::replace(&mut state.heard, true) {
            self.heard.push_back(tool.id.clone());
            self.heard.drain(..self.heard.len().saturating_sub(MAX_HEARD));
        }
        if new && let Some(known) = self.brief.take(&tool.id) {
            (state.known, state.brief) = (known, true);
        }
        let first = new && !state.brief;
        let mut news = std::mem::replace(&mut tool.call, ToolCall::default());
        let known = &mut state.known;
        let was_final = known.status.is_some_and(ToolStatus::is_final);
        let mut fresh = Fresh::default();
        if known.tool_name == ToolName::Unknown
            && (known.tool_name, known.kind) != (news.tool_name, news.kind)
            && (news.tool_name != ToolName::Unknown || known.kind == ToolKind::Other)
        {
            known.tool_name = news.tool_name;
            known.kind = news.kind;
            known.is_todo = news.is_todo;
            fresh.mark_tool();
        }
        if first {
            self.began += 1;
            state.number = self.began;
            state.parent = parent.cloned();
            self.open.insert(state.number, tool.id.clone());
            known.command = Some(Clean::default());
            known.file_path = Some(Clean::default());
            known.output = Some(Output::Whole(Clean::default()));
        }
        // The name of a call may come before anything that tells the time.
        if state.began.is_none() && !was_final {
            state.began = time.cloned();
            state.whole = first || !news.status.is_some_and(ToolStatus::is_final);
            state.late = !first && state.began.is_some();
        }
        news.status = next_status(known.status, news.status);
        edit_texts(known, &mut news);
        // A result repeats what was decided, but not in which words it was offered.
        if let (Some(old), Some(new)) = (&known.permission, &mut news.permission)
            && new.option.is_none()
            && new.decision == old.decision
        {
            new.clone_from(old);
        }
        let grew_from = take_output(known, news.output.take(), &mut fresh);
        fresh = fresh.union(known.merge(news));
        if known.exit_code.is_some_and(|code| code != 0)
            && known.kind == ToolKind::Execute
            && known.status == Some(ToolStatus::Completed)
        {
            let failed = Some(ToolStatus::Failed);
            fresh = fresh.union(known.merge(ToolCall { status: failed, ..ToolCall::default() }));
        }
        let ended = !was_final && known.status.is_some_and(ToolStatus::is_final);
        if ended {
            self.open.remove(&state.number);
            // A call of which only the end was seen took nobody knows how long. What it waited for
            // leave is not its own time.
            let mut waited = known.permission.as_ref().and_then(|p| p.waited_ms).unwrap_or(0);
            if let Some((asked, end)) = state.asked.take().zip(time) {
                waited += end.since(&asked).unwrap_or(0);
            }
            let duration_ms = time
                .filter(|_| !first && state.whole && !state.brief)
                .zip(state.began.as_ref())
                .and_then(|(end, start)| end.since(start))
                .map(|ms| ms.saturating_sub(waited));
            fresh = fresh.union(known.merge(ToolCall { duration_ms, ..ToolCall::default() }));
            if known.status == Some(ToolStatus::Completed) {
                file_changes(&tool.id, known, changes);
            }
        }
        if known.status == Some(ToolStatus::Completed) {
            fresh = fresh.union(known.merge(counted(known)));
        }
        if !state.brief {
            fresh = fresh.union(known.merge(words(known)));
        }
        let is_final = known.status.is_some_and(ToolStatus::is_final);
        if ended || new && is_final {
            self.ended.push_back(tool.id.shared());
        }
        if fresh.is_empty() && !first {
            return false;
        }
        let again = was_final && state.again > 0;
        tool.call = if ended {
            // The last event takes what was kept for it.
            state.again = late_updates::again(known);
            let mut last = if state.again > 0 {
                known.clone()
            } else {
                let light = known.light_and(Fresh::default());
                std::mem::replace(known, light)
            };
            // Output that was too long to keep was told before: this is all that is left of it.
            last.output.get_or_insert_with(|| Output::More(Clean::default()));
            last
        } else if first || again {
            state.again = state.again.saturating_sub(1);
            known.clone()
        } else {
            known.light_and(fresh)
        };
        if !first && !ended && !again && fresh.has_output() {
            tool.call.output = output_told(known, grew_from);
        }
        tool.fresh = fresh;
        tool.grew_from = grew_from;
        tool.first = first;

        self.held -= state.held;
        state.held = weight(known);
        if again && late_updates::again(known) == 0 {
            state.again = 0;
        }
        let is_over = (ended || was_final) && state.again == 0;
        if is_over || state.held > MAX_HELD || self.held + state.held > MAX_HELD_ALL {
            known.drop_heavy();
            (state.held, state.again) = (0, 0);
        }
        self.held += state.held;
        if ended && state.again > 0 {
            self.keep_late(&tool.id);
        }
        self.forget_ended();
        true
    }
}

/// What somebody decided, as a call keeps it.
pub(crate) fn permission(answer: &Answer) -> Permission {
    let decision = match answer.decision {
        Decision::Allowed => "allowed",
        Decision::Rejected => "rejected",
        Decision::Cancelled => "cancelled",
    };
    Permission {
        decision: Clean::literal(decision),
        option: answer.option.clone(),
        waited_ms: answer.waited_ms,
    }
}

/// A status only moves forward; a call of which nobody told one is pending.
fn next_status(known: Option<ToolStatus>, news: Option<ToolStatus>) -> Option<ToolStatus> {
    match (known, news) {
        (None, None) => Some(ToolStatus::Pending),
        (Some(old), Some(new)) if new.rank() <= old.rank() => None,
        (_, new) => new,
    }
}

/// The first diff's texts stand for the call; its new text is what an edit shows.
fn edit_texts(known: &ToolCall, news: &mut ToolCall) {
    if let Some(first) = news.diffs.as_ref().and_then(|list| list.first()) {
        news.old_content.clone_from(&first.old_text);
        news.new_content.clone_from(&first.new_text);
    }
    if known.kind == ToolKind::Edit {
        match &news.new_content {
            Some(text) => news.output = Some(Output::Whole(text.clone())),
            // "Wrote file successfully." says less than the text that was written.
            None if known.new_content.is_some() => news.output = None,
            None => {}
        }
    }
}

/// Takes over output. Resent whole but longer, it has only grown: returns from where.
fn take_output(known: &mut ToolCall, news: Option<Output>, fresh: &mut Fresh) -> Option<usize> {
    let old = match &mut known.output {
        Some(Output::Whole(old)) => Some(old),
        _ => None,
    };
    match (old, news) {
        (_, None) => None,
        (Some(old), Some(Output::Whole(new))) if *old == new => None,
        (Some(old), Some(Output::Whole(new)))
            if !old.is_empty() && new.starts_with(old.as_str()) =>
        {
            fresh.mark_output();
            let from = old.len();
            *old = new;
            Some(from)
        }
        (_, Some(Output::Whole(new))) => {
            fresh.mark_output();
            known.output = Some(Output::Whole(new));
            None
        }
        (_, Some(Output::More(more))) if more.is_empty() => None,
        (Some(old), Some(Output::More(more))) => {
            fresh.mark_output();
            let from = old.len();
            old.push(&more);
            Some(from)
        }
        // The beginning was too long to keep.
        (None, Some(Output::More(more))) => {
            fresh.mark_output();
            known.output = Some(Output::More(more));
            None
        }
    }
}

/// The new part of the output.
fn output_told(known: &mut ToolCall, grew_from: Option<usize>) -> Option<Output> {
    match (&known.output, grew_from) {
        (Some(Output::Whole(text)), Some(from)) => text.after(from).map(Output::More),
        // Not kept: the next piece must not be taken for the rest of this one.
        (Some(Output::More(_)), _) => known.output.take(),
        (output, _) => output.clone(),
    }
}

/// Title and description, from what is known by now.
fn words(known: &ToolCall) -> ToolCall {
    let new = known.is_new_file.unwrap_or(Tri::Unknown);
    let title = title_of(known.tool_name, known.kind, new);
    let full = |text: &Option<Clean>| text.clone().filter(|t| !t.is_empty());
    // A title that merely names the tool describes nothing.
    let names = |t: &Clean| by_name(t, Some(known.kind)).is_some_and(|n| n != ToolName::Mcp);
    let own = || full(&known.agent_title).filter(|t| !names(t));
    let description = match (known.tool_name, known.kind) {
        (ToolName::Task, _) => full(&known.said).or(Some(Clean::literal("Running subagent"))),
        (_, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => {
            full(&known.file_path).or_else(own)
        }
        (ToolName::Mcp, _) => full(&known.said).or_else(own),
        (_, ToolKind::Execute) => full(&known.said).or(Some(Clean::literal("Running command"))),
        (_, ToolKind::Search) => full(&known.pattern).or_else(own),
        (ToolName::TodoWrite, _) => None,
        _ => full(&known.said).or_else(own),
    };
    let is_new_file = (known.kind == ToolKind::Edit).then_some(new);
    ToolCall {
        title: Some(Clean::literal(title)),
        description: Some(description.unwrap_or_else(|| Clean::literal(title))),
        is_new_file,
        ..ToolCall::default()
    }
}

/// The changed lines of a finished edit, where the agent does not count them: whoever shows the call
/// may have only a part of its texts.
fn counted(known: &ToolCall) -> ToolCall {
    let count = |diff: &Diff| {
        let (added, removed) = diff.changed_lines();
        Diff { additions: Some(added), deletions: Some(removed), ..diff.clone() }
    };
    let uncounted = |d: &Diff| d.additions.is_none() || d.deletions.is_none();
    let diffs = known.diffs.as_ref().filter(|all| all.iter().any(uncounted));
    ToolCall { diffs: diffs.map(|all| all.iter().map(count).collect()), ..ToolCall::default() }
}

/// The files that a finished edit changed.
fn file_changes(id: &Clean, known: &ToolCall, changes: &mut Vec<FileChange>) {
    let deletes = known.kind == ToolKind::Delete;
    if !deletes && !matches!(known.kind, ToolKind::Edit | ToolKind::Move) {
        return;
    }
    let by_call = match known.is_new_file {
        _ if deletes => FileAction::Deleted,
        Some(Tri::Yes) => FileAction::Created,
        _ => FileAction::Modified,
    };
    for diff in known.diffs.iter().flatten().filter(|d| !d.path.is_empty()) {
        let action = match diff.action {
            Some(DiffAction::Delete) => FileAction::Deleted,
            Some(DiffAction::Add) if known.is_new_file != Some(Tri::No) => FileAction::Created,
            _ => by_call,
        };
        let whole = diff.scope == Scope::File && action != FileAction::Deleted;
        let size = diff.new_text.as_ref().filter(|_| whole).map(|t| t.len() as u64);
        if changes.iter().all(|c| c.path != diff.path) {
            changes.push(FileChange {
                path: diff.path.clone(),
                action,
                size_bytes: size,
                tool_call_id: Some(id.clone()),
            });
        }
    }
    if changes.is_empty()
        && let Some(path) = known.file_path.clone().filter(|p| !p.is_empty())
    {
        let tool_call_id = Some(id.clone());
        changes.push(FileChange { path, action: by_call, size_bytes: None, tool_call_id });
    }
}

/// Roughly what the heavy fields of a call weigh.
fn weight(call: &ToolCall) -> usize {
    let output = match &call.output {
        Some(Output::Whole(t) | Output::More(t)) => t.len(),
        None => 0,
    };
    let text = |t: &Option<Clean>| t.as_ref().map_or(0, |t| t.len());
    let input = call.input.as_ref().map_or(0, |t| t.json().len());
    output + input + 2 * text(&call.old_content) + 2 * text(&call.new_content)
}
