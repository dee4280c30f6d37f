//! The options and the receipt of an ingest request, and the redaction of all sessions.

use narrows::{Format, Paths, Secrets};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes of one packet.
pub const MAX_PACKET_BYTES: usize = 16 << 20;

/// The paths and secrets that are redacted in every session.
#[derive(Debug, Clone, Default)]
pub struct RedactionConfig {
    /// Host paths.
    pub paths: Paths,
    /// Secrets.
    pub secrets: Arc<Secrets>,
}

/// The time of packets without a time of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ArrivalTime {
    /// The time of their arrival.
    #[default]
    Now,
    /// None.
    None,
}

/// How the packets of a request are ingested.
#[derive(Debug, Clone, Default)]
pub struct IngestOptions {
    /// The format of the packets.
    pub format: Format,
    /// The number of the first packet; by default packets follow those that were read.
    pub first: Option<u64>,
    /// The idempotency key: a repeated request with the same key has its effect once.
    pub key: Option<String>,
    /// Whether packets without a time get the time of their arrival.
    pub arrival: ArrivalTime,
    /// Whether lines are `SourceEnvelope`s, which name the source of their packet.
    pub wrapped: bool,
    /// Whether packets carry their own positions, as those of files do.
    pub placed: bool,
    /// When packets arrived that do not arrive now, as those of an older file: milliseconds since 1970.
    pub heard: Option<i64>,
    /// Whether the source ends with the last packet.
    pub end: bool,
    /// Whether the agent has exited at that end: nothing open can continue.
    pub gone: bool,
    /// Whether the agent's process has exited at that end, though the session may continue in another
    /// process.
    pub exited: bool,
    /// More roots to redact.
    pub roots: Vec<String>,
    /// The fencing token of the node that runs the session's agent: with an older one nothing is written.
    pub fence: Option<u64>,
    /// Assumes that the writer in memory is current. If another node has written meanwhile, nothing is
    /// stored: for callers that can repeat the whole request.
    pub trust: bool,
    /// Text of earlier packets that a lost writer held back cannot be sent again: it is left out.
    pub lost: bool,
}

/// The result of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", schema(as = PacketAnswer))]
pub struct IngestReceipt {
    /// Packets of the request.
    pub packets: u64,
    /// Events that were appended.
    pub events: u64,
    /// The number of the last packet that was read.
    pub read: u64,
    /// The checkpoint: the number of the last packet after which no text was held back. After a crash
    /// the packets that follow it are sent again.
    pub acknowledged: u64,
    /// The cursor from which the log can be followed.
    pub cursor: String,
}
