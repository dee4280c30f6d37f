//! Parses the result of a tool call, by the kind of the call.

use super::tool_call::{ToolIdentity, ToolMeta};
use crate::json::{Json, Kind};
use crate::model::tool::{
    ToolCall, ToolKind, ToolName, ToolOutput, ToolStatus, exit_code, file_text, shell_text,
    task_text,
};
use crate::sanitize::Raw;

/// The parts of a packet that may contain the result.
pub(super) struct OutputSource<'a> {
    pub(super) call: &'a ToolCall<Raw>,
    pub(super) known: &'a ToolIdentity,
    pub(super) meta: &'a ToolMeta<'a>,
    pub(super) content: Option<Json<'a>>,
    pub(super) output: Option<Json<'a>>,
    pub(super) input: Option<Json<'a>>,
}

/// The parsed result.
#[derive(Default)]
pub(super) struct ParsedOutput {
    pub(super) output: Option<ToolOutput<Raw>>,
    pub(super) error: Option<Raw>,
    pub(super) exit_code: Option<i64>,
    pub(super) task_output: Option<Raw>,
    /// A description that was sent in place of output.
    pub(super) description: Option<Raw>,
}

pub(super) fn parse_output(source: &OutputSource<'_>) -> ParsedOutput {
    let mut parsed = ParsedOutput { exit_code: parse_exit_code(source), ..ParsedOutput::default() };
    if let Some(chunk) = source.meta.terminal_delta.and_then(Json::str) {
        parsed.output = Some(ToolOutput::More(Raw::new(chunk)));
        return parsed;
    }
    let failed = source.call.status == Some(ToolStatus::Failed);
    if failed && source.call.kind != ToolKind::Execute {
        let message = error_message(source)
            .or_else(|| string_output(source))
            .or_else(|| output_text(source, &mut ParsedOutput::default()));
        parsed.error = message.map(Raw::new);
        return parsed;
    }
    if failed {
        parsed.exit_code =
            parsed.exit_code.or_else(|| string_output(source).as_deref().and_then(exit_code));
        parsed.error = error_message(source).map(Raw::new);
        if parsed.exit_code.is_none() && parsed.error.is_none() {
            parsed.error = output_text(source, &mut ParsedOutput::default()).map(Raw::new);
            return parsed;
        }
        if parsed.error.is_some() && output_field(source, &["output"]).is_none() {
            return parsed;
        }
    }
    if source.call.tool_name == ToolName::Task {
        // The output of a task is its prompt; the answer has a field of its own.
        let prompt = source.input.and_then(|i| i.text("prompt"));
        parsed.output = prompt.map(|p| ToolOutput::Whole(Raw::new(p)));
        if source.call.status == Some(ToolStatus::Completed) {
            parsed.task_output = task_answer(source).as_deref().and_then(task_text).map(Raw::new);
        }
        return parsed;
    }
    let text = output_text(source, &mut parsed);
    parsed.output = text.map(|t| ToolOutput::Whole(Raw::new(t)));
    parsed
}

fn parse_exit_code(source: &OutputSource<'_>) -> Option<i64> {
    let out = source.output;
    let direct = out.and_then(|o| o.any(&["exit_code", "exitCode"]));
    let in_metadata = out.and_then(|o| o.path(&["metadata", "exit"]));
    direct.or(in_metadata).or(source.meta.terminal_exit).and_then(Json::i64)
}

fn error_message(source: &OutputSource<'_>) -> Option<String> {
    let error = source.output?.get("error")?;
    let text = error.owned().or_else(|| error.get("message").and_then(Json::owned));
    Some(text.unwrap_or_else(|| error.raw().into()))
}

/// Returns the raw output as text: a string, or the text blocks of a list.
fn string_output(source: &OutputSource<'_>) -> Option<String> {
    let out = source.output?;
    match out.kind() {
        Kind::String => out.owned(),
        Kind::Array => concat(out.items().filter_map(|b| b.get("text"))),
        _ => None,
    }
}

/// Concatenates texts.
fn concat<'a>(texts: impl Iterator<Item = Json<'a>>) -> Option<String> {
    texts.filter_map(Json::owned).reduce(|mut joined, text| {
        joined.push_str(&text);
        joined
    })
}

/// Concatenates the text blocks of the content.
fn content_text(source: &OutputSource<'_>) -> Option<String> {
    concat(source.content?.items().filter_map(|item| {
        let block = item.get("content")?;
        block.get("text").or_else(|| block.path(&["resource", "text"]))
    }))
}

