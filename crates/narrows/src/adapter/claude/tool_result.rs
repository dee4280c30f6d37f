//! Results of tool calls: one function for the live stream and the session file.
//!
//! A record contains a result twice: as text for the model and as a structured result of the
//! program. The structured result has more fields, but it may be missing or not an object.

use super::ClaudeParser;
use super::edit_diff::edit_diff;
use super::image::image_block;
use super::notebook_diff::notebook_diff;
use super::record::ClaudeRecord;
use super::tasks::without_reminders;
use super::tool_use::ToolUseState;
use crate::adapter::output::AdapterOutput;
use crate::adapter::tool_input::todo_list;
use crate::json::{Json, Kind};
use crate::model::event::{
    AgentFile, BackgroundTask, Body, QuestionAnswer, QuestionResponse, ToolEvent,
};
use crate::model::tool::{
    ChangedFields, Image, Permission, ToolCall, ToolName, ToolOutput, ToolStatus, TriState,
    exit_code, shell_text, task_text, without_line_numbers,
};
use crate::sanitize::Raw;

/// The number of permission decisions that are read from one record.
const MAX_DECISIONS: usize = 256;
/// The number of answers that are read from one result.
const MAX_ANSWERS: usize = 64;

impl ClaudeParser {
    /// Emits one result. `structured` is the structured result, if it belongs to this call alone.
    pub(super) fn tool_result(
        &mut self,
        block: Json<'_>,
        structured: Option<Json<'_>>,
        r: &ClaudeRecord<'_>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        let id = block.get("tool_use_id").and_then(Json::scalar).unwrap_or_default().into_owned();
        self.calls_matched_by_prompt.retain(|call| *call != id);
        let (known, first) = self.tool_uses.get_or_insert(&id);
        let value = structured.filter(|s| s.kind() == Kind::Object);
        let is_error = is_true(block.get("is_error"))
            || (known.task_change.is_some() && is_unsuccessful(value));
        known.identify_by_result(value);
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        known.describe(&mut call);
        // The text for the model is long and often redundant.
        let content = block.get("content");
        let needs_content = is_error
            || content.is_none_or(|c| c.kind() != Kind::String)
            || !is_complete(&call, value);
        let (text, images) = text_and_images(content.filter(|_| needs_content), out);
        call.images = (!images.is_empty()).then_some(images);
        call.permission = permission(r, &id);
        call.status = Some(if is_error { ToolStatus::Failed } else { ToolStatus::Completed });
        if is_error {
            read_failure(&mut call, &text, structured);
        } else {
            read_success(&mut call, text, value);
        }
        call.todos = call.todos.take().or_else(|| self.tasks.apply(known, value, is_error));
        let mut bodies: Vec<Body<Raw>> = Vec::new();
        if let Some(value) = value.filter(|_| !is_error) {
            if let Some(agent) = value.text("agentId") {
                self.subagent_calls.get_or_insert(&agent).0.clone_from(&id);
            }
            if let Some(path) = value.text("persistedOutputPath") {
                let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
                self.offloaded_files.get_or_insert(name).0.clone_from(&id);
                call.truncated = Some(true);
            }
            bodies.extend(
                background_task(value, known, &id).map(|t| Body::BackgroundTask(Box::new(t))),
            );
            bodies.extend(plan_file(value, known, &id));
            bodies.extend(answers(value, known, &id));
        }
        // A result without answers closes the question too.
        let is_answered = bodies.iter().any(|body| matches!(body, Body::QuestionAnswer(_)));
        if known.tool == Some(ToolName::Question) && !is_answered {
            let answer = QuestionAnswer { tool_call_id: Raw::new(&*id), answers: Vec::new() };
            bodies.push(Body::QuestionAnswer(Box::new(answer)));
        }
        if let Some(Body::BackgroundTask(task)) = bodies.first() {
            self.tasks.add_background(task.task_id.peek());
        }
        let event = ToolEvent {
            id: Raw::new(id),
            call,
            fresh: ChangedFields::default(),
            grew_from: None,
            first,
            grows: false,
            repeats: false,
        };
        out.push_in(parent.cloned(), Body::ToolCallProgress(Box::new(event)));
        for body in bodies {
            out.push_in(parent.cloned(), body);
        }
    }

