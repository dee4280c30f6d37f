//! Reads events from rows of the log.

use super::{ReadBackError, tool};
use crate::model::event::{Body, Event, Malformed, Position, ToolEvent};
use crate::model::id::EventId;
use crate::model::time::Time;
use crate::sanitize::Clean;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// All reasons of [`Malformed`] events.
const MALFORMED_REASONS: [&str; 21] = [
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
struct EventHeader<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    id: EventId,
    timestamp: Option<Time>,
    parent_tool_call_id: Option<Clean>,
}

/// Reads an event from a [`PrintedEvent`](crate::PrintedEvent).
///
/// A row lacks what only the first fold of the event needed: the start of its text, and which
/// fields of a call changed.
pub fn event(json: &str) -> Result<Event, ReadBackError> {
    let header: EventHeader<'_> = serde_json::from_str(json)?;
    Ok(Event {
        id: header.id,
        began: header.id,
        time: header.timestamp,
        parent: header.parent_tool_call_id,
        body: body(&header.r#type, json)?,
    })
}

fn body(kind: &str, json: &str) -> Result<Body, ReadBackError> {
    Ok(match kind {
        "user_message" => Body::UserMessage(payload(json)?),
        "text_chunk" => Body::TextChunk(payload(json)?),
        "thinking_chunk" => Body::ThinkingChunk(payload(json)?),
        "tool_call_start" => Body::ToolCallStart(tool_event(json)?),
        "tool_call_progress" => Body::ToolCallProgress(tool_event(json)?),
        "plan_update" => Body::PlanUpdate(payload(json)?),
        "prompt_response" => Body::PromptResponse(boxed_payload(json)?),
        "artifact_created" => Body::ArtifactCreated(boxed_payload(json)?),
        "file_changed" => Body::FileChanged(boxed_payload(json)?),
        "permission_request" => Body::PermissionRequest(boxed_payload(json)?),
        "permission_answer" => Body::PermissionAnswer(boxed_payload(json)?),
        "session_info" => Body::SessionInfo(boxed_payload(json)?),
        "usage" => Body::Usage(boxed_payload(json)?),
        "compaction" => Body::Compaction(boxed_payload(json)?),
        "background_task" => Body::BackgroundTask(boxed_payload(json)?),
        "question_request" => Body::QuestionRequest(boxed_payload(json)?),
        "question_answer" => Body::QuestionAnswer(boxed_payload(json)?),
        "plan_file" => Body::PlanFile(boxed_payload(json)?),
        "skill_file" => Body::SkillFile(boxed_payload(json)?),
        "notice" => Body::Notice(payload(json)?),
        "error" => Body::Error(Box::new(serde_json::from_str(json)?)),
        "unknown" => Body::Unknown(serde_json::from_str(json)?),
        "malformed" => Body::Malformed(malformed(json)?),
        _ => return Err(ReadBackError::new("unknown event type")),
    })
}

fn payload<T: DeserializeOwned>(json: &str) -> Result<T, ReadBackError> {
    Ok(serde_json::from_str(json)?)
}

fn boxed_payload<T: DeserializeOwned>(json: &str) -> Result<Box<T>, ReadBackError> {
    payload(json).map(Box::new)
}

fn tool_event(json: &str) -> Result<Box<ToolEvent>, ReadBackError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CallIdField {
        tool_call_id: Clean,
    }
    let CallIdField { tool_call_id: id } = serde_json::from_str(json)?;
    let call = tool::call(json)?;
    Ok(Box::new(ToolEvent::new(id, call)))
}

fn malformed(json: &str) -> Result<Malformed, ReadBackError> {
    #[derive(Deserialize)]
    struct MalformedFields<'a> {
        #[serde(borrow)]
        reason: Cow<'a, str>,
        position: Position,
        length: u64,
    }
    let MalformedFields { reason, position, length } = serde_json::from_str(json)?;
    let reason = MALFORMED_REASONS.into_iter().find(|known| *known == reason);
    Ok(Malformed { reason: reason.unwrap_or("unreadable"), position, length, source: 0 })
}
