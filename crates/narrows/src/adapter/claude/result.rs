//! Results of calls: one function for what is printed and what is kept.
//!
//! A result comes twice: as text for the model, and as the program's own value beside it. The
//! value tells more, but it is not always there and not always an object.

use super::call::Known;
use super::record::Record;
use super::tasks;
use super::{Claude, Raw};
use crate::adapter::Yield;
use crate::adapter::blob;
use crate::adapter::input::todo_list;
use crate::event::{AgentFile, Background, Body, GivenAnswer, QuestionAnswer, ToolEvent};
use crate::json::{Json, Kind};
use crate::tool::{
    Diff, Fresh, Hunk, Image, Output, Permission, Scope, ToolCall, ToolName, ToolStatus, Tri,
    exit_code, shell_text, task_text, unnumbered,
};

/// Longest file that is made out of an edit.
const MAX_FILE: usize = 64 << 20;

impl Claude {
    /// One result. `structured` is the program's own value, where it belongs to this call alone.
    pub(super) fn result(
        &mut self,
        block: Json<'_>,
        structured: Option<Json<'_>>,
        r: &Record<'_>,
        parent: Option<&Raw>,
        out: &mut Yield,
    ) {
        let id = block.get("tool_use_id").and_then(Json::scalar).unwrap_or_default().into_owned();
        self.guessed.retain(|call| *call != id);
        let (known, first) = self.calls.open(&id);
        let value = structured.filter(|s| s.kind() == Kind::Object);
        let failed = is_true(block.get("is_error"));
        known.identify_result(value);
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        known.tell(&mut call);
        // The text for the model is long, and often not needed.
        let given = block.get("content");
        let needs = failed || given.is_none_or(|g| g.kind() != Kind::String);
        let needs = needs || !tells_all(&call, value);
        let (text, images) = content(given.filter(|_| needs), out);
        call.images = (!images.is_empty()).then_some(images);
        call.permission = permission(r, &id);
        call.status = Some(if failed { ToolStatus::Failed } else { ToolStatus::Completed });
        if failed {
            failure(&mut call, &text, structured);
        } else {
            success(&mut call, text, value);
        }
        call.todos = call.todos.take().or_else(|| self.tasks.apply(known, value, failed));
        let mut more: Vec<Body<Raw>> = Vec::new();
        if let Some(value) = value.filter(|_| !failed) {
            if let Some(agent) = value.text("agentId") {
                self.agents.open(&agent).0.clone_from(&id);
            }
            if let Some(path) = value.text("persistedOutputPath") {
                let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
                self.files.open(name).0.clone_from(&id);
                call.truncated = Some(true);
            }
            more.extend(background(value, known, &id).map(|t| Body::BackgroundTask(Box::new(t))));
            more.extend(plan_file(value, known, &id));
            more.extend(answers(value, known, &id));
        }
        if let Some(Body::BackgroundTask(task)) = more.first() {
            self.tasks.began(task.task_id.peek());
        }
        let event = ToolEvent {
            id: Raw::new(id),
            call,
            fresh: Fresh::default(),
            grew_from: None,
            first,
            grows: false,
        };
        out.push_in(parent.cloned(), Body::ToolCallProgress(Box::new(event)));
        for body in more {
            out.push_in(parent.cloned(), body);
        }
    }

    /// The text of a file into which output was put that was too long for a record.
    pub(in crate::adapter) fn offloaded(&mut self, name: &str, text: &str, out: &mut Yield) {
        let Some(id) = self.files.get_mut(name).cloned() else { return };
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        self.calls.open(&id).0.tell(&mut call);
        call.output = Some(Output::Whole(Raw::new(text)));
        call.truncated = Some(false);
        out.time = None;
        let event = ToolEvent {
            id: Raw::new(id),
            call,
            fresh: Fresh::default(),
            grew_from: None,
            first: false,
            grows: false,
        };
        out.push(Body::ToolCallProgress(Box::new(event)));
    }
}

