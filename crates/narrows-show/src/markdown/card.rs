//! What a call was given and what it gave.

use super::verbatim::{verbatim, words_only};
use super::{pictures, quote};
use crate::call::{self, CallLine, given};
use crate::prose::quoted;
use crate::{diff, escape};
use narrows::tool::{ToolCall, ToolName};

pub(super) fn body(call: &ToolCall) -> String {
    let mut out = String::new();
    if let Some(command) = given(call.command.as_ref()) {
        if let Some(said) = given(call.description.as_ref())
            .filter(|d| call.title.as_deref() != Some(*d) && *d != command)
        {
            put!(out, "\n{}\n", words_only(said));
        }
        if CallLine::of(call).about != command.trim() {
            out.push_str(&fence("sh", &escape::plain(command)));
        }
    }
    for argument in call::arguments(call) {
        let name = words_only(&argument.name);
        let value = escape::plain(&argument.value);
        let value = value.trim_end();
        if value.contains('\n') {
            put!(out, "\n{name}:\n{}", fence("text", value));
        } else {
            put!(out, "\n{name}: {}\n", quoted(value));
        }
    }
    for diff in call.diffs.iter().flatten() {
        let what = diff::action(call, diff).map(|w| format!(" · {w}")).unwrap_or_default();
        let lines: Vec<String> = diff::of(diff).into_iter().map(|line| line.text).collect();
        let path = quoted(&escape::line(&diff.path));
        put!(out, "\n{path}{what}\n{}", fence("diff", &lines.join("\n")));
    }
    if let Some(text) = call::output(call) {
        let lines = escape::lines(text.trim_end());
        let lines: Vec<String> =
            lines.map(|runs| runs.into_iter().map(|run| run.text).collect()).collect();
        let word = if call.tool_name == ToolName::Bash { "console" } else { "text" };
        out.push_str(&fence(word, &lines.join("\n")));
        if call.truncated == Some(true) {
            out.push_str("\n*cut by the agent*\n");
        }
    }
    if let Some(answer) = given(call.task_output.as_ref()) {
        put!(out, "\n{}", quote(&verbatim(answer)));
    }
    if let Some(error) = given(call.error.as_ref()) {
        out.push_str(&fence("text", escape::plain(error).trim()));
    }
    out.push_str(&pictures(call.images.as_deref().unwrap_or_default()));
    if let Some(found) =
        call.diagnostics.as_ref().filter(|d| !matches!(d.json(), "null" | "{}" | "[]"))
    {
        out.push_str(&fence("json", &escape::plain(&call::pretty(found.json()))));
    }
    out
}

/// A fenced block, whose fence is longer than any in it.
pub(super) fn fence(word: &str, text: &str) -> String {
    let text = escape::plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("\n{fence}{word}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::fence;

    #[test]
    fn fences_are_longer_than_those_inside() {
        assert_eq!(fence("sh", "a"), "\n```sh\na\n```\n");
        assert_eq!(fence("", "```\n````x\n"), "\n`````\n```\n````x\n`````\n");
    }
}
