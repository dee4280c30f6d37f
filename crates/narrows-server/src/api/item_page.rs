//! Pages of items.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Which items.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ItemQuery {
    /// Those before this order; without `before`, `from` and `around`, the last ones.
    pub before: Option<u64>,
    /// Those from this order on.
    pub from: Option<u64>,
    /// Those around this order.
    pub around: Option<u64>,
    /// Only those at top level: what has no `parentToolCallId`, or names a call that is not there.
    /// Whether there are more before and after counts only these.
    pub top: Option<bool>,
    /// Only those right below this call; not together with `top`.
    pub parent: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
    /// Characters of a text after which it is cut, at least 32; 0 for all.
    pub preview: Option<usize>,
}

/// Some items of a session, in their order.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemPage {
    /// The items. One whose texts were cut has `clipped`: the paths of the texts, and their lengths.
    #[schema(value_type = Vec<crate::api::item::Item>)]
    pub items: Vec<Value>,
    /// Follow the log from here: changes up to here are in the items.
    pub cursor: String,
    /// Whether there are items before these.
    pub before: bool,
    /// Whether there are items after these.
    pub after: bool,
    /// Agent, model, title, status, tokens.
    #[schema(value_type = crate::api::item::SessionInfo)]
    pub info: Value,
    /// Whether the session's source said that nothing more comes.
    pub ended: bool,
    /// All items that the session has.
    pub total: u64,
    /// The order of the next item to come.
    pub next_order: u64,
}
