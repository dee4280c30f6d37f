//! Tool call fields that agents resend whole as they grow.
//!
//! The end of such a field may be the first half of a secret or a path, as in streamed text. A
//! possible partial match is left out of the event and the whole field is held: until the call
//! ends, a permission request or question is about it, or the field is sent again. When the turn
//! ends first, the field is emitted without evident partial matches, because the other half may
//! still come.

use super::fields::empty_tool_event;
use super::snapshots::mask_end;
use crate::model::event::Event;
use crate::model::tool::{Diff, ToolCall, ToolOutput};
use narrows_sanitize::{ELLIPSIS, PartialLevel, Raw, Redactor, Tree};
use std::collections::VecDeque;

/// Limits of held calls and of their fields in bytes. Beyond them, the oldest call is emitted.
const MAX_CALLS: usize = 256;
const MAX_BYTES: usize = 16 << 20;

/// Calls with held fields, oldest first.
#[derive(Debug, Default)]
pub(super) struct GrowingFields {
    calls: VecDeque<HeldCall>,
    bytes: usize,
}

#[derive(Debug)]
struct HeldCall {
    id: String,
    /// An event of the call without content.
    template: Event<Raw>,
    /// The held fields and nothing else.
    call: ToolCall<Raw>,
    bytes: usize,
}

impl GrowingFields {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Bytes in held fields.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Processes an event of a call: leaves out possible partial matches at the ends of its fields
    /// or, at the call's end, restores held fields. Calls beyond the limits are emitted to `out`.
    pub(super) fn push(
        &mut self,
        redactor: &Redactor,
        event: &mut Event<Raw>,
        ends: bool,
        out: &mut Vec<Event<Raw>>,
    ) {
        let Some(tool) = event.body.tool_mut() else { return };
        if self.calls.is_empty() && !tool.grows {
            return;
        }
        let mut held = self.remove(tool.id.peek()).map_or_else(ToolCall::unknown, |held| held.call);
        drop_resent(&mut held, &mut tool.call);
        if ends {
            restore(held, &mut tool.call);
            return;
        }
        if tool.grows {
            hold_back(redactor, PartialLevel::POSSIBLE, &mut tool.call, &mut held);
        }
        let bytes = held_fields_len(&mut held);
        if bytes == 0 {
            return;
        }
        let id = tool.id.peek().to_owned();
        let template = empty_tool_event(event);
        self.bytes += bytes;
        self.calls.push_back(HeldCall { id, template, call: held, bytes });
        while self.calls.len() > MAX_CALLS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.calls.pop_front() else { break };
            self.bytes -= oldest.bytes;
            out.extend(oldest.unfinished(redactor));
        }
    }

    /// Returns the held fields of one call, which are final now.
    pub(super) fn release(&mut self, id: &str) -> Option<Event<Raw>> {
        self.remove(id).and_then(HeldCall::whole)
    }

    /// Returns the held fields of all calls without an evident partial match.
    pub(super) fn release_unless_partial(&mut self, redactor: &Redactor) -> Vec<Event<Raw>> {
        let has_partial = |held: &HeldCall| {
            let mut partial = ToolCall::unknown();
            hold_back(redactor, PartialLevel::EVIDENT, &mut held.call.clone(), &mut partial);
            held_fields_len(&mut partial) > 0
        };
        let (held, released): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.calls).into_iter().partition(has_partial);
        self.calls = held.into();
        self.bytes = self.calls.iter().map(|held| held.bytes).sum();
        released.into_iter().filter_map(HeldCall::whole).collect()
    }

    /// Returns the held fields of the oldest call.
    pub(super) fn evict_oldest(&mut self, redactor: &Redactor) -> Option<Event<Raw>> {
        let oldest = self.calls.pop_front()?;
        self.bytes -= oldest.bytes;
        oldest.unfinished(redactor)
    }

    fn remove(&mut self, id: &str) -> Option<HeldCall> {
        let at = self.calls.iter().position(|held| held.id == id)?;
        let held = self.calls.remove(at)?;
        self.bytes -= held.bytes;
        Some(held)
    }
}

