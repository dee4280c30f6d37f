//! The view of a subscription and its filter.

use narrows_store::EventRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A projection of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// One event per frame.
    Events,
    /// Changes of the transcript's items.
    Items,
    /// The agent's activity, as messages for a dashboard.
    Activity,
    /// Redacted packets in the shapes of the protocol.
    Packets,
}

impl View {
    /// All views.
    pub const ALL: [View; 4] = [View::Events, View::Items, View::Activity, View::Packets];
    /// The number of views.
    pub const COUNT: usize = View::ALL.len();
}

/// The frames that a subscription leaves out. Its cursor advances over them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only frames of events of these types; ignored by the activity view.
    pub types: Option<BTreeSet<String>>,
    /// Message types that the activity view leaves out.
    pub without: BTreeSet<&'static str>,
}

impl Filter {
    /// Whether nothing is left out.
    pub fn is_open(&self) -> bool {
        self.types.is_none() && self.without.is_empty()
    }

    /// Whether the frames of a row pass.
    pub(super) fn accepts_row(&self, view: View, row: &EventRow) -> bool {
        match &self.types {
            // Every subscriber learns that an event is damaged.
            Some(types) if view != View::Activity => {
                types.contains(&*row.kind) || row.kind == "damaged"
            }
            _ => true,
        }
    }

    /// Whether a message of the activity view passes. Messages begin with their type.
    pub(super) fn accepts_message(&self, message: &[u8]) -> bool {
        let has_type = |kind: &str| {
            let rest = message.strip_prefix(b"{\"type\":\"");
            rest.and_then(|r| r.strip_prefix(kind.as_bytes())).is_some_and(|r| r.starts_with(b"\""))
        };
        !self.without.iter().any(|kind| has_type(kind))
    }
}
