//! Which field is cleaned how. Every field of every event passes here, and only here.

use super::clean::Cleaner;
use super::paths::Mode;
use super::text::{Clean, Raw, Tree};
use super::tree;
use crate::event::{
    AgentFile, Answer, AnswerUsage, Artifact, ArtifactInfo, Ask, Background, Body, Choice, Chunk,
    Command, Event, Failure, FileChange, Gauge, GivenAnswer, Info, Message, Note, Plan, PlanEntry,
    Question, QuestionAnswer, QuestionOption, QuestionPart, Response, Summary, ToolEvent, Unknown,
};
use crate::id::EventId;
use crate::tool::{Diff, Fresh, Hunk, Location, Output, Permission, Todo, ToolCall};

/// Largest tree of an unknown packet that is kept.
const MAX_UNKNOWN: usize = 64 * 1024;
/// Largest tree of arguments or details that is kept.
const MAX_TREE: usize = 64 * 1024 * 1024;

struct By<'a>(&'a mut Cleaner);

impl By<'_> {
    fn mode(&mut self, raw: Raw, mode: Mode) -> Clean {
        Clean(self.0.shared(raw.0, mode))
    }

    fn text(&mut self, raw: Raw) -> Clean {
        self.mode(raw, Mode::Text)
    }

    fn body(&mut self, raw: Raw) -> Clean {
        self.mode(raw, Mode::Body)
    }

    fn path(&mut self, raw: &Raw) -> Clean {
        Clean(self.0.field(raw.peek()))
    }

    fn texts(&mut self, raw: Option<Raw>) -> Option<Clean> {
        raw.map(|r| self.text(r))
    }

    fn tree(&mut self, raw: Option<Tree<Raw>>, limit: usize) -> Option<Tree<Clean>> {
        raw.map(|t| tree::clean(self.0, &t, limit))
    }
}

/// An event of the same call that says nothing.
pub(super) fn shell(event: &Event<Raw>) -> Event<Raw> {
    let (id, tool_name, kind) = match event.body.tool() {
        Some(tool) => (tool.id.clone(), tool.call.tool_name, tool.call.kind),
        None => (Raw::default(), crate::tool::ToolName::Unknown, crate::tool::ToolKind::Other),
    };
    let mut call = ToolCall::unknown();
    call.tool_name = tool_name;
    call.kind = kind;
    let fresh = Fresh::default();
    let tool =
        ToolEvent { id, call, fresh, grew_from: None, first: false, grows: false, repeats: false };
    Event {
        id: EventId::default(),
        began: EventId::default(),
        time: event.time.clone(),
        parent: event.parent.clone(),
        body: Body::ToolCallProgress(Box::new(tool)),
    }
}