impl HeldCall {
    /// An event with the fields as they arrived.
    fn whole(self) -> Option<Event<Raw>> {
        let mut event = self.template;
        let tool = event.body.tool_mut()?;
        restore(self.call, &mut tool.call);
        Some(event)
    }

    /// An event with the fields of an unfinished call, without evident partial matches.
    fn unfinished(mut self, redactor: &Redactor) -> Option<Event<Raw>> {
        mask(redactor, &mut self.call);
        self.whole()
    }
}

/// Removes evident partial matches at the ends of fields.
fn mask(redactor: &Redactor, call: &mut ToolCall<Raw>) {
    let paths = call.file_path.iter_mut();
    let paths = paths.chain(call.locations.iter_mut().flatten().map(|l| &mut l.path));
    let diffs = call.diffs.iter_mut().flatten().map(|diff| &mut diff.path);
    for path in paths.chain(diffs) {
        if redactor.is_partial_path(path.peek(), PartialLevel::SUBSTANTIAL) {
            *path = Raw::new(ELLIPSIS);
        }
    }
    for todo in call.todos.iter_mut().flatten() {
        mask_end(redactor, &mut todo.content);
        mask_end(redactor, &mut todo.active_form);
    }
    hold_back(redactor, PartialLevel::SUBSTANTIAL, call, &mut ToolCall::unknown());
}

/// Text fields that may grow.
fn texts(call: &mut ToolCall<Raw>) -> [&mut Option<Raw>; 11] {
    [
        &mut call.agent_title,
        &mut call.title,
        &mut call.description,
        &mut call.said,
        &mut call.command,
        &mut call.pattern,
        &mut call.error,
        &mut call.old_content,
        &mut call.new_content,
        &mut call.task_output,
        &mut call.plan,
    ]
}

fn trees(call: &mut ToolCall<Raw>) -> [&mut Option<Tree<Raw>>; 2] {
    [&mut call.input, &mut call.diagnostics]
}

/// Drops held fields that were sent again.
fn drop_resent(held: &mut ToolCall<Raw>, new: &mut ToolCall<Raw>) {
    for (held, new) in texts(held).into_iter().zip(texts(new)) {
        *held = held.take().filter(|_| new.is_none());
    }
    for (held, new) in trees(held).into_iter().zip(trees(new)) {
        *held = held.take().filter(|_| new.is_none());
    }
    held.file_path = held.file_path.take().filter(|_| new.file_path.is_none());
    held.diffs = held.diffs.take().filter(|_| new.diffs.is_none());
    held.todos = held.todos.take().filter(|_| new.todos.is_none());
    held.locations = held.locations.take().filter(|_| new.locations.is_none());
    match (held.output.take(), &mut new.output) {
        (output, None) => held.output = output,
        // A delta to an output that is held: emit all of it together.
        (Some(ToolOutput::Whole(mut all)), Some(ToolOutput::More(delta))) => {
            all.push(delta);
            new.output = Some(ToolOutput::Whole(all));
        }
        _ => {}
    }
}

/// Restores held fields that were not sent again.
fn restore(mut held: ToolCall<Raw>, into: &mut ToolCall<Raw>) {
    for (held, into) in texts(&mut held).into_iter().zip(texts(into)) {
        *into = into.take().or_else(|| held.take());
    }
    for (held, into) in trees(&mut held).into_iter().zip(trees(into)) {
        *into = into.take().or_else(|| held.take());
    }
    into.file_path = into.file_path.take().or(held.file_path);
    into.diffs = into.diffs.take().or(held.diffs);
    into.todos = into.todos.take().or(held.todos);
    into.locations = into.locations.take().or(held.locations);
    into.output = into.output.take().or(held.output);
}

