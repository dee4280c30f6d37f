//! What a subscription wants to see.

use narrows_store::EventRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A projection of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// What happened, one fact a frame.
    Events,
    /// Changes of what a person sees.
    Items,
    /// What the agent does, as messages for a dashboard.
    Activity,
    /// Clean packets in the shapes of the protocol.
    Packets,
}

impl View {
    /// All of them.
    pub const ALL: [View; 4] = [View::Events, View::Items, View::Activity, View::Packets];
}

/// What is left out. The cursor goes on in any case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only what events of these types give; not for the activity view.
    pub types: Option<BTreeSet<String>>,
    /// Types of messages that the activity view leaves out.
    pub without: BTreeSet<&'static str>,
}

impl Filter {
    /// Whether nothing is left out.
    pub fn is_open(&self) -> bool {
        self.types.is_none() && self.without.is_empty()
    }

    pub(super) fn takes_row(&self, view: View, row: &EventRow) -> bool {
        match &self.types {
            // That something cannot be read is told to everybody.
            Some(types) if view != View::Activity => {
                types.contains(&*row.kind) || row.kind == "damaged"
            }
            _ => true,
        }
    }

    /// Whether a message of the activity view is wanted: they begin with their type.
    pub(super) fn takes_message(&self, message: &[u8]) -> bool {
        let named = |kind: &&&'static str| {
            let rest = message.strip_prefix(b"{\"type\":\"");
            rest.and_then(|r| r.strip_prefix(kind.as_bytes())).is_some_and(|r| r.starts_with(b"\""))
        };
        !self.without.iter().any(|kind| named(&kind))
    }
}
