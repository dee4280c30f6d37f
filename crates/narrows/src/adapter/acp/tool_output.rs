//! What a packet gives as the result of a call, by the kind of the call.

use super::tool::{Known, Meta};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;
use crate::tool::{
    Output, ToolCall, ToolKind, ToolName, ToolStatus, exit_code, file_text, shell_text, task_text,
};

/// Where results are found.
pub(super) struct Given<'a> {
    pub(super) call: &'a ToolCall<Raw>,
    pub(super) known: &'a Known,
    pub(super) meta: &'a Meta<'a>,
    pub(super) content: Option<Json<'a>>,
    pub(super) output: Option<Json<'a>>,
    pub(super) input: Option<Json<'a>>,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) output: Option<Output<Raw>>,
    pub(super) error: Option<Raw>,
    pub(super) exit_code: Option<i64>,
    pub(super) task_output: Option<Raw>,
    /// A description that stands where output should.
    pub(super) said: Option<Raw>,
}

pub(super) fn read(g: &Given<'_>) -> Found {
    let mut found = Found { exit_code: exit(g), ..Found::default() };
    if let Some(piece) = g.meta.terminal_delta.and_then(Json::str) {
        found.output = Some(Output::More(Raw::new(piece)));
        return found;
    }
    let failed = g.call.status == Some(ToolStatus::Failed);
    if failed && g.call.kind != ToolKind::Execute {
        let told = error(g).or_else(|| string(g)).or_else(|| text_of(g, &mut Found::default()));
        found.error = told.map(Raw::new);
        return found;
    }
    if failed {
        found.exit_code = found.exit_code.or_else(|| string(g).as_deref().and_then(exit_code));
        found.error = error(g).map(Raw::new);
        if found.exit_code.is_none() && found.error.is_none() {
            found.error = text_of(g, &mut Found::default()).map(Raw::new);
            return found;
        }
        if found.error.is_some() && named(g, &["output"]).is_none() {
            return found;
        }
    }
    if g.call.tool_name == ToolName::Task {
        // The card of a task shows what was asked; the answer has a field of its own.
        let prompt = g.input.and_then(|i| i.text("prompt"));
        found.output = prompt.map(|p| Output::Whole(Raw::new(p)));
        if g.call.status == Some(ToolStatus::Completed) {
            found.task_output = answer(g).as_deref().and_then(task_text).map(Raw::new);
        }
        return found;
    }
    let text = text_of(g, &mut found);
    found.output = text.map(|t| Output::Whole(Raw::new(t)));
    found
}

fn exit(g: &Given<'_>) -> Option<i64> {
    let out = g.output;
    let told = out.and_then(|o| o.any(&["exit_code", "exitCode"]));
    let noted = out.and_then(|o| o.path(&["metadata", "exit"]));
    told.or(noted).or(g.meta.terminal_exit).and_then(Json::i64)
}

fn error(g: &Given<'_>) -> Option<String> {
    let error = g.output?.get("error")?;
    let text = error.owned().or_else(|| error.get("message").and_then(Json::owned));
    Some(text.unwrap_or_else(|| error.raw().into()))
}

/// The raw output as text: a string, or the text blocks of a list.
fn string(g: &Given<'_>) -> Option<String> {
    let out = g.output?;
    match out.kind() {
        Kind::String => out.owned(),
        Kind::Array => join(out.items().filter_map(|b| b.get("text"))),
        _ => None,
    }
}

/// Texts one after the other.
fn join<'a>(texts: impl Iterator<Item = Json<'a>>) -> Option<String> {
    texts.filter_map(Json::owned).reduce(|mut all, text| {
        all.push_str(&text);
        all
    })
}

/// The text blocks of the content, joined.
fn content(g: &Given<'_>) -> Option<String> {
    join(g.content?.items().filter_map(|item| {
        let block = item.get("content")?;
        block.get("text").or_else(|| block.path(&["resource", "text"]))
    }))
}

fn named(g: &Given<'_>, names: &[&str]) -> Option<String> {
    g.output.filter(|o| o.kind() == Kind::Object)?.any(names).and_then(Json::owned)
}

