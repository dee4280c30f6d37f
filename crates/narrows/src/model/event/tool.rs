//! The payload of tool call events.

use crate::model::tool::{ChangedFields, ToolCall};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// An event of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub struct ToolEvent<T = Clean> {
    /// Id of the call.
    #[serde(rename = "toolCallId")]
    pub id: T,
    /// The known fields of the call.
    #[serde(flatten)]
    pub call: ToolCall<T>,
    /// The fields that this event changes.
    #[serde(skip)]
    pub fresh: ChangedFields,
    /// Where the new part of the output starts, in bytes, if the output only grew.
    #[serde(skip)]
    pub grew_from: Option<usize>,
    /// Whether this is the first event of the call.
    #[serde(skip)]
    pub first: bool,
    /// Whether a later event may repeat texts of the call with more at the end: their ends are not
    /// final.
    #[serde(skip)]
    pub grows: bool,
    /// Whether this is a permission request that repeats the call, with fewer or with other fields.
    #[serde(skip)]
    pub repeats: bool,
}

impl ToolEvent {
    /// An update of the call `id` that is not merged with the known fields yet.
    pub(crate) fn new(id: Clean, call: ToolCall) -> Self {
        let fresh = ChangedFields::default();
        ToolEvent { id, call, fresh, grew_from: None, first: false, grows: false, repeats: false }
    }
}
