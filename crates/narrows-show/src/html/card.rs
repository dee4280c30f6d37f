//! Calls as cards that open.

use super::escape::{printed, push, text};
use super::prose;
use crate::call::{self, CallLine, given};
use crate::diff::{self, Mark};
use narrows::tool::{Diff, ToolCall, ToolStatus};

pub(super) fn class(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "ok",
        ToolStatus::Failed => "bad",
        ToolStatus::Cancelled => "off",
        ToolStatus::Pending | ToolStatus::InProgress => "open",
    }
}

/// Begins a card: its line, what the call was given and what it gave.
pub(super) fn open(out: &mut String, id: &str, call: &ToolCall) {
    let line = CallLine::of(call);
    let class = class(line.status);
    put!(
        out,
        "<details class=\"call {class}\" {id}>\n<summary><span class=\"sign\">{}</span> <b>{}</b>",
        call::sign(line.status),
        text(&line.name)
    );
    if !line.about.is_empty() {
        put!(out, " <code>{}</code>", text(&line.about));
    }
    if !line.facts.is_empty() {
        put!(out, " <span class=\"facts\">{}</span>", text(&line.facts.join(" · ")));
    }
    out.push_str("</summary>\n");
    if let Some(command) = given(call.command.as_ref()) {
        if let Some(said) = given(call.description.as_ref())
            .filter(|d| call.title.as_deref() != Some(*d) && *d != command)
        {
            put!(out, "<p class=\"note\">{}</p>\n", text(said));
        }
        put!(out, "<pre class=\"command\">{}</pre>\n", text(command.trim()));
    }
    let arguments = call::arguments(call);
    if !arguments.is_empty() {
        out.push_str("<dl>\n");
        for argument in arguments {
            let (name, value) = (text(&argument.name), text(argument.value.trim_end()));
            put!(out, "<dt>{name}</dt><dd>{value}</dd>\n");
        }
        out.push_str("</dl>\n");
    }
    for diff in call.diffs.iter().flatten() {
        changed(out, call, diff);
    }
    if let Some(output) = call::output(call) {
        put!(out, "<pre>{}</pre>\n", printed(output.trim_end()));
        if call.truncated == Some(true) {
            out.push_str("<p class=\"note\">cut by the agent</p>\n");
        }
    }
    if let Some(answer) = given(call.task_output.as_ref()) {
        put!(out, "<div class=\"text answer\">\n{}</div>\n", prose::render(answer));
    }
    if let Some(error) = given(call.error.as_ref()) {
        put!(out, "<pre class=\"why\">{}</pre>\n", printed(error.trim()));
    }
    if let Some(found) =
        call.diagnostics.as_ref().filter(|d| !matches!(d.json(), "null" | "{}" | "[]"))
    {
        put!(out, "<pre>{}</pre>\n", text(&call::pretty(found.json())));
    }
}

fn changed(out: &mut String, call: &ToolCall, diff: &Diff) {
    let what = diff::action(call, diff).map(|w| format!(" <span class=\"facts\">{w}</span>"));
    let path = text(&diff.path);
    put!(
        out,
        "<p class=\"file\"><code>{path}</code>{}</p>\n<pre class=\"diff\">",
        what.unwrap_or_default()
    );
    for line in diff::of(diff) {
        let tag = match line.mark {
            Mark::Place => "<span class=\"at\">",
            Mark::Same => "<span>",
            Mark::Added => "<ins>",
            Mark::Removed => "<del>",
        };
        out.push_str(tag);
        push(out, &line.text);
        // Each line is a block of its own.
        out.push_str(match line.mark {
            Mark::Place | Mark::Same => "</span>",
            Mark::Added => "</ins>",
            Mark::Removed => "</del>",
        });
        out.push('\n');
    }
    out.push_str("</pre>\n");
}
