//! Events, as a row of the log holds them.

use super::{Error, tool};
use crate::model::event::{Body, Event, Malformed, Position, ToolEvent};
use crate::model::id::EventId;
use crate::model::time::Time;
use crate::sanitize::Clean;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Everything that can be wrong with a line.
const REASONS: [&str; 21] = [
    "NUL bytes",
    "bad escape",
    "bad number",
    "brackets do not match",
    "control character in a string",
    "cut short",
    "empty",
    "event too long",
    "line too long",
    "longer than 4 GiB",
    "more than 8 million values",
    "no colon after a key",
    "no key",
    "no line break between two packets",
    "not UTF-8",
    "not a JSON value",
    "not a message",
    "not an object",
    "not recorded",
    "text after the value",
    "unexpected character",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    id: EventId,
    timestamp: Option<Time>,
    parent_tool_call_id: Option<Clean>,
}

/// Reads an event out of a printed [`Row`](crate::Row).
///
/// What a row does not tell is what only the fold that saw it first needed: where a text began, and
/// which fields of a call were new.
pub fn event(json: &str) -> Result<Event, Error> {
    let head: Head<'_> = serde_json::from_str(json)?;
    Ok(Event {
        id: head.id,
        began: head.id,
        time: head.timestamp,
        parent: head.parent_tool_call_id,
        body: body(&head.r#type, json)?,
    })
}

fn body(kind: &str, json: &str) -> Result<Body, Error> {
    Ok(match kind {
        "user_message" => Body::UserMessage(plain(json)?),
        "text_chunk" => Body::TextChunk(plain(json)?),
        "thinking_chunk" => Body::ThinkingChunk(plain(json)?),
        "tool_call_start" => Body::ToolCallStart(tool_event(json)?),
        "tool_call_progress" => Body::ToolCallProgress(tool_event(json)?),
        "plan_update" => Body::PlanUpdate(plain(json)?),
        "prompt_response" => Body::PromptResponse(boxed(json)?),
        "artifact_created" => Body::ArtifactCreated(boxed(json)?),
        "file_changed" => Body::FileChanged(boxed(json)?),
        "permission_request" => Body::PermissionRequest(boxed(json)?),
        "permission_answer" => Body::PermissionAnswer(boxed(json)?),
        "session_info" => Body::SessionInfo(boxed(json)?),
        "usage" => Body::Usage(boxed(json)?),
        "compaction" => Body::Compaction(boxed(json)?),
        "background_task" => Body::BackgroundTask(boxed(json)?),
        "question_request" => Body::QuestionRequest(boxed(json)?),
        "question_answer" => Body::QuestionAnswer(boxed(json)?),
        "plan_file" => Body::PlanFile(boxed(json)?),
        "skill_file" => Body::SkillFile(boxed(json)?),
        "notice" => Body::Notice(plain(json)?),
        "error" => Body::Error(Box::new(serde_json::from_str(json)?)),
        "unknown" => Body::Unknown(serde_json::from_str(json)?),
        "malformed" => Body::Malformed(malformed(json)?),
        _ => return Err(Error::new("no such event")),
    })
}

fn plain<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    Ok(serde_json::from_str(json)?)
}

fn boxed<T: DeserializeOwned>(json: &str) -> Result<Box<T>, Error> {
    plain(json).map(Box::new)
}

fn tool_event(json: &str) -> Result<Box<ToolEvent>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Id {
        tool_call_id: Clean,
    }
    let Id { tool_call_id: id } = serde_json::from_str(json)?;
    let call = tool::call(json)?;
    Ok(Box::new(ToolEvent::new(id, call)))
}

fn malformed(json: &str) -> Result<Malformed, Error> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow)]
        reason: Cow<'a, str>,
        position: Position,
        length: u64,
    }
    let Shape { reason, position, length } = serde_json::from_str(json)?;
    let known = REASONS.into_iter().find(|known| *known == reason);
    Ok(Malformed { reason: known.unwrap_or("unreadable"), position, length, source: 0 })
}