/// What a subagent answered.
fn answer(g: &Given<'_>) -> Option<String> {
    named(g, &["output"]).or_else(|| content(g)).or_else(|| string(g))
}

/// The output of a call that is no task, by its kind.
fn text_of(g: &Given<'_>, found: &mut Found) -> Option<String> {
    match g.call.kind {
        ToolKind::Execute => command_output(g, found),
        ToolKind::Read => {
            let text = content(g).filter(|t| !is_description(g, t, found));
            let names = ["output", "content", "text"];
            let text = text.or_else(|| named(g, &names)).or_else(|| string(g));
            text.map(|t| file_text(&t).unwrap_or(t)).or_else(|| dump(g))
        }
        ToolKind::Search => {
            let files = g.output.and_then(|o| o.get("files")).map(|list| {
                let names = list.items().filter_map(Json::scalar);
                names.collect::<Vec<_>>().join("\n")
            });
            let text = named(g, &["output", "text"]).or(files).or_else(|| string(g));
            let text = text.or_else(|| content(g).filter(|t| !is_description(g, t, found)));
            text.or_else(|| dump(g))
        }
        // The new text of an edit is in its diffs.
        ToolKind::Edit if has_diff(g) => None,
        _ => {
            let text = named(g, &["output", "text"]).or_else(|| string(g));
            let text = text.or_else(|| content(g).filter(|t| !is_description(g, t, found)));
            text.or_else(|| dump(g))
        }
    }
}

fn has_diff(g: &Given<'_>) -> bool {
    let diff = |i: Json<'_>| i.text("type").as_deref() == Some("diff");
    g.content.is_some_and(|c| c.items().any(diff))
}

fn command_output(g: &Given<'_>, found: &mut Found) -> Option<String> {
    if g.output.is_some_and(|o| o.kind() == Kind::Object) {
        let string = |json: &Json<'_>| json.kind() == Kind::String;
        let names = ["output", "stdout", "formatted_output", "aggregated_output", "text"];
        let plain = g.output.and_then(|o| o.any(&names)).filter(string);
        let noted = g.output.and_then(|o| o.path(&["metadata", "output"])).filter(string);
        // One of the two may be cut: the longer one is the output.
        let longer = match (plain, noted) {
            (Some(a), Some(b)) => Some(if b.raw().len() > a.raw().len() { b } else { a }),
            (a, b) => a.or(b),
        };
        return longer.and_then(Json::owned).or_else(|| dump(g));
    }
    if let Some(text) = string(g) {
        if text.starts_with("<persisted-output>") {
            // Too long for the model, but the screen still got the beginning.
            if let Some(shown) = content(g) {
                return Some(shell_text(&shown).into());
            }
        }
        found.exit_code = found.exit_code.or_else(|| exit_code(&text));
        let after = text.split_once('\n').map_or("", |(_, rest)| rest);
        let shown = if exit_code(&text).is_some() { after } else { shell_text(&text) };
        return Some(shown.into());
    }
    let text = content(g).filter(|t| !is_description(g, t, found))?;
    Some(if text.starts_with("```") { shell_text(&text).into() } else { text })
}

/// Before a call runs, some agents put its description where the output will be.
fn is_description(g: &Given<'_>, text: &str, found: &mut Found) -> bool {
    if let Some(rest) = text.strip_prefix("[current working directory ") {
        let about = rest.split_once("] (").and_then(|(_, about)| about.strip_suffix(')'));
        found.said = about.map(Raw::new);
        return g.output.is_none();
    }
    g.known.said.as_deref() == Some(text) && g.output.is_none()
}

/// Output of a shape that nobody modelled, as JSON.
fn dump(g: &Given<'_>) -> Option<String> {
    let out = g.output.filter(|o| !o.is_empty())?;
    let known = |key: &str| matches!(key, "exit_code" | "exitCode" | "metadata" | "error");
    let more = out.kind() != Kind::Object || out.fields().any(|(key, _)| !known(key));
    (more && !matches!(out.kind(), Kind::Array)).then(|| out.raw().into())
}