/// Bytes of held fields.
fn held_fields_len(held: &mut ToolCall<Raw>) -> usize {
    let len = |text: &Option<Raw>| text.as_ref().map_or(0, |t| t.peek().len() + 1);
    let mut bytes = texts(held).iter().map(|t| len(t)).sum::<usize>();
    bytes += trees(held).iter().map(|t| t.as_ref().map_or(0, Tree::json_len)).sum::<usize>();
    bytes += len(&held.file_path);
    for diff in held.diffs.iter().flatten() {
        let lines = diff.hunks.iter().flatten().flat_map(|h| &h.lines);
        bytes += diff.path.peek().len() + lines.map(|l| l.peek().len()).sum::<usize>() + 1;
        bytes += len(&diff.old_text) + len(&diff.new_text) + len(&diff.patch);
    }
    bytes += held.todos.iter().flatten().map(|t| t.content.peek().len() + 1).sum::<usize>();
    bytes += held.locations.iter().flatten().map(|l| l.path.peek().len() + 1).sum::<usize>();
    match &held.output {
        Some(ToolOutput::Whole(text) | ToolOutput::More(text)) => bytes + text.peek().len() + 1,
        None => bytes,
    }
}

/// Removes partial matches of `level` at the ends of fields and moves the whole fields to `held`.
fn hold_back(
    redactor: &Redactor,
    level: PartialLevel,
    call: &mut ToolCall<Raw>,
    held: &mut ToolCall<Raw>,
) {
    for (text, held) in texts(call).into_iter().zip(texts(held)) {
        if let Some(part) =
            text.as_ref().and_then(|t| redactor.without_partial(t.peek(), ELLIPSIS, level))
        {
            *held = text.replace(Raw::new(part));
        }
    }
    for (tree, held) in trees(call).into_iter().zip(trees(held)) {
        let without_partial =
            |text: &str, key: &str| redactor.value_without_partial(text, key, level);
        if let Some(part) = tree.as_ref().and_then(|t| t.replace_strings(without_partial)) {
            *held = tree.replace(part);
        }
    }
    if let Some(ToolOutput::Whole(text)) = &mut call.output
        && let Some(part) = redactor.without_partial(text.peek(), "", level)
    {
        held.output = Some(ToolOutput::Whole(std::mem::replace(text, Raw::new(part))));
    }
    let is_partial = |path: &Raw| redactor.is_partial_path(path.peek(), level);
    if call.file_path.as_ref().is_some_and(is_partial) {
        held.file_path = call.file_path.take();
    }
    if call.locations.iter().flatten().any(|l| is_partial(&l.path)) {
        held.locations = call.locations.take();
    }
    if let Some(part) =
        call.diffs.as_ref().and_then(|diffs| diffs_without_partial(redactor, level, diffs))
    {
        held.diffs = call.diffs.replace(part);
    }
    let has_partial = |text: &Raw| redactor.without_partial(text.peek(), ELLIPSIS, level).is_some();
    if call.todos.iter().flatten().any(|t| has_partial(&t.content) || has_partial(&t.active_form)) {
        held.todos = call.todos.take();
    }
}

/// Returns the diffs without partial matches; `None` when there are none.
fn diffs_without_partial(
    redactor: &Redactor,
    level: PartialLevel,
    diffs: &[Diff<Raw>],
) -> Option<Vec<Diff<Raw>>> {
    let mut any = false;
    let mut part = Vec::with_capacity(diffs.len());
    for diff in diffs {
        if redactor.is_partial_path(diff.path.peek(), level) {
            any = true;
            continue;
        }
        let mut diff = diff.clone();
        for text in [&mut diff.old_text, &mut diff.new_text, &mut diff.patch] {
            if let Some(part) =
                text.as_ref().and_then(|t| redactor.without_partial(t.peek(), ELLIPSIS, level))
            {
                *text = Some(Raw::new(part));
                any = true;
            }
        }
        for line in diff.hunks.iter_mut().flatten().filter_map(|hunk| hunk.lines.last_mut()) {
            if let Some(part) = redactor.without_partial(line.peek(), ELLIPSIS, level) {
                *line = Raw::new(part);
                any = true;
            }
        }
        part.push(diff);
    }
    any.then_some(part)
}
