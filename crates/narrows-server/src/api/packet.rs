//! Packets of a session: how a request sends them and how far they were read.

pub use narrows_engine::ingest::IngestReceipt as PacketAnswer;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How packets are read.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct PacketQuery {
    /// `acp`, `claude-stream`, `claude-history`, or `auto` to find out by looking.
    pub format: Option<String>,
    /// The place of the first packet, from 1; else they come after those that were read. Packets
    /// that were read before are passed over.
    #[param(minimum = 1)]
    pub first: Option<u64>,
    /// Whether the session is over with the last packet.
    pub end: Option<bool>,
    /// With `end`: the agent's process has exited, so calls that wait for an answer are cancelled.
    pub exited: Option<bool>,
    /// `now`: packets without a time get that of their arrival, and the session is as new as they are;
    /// `none`: they get none, and the session has their dates, as for what was recorded before.
    #[param(inline)]
    pub arrived: Option<narrows_engine::ingest::Arrival>,
    /// Whether each line is an object that says which file and line it comes from.
    pub wrapped: Option<bool>,
    /// Root directories to hide, one a line; they are shown as `.`.
    pub root: Option<String>,
}

/// How far the packets of a session were read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PacketState {
    /// Its sources; most have one.
    pub sources: Vec<SourceState>,
}

/// How far one source was read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SourceState {
    /// Its number; 0 is the main one.
    pub number: u32,
    /// The place of the last packet that was read.
    pub read: u64,
    /// The place of the last packet none of whose text is held back: send again what comes after.
    pub acknowledged: u64,
}
