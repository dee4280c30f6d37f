//! How each field of an event is redacted. Every field of every event passes here, and only here.

use super::tool_fields::redact_tool;
use crate::model::event::{
    AgentFile, Artifact, ArtifactInfo, BackgroundTask, Body, Compaction, ErrorEvent, Event,
    FileChange, MessageUsage, Notice, PermissionDecision, PermissionOption, PermissionRequest,
    PlanEntry, PlanUpdate, Question, QuestionAnswer, QuestionOption, QuestionPart,
    QuestionResponse, SessionUpdate, SlashCommand, TextChunk, ToolEvent, TurnEnd, UnknownPacket,
    UsageUpdate, UserMessage,
};
use crate::model::id::EventId;
use crate::model::tool::{ChangedFields, ToolCall, ToolKind, ToolName};
use narrows_sanitize::{Clean, Mode, Raw, Redactor, Tree};

/// Largest kept tree of an unknown packet, in bytes.
const MAX_UNKNOWN_BYTES: usize = 64 * 1024;
/// Largest kept tree of arguments or details, in bytes.
pub(super) const MAX_TREE_BYTES: usize = 64 * 1024 * 1024;

/// Redacts single fields by their kind.
pub(super) struct FieldRedactor<'a>(&'a mut Redactor);

impl FieldRedactor<'_> {
    pub(super) fn mode(&mut self, raw: Raw, mode: Mode) -> Clean {
        self.0.redact(raw, mode)
    }

    pub(super) fn text(&mut self, raw: Raw) -> Clean {
        self.mode(raw, Mode::Text)
    }

    pub(super) fn body(&mut self, raw: Raw) -> Clean {
        self.mode(raw, Mode::Body)
    }

    pub(super) fn path(&mut self, raw: &Raw) -> Clean {
        self.0.field(raw.peek())
    }

    pub(super) fn texts(&mut self, raw: Option<Raw>) -> Option<Clean> {
        raw.map(|r| self.text(r))
    }

    pub(super) fn tree(&mut self, raw: Option<Tree<Raw>>, limit: usize) -> Option<Tree<Clean>> {
        raw.map(|t| self.0.redact_tree(&t, limit))
    }
}