/// Cleans an event; `ready` is output that has already passed a seam.
pub(super) fn clean(cleaner: &mut Cleaner, event: Event<Raw>, ready: Option<Clean>) -> Event {
    let mut by = By(cleaner);
    let body = match event.body {
        Body::UserMessage(m) => Body::UserMessage(Message {
            text: by.text(m.text),
            images: m.images,
            origin: m.origin,
            block_id: by.texts(m.block_id),
            whole: m.whole,
        }),
        Body::TextChunk(c) => Body::TextChunk(chunk(&mut by, c)),
        Body::ThinkingChunk(c) => Body::ThinkingChunk(chunk(&mut by, c)),
        Body::ToolCallStart(t) => Body::ToolCallStart(Box::new(tool(&mut by, *t, ready))),
        Body::ToolCallProgress(t) => Body::ToolCallProgress(Box::new(tool(&mut by, *t, ready))),
        Body::PlanUpdate(p) => Body::PlanUpdate(Plan {
            entries: p
                .entries
                .into_iter()
                .map(|e| PlanEntry {
                    content: by.text(e.content),
                    status: e.status,
                    priority: by.texts(e.priority),
                })
                .collect(),
        }),
        Body::PromptResponse(r) => Body::PromptResponse(Box::new(Response {
            stop_reason: by.texts(r.stop_reason),
            usage: r.usage,
            failed: r.failed,
            error: by.texts(r.error),
            settles: r.settles,
            cost_usd: r.cost_usd,
            duration_ms: r.duration_ms,
        })),
        Body::ArtifactCreated(made) => {
            let a = made.artifact;
            let artifact = ArtifactInfo {
                id: by.text(a.id),
                r#type: by.text(a.r#type),
                name: by.text(a.name),
                path: by.path(&a.path),
                preview_url: by.texts(a.preview_url),
            };
            Body::ArtifactCreated(Box::new(Artifact { artifact }))
        }
        Body::FileChanged(f) => Body::FileChanged(Box::new(FileChange {
            path: by.path(&f.path),
            action: f.action,
            size_bytes: f.size_bytes,
            tool_call_id: by.texts(f.tool_call_id),
        })),
        Body::PermissionRequest(a) => Body::PermissionRequest(Box::new(Ask {
            request_id: by.text(a.request_id),
            tool_call_id: by.text(a.tool_call_id),
            title: by.texts(a.title),
            options: a
                .options
                .into_iter()
                .map(|o| Choice {
                    option_id: by.text(o.option_id),
                    name: by.text(o.name),
                    kind: by.text(o.kind),
                })
                .collect(),
            // What is known of the call is filled in later, out of what was cleaned.
            call: None,
        })),
        Body::PermissionAnswer(a) => Body::PermissionAnswer(Box::new(Answer {
            request_id: by.text(a.request_id),
            tool_call_id: by.text(a.tool_call_id),
            decision: a.decision,
            option_id: by.texts(a.option_id),
            option: by.texts(a.option),
            waited_ms: a.waited_ms,
        })),
        Body::SessionInfo(i) => Body::SessionInfo(Box::new(info(&mut by, *i))),
        Body::Usage(u) => Body::Usage(Box::new(Gauge {
            used: u.used,
            size: u.size,
            cost_usd: u.cost_usd,
            answer: u.answer.map(|a| AnswerUsage {
                message_id: by.text(a.message_id),
                request_id: by.texts(a.request_id),
                model: by.texts(a.model),
                usage: a.usage,
            }),
        })),
        Body::Compaction(s) => Body::Compaction(Box::new(Summary {
            id: by.texts(s.id),
            text: by.text(s.text),
            trigger: by.texts(s.trigger),
            tokens_before: s.tokens_before,
            unfinished: s.unfinished,
        })),
        Body::BackgroundTask(t) => Body::BackgroundTask(Box::new(Background {
            task_id: by.text(t.task_id),
            tool_call_id: by.texts(t.tool_call_id),
            description: by.texts(t.description),
            status: t.status,
            summary: by.texts(t.summary),
        })),
        Body::QuestionRequest(q) => Body::QuestionRequest(Box::new(question(&mut by, *q))),
        Body::QuestionAnswer(a) => Body::QuestionAnswer(Box::new(QuestionAnswer {
            tool_call_id: by.text(a.tool_call_id),
            answers: a
                .answers
                .into_iter()
                .map(|g| GivenAnswer { question: by.text(g.question), answer: by.text(g.answer) })
                .collect(),
        })),
        Body::PlanFile(f) => Body::PlanFile(Box::new(agent_file(&mut by, *f))),
        Body::SkillFile(f) => Body::SkillFile(Box::new(agent_file(&mut by, *f))),
        Body::Notice(n) => Body::Notice(Note { kind: by.text(n.kind), text: by.text(n.text) }),
        Body::Error(e) => Body::Error(Box::new(Failure {
            message: by.text(e.message),
            code: by.tree(e.code, MAX_UNKNOWN),
            details: by.tree(e.details, MAX_UNKNOWN),
            retryable: e.retryable,
            is_end: e.is_end,
        })),
        Body::Unknown(u) => {
            Body::Unknown(Unknown { kind: by.text(u.kind), tree: by.tree(u.tree, MAX_UNKNOWN) })
        }
        Body::Malformed(m) => Body::Malformed(m),
    };
    Event {
        id: event.id,
        began: event.began,
        time: event.time,
        parent: by.texts(event.parent),
        body,
    }
}

fn chunk(by: &mut By<'_>, c: Chunk<Raw>) -> Chunk {
    Chunk {
        text: by.text(c.text),
        images: c.images,
        block_id: by.texts(c.block_id),
        whole: c.whole,
        keyed: c.keyed,
        hidden: c.hidden,
    }
}

fn question(by: &mut By<'_>, q: Question<Raw>) -> Question {
    let part = |by: &mut By<'_>, p: QuestionPart<Raw>| QuestionPart {
        question: by.text(p.question),
        header: by.texts(p.header),
        options: p
            .options
            .into_iter()
            .map(|o| QuestionOption {
                label: by.text(o.label),
                description: by.texts(o.description),
            })
            .collect(),
        multi_select: p.multi_select,
        name: by.texts(p.name),
        format: by.texts(p.format),
        default: by.texts(p.default),
        optional: p.optional,
    };
    Question {
        request_id: by.texts(q.request_id),
        tool_call_id: by.text(q.tool_call_id),
        questions: q.questions.into_iter().map(|p| part(by, p)).collect(),
    }
}

fn agent_file(by: &mut By<'_>, f: AgentFile<Raw>) -> AgentFile {
    AgentFile { path: by.path(&f.path), tool_call_id: by.texts(f.tool_call_id) }
}

fn info(by: &mut By<'_>, i: Info<Raw>) -> Info {
    Info {
        agent: by.texts(i.agent),
        version: by.texts(i.version),
        model: by.texts(i.model),
        mode: by.texts(i.mode),
        title: by.texts(i.title),
        status: by.texts(i.status),
        cwd: i.cwd.as_ref().map(|p| by.path(p)),
        native_id: by.texts(i.native_id),
        commands: i.commands.map(|list| {
            list.into_iter()
                .map(|c| Command { name: by.text(c.name), description: by.texts(c.description) })
                .collect()
        }),
        named: i.named,
    }
}

