//! Tool calls as `<details>` cards.

use super::escape::{push_escaped, terminal_output, text};
use super::markdown;
use crate::call::{self, CallSummary, non_blank};
use crate::diff::{self, DiffLineKind};
use narrows::tool::{Diff, ToolCall, ToolStatus};

pub(super) fn status_class(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "ok",
        ToolStatus::Failed => "bad",
        ToolStatus::Cancelled => "off",
        ToolStatus::Pending | ToolStatus::InProgress => "open",
    }
}

/// Opens a card: its summary line, its input and its output.
pub(super) fn open(out: &mut String, id: &str, call: &ToolCall) {
    let summary = CallSummary::of(call);
    let class = status_class(summary.status);
    append!(
        out,
        "<details class=\"call {class}\" {id}>\n<summary><span class=\"sign\">{}</span> <b>{}</b>",
        call::status_glyph(summary.status),
        text(&summary.name)
    );
    if !summary.subject.is_empty() {
        append!(out, " <code>{}</code>", text(&summary.subject));
    }
    if !summary.details.is_empty() {
        append!(out, " <span class=\"facts\">{}</span>", text(&summary.details.join(" · ")));
    }
    out.push_str("</summary>\n");
    if let Some(command) = non_blank(call.command.as_ref()) {
        if let Some(description) = non_blank(call.description.as_ref())
            .filter(|d| call.title.as_deref() != Some(*d) && *d != command)
        {
            append!(out, "<p class=\"note\">{}</p>\n", text(description));
        }
        append!(out, "<pre class=\"command\">{}</pre>\n", text(command.trim()));
    }
    let arguments = call::arguments(call);
    if !arguments.is_empty() {
        out.push_str("<dl>\n");
        for argument in arguments {
            let (name, value) = (text(&argument.name), text(argument.value.trim_end()));
            append!(out, "<dt>{name}</dt><dd>{value}</dd>\n");
        }
        out.push_str("</dl>\n");
    }
    for diff in call.diffs.iter().flatten() {
        write_diff(out, call, diff);
    }
    if let Some(output) = call::output(call) {
        append!(out, "<pre>{}</pre>\n", terminal_output(output.trim_end()));
        if call.truncated == Some(true) {
            out.push_str("<p class=\"note\">cut by the agent</p>\n");
        }
    }
    if let Some(answer) = non_blank(call.task_output.as_ref()) {
        append!(out, "<div class=\"text answer\">\n{}</div>\n", markdown::render(answer));
    }
    if let Some(error) = non_blank(call.error.as_ref()) {
        append!(out, "<pre class=\"why\">{}</pre>\n", terminal_output(error.trim()));
    }
    if let Some(diagnostics) =
        call.diagnostics.as_ref().filter(|d| !matches!(d.json(), "null" | "{}" | "[]"))
    {
        append!(out, "<pre>{}</pre>\n", text(&call::pretty(diagnostics.json())));
    }
}

fn write_diff(out: &mut String, call: &ToolCall, diff: &Diff) {
    let what = diff::action(call, diff).map(|w| format!(" <span class=\"facts\">{w}</span>"));
    let path = text(&diff.path);
    append!(
        out,
        "<p class=\"file\"><code>{path}</code>{}</p>\n<pre class=\"diff\">",
        what.unwrap_or_default()
    );
    for line in diff::unified_lines(diff) {
        let tag = match line.kind {
            DiffLineKind::HunkHeader => "<span class=\"at\">",
            DiffLineKind::Context => "<span>",
            DiffLineKind::Added => "<ins>",
            DiffLineKind::Removed => "<del>",
        };
        out.push_str(tag);
        push_escaped(out, &line.text);
        // Each line is a block element of its own.
        out.push_str(match line.kind {
            DiffLineKind::HunkHeader | DiffLineKind::Context => "</span>",
            DiffLineKind::Added => "</ins>",
            DiffLineKind::Removed => "</del>",
        });
        out.push('\n');
    }
    out.push_str("</pre>\n");
}