    /// Emits the text of a file to which output was moved that was too long for a record.
    pub(super) fn offloaded_output(&mut self, name: &str, text: &str, out: &mut AdapterOutput) {
        let Some(id) = self.offloaded_files.get_mut(name).cloned() else { return };
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        self.tool_uses.get_or_insert(&id).0.describe(&mut call);
        call.output = Some(ToolOutput::Whole(Raw::new(text)));
        call.truncated = Some(false);
        out.time = None;
        let event = ToolEvent {
            id: Raw::new(id),
            call,
            fresh: ChangedFields::default(),
            grew_from: None,
            first: false,
            grows: false,
            repeats: false,
        };
        out.push(Body::ToolCallProgress(Box::new(event)));
    }
}

/// Whether the structured result contains everything that the text for the model does.
fn is_complete(call: &ToolCall<Raw>, value: Option<Json<'_>>) -> bool {
    let is_text = |names: &[&str]| {
        value.and_then(|v| v.path(names)).is_some_and(|t| t.kind() == Kind::String)
    };
    match call.tool_name {
        ToolName::Bash => is_text(&["stdout"]) && !is_true(value.and_then(|v| v.get("isImage"))),
        ToolName::Read => is_text(&["file", "content"]),
        ToolName::Write | ToolName::Edit => is_text(&["filePath"]),
        _ => false,
    }
}

/// Whether the structured result reports a failure that the text for the model only mentions.
fn is_unsuccessful(value: Option<Json<'_>>) -> bool {
    value.and_then(|v| v.get("success")).and_then(Json::bool) == Some(false)
}

/// Whether a value is `true` or the string "true".
fn is_true(json: Option<Json<'_>>) -> bool {
    json.is_some_and(|j| j.bool() == Some(true) || j.str().as_deref() == Some("true"))
}

/// Returns the text and the images for the model.
fn text_and_images(content: Option<Json<'_>>, out: &mut AdapterOutput) -> (String, Vec<Image>) {
    let Some(content) = content else { return (String::new(), Vec::new()) };
    if let Some(text) = content.owned() {
        return (text, Vec::new());
    }
    let mut texts: Vec<String> = Vec::new();
    let mut images = Vec::new();
    for block in content.items().filter(|b| b.kind() == Kind::Object) {
        match block.text("type").as_deref() {
            Some("image") => match image_block(block, &mut out.blobs) {
                Ok(image) => images.push(image),
                Err(substitute) => texts.push(substitute),
            },
            Some("tool_reference") => {
                texts.extend(block.get("tool_name").and_then(Json::owned));
            }
            _ => texts.extend(block.get("text").and_then(Json::owned)),
        }
    }
    (texts.join("\n"), images)
}

/// Reads the result of a failed call.
fn read_failure(call: &mut ToolCall<Raw>, text: &str, structured: Option<Json<'_>>) {
    let text = strip_error_tag(text);
    let message = structured.and_then(Json::str);
    // The user rejected it, before or while it ran.
    if message.as_deref() == Some("User rejected tool use") {
        call.status = Some(ToolStatus::Cancelled);
    }
    if call.tool_name == ToolName::Bash
        && let Some(code) = exit_code(text)
    {
        call.exit_code = Some(code);
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        call.truncated = ends_with_truncation_note(rest).then_some(true);
        call.output = Some(ToolOutput::Whole(Raw::new(rest)));
        return;
    }
    // The text for the model contains more than the error.
    let message = message.as_deref().map(|m| m.strip_prefix("Error: ").unwrap_or(m));
    call.error = Some(Raw::new(message.filter(|m| !m.is_empty()).unwrap_or(text)));
}