fn tool(by: &mut By<'_>, t: ToolEvent<Raw>, ready: Option<Clean>) -> ToolEvent {
    let c = t.call;
    // What was read from a file is the user's own text; what a command printed is not.
    let body = c.kind == crate::tool::ToolKind::Read;
    let output = match (ready, c.output) {
        (Some(text), _) => Some(Output::More(text)),
        (None, Some(Output::Whole(text))) if body => Some(Output::Whole(by.body(text))),
        (None, Some(Output::Whole(text))) => Some(Output::Whole(by.text(text))),
        (None, Some(Output::More(text))) => Some(Output::More(by.text(text))),
        (None, None) => None,
    };
    let call = ToolCall {
        tool_name: c.tool_name,
        kind: c.kind,
        status: c.status,
        is_todo: c.is_todo,
        name: by.texts(c.name),
        raw_kind: by.texts(c.raw_kind),
        agent_title: by.texts(c.agent_title),
        title: by.texts(c.title),
        description: by.texts(c.description),
        said: by.texts(c.said),
        command: by.texts(c.command),
        file_path: c.file_path.as_ref().map(|p| by.path(p)),
        pattern: by.texts(c.pattern),
        subagent_type: by.texts(c.subagent_type),
        child_session_id: by.texts(c.child_session_id),
        input: by.tree(c.input, MAX_TREE),
        output,
        error: by.texts(c.error),
        exit_code: c.exit_code,
        is_new_file: c.is_new_file,
        old_content: c.old_content.map(|t| by.body(t)),
        new_content: c.new_content.map(|t| by.body(t)),
        diffs: c.diffs.map(|list| list.into_iter().map(|d| diff(by, d)).collect()),
        todos: c.todos.map(|list| {
            list.into_iter()
                .map(|t| Todo {
                    content: by.text(t.content),
                    status: t.status,
                    active_form: by.text(t.active_form),
                    priority: by.texts(t.priority),
                    id: by.texts(t.id),
                })
                .collect()
        }),
        task_output: by.texts(c.task_output),
        plan: by.texts(c.plan),
        images: c.images,
        locations: c.locations.map(|list| {
            list.iter().map(|l| Location { path: by.path(&l.path), line: l.line }).collect()
        }),
        diagnostics: by.tree(c.diagnostics, MAX_TREE),
        truncated: c.truncated,
        count: c.count,
        duration_ms: c.duration_ms,
        permission: c.permission.map(|p| Permission {
            decision: by.text(p.decision),
            option: by.texts(p.option),
            waited_ms: p.waited_ms,
        }),
    };
    ToolEvent {
        id: by.text(t.id),
        call,
        fresh: t.fresh,
        grew_from: t.grew_from,
        first: t.first,
        grows: t.grows,
        repeats: t.repeats,
    }
}

fn diff(by: &mut By<'_>, d: Diff<Raw>) -> Diff {
    Diff {
        path: by.path(&d.path),
        old_text: d.old_text.map(|t| by.body(t)),
        new_text: d.new_text.map(|t| by.body(t)),
        scope: d.scope,
        action: d.action,
        additions: d.additions,
        deletions: d.deletions,
        patch: d.patch.map(|t| by.body(t)),
        hunks: d.hunks.map(|list| list.into_iter().map(|h| hunk(by, &h)).collect()),
    }
}

/// Lines are cleaned as one text, without the signs before them, and stay as many as they were.
fn hunk(by: &mut By<'_>, h: &Hunk<Raw>) -> Hunk {
    let sign = |line: &Raw| {
        let first = line.peek().chars().next();
        first.filter(|c| matches!(c, ' ' | '+' | '-' | '\\'))
    };
    let bare = |line: &Raw| -> String {
        let text = &line.peek()[usize::from(sign(line).is_some())..];
        if text.contains('\n') { text.replace('\n', " ") } else { text.to_owned() }
    };
    let bare: Vec<String> = h.lines.iter().map(bare).collect();
    let mut shown: Vec<Clean> = by.body(Raw::new(bare.join("\n"))).lines_apart().collect();
    if shown.len() != bare.len() {
        shown = spread(by, &bare, shown);
    }
    let lines = h.lines.iter().zip(shown).map(|(line, shown)| {
        let mut out = Clean::literal(match sign(line) {
            Some('+') => "+",
            Some('-') => "-",
            Some('\\') => "\\",
            Some(_) => " ",
            None => "",
        });
        out.push(&shown);
        out
    });
    let lines = lines.collect();
    let (old_start, old_lines) = (h.old_start, h.old_lines);
    Hunk { old_start, old_lines, new_start: h.new_start, new_lines: h.new_lines, lines }
}

/// Something over several lines became one: the lines that it took are empty, the others stay where
/// they were.
fn spread(by: &mut By<'_>, bare: &[String], shown: Vec<Clean>) -> Vec<Clean> {
    let mut shown = shown.into_iter().peekable();
    let mut gap = false;
    let mut out = Vec::with_capacity(bare.len());
    for line in bare {
        let alone = by.body(Raw::new(line.as_str()));
        let same = shown.peek() == Some(&alone);
        let next = if same || !gap { shown.next() } else { None };
        gap = !same;
        out.push(next.unwrap_or_default());
    }
    out
}
