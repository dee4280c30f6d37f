//! How the fields of a tool call are redacted.

use super::fields::{FieldRedactor, MAX_TREE_BYTES};
use crate::model::event::ToolEvent;
use crate::model::tool::{Diff, Hunk, Location, Permission, Todo, ToolCall, ToolKind, ToolOutput};
use narrows_sanitize::{Clean, Raw};

/// Redacts a tool call; `ready` is output that was already redacted as a stream.
pub(super) fn redact_tool(
    fields: &mut FieldRedactor<'_>,
    t: ToolEvent<Raw>,
    ready: Option<Clean>,
) -> ToolEvent {
    let c = t.call;
    // Text that was read from a file is the user's own; text that a command printed is not.
    let is_read = c.kind == ToolKind::Read;
    let output = match (ready, c.output) {
        (Some(text), _) => Some(ToolOutput::More(text)),
        (None, Some(ToolOutput::Whole(text))) if is_read => {
            Some(ToolOutput::Whole(fields.body(text)))
        }
        (None, Some(ToolOutput::Whole(text))) => Some(ToolOutput::Whole(fields.text(text))),
        (None, Some(ToolOutput::More(text))) => Some(ToolOutput::More(fields.text(text))),
        (None, None) => None,
    };
    let call = ToolCall {
        tool_name: c.tool_name,
        kind: c.kind,
        status: c.status,
        is_todo: c.is_todo,
        name: fields.texts(c.name),
        raw_kind: fields.texts(c.raw_kind),
        agent_title: fields.texts(c.agent_title),
        title: fields.texts(c.title),
        description: fields.texts(c.description),
        said: fields.texts(c.said),
        command: fields.texts(c.command),
        file_path: c.file_path.as_ref().map(|p| fields.path(p)),
        pattern: fields.texts(c.pattern),
        subagent_type: fields.texts(c.subagent_type),
        child_session_id: fields.texts(c.child_session_id),
        input: fields.tree(c.input, MAX_TREE_BYTES),
        output,
        error: fields.texts(c.error),
        exit_code: c.exit_code,
        is_new_file: c.is_new_file,
        old_content: c.old_content.map(|t| fields.body(t)),
        new_content: c.new_content.map(|t| fields.body(t)),
        diffs: c.diffs.map(|list| list.into_iter().map(|d| redact_diff(fields, d)).collect()),
        todos: c.todos.map(|list| {
            list.into_iter()
                .map(|t| Todo {
                    content: fields.text(t.content),
                    status: t.status,
                    active_form: fields.text(t.active_form),
                    priority: fields.texts(t.priority),
                    id: fields.texts(t.id),
                })
                .collect()
        }),
        task_output: fields.texts(c.task_output),
        plan: fields.texts(c.plan),
        images: c.images,
        locations: c.locations.map(|list| {
            list.iter().map(|l| Location { path: fields.path(&l.path), line: l.line }).collect()
        }),
        diagnostics: fields.tree(c.diagnostics, MAX_TREE_BYTES),
        truncated: c.truncated,
        count: c.count,
        duration_ms: c.duration_ms,
        permission: c.permission.map(|p| Permission {
            decision: fields.text(p.decision),
            option: fields.texts(p.option),
            waited_ms: p.waited_ms,
        }),
    };
    ToolEvent {
        id: fields.text(t.id),
        call,
        fresh: t.fresh,
        grew_from: t.grew_from,
        first: t.first,
        grows: t.grows,
        repeats: t.repeats,
    }
}

fn redact_diff(fields: &mut FieldRedactor<'_>, d: Diff<Raw>) -> Diff {
    Diff {
        path: fields.path(&d.path),
        old_text: d.old_text.map(|t| fields.body(t)),
        new_text: d.new_text.map(|t| fields.body(t)),
        scope: d.scope,
        action: d.action,
        additions: d.additions,
        deletions: d.deletions,
        patch: d.patch.map(|t| fields.body(t)),
        hunks: d.hunks.map(|list| list.into_iter().map(|h| redact_hunk(fields, &h)).collect()),
    }
}

/// Redacts the lines of a hunk as one text, without their signs; their number stays the same.
fn redact_hunk(fields: &mut FieldRedactor<'_>, h: &Hunk<Raw>) -> Hunk {
    let sign = |line: &Raw| {
        let first = line.peek().chars().next();
        first.filter(|c| matches!(c, ' ' | '+' | '-' | '\\'))
    };
    let without_sign = |line: &Raw| -> String {
        let text = &line.peek()[usize::from(sign(line).is_some())..];
        if text.contains('\n') { text.replace('\n', " ") } else { text.to_owned() }
    };
    let bare: Vec<String> = h.lines.iter().map(without_sign).collect();
    let mut clean: Vec<Clean> = fields.body(Raw::new(bare.join("\n"))).split_lines().collect();
    if clean.len() != bare.len() {
        clean = align_lines(fields, &bare, clean);
    }
    let lines = h.lines.iter().zip(clean).map(|(line, clean)| {
        let mut out = Clean::literal(match sign(line) {
            Some('+') => "+",
            Some('-') => "-",
            Some('\\') => "\\",
            Some(_) => " ",
            None => "",
        });
        out.push(&clean);
        out
    });
    let lines = lines.collect();
    let (old_start, old_lines) = (h.old_start, h.old_lines);
    Hunk { old_start, old_lines, new_start: h.new_start, new_lines: h.new_lines, lines }
}

/// Assigns the redacted lines to the source lines after a match over several lines became one: the
/// lines that it covered become empty, the others keep their position.
fn align_lines(fields: &mut FieldRedactor<'_>, bare: &[String], clean: Vec<Clean>) -> Vec<Clean> {
    let mut clean = clean.into_iter().peekable();
    let mut gap = false;
    let mut out = Vec::with_capacity(bare.len());
    for line in bare {
        let alone = fields.body(Raw::new(line.as_str()));
        let is_same = clean.peek() == Some(&alone);
        let next = if is_same || !gap { clean.next() } else { None };
        gap = !is_same;
        out.push(next.unwrap_or_default());
    }
    out
}