/// An event of the same call without content.
pub(super) fn empty_tool_event(event: &Event<Raw>) -> Event<Raw> {
    let (id, tool_name, kind) = match event.body.tool() {
        Some(tool) => (tool.id.clone(), tool.call.tool_name, tool.call.kind),
        None => (Raw::default(), ToolName::Unknown, ToolKind::Other),
    };
    let mut call = ToolCall::unknown();
    call.tool_name = tool_name;
    call.kind = kind;
    let fresh = ChangedFields::default();
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

/// Redacts an event; `ready` is output that was already redacted as a stream.
pub(super) fn redact_event(
    redactor: &mut Redactor,
    event: Event<Raw>,
    ready: Option<Clean>,
) -> Event {
    let mut fields = FieldRedactor(redactor);
    let body = match event.body {
        Body::UserMessage(m) => Body::UserMessage(UserMessage {
            text: fields.text(m.text),
            images: m.images,
            origin: m.origin,
            block_id: fields.texts(m.block_id),
            whole: m.whole,
        }),
        Body::TextChunk(c) => Body::TextChunk(chunk(&mut fields, c)),
        Body::ThinkingChunk(c) => Body::ThinkingChunk(chunk(&mut fields, c)),
        Body::ToolCallStart(t) => {
            Body::ToolCallStart(Box::new(redact_tool(&mut fields, *t, ready)))
        }
        Body::ToolCallProgress(t) => {
            Body::ToolCallProgress(Box::new(redact_tool(&mut fields, *t, ready)))
        }
        Body::PlanUpdate(p) => Body::PlanUpdate(PlanUpdate {
            entries: p
                .entries
                .into_iter()
                .map(|e| PlanEntry {
                    content: fields.text(e.content),
                    status: e.status,
                    priority: fields.texts(e.priority),
                })
                .collect(),
        }),
        Body::PromptResponse(r) => Body::PromptResponse(Box::new(TurnEnd {
            stop_reason: fields.texts(r.stop_reason),
            usage: r.usage,
            failed: r.failed,
            error: fields.texts(r.error),
            usage_is_exact: r.usage_is_exact,
            cost_usd: r.cost_usd,
            duration_ms: r.duration_ms,
        })),
        Body::ArtifactCreated(made) => {
            let a = made.artifact;
            let artifact = ArtifactInfo {
                id: fields.text(a.id),
                r#type: fields.text(a.r#type),
                name: fields.text(a.name),
                path: fields.path(&a.path),
                preview_url: fields.texts(a.preview_url),
            };
            Body::ArtifactCreated(Box::new(Artifact { artifact }))
        }
        Body::FileChanged(f) => Body::FileChanged(Box::new(FileChange {
            path: fields.path(&f.path),
            action: f.action,
            size_bytes: f.size_bytes,
            tool_call_id: fields.texts(f.tool_call_id),
        })),
        Body::PermissionRequest(a) => Body::PermissionRequest(Box::new(PermissionRequest {
            request_id: fields.text(a.request_id),
            tool_call_id: fields.text(a.tool_call_id),
            title: fields.texts(a.title),
            options: a
                .options
                .into_iter()
                .map(|o| PermissionOption {
                    option_id: fields.text(o.option_id),
                    name: fields.text(o.name),
                    kind: fields.text(o.kind),
                })
                .collect(),
            // The tool call stage fills this in from redacted events.
            call: None,
        })),
        Body::PermissionAnswer(a) => Body::PermissionAnswer(Box::new(PermissionDecision {
            request_id: fields.text(a.request_id),
            tool_call_id: fields.text(a.tool_call_id),
            decision: a.decision,
            option_id: fields.texts(a.option_id),
            option: fields.texts(a.option),
            waited_ms: a.waited_ms,
        })),
        Body::SessionInfo(i) => Body::SessionInfo(Box::new(info(&mut fields, *i))),
        Body::Usage(u) => Body::Usage(Box::new(UsageUpdate {
            used: u.used,
            size: u.size,
            cost_usd: u.cost_usd,
            answer: u.answer.map(|a| MessageUsage {
                message_id: fields.text(a.message_id),
                request_id: fields.texts(a.request_id),
                model: fields.texts(a.model),
                usage: a.usage,
            }),
        })),
        Body::Compaction(s) => Body::Compaction(Box::new(Compaction {
            id: fields.texts(s.id),
            text: fields.text(s.text),
            trigger: fields.texts(s.trigger),
            tokens_before: s.tokens_before,
            unfinished: s.unfinished,
        })),
        Body::BackgroundTask(t) => Body::BackgroundTask(Box::new(BackgroundTask {
            task_id: fields.text(t.task_id),
            tool_call_id: fields.texts(t.tool_call_id),
            description: fields.texts(t.description),
            status: t.status,
            summary: fields.texts(t.summary),
        })),
        Body::QuestionRequest(q) => Body::QuestionRequest(Box::new(question(&mut fields, *q))),
        Body::QuestionAnswer(a) => Body::QuestionAnswer(Box::new(QuestionAnswer {
            tool_call_id: fields.text(a.tool_call_id),
            answers: a
                .answers
                .into_iter()
                .map(|g| QuestionResponse {
                    question: fields.text(g.question),
                    answer: fields.text(g.answer),
                })
                .collect(),
        })),
        Body::PlanFile(f) => Body::PlanFile(Box::new(agent_file(&mut fields, *f))),
        Body::SkillFile(f) => Body::SkillFile(Box::new(agent_file(&mut fields, *f))),
        Body::Notice(n) => {
            Body::Notice(Notice { kind: fields.text(n.kind), text: fields.text(n.text) })
        }
        Body::Error(e) => Body::Error(Box::new(ErrorEvent {
            message: fields.text(e.message),
            code: fields.tree(e.code, MAX_UNKNOWN_BYTES),
            details: fields.tree(e.details, MAX_UNKNOWN_BYTES),
            retryable: e.retryable,
            is_end: e.is_end,
        })),
        Body::Unknown(u) => Body::Unknown(UnknownPacket {
            kind: fields.text(u.kind),
            tree: fields.tree(u.tree, MAX_UNKNOWN_BYTES),
        }),
        Body::Malformed(m) => Body::Malformed(m),
    };
    Event {
        id: event.id,
        began: event.began,
        time: event.time,
        parent: fields.texts(event.parent),
        body,
    }
}

fn chunk(fields: &mut FieldRedactor<'_>, c: TextChunk<Raw>) -> TextChunk {
    TextChunk {
        text: fields.text(c.text),
        images: c.images,
        block_id: fields.texts(c.block_id),
        whole: c.whole,
        has_block_id: c.has_block_id,
        hidden: c.hidden,
    }
}

fn question(fields: &mut FieldRedactor<'_>, q: Question<Raw>) -> Question {
    let part = |fields: &mut FieldRedactor<'_>, p: QuestionPart<Raw>| QuestionPart {
        question: fields.text(p.question),
        header: fields.texts(p.header),
        options: p
            .options
            .into_iter()
            .map(|o| QuestionOption {
                label: fields.text(o.label),
                description: fields.texts(o.description),
            })
            .collect(),
        multi_select: p.multi_select,
        name: fields.texts(p.name),
        format: fields.texts(p.format),
        default: fields.texts(p.default),
        optional: p.optional,
    };
    Question {
        request_id: fields.texts(q.request_id),
        tool_call_id: fields.text(q.tool_call_id),
        questions: q.questions.into_iter().map(|p| part(fields, p)).collect(),
    }
}

fn agent_file(fields: &mut FieldRedactor<'_>, f: AgentFile<Raw>) -> AgentFile {
    AgentFile { path: fields.path(&f.path), tool_call_id: fields.texts(f.tool_call_id) }
}

fn info(fields: &mut FieldRedactor<'_>, i: SessionUpdate<Raw>) -> SessionUpdate {
    SessionUpdate {
        agent: fields.texts(i.agent),
        version: fields.texts(i.version),
        model: fields.texts(i.model),
        mode: fields.texts(i.mode),
        title: fields.texts(i.title),
        status: fields.texts(i.status),
        cwd: i.cwd.as_ref().map(|p| fields.path(p)),
        native_id: fields.texts(i.native_id),
        commands: i.commands.map(|list| {
            list.into_iter()
                .map(|c| SlashCommand {
                    name: fields.text(c.name),
                    description: fields.texts(c.description),
                })
                .collect()
        }),
        named: i.named,
    }
}

/// Formats an id as its `Display` does. It consists of numbers, so it needs no redaction.
impl From<EventId> for Clean {
    fn from(id: EventId) -> Clean {
        let mut text = Clean::default();
        if id.source > 0 {
            text.push(&Clean::number(id.source.into()));
            text.push(&Clean::literal("-"));
        }
        text.push(&Clean::number(id.packet));
        text.push(&Clean::literal("."));
        text.push(&Clean::number(id.index.into()));
        text
    }
}
