//! The input and the output of a tool call.

use super::neutralize::{escape_inline, neutralize};
use super::{image_notes, quote};
use crate::call::{self, CallSummary, non_blank};
use crate::terminal_markdown::quoted;
use crate::{diff, escape};
use narrows::tool::{ToolCall, ToolName};

pub(super) fn body(call: &ToolCall) -> String {
    let mut out = String::new();
    if let Some(command) = non_blank(call.command.as_ref()) {
        if let Some(description) = non_blank(call.description.as_ref())
            .filter(|d| call.title.as_deref() != Some(*d) && *d != command)
        {
            append!(out, "\n{}\n", escape_inline(description));
        }
        if CallSummary::of(call).subject != command.trim() {
            out.push_str(&fence("sh", &escape::plain(command)));
        }
    }
    for argument in call::arguments(call) {
        let name = escape_inline(&argument.name);
        let value = escape::plain(&argument.value);
        let value = value.trim_end();
        if value.contains('\n') {
            append!(out, "\n{name}:\n{}", fence("text", value));
        } else {
            append!(out, "\n{name}: {}\n", quoted(value));
        }
    }
    for diff in call.diffs.iter().flatten() {
        let what = diff::action(call, diff).map(|w| format!(" · {w}")).unwrap_or_default();
        let lines: Vec<String> =
            diff::unified_lines(diff).into_iter().map(|line| line.text).collect();
        let path = quoted(&escape::line(&diff.path));
        append!(out, "\n{path}{what}\n{}", fence("diff", &lines.join("\n")));
    }
    if let Some(text) = call::output(call) {
        let lines = escape::styled_lines(text.trim_end());
        let lines: Vec<String> =
            lines.map(|spans| spans.into_iter().map(|span| span.text).collect()).collect();
        let language = if call.tool_name == ToolName::Bash { "console" } else { "text" };
        out.push_str(&fence(language, &lines.join("\n")));
        if call.truncated == Some(true) {
            out.push_str("\n*cut by the agent*\n");
        }
    }
    if let Some(answer) = non_blank(call.task_output.as_ref()) {
        append!(out, "\n{}", quote(&neutralize(answer)));
    }
    if let Some(error) = non_blank(call.error.as_ref()) {
        out.push_str(&fence("text", escape::plain(error).trim()));
    }
    out.push_str(&image_notes(call.images.as_deref().unwrap_or_default()));
    if let Some(diagnostics) =
        call.diagnostics.as_ref().filter(|d| !matches!(d.json(), "null" | "{}" | "[]"))
    {
        out.push_str(&fence("json", &escape::plain(&call::pretty(diagnostics.json()))));
    }
    out
}

/// Returns a fenced block whose fence is longer than any fence inside.
pub(super) fn fence(language: &str, text: &str) -> String {
    let text = escape::plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("\n{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::fence;

    #[test]
    fn fence_is_longer_than_fences_inside() {
        assert_eq!(fence("sh", "a"), "\n```sh\na\n```\n");
        assert_eq!(fence("", "```\n````x\n"), "\n`````\n```\n````x\n`````\n");
    }
}