/// Removes the tag around an error.
fn strip_error_tag(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<tool_use_error>");
    inner.map_or(text, |t| t.strip_suffix("</tool_use_error>").unwrap_or(t))
}

/// Reads the result of a successful call, by its tool.
fn read_success(call: &mut ToolCall<Raw>, text: String, value: Option<Json<'_>>) {
    let get = |name: &str| value.and_then(|v| v.get(name));
    match call.tool_name {
        ToolName::Bash => {
            let output = value.filter(|_| !is_true(get("isImage"))).and_then(command_output);
            let text = output.unwrap_or_else(|| shell_text(&text).to_owned());
            call.truncated = ends_with_truncation_note(&text).then_some(true);
            call.output = Some(ToolOutput::Whole(Raw::new(text)));
        }
        ToolName::Read => {
            let file = get("file");
            let text = match file.and_then(|f| f.get("content")).and_then(Json::owned) {
                Some(content) => content,
                None => without_line_numbers(without_reminders(&text)),
            };
            if call.images.is_none() || !text.is_empty() {
                call.output = Some(ToolOutput::Whole(Raw::new(text)));
            }
            let lines = |name: &str| file.and_then(|f| f.get(name)).and_then(Json::u64);
            call.truncated = lines("numLines").zip(lines("totalLines")).map(|(n, all)| n < all);
        }
        ToolName::Write | ToolName::Edit => {
            match value.and_then(edit_diff) {
                Some(diff) => {
                    call.is_new_file = match get("type").and_then(Json::str).as_deref() {
                        Some("create") => Some(TriState::Yes),
                        Some("update") => Some(TriState::No),
                        _ => diff.old_text.as_ref().filter(|t| !t.is_empty()).map(|_| TriState::No),
                    };
                    call.diffs = Some(vec![diff]);
                }
                // Without a structured result the text still distinguishes creation and update.
                None if text.starts_with("File created successfully") => {
                    call.is_new_file = Some(TriState::Yes);
                }
                None => {
                    call.is_new_file =
                        Some(TriState::No).filter(|_| text.contains("has been updated"))
                }
            }
        }
        ToolName::Notebook => {
            call.diffs = value.and_then(notebook_diff).map(|diff| vec![diff]);
            call.output = Some(ToolOutput::Whole(Raw::new(text)));
        }
        ToolName::Glob | ToolName::Grep => {
            call.count = get("numFiles").and_then(Json::u64);
            call.truncated = get("truncated").and_then(Json::bool);
            call.output = Some(ToolOutput::Whole(Raw::new(text)));
        }
        ToolName::Task => {
            call.child_session_id = get("agentId").and_then(Json::str).map(Raw::new);
            // A background subagent has not answered yet.
            if get("status").and_then(Json::str).as_deref() != Some("async_launched") {
                let parts = get("content").filter(|c| c.kind() == Kind::Array);
                let parts = parts
                    .map(|list| list.items().filter_map(|b| b.text("text")).collect::<String>());
                let report = parts.unwrap_or_else(|| subagent_report(&text));
                call.task_output = task_text(&report).map(Raw::new);
            }
        }
        ToolName::TodoWrite => {
            let list = get("newTodos").filter(|l| l.kind() == Kind::Array);
            call.todos = list.map(todo_list);
        }
        ToolName::PlanMode => {
            call.plan = get("plan").and_then(Json::str).map(Raw::new);
            call.output = Some(ToolOutput::Whole(Raw::new(text)));
        }
        _ => call.output = Some(ToolOutput::Whole(Raw::new(text))),
    }
}