/// Returns the first of several text fields of the output.
fn output_field(source: &OutputSource<'_>, names: &[&str]) -> Option<String> {
    source.output.filter(|o| o.kind() == Kind::Object)?.any(names).and_then(Json::owned)
}

/// Returns the answer of a subagent.
fn task_answer(source: &OutputSource<'_>) -> Option<String> {
    output_field(source, &["output"])
        .or_else(|| content_text(source))
        .or_else(|| string_output(source))
}

/// Returns the output of a call that is not a task, by its kind.
fn output_text(source: &OutputSource<'_>, parsed: &mut ParsedOutput) -> Option<String> {
    match source.call.kind {
        ToolKind::Execute => command_output(source, parsed),
        ToolKind::Read => {
            let text = content_text(source).filter(|t| !is_description(source, t, parsed));
            let names = ["output", "content", "text"];
            let text =
                text.or_else(|| output_field(source, &names)).or_else(|| string_output(source));
            text.map(|t| file_text(&t).unwrap_or(t)).or_else(|| raw_output(source))
        }
        ToolKind::Search => {
            let files = source.output.and_then(|o| o.get("files")).map(|list| {
                let names = list.items().filter_map(Json::scalar);
                names.collect::<Vec<_>>().join("\n")
            });
            let text = output_field(source, &["output", "text"])
                .or(files)
                .or_else(|| string_output(source));
            let text = text
                .or_else(|| content_text(source).filter(|t| !is_description(source, t, parsed)));
            text.or_else(|| raw_output(source))
        }
        // The output of an edit is in its diffs.
        ToolKind::Edit if has_diff(source) => None,
        _ => {
            let text = output_field(source, &["output", "text"]).or_else(|| string_output(source));
            let text = text
                .or_else(|| content_text(source).filter(|t| !is_description(source, t, parsed)));
            text.or_else(|| raw_output(source))
        }
    }
}

fn has_diff(source: &OutputSource<'_>) -> bool {
    let diff = |i: Json<'_>| i.text("type").as_deref() == Some("diff");
    source.content.is_some_and(|c| c.items().any(diff))
}

fn command_output(source: &OutputSource<'_>, parsed: &mut ParsedOutput) -> Option<String> {
    if source.output.is_some_and(|o| o.kind() == Kind::Object) {
        let string = |json: &Json<'_>| json.kind() == Kind::String;
        let names = ["output", "stdout", "formatted_output", "aggregated_output", "text"];
        let plain = source.output.and_then(|o| o.any(&names)).filter(string);
        let in_metadata =
            source.output.and_then(|o| o.path(&["metadata", "output"])).filter(string);
        // One of the two may be truncated: the longer one is the output.
        let longer = match (plain, in_metadata) {
            (Some(a), Some(b)) => Some(if b.raw().len() > a.raw().len() { b } else { a }),
            (a, b) => a.or(b),
        };
        return longer.and_then(Json::owned).or_else(|| raw_output(source));
    }
    if let Some(text) = string_output(source) {
        if text.starts_with("<persisted-output>") {
            // The output was too long for the model; the content still has its beginning.
            if let Some(head) = content_text(source) {
                return Some(shell_text(&head).into());
            }
        }
        parsed.exit_code = parsed.exit_code.or_else(|| exit_code(&text));
        let after = text.split_once('\n').map_or("", |(_, rest)| rest);
        let output = if exit_code(&text).is_some() { after } else { shell_text(&text) };
        return Some(output.into());
    }
    let text = content_text(source).filter(|t| !is_description(source, t, parsed))?;
    Some(if text.starts_with("```") { shell_text(&text).into() } else { text })
}

/// Whether a text is the description of a call: before it runs, some agents send the description in
/// place of the output.
fn is_description(source: &OutputSource<'_>, text: &str, parsed: &mut ParsedOutput) -> bool {
    if let Some(rest) = text.strip_prefix("[current working directory ") {
        let description = rest.split_once("] (").and_then(|(_, text)| text.strip_suffix(')'));
        parsed.description = description.map(Raw::new);
        return source.output.is_none();
    }
    source.known.description.as_deref() == Some(text) && source.output.is_none()
}

/// Returns output of an unknown shape as JSON.
fn raw_output(source: &OutputSource<'_>) -> Option<String> {
    let out = source.output.filter(|o| !o.is_empty())?;
    let is_known = |key: &str| matches!(key, "exit_code" | "exitCode" | "metadata" | "error");
    let has_other = out.kind() != Kind::Object || out.fields().any(|(key, _)| !is_known(key));
    (has_other && !matches!(out.kind(), Kind::Array)).then(|| out.raw().into())
}
