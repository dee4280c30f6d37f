//! Clean packets in the shapes that front ends of the protocol already speak.
//!
//! A packet depends on one event and on what that event changed, never on what came before: a stream
//! that is resumed at any cursor tells the same packets as one that was never cut.

mod call;
mod input;
mod output;

use crate::model::change::{Change, Set};
use crate::model::event::{ArtifactInfo, Body, Event, Failure, PlanEntry, Usage};
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

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Shape<'a> {
    #[serde(rename_all = "camelCase")]
    Chunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<&'a Clean>,
        content: Text<'a>,
        #[serde(rename = "_meta")]
        meta: (),
    },
    Call(Box<call::Call<'a>>),
    Plan {
        entries: Vec<Entry<'a>>,
        #[serde(rename = "_meta")]
        meta: (),
    },
    #[serde(rename_all = "camelCase")]
    Response {
        stop_reason: &'a str,
        usage: Option<&'a Usage>,
        #[serde(rename = "_meta")]
        meta: Empty,
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
        summary: Vec<Text<'a>>,
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
struct Empty {}

/// A text, as every field that holds one has it.
#[derive(Debug, Clone)]
struct Text<'a>(std::borrow::Cow<'a, Clean>);

impl Serialize for Text<'_> {
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
struct Entry<'a> {
    content: &'a Clean,
    status: &'static str,
    priority: &'a str,
    #[serde(rename = "_meta")]
    meta: (),
}

/// The packets of an event; events that these front ends do not know have none. `changes` gives what
/// the event changed; it is asked only for texts that may have been told before.
pub fn packets(event: &Event, changes: impl FnOnce() -> Vec<Change>) -> Vec<Packet<'_>> {
    let mut out = Vec::new();
    let mut add = |kind, update, body| {
        out.push(Packet {
            r#type: kind,
            session_update: update,
            timestamp: event.time.as_ref(),
            parent_tool_call_id: event.parent.as_ref(),
            body,
        });
    };
    match &event.body {
        Body::UserMessage(m) => {
            // An agent may repeat what its client sent: that changes nothing.
            for text in told(&changes(), "text") {
                let kind = "user_message_chunk";
                add(kind, Some(kind), chunk(m.block_id.as_ref(), text));
            }
        }
        Body::TextChunk(c) | Body::ThinkingChunk(c) => {
            let kind = match event.body {
                Body::TextChunk(_) => "agent_message_chunk",
                _ => "agent_thought_chunk",
            };
            let texts = if c.whole {
                // The pieces were told: of the whole text, only what they did not hold is new.
                told(&changes(), "content")
            } else {
                vec![c.text.clone()]
            };
            for text in texts {
                add(kind, Some(kind), chunk(c.block_id.as_ref(), text));
            }
        }
        Body::ToolCallStart(tool) => {
            add("tool_call_start", Some("tool_call"), call::start(tool));
            if let Some(body) = call::after_start(tool) {
                add("tool_call_progress", Some("tool_call_update"), body);
            }
        }
        Body::ToolCallProgress(tool) => {
            // Front ends show what a subagent answered as a text: each time they are told.
            let told = call::is_answer(tool) && !answers(&changes());
            if let Some(body) = call::progress(tool).filter(|_| !told) {
                add("tool_call_progress", Some("tool_call_update"), body);
            }
        }
        Body::PlanUpdate(p) => {
            let entries = p.entries.iter().map(entry).collect();
            add("agent_plan_update", Some("plan"), Shape::Plan { entries, meta: () });
        }
        // A turn that failed has ended with its error.
        Body::PromptResponse(r) if !r.failed => {
            let stop_reason = r.stop_reason.as_deref().filter(|s| !s.is_empty());
            let stop_reason = stop_reason.unwrap_or("end_turn");
            let (usage, meta) = (r.usage.as_ref(), Empty {});
            add("prompt_response", None, Shape::Response { stop_reason, usage, meta });
        }
        Body::ArtifactCreated(a) => {
            add("artifact_created", None, Shape::Artifact { artifact: &a.artifact });
        }
        // The words are those of the protocol, whatever the agent speaks.
        Body::Notice(note) => {
            let severity = match note.kind.as_str() {
                "error" => "error",
                "warning" | "retry" | "max_tokens" | "context_full" | "refusal" | "max_turns"
                | "max_budget" | "hook" => "warning",
                _ => "info",
            };
            let (kind, title) = (&note.kind, &note.text);
            let body = Shape::Notice { severity, kind, title, description: (), meta: () };
            add("notice", Some("notice"), body);
        }
        Body::Compaction(compaction) => {
            let id = compaction.id.clone();
            let compaction_id = id.unwrap_or_else(|| Clean::id(event.id));
            let words = Some(&compaction.text).filter(|text| !text.is_empty());
            let summary = words.map(|text| Text(std::borrow::Cow::Borrowed(text)));
            let (status, summary) = ("completed", summary.into_iter().collect());
            let body = Shape::Compaction { compaction_id, status, summary, meta: () };
            add("compaction_update", Some("compaction_update"), body);
        }
        // What fails in a subagent is its caller's business: the turn goes on.
        Body::Error(e) if event.parent.is_none() => add("error", None, error(e)),
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

/// Whether an event ended its call, or told its answer for the first time.
fn answers(changes: &[Change]) -> bool {
    changes.iter().any(|change| match change {
        Change::Set { set: Set::ToolCall(news), .. } => {
            news.status.is_some() || news.task_output.is_some()
        }
        Change::Put { .. } => true,
        _ => false,
    })
}

/// What an event added to texts: what is new of them, wherever it came to stand.
fn told(changes: &[Change], name: &str) -> Vec<Clean> {
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

fn chunk(message_id: Option<&Clean>, text: Clean) -> Shape<'_> {
    Shape::Chunk { message_id, content: Text(std::borrow::Cow::Owned(text)), meta: () }
}

fn entry(entry: &PlanEntry) -> Entry<'_> {
    let priority = entry.priority.as_deref().filter(|p| ["high", "medium", "low"].contains(p));
    Entry {
        content: &entry.content,
        status: todo_status(entry.status),
        priority: priority.unwrap_or("medium"),
        meta: (),
    }
}

/// The status of an entry: these front ends know three; what was given up is not to be done either.
fn todo_status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "pending",
        ToolStatus::InProgress => "in_progress",
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => "completed",
    }
}

/// A code is a number or null here; one that is a word is in `details`, which is an object or null.
fn error(e: &Failure) -> Shape<'_> {
    let number = |t: &&Tree<Clean>| {
        t.json().as_bytes().first().is_some_and(|c| c.is_ascii_digit() || *c == b'-')
    };
    let code = e.code.as_ref().filter(number);
    let word = e.code.as_ref().filter(|t| !number(t) && t.json() != "null");
    let given = e.details.as_ref().filter(|t| t.json() != "null");
    let details = match (given, word) {
        (None, None) => None,
        (Some(t), None) if t.json().starts_with('{') => RawValue::from_string(t.json().into()).ok(),
        (given, word) => {
            let mut fields = String::from("{");
            if let Some(given) = given {
                fields.push_str("\"details\":");
                fields.push_str(given.json());
            }
            if let Some(word) = word {
                fields.push_str(if given.is_some() { ",\"code\":" } else { "\"code\":" });
                fields.push_str(word.json());
            }
            fields.push('}');
            RawValue::from_string(fields).ok()
        }
    };
    Shape::Error { message: &e.message, code, details }
}
