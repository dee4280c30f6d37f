//! Results of calls: one function for what is printed and what is kept.
//!
//! A result comes twice: as text for the model, and as the program's own value beside it. The
//! value tells more, but it is not always there and not always an object.

use super::call::Known;
use super::record::Record;
use super::{Claude, Raw};
use super::{edit, notebook, tasks};
use crate::adapter::Yield;
use crate::adapter::blob;
use crate::adapter::input::todo_list;
use crate::event::{AgentFile, Background, Body, GivenAnswer, QuestionAnswer, ToolEvent};
use crate::json::{Json, Kind};
use crate::tool::{
    Fresh, Image, Output, Permission, ToolCall, ToolName, ToolStatus, Tri, exit_code, shell_text,
    task_text, unnumbered,
};

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
        let failed = is_true(block.get("is_error")) || (known.task.is_some() && denied(value));
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
        // A result that does not say what was answered, or that nothing was: nobody is asked any more.
        let answered = more.iter().any(|body| matches!(body, Body::QuestionAnswer(_)));
        if known.tool == Some(ToolName::Question) && !answered {
            let answer = QuestionAnswer { tool_call_id: Raw::new(&*id), answers: Vec::new() };
            more.push(Body::QuestionAnswer(Box::new(answer)));
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
            repeats: false,
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
            repeats: false,
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

/// Whether the program's own value says that nothing came of a call, which its text only mentions.
fn denied(value: Option<Json<'_>>) -> bool {
    value.and_then(|v| v.get("success")).and_then(Json::bool) == Some(false)
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
        call.truncated = cut_off(rest).then_some(true);
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
            call.truncated = cut_off(&text).then_some(true);
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
            match value.and_then(edit::diff) {
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
        ToolName::Notebook => {
            call.diffs = value.and_then(notebook::diff).map(|diff| vec![diff]);
            call.output = Some(Output::Whole(Raw::new(text)));
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

/// Whether an output ends with the note that older versions put in the place of the rest.
fn cut_off(text: &str) -> bool {
    let note = text.trim_end().rsplit('\n').next().unwrap_or_default();
    let inner = note.strip_prefix("... [").and_then(|n| n.strip_suffix("] ..."));
    let count = inner.and_then(|n| {
        n.strip_suffix(" lines truncated").or_else(|| n.strip_suffix(" characters truncated"))
    });
    count.is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
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
