//! The payload of tool call events.

use crate::model::tool::{Fresh, ToolCall};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// A tool call's event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub struct ToolEvent<T = Clean> {
    /// The call.
    #[serde(rename = "toolCallId")]
    pub id: T,
    /// What is known of it.
    #[serde(flatten)]
    pub call: ToolCall<T>,
    /// What of that is new.
    #[serde(skip)]
    pub fresh: Fresh,
    /// Where the new part of the output begins, when it only grew.
    #[serde(skip)]
    pub grew_from: Option<usize>,
    /// Whether this is the first event of the call.
    #[serde(skip)]
    pub first: bool,
    /// Whether texts of the call may come again, longer: the ends of these are not final.
    #[serde(skip)]
    pub grows: bool,
}

impl ToolEvent {
    /// An update of the call `id`, not yet merged with what is known of it.
    pub(crate) fn new(id: Clean, call: ToolCall) -> Self {
        let fresh = Fresh::default();
        ToolEvent { id, call, fresh, grew_from: None, first: false, grows: false }
    }
}
