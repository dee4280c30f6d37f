//! Clean packets in the shapes that front ends of the protocol already speak.

use crate::event::{ArtifactInfo, Body, Event, PlanEntry, ToolEvent, Usage};
use crate::sanitize::{Clean, Tree};
use crate::time::Time;
use crate::tool::{Diff, Location, Output, Todo, ToolKind, ToolName, ToolStatus, Tri};
use serde::Serialize;

/// One packet.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Packet<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_update: Option<&'static str>,
    timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<&'a Clean>,
    #[serde(flatten)]
    body: Shape<'a>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Shape<'a> {
    #[serde(rename_all = "camelCase")]
    Chunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<&'a Clean>,
        content: Text<'a>,
    },
    Call(Box<Call<'a>>),
    Plan {
        entries: &'a [PlanEntry],
    },
    #[serde(rename_all = "camelCase")]
    Response {
        stop_reason: Option<&'a Clean>,
        usage: Option<&'a Usage>,
        #[serde(rename = "_meta")]
        meta: Empty,
    },
    Artifact {
        artifact: &'a ArtifactInfo,
    },
    Error {
        message: &'a Clean,
        code: Option<&'a Tree<Clean>>,
        details: Option<&'a Tree<Clean>>,
    },
}

#[derive(Debug, Clone, Serialize)]
struct Empty {}

#[derive(Debug, Clone, Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a Clean,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    tool_call_id: &'a Clean,
    title: Option<&'a Clean>,
    tool_name: ToolName,
    kind: ToolKind,
    status: Option<ToolStatus>,
    raw_input: RawInput<'a>,
    raw_output: Option<RawOutput<'a>>,
    content: Option<Vec<Block<'a>>>,
    locations: &'a [Location],
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum RawInput<'a> {
    Given(&'a Tree<Clean>),
    Empty(Empty),
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum RawOutput<'a> {
    Error { error: &'a Clean },
    Given { output: &'a Clean, metadata: Metadata<'a> },
}

#[derive(Debug, Clone, Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exists: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    todos: Option<&'a [Todo]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<&'a Tree<Clean>>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Content {
        r#type: &'static str,
        content: Text<'a>,
    },
    Diff {
        r#type: &'static str,
        #[serde(flatten)]
        diff: Diff,
    },
}

/// The packet of an event; events that these front ends do not know have none.
pub fn packet(event: &Event) -> Option<Packet<'_>> {
    let chunk =
        |block, text| Shape::Chunk { message_id: block, content: Text { r#type: "text", text } };
    let (kind, update, body) = match &event.body {
        Body::UserMessage(m) => {
            ("user_message_chunk", Some("user_message_chunk"), chunk(m.block_id.as_ref(), &m.text))
        }
        Body::TextChunk(c) if c.whole => {
            ("agent_message", None, chunk(c.block_id.as_ref(), &c.text))
        }
        Body::ThinkingChunk(c) if c.whole => {
            ("agent_thought", None, chunk(c.block_id.as_ref(), &c.text))
        }
        Body::TextChunk(c) => (
            "agent_message_chunk",
            Some("agent_message_chunk"),
            chunk(c.block_id.as_ref(), &c.text),
        ),
        Body::ThinkingChunk(c) => (
            "agent_thought_chunk",
            Some("agent_thought_chunk"),
            chunk(c.block_id.as_ref(), &c.text),
        ),
        Body::ToolCallStart(tool) => ("tool_call_start", Some("tool_call"), call(tool)),
        Body::ToolCallProgress(tool) => {
            ("tool_call_progress", Some("tool_call_update"), call(tool))
        }
        Body::PlanUpdate(p) => {
            ("agent_plan_update", Some("plan"), Shape::Plan { entries: &p.entries })
        }
        Body::PromptResponse(r) => (
            "prompt_response",
            None,
            Shape::Response {
                stop_reason: r.stop_reason.as_ref(),
                usage: r.usage.as_ref(),
                meta: Empty {},
            },
        ),
        Body::ArtifactCreated(a) => {
            ("artifact_created", None, Shape::Artifact { artifact: &a.artifact })
        }
        Body::Error(e) => (
            "error",
            None,
            Shape::Error {
                message: &e.message,
                code: e.code.as_ref(),
                details: e.details.as_ref(),
            },
        ),
        Body::FileChanged(_)
        | Body::PermissionRequest(_)
        | Body::PermissionAnswer(_)
        | Body::SessionInfo(_)
        | Body::Usage(_)
        | Body::Compaction(_)
        | Body::BackgroundTask(_)
        | Body::QuestionRequest(_)
        | Body::QuestionAnswer(_)
        | Body::PlanFile(_)
        | Body::SkillFile(_)
        | Body::Notice(_)
        | Body::Unknown(_)
        | Body::Malformed(_) => return None,
    };
    Some(Packet {
        r#type: kind,
        session_update: update,
        timestamp: event.time.as_ref(),
        parent_tool_call_id: event.parent.as_ref(),
        body,
    })
}

fn call(tool: &ToolEvent) -> Shape<'_> {
    let c = &tool.call;
    // These front ends replace what they have: the part that output grew by is no use to them.
    let text = match &c.output {
        Some(Output::Whole(text)) if !text.is_empty() || c.exit_code.is_some() => Some(text),
        _ => None,
    };
    let ended = c.status.is_some_and(ToolStatus::is_final);
    let text = text.filter(|_| ended || c.kind != ToolKind::Edit);
    // The card of a task shows the prompt; on this wire the answer is the output.
    let text = if c.tool_name == ToolName::Task { c.task_output.as_ref() } else { text };
    let metadata = Metadata {
        exit: c.exit_code,
        truncated: c.truncated,
        count: c.count,
        exists: match c.is_new_file {
            Some(Tri::Yes) => Some(false),
            Some(Tri::No) => Some(true),
            Some(Tri::Unknown) | None => None,
        },
        todos: c.todos.as_deref(),
        diagnostics: c.diagnostics.as_ref(),
    };
    let raw_output = match (&c.error, text) {
        (Some(error), _) => Some(RawOutput::Error { error }),
        (None, Some(output)) => Some(RawOutput::Given { output, metadata }),
        (None, None) => None,
    };
    let mut content: Vec<Block<'_>> = Vec::new();
    if c.kind != ToolKind::Edit {
        content.extend(text.map(|text| Block::Content {
            r#type: "content",
            content: Text { r#type: "text", text },
        }));
    }
    content.extend(c.diffs.iter().flatten().map(|diff| {
        let mut diff = diff.clone();
        // On this wire an empty old text means a new file.
        if c.is_new_file == Some(Tri::Yes) && diff.old_text.is_none() {
            diff.old_text = Some(Clean::default());
        }
        Block::Diff { r#type: "diff", diff }
    }));
    Shape::Call(Box::new(Call {
        tool_call_id: &tool.id,
        title: c.agent_title.as_ref().or(c.title.as_ref()),
        tool_name: c.tool_name,
        kind: c.kind,
        status: c.status,
        raw_input: c.input.as_ref().map_or(RawInput::Empty(Empty {}), RawInput::Given),
        raw_output,
        content: (!content.is_empty()).then_some(content),
        locations: c.locations.as_deref().unwrap_or_default(),
    }))
}