/// Extracts the report of a subagent from the text for the model.
fn subagent_report(text: &str) -> String {
    let text = match text.rfind("\nagentId: ") {
        Some(at) => &text[..at],
        None => text,
    };
    match text.split_once("The report follows:\n") {
        Some((_, report)) => {
            let lines = report.lines().map(|l| l.strip_prefix("  ").unwrap_or(l));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => text.to_owned(),
    }
}

/// Whether an output ends with the note that older versions append to truncated output.
fn ends_with_truncation_note(text: &str) -> bool {
    let note = text.trim_end().rsplit('\n').next().unwrap_or_default();
    let inner = note.strip_prefix("... [").and_then(|n| n.strip_suffix("] ..."));
    let count = inner.and_then(|n| {
        n.strip_suffix(" lines truncated").or_else(|| n.strip_suffix(" characters truncated"))
    });
    count.is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
}

/// Returns the output of a command: stdout, then stderr.
fn command_output(value: Json<'_>) -> Option<String> {
    let mut text = value.get("stdout").and_then(Json::owned)?;
    let errors = value.get("stderr").and_then(Json::owned).filter(|t| !t.is_empty());
    if let Some(errors) = errors {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&errors);
    }
    Some(text)
}

/// Returns the user's decision about the call. Decisions by a rule are not shown.
fn permission(r: &ClaudeRecord<'_>, id: &str) -> Option<Permission<Raw>> {
    let entries = r.decisions.into_iter().flat_map(Json::items).take(MAX_DECISIONS);
    let mut own = entries.filter(|m| m.text("id").as_deref() == Some(id));
    let decision = own.find_map(|m| m.get("permission_decision")).or(r.decision)?;
    let by_user = decision.text("source").is_some_and(|s| s.starts_with("user"));
    let label = match decision.text("decision").as_deref() {
        Some("accept") if by_user => "allowed",
        Some("reject") => "rejected",
        _ => return None,
    };
    Some(Permission { decision: Raw::new(label), option: None, waited_ms: None })
}

/// Returns the background task in which the call continues.
fn background_task(value: Json<'_>, known: &ToolUseState, id: &str) -> Option<BackgroundTask<Raw>> {
    let is_launched = value.text("status").as_deref() == Some("async_launched");
    let task = match value.get("backgroundTaskId") {
        Some(task) => Some(task),
        None => value.get("agentId").filter(|_| is_launched),
    };
    Some(BackgroundTask {
        task_id: Raw::new(task.and_then(Json::scalar)?.into_owned()),
        tool_call_id: Some(Raw::new(id)),
        description: known.description.as_deref().map(Raw::new),
        status: ToolStatus::InProgress,
        summary: None,
    })
}

/// Returns the file of a plan. Only the structured result of `ExitPlanMode` counts, not the output
/// of a tool.
fn plan_file(value: Json<'_>, known: &ToolUseState, id: &str) -> Option<Body<Raw>> {
    let path = value.text("filePath").filter(|_| &*known.name == "ExitPlanMode")?;
    let normalized = path.replace('\\', "/");
    let is_plan = normalized.contains("/.claude/plans/") && has_no_parent_dir(&normalized);
    let file = AgentFile { path: Raw::new(path), tool_call_id: Some(Raw::new(id)) };
    is_plan.then(|| Body::PlanFile(Box::new(file)))
}

/// Whether a path contains no `..`.
pub(super) fn has_no_parent_dir(path: &str) -> bool {
    path.split('/').all(|part| part != "..")
}

/// Returns the user's answers to a question.
fn answers(value: Json<'_>, known: &ToolUseState, id: &str) -> Option<Body<Raw>> {
    let fields = value.get("answers").filter(|_| known.tool == Some(ToolName::Question))?;
    let answer = |(key, value): (&str, Json<'_>)| {
        let list: Vec<_> = value.items().filter_map(Json::scalar).collect();
        let answer = value.owned().unwrap_or_else(|| list.join(", "));
        QuestionResponse { question: Raw::new(crate::json::decode(key)), answer: Raw::new(answer) }
    };
    let answers = fields.fields().take(MAX_ANSWERS).map(answer).collect();
    let answer = QuestionAnswer { tool_call_id: Raw::new(id), answers };
    Some(Body::QuestionAnswer(Box::new(answer)))
}