/// Whether the program's own value has everything that the text for the model has.
fn tells_all(call: &ToolCall<Raw>, value: Option<Json<'_>>) -> bool {
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

/// `true`, also where somebody wrote it as a word.
fn is_true(json: Option<Json<'_>>) -> bool {
    json.is_some_and(|j| j.bool() == Some(true) || j.str().as_deref() == Some("true"))
}

/// The words and pictures for the model.
fn content(content: Option<Json<'_>>, out: &mut Yield) -> (String, Vec<Image>) {
    let Some(content) = content else { return (String::new(), Vec::new()) };
    if let Some(text) = content.owned() {
        return (text, Vec::new());
    }
    let mut words: Vec<String> = Vec::new();
    let mut images = Vec::new();
    for block in content.items().filter(|b| b.kind() == Kind::Object) {
        match block.text("type").as_deref() {
            Some("image") => match blob::claude_image(block, &mut out.blobs) {
                Ok(image) => images.push(image),
                Err(words_for) => words.push(words_for),
            },
            Some("tool_reference") => {
                words.extend(block.get("tool_name").and_then(Json::owned));
            }
            _ => words.extend(block.get("text").and_then(Json::owned)),
        }
    }
    (words.join("\n"), images)
}

/// Why a call failed.
fn failure(call: &mut ToolCall<Raw>, text: &str, structured: Option<Json<'_>>) {
    let text = unwrapped(text);
    let said = structured.and_then(Json::str);
    // The user stopped it, before it ran or while it did.
    if said.as_deref() == Some("User rejected tool use") {
        call.status = Some(ToolStatus::Cancelled);
    }
    if call.tool_name == ToolName::Bash
        && let Some(code) = exit_code(text)
    {
        call.exit_code = Some(code);
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        call.output = Some(Output::Whole(Raw::new(rest)));
        return;
    }
    // The model is told more than what went wrong.
    let why = said.as_deref().map(|s| s.strip_prefix("Error: ").unwrap_or(s));
    call.error = Some(Raw::new(why.filter(|w| !w.is_empty()).unwrap_or(text)));
}

/// An error without the tags around it.
fn unwrapped(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<tool_use_error>");
    inner.map_or(text, |t| t.strip_suffix("</tool_use_error>").unwrap_or(t))
}

/// What a call gave, by its tool.
fn success(call: &mut ToolCall<Raw>, text: String, value: Option<Json<'_>>) {
    let get = |name: &str| value.and_then(|v| v.get(name));
    match call.tool_name {
        ToolName::Bash => {
            let printed = value.filter(|_| !is_true(get("isImage"))).and_then(printed);
            let text = printed.unwrap_or_else(|| shell_text(&text).to_owned());
            call.output = Some(Output::Whole(Raw::new(text)));
        }
        ToolName::Read => {
            let file = get("file");
            let text = match file.and_then(|f| f.get("content")).and_then(Json::owned) {
                Some(content) => content,
                None => unnumbered(tasks::without_reminders(&text)),
            };
            if call.images.is_none() || !text.is_empty() {
                call.output = Some(Output::Whole(Raw::new(text)));
            }
            let lines = |name: &str| file.and_then(|f| f.get(name)).and_then(Json::u64);
            call.truncated = lines("numLines").zip(lines("totalLines")).map(|(n, all)| n < all);
        }
        ToolName::Write | ToolName::Edit => {
            match value.and_then(diff) {
                Some(diff) => {
                    call.is_new_file = match get("type").and_then(Json::str).as_deref() {
                        Some("create") => Some(Tri::Yes),
                        Some("update") => Some(Tri::No),
                        _ => diff.old_text.as_ref().filter(|t| !t.is_empty()).map(|_| Tri::No),
                    };
                    call.diffs = Some(vec![diff]);
                }
                // Where only the model's text is there, it tells at least which of the two it was.
                None if text.starts_with("File created successfully") => {
                    call.is_new_file = Some(Tri::Yes);
                }
                None => {
                    call.is_new_file = Some(Tri::No).filter(|_| text.contains("has been updated"))
                }
            }
        }
        ToolName::Glob | ToolName::Grep => {
            call.count = get("numFiles").and_then(Json::u64);
            call.truncated = get("truncated").and_then(Json::bool);
            call.output = Some(Output::Whole(Raw::new(text)));
        }
        ToolName::Task => {
            call.child_session_id = get("agentId").and_then(Json::str).map(Raw::new);
            // A subagent in the background has not answered yet.
            if get("status").and_then(Json::str).as_deref() != Some("async_launched") {
                let parts = get("content").filter(|c| c.kind() == Kind::Array);
                let parts = parts
                    .map(|list| list.items().filter_map(|b| b.text("text")).collect::<String>());
                let told = parts.unwrap_or_else(|| handed_back(&text));
                call.task_output = task_text(&told).map(Raw::new);
            }
        }
        ToolName::TodoWrite => {
            let list = get("newTodos").filter(|l| l.kind() == Kind::Array);
            call.todos = list.map(todo_list);
        }
        ToolName::PlanMode => {
            call.plan = get("plan").and_then(Json::str).map(Raw::new);
            call.output = Some(Output::Whole(Raw::new(text)));
        }
        _ => call.output = Some(Output::Whole(Raw::new(text))),
    }
}

/// A subagent's report, out of what the program writes around it for the model.
fn handed_back(text: &str) -> String {
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

/// What a command printed.
fn printed(value: Json<'_>) -> Option<String> {
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

/// The change of a file: its text before and after where that is known, else the replaced part.
fn diff(value: Json<'_>) -> Option<Diff<Raw>> {
    let names = ["filePath", "structuredPatch", "originalFile"];
    value.any(&names)?;
    // Without a path it is that of the call.
    let path = Raw::new(value.text("filePath").unwrap_or_default());
    let hunks = value.get("structuredPatch").filter(|p| !p.is_empty()).map(hunks);
    let text = |name: &str| value.get(name).and_then(Json::owned);
    let original = text("originalFile");
    let creates = value.text("type").as_deref() == Some("create");
    if let Some(content) = text("content") {
        let old_text = original.filter(|_| !creates).map(Raw::new);
        let new_text = Some(Raw::new(content));
        return Some(Diff { old_text, new_text, hunks, ..Diff::of(path, Scope::File) });
    }
    let (old, new) = (text("oldString"), text("newString"));
    let all = value.get("replaceAll").and_then(Json::bool) == Some(true);
    if let (Some(original), Some(old), Some(new)) = (&original, &old, &new)
        && let Some(modified) = modified(original, old, new, all)
    {
        let (old_text, new_text) = (Some(Raw::new(original.clone())), Some(Raw::new(modified)));
        return Some(Diff { old_text, new_text, hunks, ..Diff::of(path, Scope::File) });
    }
    let (old_text, new_text) = (old.map(Raw::new), new.map(Raw::new));
    Some(Diff { old_text, new_text, hunks, ..Diff::of(path, Scope::Hunk) })
}

/// The file after the change, letter by letter; none when what is replaced is not in it.
fn modified(original: &str, old: &str, new: &str, all: bool) -> Option<String> {
    if old.is_empty() {
        return original.is_empty().then(|| new.to_owned());
    }
    let places = memchr::memmem::find_iter(original.as_bytes(), old.as_bytes());
    let places: Vec<usize> = places.take(if all { usize::MAX } else { 1 }).collect();
    // A file in which every letter becomes a page is not worth its memory.
    let len = original.len() + places.len().saturating_mul(new.len());
    if places.is_empty() || len > MAX_FILE {
        return None;
    }
    let mut out = String::with_capacity(len);
    let mut from = 0;
    for at in places {
        out.push_str(original.get(from..at)?);
        out.push_str(new);
        from = at + old.len();
    }
    out.push_str(original.get(from..)?);
    Some(out)
}

fn hunks(list: Json<'_>) -> Vec<Hunk<Raw>> {
    let hunk = |h: Json<'_>| {
        let number = |name: &str| h.get(name).and_then(Json::u64).unwrap_or(0);
        let lines = h.get("lines").into_iter().flat_map(Json::items);
        Hunk {
            old_start: number("oldStart"),
            old_lines: number("oldLines"),
            new_start: number("newStart"),
            new_lines: number("newLines"),
            lines: lines.filter_map(Json::str).map(Raw::new).collect(),
        }
    };
    list.items().filter(|h| h.kind() == Kind::Object).map(hunk).collect()
}

/// What somebody decided about the call. That a rule let it pass is nothing to tell.
fn permission(r: &Record<'_>, id: &str) -> Option<Permission<Raw>> {
    let told = r.decisions.into_iter().flat_map(Json::items).take(256);
    let mut told = told.filter(|m| m.text("id").as_deref() == Some(id));
    let told = told.find_map(|m| m.get("permission_decision"));
    let decision = told.or(r.decision)?;
    let by_user = decision.text("source").is_some_and(|s| s.starts_with("user"));
    let word = match decision.text("decision").as_deref() {
        Some("accept") if by_user => "allowed",
        Some("reject") => "rejected",
        _ => return None,
    };
    Some(Permission { decision: Raw::new(word), option: None, waited_ms: None })
}

/// The call goes on in the background.
fn background(value: Json<'_>, known: &Known, id: &str) -> Option<Background<Raw>> {
    let launched = value.text("status").as_deref() == Some("async_launched");
    let task = match value.get("backgroundTaskId") {
        Some(task) => Some(task),
        None => value.get("agentId").filter(|_| launched),
    };
    Some(Background {
        task_id: Raw::new(task.and_then(Json::scalar)?.into_owned()),
        tool_call_id: Some(Raw::new(id)),
        description: known.description.as_deref().map(Raw::new),
        status: ToolStatus::InProgress,
        summary: None,
    })
}

/// The file of a plan. The program says where it put it; what a tool printed does not count.
fn plan_file(value: Json<'_>, known: &Known, id: &str) -> Option<Body<Raw>> {
    let path = value.text("filePath").filter(|_| &*known.name == "ExitPlanMode")?;
    let plain = path.replace('\\', "/");
    let inside = plain.contains("/.claude/plans/") && stays(&plain);
    let file = AgentFile { path: Raw::new(path), tool_call_id: Some(Raw::new(id)) };
    inside.then(|| Body::PlanFile(Box::new(file)))
}

/// Whether a path goes nowhere but down.
pub(super) fn stays(path: &str) -> bool {
    path.split('/').all(|part| part != "..")
}

/// What the user answered.
fn answers(value: Json<'_>, known: &Known, id: &str) -> Option<Body<Raw>> {
    let given = value.get("answers").filter(|_| known.tool == Some(ToolName::Question))?;
    let answer = |(key, value): (&str, Json<'_>)| {
        let list: Vec<_> = value.items().filter_map(Json::scalar).collect();
        let answer = value.owned().unwrap_or_else(|| list.join(", "));
        GivenAnswer { question: Raw::new(crate::json::decode(key)), answer: Raw::new(answer) }
    };
    let answers = given.fields().take(64).map(answer).collect();
    let answer = QuestionAnswer { tool_call_id: Raw::new(id), answers };
    Some(Body::QuestionAnswer(Box::new(answer)))
}
