//! Edits of a session's items.

use super::{Image, Item, SessionInfo, TodoList, ToolCallNews};
use utoipa::ToSchema;

/// One edit of a session's items. A reader only applies these.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each holds what it is")]
pub enum Change {
    Put(Box<PutChange>),
    Set(Box<SetChange>),
    Append(AppendChange),
    Remove(RemoveChange),
    Info(Box<InfoChange>),
}

/// The field that an `append` is of; `rawOutput` is of the item's `toolCall`.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum AppendField {
    Content,
    Text,
    RawOutput,
}

shapes! {
    /// A new item, or a new version of one; a known item keeps its place.
    PutChange = change: PutWord "put" {
        /// The item, whole.
        item: Item,
    }

    /// New values of some fields; the others stay. Each tells one field.
    SetChange = change: SetWord "set" {
        /// The item.
        id: String,
        ;
        /// Whether more text is coming.
        is_streaming: bool,
        /// The text, anew: `text` of a user's message, `content` of others.
        content: String,
        /// The pictures, anew.
        images: Vec<Image>,
        /// Fields of the call; absent ones stay.
        tool_call: ToolCallNews,
        /// The list, anew.
        todo_list: TodoList,
    }

    /// More text at the end of a field.
    AppendChange = change: AppendWord "append" {
        /// The item.
        id: String,
        /// The field.
        field: AppendField,
        /// The text.
        text: String,
    }

    /// The item is gone.
    RemoveChange = change: RemoveWord "remove" {
        /// The item.
        id: String,
    }

    /// The session's header.
    InfoChange = change: InfoWord "info" {
        /// The header, whole.
        info: SessionInfo,
    }
}
