//! Reads items.

use super::{ReadBackError, tool};
use crate::model::event::{
    ArtifactInfo, BackgroundTask, Compaction, PermissionOption, PromptOrigin, QuestionPart,
    QuestionResponse,
};
use crate::model::item::{Item, ItemBody, TodoList, ToolItem};
use crate::model::time::Time;
use crate::model::tool::{Image, ToolStatus};
use crate::sanitize::{Clean, Tree};
use serde::Deserialize;
use std::borrow::Cow;

/// The fields of all item kinds: no two kinds use one name with different types.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemFields<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    id: Clean,
    order: u64,
    parent_tool_call_id: Option<Clean>,
    continues: Option<Clean>,
    timestamp: Option<Time>,
    text: Option<Clean>,
    content: Option<Clean>,
    #[serde(default)]
    images: Vec<Image>,
    origin: Option<PromptOrigin>,
    block_id: Option<Clean>,
    #[serde(default)]
    is_streaming: bool,
    #[serde(default)]
    hidden: bool,
    #[serde(default, deserialize_with = "tool::tool_item")]
    tool_call: Option<Box<ToolItem>>,
    todo_list: Option<TodoList>,
    artifact: Option<ArtifactInfo>,
    request_id: Option<Clean>,
    tool_call_id: Option<Clean>,
    title: Option<Clean>,
    #[serde(default)]
    options: Vec<PermissionOption>,
    #[serde(default)]
    questions: Vec<QuestionPart>,
    answers: Option<Vec<QuestionResponse>>,
    task_id: Option<Clean>,
    description: Option<Clean>,
    status: Option<ToolStatus>,
    summary: Option<Clean>,
    trigger: Option<Clean>,
    tokens_before: Option<u64>,
    compaction_id: Option<Clean>,
    kind: Option<Clean>,
    message: Option<Clean>,
    code: Option<Tree<Clean>>,
    details: Option<Tree<Clean>>,
    retryable: Option<bool>,
}

/// Reads a printed item.
pub fn item(json: &str) -> Result<Item, ReadBackError> {
    let f: ItemFields<'_> = serde_json::from_str(json)?;
    let body = match &*f.r#type {
        "user_message" => ItemBody::UserMessage {
            text: required(f.text)?,
            images: f.images,
            origin: required(f.origin)?,
            block_id: f.block_id,
        },
        "text" => ItemBody::Text {
            content: required(f.content)?,
            is_streaming: f.is_streaming,
            block_id: f.block_id,
            images: f.images,
        },
        "thinking" => ItemBody::Thinking {
            content: required(f.content)?,
            is_streaming: f.is_streaming,
            block_id: f.block_id,
            hidden: f.hidden,
        },
        "tool_call" => ItemBody::ToolCall { tool_call: required(f.tool_call)? },
        "todo_list" => ItemBody::TodoList { todo_list: required(f.todo_list)? },
        "artifact" => ItemBody::Artifact { artifact: required(f.artifact)? },
        "permission" => ItemBody::Permission {
            request_id: required(f.request_id)?,
            tool_call_id: required(f.tool_call_id)?,
            title: f.title,
            options: f.options,
            tool_call: f.tool_call,
        },
        "plan" => ItemBody::Plan {
            tool_call_id: required(f.tool_call_id)?,
            content: required(f.content)?,
        },
        "question" => ItemBody::Question {
            request_id: f.request_id,
            tool_call_id: required(f.tool_call_id)?,
            questions: f.questions,
            answers: f.answers,
        },
        "background_task" => ItemBody::BackgroundTask(BackgroundTask {
            task_id: required(f.task_id)?,
            tool_call_id: f.tool_call_id,
            description: f.description,
            status: required(f.status)?,
            summary: f.summary,
        }),
        "compaction" => ItemBody::Compaction(Compaction {
            unfinished: false,
            id: f.compaction_id,
            text: required(f.text)?,
            trigger: f.trigger,
            tokens_before: f.tokens_before,
        }),
        "notice" => ItemBody::Notice { kind: required(f.kind)?, text: required(f.text)? },
        "error" => ItemBody::Error {
            message: required(f.message)?,
            code: f.code,
            details: f.details,
            retryable: f.retryable,
        },
        _ => return Err(ReadBackError::new("unknown item type")),
    };
    Ok(Item {
        id: f.id,
        order: f.order,
        parent: f.parent_tool_call_id,
        continues: f.continues,
        time: f.timestamp,
        body,
    })
}

fn required<T>(field: Option<T>) -> Result<T, ReadBackError> {
    field.ok_or_else(|| ReadBackError::new("an item lacks a field"))
}
