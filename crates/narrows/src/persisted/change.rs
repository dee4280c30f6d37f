//! Reads changes.

use super::{ReadBackError, info, item, tool};
use crate::model::change::{Change, ItemPatch};
use crate::model::item::TodoList;
use crate::model::tool::Image;
use crate::sanitize::Clean;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The fields that can be appended to.
const APPENDABLE_FIELDS: [&str; 3] = ["content", "text", "rawOutput"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangeFields<'a> {
    #[serde(borrow)]
    change: Cow<'a, str>,
    id: Option<Clean>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    is_streaming: Option<bool>,
    content: Option<Clean>,
    images: Option<Vec<Image>>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    todo_list: Option<TodoList>,
    #[serde(borrow)]
    field: Option<Cow<'a, str>>,
    text: Option<Clean>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
}

/// Reads a printed list of changes.
pub fn changes(json: &str) -> Result<Vec<Change>, ReadBackError> {
    let list: Vec<ChangeFields<'_>> = serde_json::from_str(json)?;
    list.into_iter().map(change).collect()
}

fn change(f: ChangeFields<'_>) -> Result<Change, ReadBackError> {
    Ok(match &*f.change {
        "put" => Change::Put { item: Box::new(item(required(f.item)?.get())?) },
        "set" => Change::Set { id: required(f.id.clone())?, set: set(f)? },
        "append" => {
            let name = required(f.field)?;
            let field = APPENDABLE_FIELDS.into_iter().find(|field| *field == name);
            let field = field.ok_or_else(|| ReadBackError::new("unknown field"))?;
            Change::Append { id: required(f.id)?, field, text: required(f.text)? }
        }
        "remove" => Change::Remove { id: required(f.id)? },
        "info" => Change::Info { info: Box::new(info(required(f.info)?.get())?) },
        _ => return Err(ReadBackError::new("unknown change")),
    })
}

fn set(f: ChangeFields<'_>) -> Result<ItemPatch, ReadBackError> {
    if let Some(now) = f.is_streaming {
        return Ok(ItemPatch::IsStreaming(now));
    }
    if let Some(text) = f.content {
        return Ok(ItemPatch::Content(text));
    }
    if let Some(images) = f.images {
        return Ok(ItemPatch::Images(images));
    }
    if let Some(call) = f.tool_call {
        return Ok(ItemPatch::ToolCall(Box::new(tool::call(call.get())?)));
    }
    f.todo_list.map(ItemPatch::TodoList).ok_or_else(|| ReadBackError::new("a change sets no field"))
}

fn required<T>(field: Option<T>) -> Result<T, ReadBackError> {
    field.ok_or_else(|| ReadBackError::new("a change lacks a field"))
}
