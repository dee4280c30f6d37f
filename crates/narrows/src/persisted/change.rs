//! Changes.

use super::{Error, info, item, tool};
use crate::model::change::{Change, Set};
use crate::model::item::TodoList;
use crate::model::tool::Image;
use crate::sanitize::Clean;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The fields to which text is added.
const FIELDS: [&str; 3] = ["content", "text", "rawOutput"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
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
pub fn changes(json: &str) -> Result<Vec<Change>, Error> {
    let list: Vec<Fields<'_>> = serde_json::from_str(json)?;
    list.into_iter().map(change).collect()
}

fn change(f: Fields<'_>) -> Result<Change, Error> {
    Ok(match &*f.change {
        "put" => Change::Put { item: Box::new(item(need(f.item)?.get())?) },
        "set" => Change::Set { id: need(f.id.clone())?, set: set(f)? },
        "append" => {
            let name = need(f.field)?;
            let field = FIELDS.into_iter().find(|known| *known == name);
            let field = field.ok_or_else(|| Error::new("no such field"))?;
            Change::Append { id: need(f.id)?, field, text: need(f.text)? }
        }
        "remove" => Change::Remove { id: need(f.id)? },
        "info" => Change::Info { info: Box::new(info(need(f.info)?.get())?) },
        _ => return Err(Error::new("no such change")),
    })
}

fn set(f: Fields<'_>) -> Result<Set, Error> {
    if let Some(now) = f.is_streaming {
        return Ok(Set::IsStreaming(now));
    }
    if let Some(text) = f.content {
        return Ok(Set::Content(text));
    }
    if let Some(images) = f.images {
        return Ok(Set::Images(images));
    }
    if let Some(call) = f.tool_call {
        return Ok(Set::ToolCall(Box::new(tool::call(call.get())?)));
    }
    f.todo_list.map(Set::TodoList).ok_or_else(|| Error::new("nothing is set"))
}

fn need<T>(field: Option<T>) -> Result<T, Error> {
    field.ok_or_else(|| Error::new("a field of the change is missing"))
}
