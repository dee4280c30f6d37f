//! What clients of a socket send.

use super::permission_reply::AnswerMessage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// What a subscription to activity wants. Only `false` leaves something out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ActivityFilter {
    /// Calls of tools.
    pub include_tool_calls: Option<bool>,
    /// Their results.
    pub include_tool_results: Option<bool>,
    /// What the agent says and thinks.
    pub include_output: Option<bool>,
    /// Files that change.
    pub include_file_changes: Option<bool>,
    /// How far it is.
    pub include_progress: Option<bool>,
}

impl ActivityFilter {
    pub(crate) fn add_excluded(&self, out: &mut BTreeSet<&'static str>) {
        let flags = [
            (self.include_tool_calls, "agent_tool_call"),
            (self.include_tool_results, "agent_tool_result"),
            (self.include_output, "agent_output"),
            (self.include_file_changes, "file_changed"),
            (self.include_progress, "progress_update"),
        ];
        out.extend(flags.iter().filter(|(on, _)| *on == Some(false)).map(|(_, kind)| *kind));
    }
}

/// Which view a socket's subscription gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WsView {
    /// What happened, one fact a message.
    Events,
    /// Changes of what a person sees.
    Items,
    /// What the agent does.
    Activity,
    /// Clean packets in the shapes of the protocol.
    Packets,
    /// The list of sessions.
    Sessions,
}

/// Asks to follow a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribe {
    /// The session, by its label or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_order_id: Option<String>,
    /// The session, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// A name for the subscription; else a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// Activity, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<WsView>,
    /// Only what events of these types give; not for activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// The cursor to go on from, `end` for what is new, nothing for the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What is wanted, flat or under `filters`.
    #[serde(flatten)]
    pub flags: ActivityFilter,
    /// What is wanted, flat or under `filters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<ActivityFilter>,
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Asks to follow a session.
    Subscribe(Box<Subscribe>),
    /// Has enough of it.
    #[serde(rename_all = "camelCase")]
    Unsubscribe {
        /// The subscription, by its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subscription: Option<String>,
        /// Or all of this session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work_order_id: Option<String>,
        /// Or all of this session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
    },
    /// Answers a question of an agent.
    Answer(Box<AnswerMessage>),
    /// Asks for a sign of life.
    Ping,
}
