//! The `packets` view: clean packets in the shapes of the protocol, for clients that speak it
//! already.
//!
//! A packet depends on one event and its changes, never on earlier events: a stream that resumes at
//! any cursor has the same packets as an uninterrupted one.

mod call;
mod input;
mod output;

use crate::model::change::{Change, ItemPatch};
use crate::model::event::{ArtifactInfo, Body, ErrorEvent, Event, PlanEntry, Usage};
use crate::model::item::ItemBody;
use crate::model::time::Time;
use crate::model::tool::ToolStatus;
use crate::sanitize::{Clean, Tree};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// One packet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientPacket<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_update: Option<&'static str>,
    timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<&'a Clean>,
    #[serde(flatten)]
    body: PacketBody<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PacketBody<'a> {
    #[serde(rename_all = "camelCase")]
    Chunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<&'a Clean>,
        content: TextContent<'a>,
        #[serde(rename = "_meta")]
        meta: (),
    },
    Call(Box<call::CallBody<'a>>),
    Plan {
        entries: Vec<EntryBody<'a>>,
        #[serde(rename = "_meta")]
        meta: (),
    },
    #[serde(rename_all = "camelCase")]
    Response {
        stop_reason: &'a str,
        usage: Option<&'a Usage>,
        #[serde(rename = "_meta")]
        meta: EmptyObject,
    },
    Artifact {
        artifact: &'a ArtifactInfo,
    },
    Notice {
        severity: &'static str,
        kind: &'a Clean,
        title: &'a Clean,
        description: (),
        #[serde(rename = "_meta")]
        meta: (),
    },
    #[serde(rename_all = "camelCase")]
    Compaction {
        compaction_id: Clean,
        status: &'static str,
        summary: Vec<TextContent<'a>>,
        #[serde(rename = "_meta")]
        meta: (),
    },
    Error {
        message: &'a Clean,
        code: Option<&'a Tree<Clean>>,
        details: Option<Box<RawValue>>,
    },
}

#[derive(Debug, Clone, Copy, Serialize)]
struct EmptyObject {}

/// The content of a text block.
#[derive(Debug, Clone)]
struct TextContent<'a>(std::borrow::Cow<'a, Clean>);

impl Serialize for TextContent<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(4))?;
        map.serialize_entry("type", "text")?;
        map.serialize_entry("text", &*self.0)?;
        map.serialize_entry("annotations", &())?;
        map.serialize_entry("_meta", &())?;
        map.end()
    }
}

/// One entry of a plan.
#[derive(Debug, Serialize)]
struct EntryBody<'a> {
    content: &'a Clean,
    status: &'static str,
    priority: &'a str,
    #[serde(rename = "_meta")]
    meta: (),
}

/// The packets of an event; none for kinds that these clients do not know. `changes` returns the
/// changes of the event; it is called only for texts that may have been sent before.
pub fn packets(event: &Event, changes: impl FnOnce() -> Vec<Change>) -> Vec<ClientPacket<'_>> {
    let mut out = Vec::new();
    let mut add = |kind, update, body| {
        out.push(ClientPacket {
            r#type: kind,
            session_update: update,
            timestamp: event.time.as_ref(),
            parent_tool_call_id: event.parent.as_ref(),
            body,
        });
    };
    match &event.body {
        Body::UserMessage(m) => {
            // An agent may repeat the prompt of its client: that changes nothing.
            for text in added_texts(&changes(), "text") {
                let kind = "user_message_chunk";
                add(kind, Some(kind), chunk_body(m.block_id.as_ref(), text));
            }
        }
        Body::TextChunk(c) | Body::ThinkingChunk(c) => {
            let kind = match event.body {
                Body::TextChunk(_) => "agent_message_chunk",
                _ => "agent_thought_chunk",
            };
            let texts = if c.whole {
                // The chunks were sent: of the full text, only what they lack is new.
                added_texts(&changes(), "content")
            } else {
                vec![c.text.clone()]
            };
            for text in texts {
                add(kind, Some(kind), chunk_body(c.block_id.as_ref(), text));
            }
        }
        Body::ToolCallStart(tool) => {
            add("tool_call_start", Some("tool_call"), call::start(tool));
            if let Some(body) = call::after_start(tool) {
                add("tool_call_progress", Some("tool_call_update"), body);
            }
        }
        Body::ToolCallProgress(tool) => {
            // Clients show the answer of a subagent as a new text each time it is sent.
            let was_sent = call::is_answer(tool) && !has_new_answer(&changes());
            if let Some(body) = call::progress(tool).filter(|_| !was_sent) {
                add("tool_call_progress", Some("tool_call_update"), body);
            }
        }
        Body::PlanUpdate(p) => {
            let entries = p.entries.iter().map(entry_body).collect();
            add("agent_plan_update", Some("plan"), PacketBody::Plan { entries, meta: () });
        }
        // A failed turn has ended with its error.
        Body::PromptResponse(r) if !r.failed => {
            let stop_reason = r.stop_reason.as_deref().filter(|s| !s.is_empty());
            let stop_reason = stop_reason.unwrap_or("end_turn");
            let (usage, meta) = (r.usage.as_ref(), EmptyObject {});
            add("prompt_response", None, PacketBody::Response { stop_reason, usage, meta });
        }
        Body::ArtifactCreated(a) => {
            add("artifact_created", None, PacketBody::Artifact { artifact: &a.artifact });
        }
        // The values are those of the protocol, whatever the agent's format.
        Body::Notice(note) => {
            let severity = match note.kind.as_str() {
                "error" => "error",
                "warning" | "retry" | "max_tokens" | "context_full" | "refusal" | "max_turns"
                | "max_budget" | "hook" => "warning",
                _ => "info",
            };
            let (kind, title) = (&note.kind, &note.text);
            let body = PacketBody::Notice { severity, kind, title, description: (), meta: () };
            add("notice", Some("notice"), body);
        }
        Body::Compaction(compaction) => {
            let id = compaction.id.clone();
            let compaction_id = id.unwrap_or_else(|| Clean::from(event.id));
            let text = Some(&compaction.text).filter(|text| !text.is_empty());
            let summary = text.map(|text| TextContent(std::borrow::Cow::Borrowed(text)));
            let (status, summary) = ("completed", summary.into_iter().collect());
            let body = PacketBody::Compaction { compaction_id, status, summary, meta: () };
            add("compaction_update", Some("compaction_update"), body);
        }
        // The error of a subagent is handled by its caller: the turn continues.
        Body::Error(e) if event.parent.is_none() => add("error", None, error_body(e)),
        Body::PromptResponse(_)
        | Body::Error(_)
        | Body::FileChanged(_)
        | Body::PermissionRequest(_)
        | Body::PermissionAnswer(_)
        | Body::SessionInfo(_)
        | Body::Usage(_)
        | Body::BackgroundTask(_)
        | Body::QuestionRequest(_)
        | Body::QuestionAnswer(_)
        | Body::PlanFile(_)
        | Body::SkillFile(_)
        | Body::Unknown(_)
        | Body::Malformed(_) => {}
    }
    out
}

