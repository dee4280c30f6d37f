//! Reads tool calls. Their output has one of two names, which needs a second pass over the JSON.

use super::ReadBackError;
use crate::model::item::ToolItem;
use crate::model::tool::{ToolCall, ToolOutput};
use crate::sanitize::Clean;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutputFields {
    raw_output: Option<Clean>,
    raw_output_append: Option<Clean>,
}

/// Reads a call from the object that has its fields.
pub(super) fn call(json: &str) -> Result<ToolCall, ReadBackError> {
    let mut call: ToolCall = serde_json::from_str(json)?;
    let outputs: OutputFields = serde_json::from_str(json)?;
    call.output = match (outputs.raw_output, outputs.raw_output_append) {
        (Some(text), _) => Some(ToolOutput::Whole(text)),
        (None, more) => more.map(ToolOutput::More),
    };
    Ok(call)
}

/// Deserializes the tool call of an item.
pub(super) fn tool_item<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<Box<ToolItem>>, D::Error> {
    #[derive(Deserialize)]
    struct ItemId {
        id: Clean,
    }
    let json = <&RawValue>::deserialize(d)?.get();
    let ItemId { id } = serde_json::from_str(json).map_err(D::Error::custom)?;
    let call = call(json).map_err(D::Error::custom)?;
    Ok(Some(Box::new(ToolItem { id, call })))
}