/// Whether the event ended its call, or was the first with its answer.
fn has_new_answer(changes: &[Change]) -> bool {
    changes.iter().any(|change| match change {
        Change::Set { set: ItemPatch::ToolCall(patch), .. } => {
            patch.status.is_some() || patch.task_output.is_some()
        }
        Change::Put { .. } => true,
        _ => false,
    })
}

/// The text that an event added, in whichever item.
fn added_texts(changes: &[Change], name: &str) -> Vec<Clean> {
    let added = changes.iter().filter_map(|change| match change {
        Change::Append { field, text, .. } if *field == name => Some(text.clone()),
        Change::Put { item } => match &item.body {
            ItemBody::Text { content: text, .. }
            | ItemBody::Thinking { content: text, .. }
            | ItemBody::UserMessage { text, .. } => Some(text.clone()),
            _ => None,
        },
        _ => None,
    });
    added.collect()
}

fn chunk_body(message_id: Option<&Clean>, text: Clean) -> PacketBody<'_> {
    PacketBody::Chunk { message_id, content: TextContent(std::borrow::Cow::Owned(text)), meta: () }
}

fn entry_body(entry: &PlanEntry) -> EntryBody<'_> {
    let priority = entry.priority.as_deref().filter(|p| ["high", "medium", "low"].contains(p));
    EntryBody {
        content: &entry.content,
        status: todo_status(entry.status),
        priority: priority.unwrap_or("medium"),
        meta: (),
    }
}

/// The status of an entry: these clients know three; cancelled counts as completed, since it will
/// not be done.
fn todo_status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "pending",
        ToolStatus::InProgress => "in_progress",
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => "completed",
    }
}

/// An error. The protocol requires a code to be a number or null and details to be an object or
/// null; a code that is a word is in `details`.
fn error_body(e: &ErrorEvent) -> PacketBody<'_> {
    let is_number = |t: &&Tree<Clean>| {
        t.json().as_bytes().first().is_some_and(|c| c.is_ascii_digit() || *c == b'-')
    };
    let code = e.code.as_ref().filter(is_number);
    let string_code = e.code.as_ref().filter(|t| !is_number(t) && t.json() != "null");
    let details_tree = e.details.as_ref().filter(|t| t.json() != "null");
    let details = match (details_tree, string_code) {
        (None, None) => None,
        (Some(t), None) if t.json().starts_with('{') => RawValue::from_string(t.json().into()).ok(),
        (tree, code_string) => {
            let mut fields = String::from("{");
            if let Some(tree) = tree {
                fields.push_str("\"details\":");
                fields.push_str(tree.json());
            }
            if let Some(code) = code_string {
                fields.push_str(if tree.is_some() { ",\"code\":" } else { "\"code\":" });
                fields.push_str(code.json());
            }
            fields.push('}');
            RawValue::from_string(fields).ok()
        }
    };
    PacketBody::Error { message: &e.message, code, details }
}
