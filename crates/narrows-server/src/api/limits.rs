//! What is allowed, and what is kept in memory at most.

use crate::config::Limits;
use narrows::limits;
use narrows_engine::{ingest, live};
use serde::Serialize;
use utoipa::ToSchema;

/// What is allowed at most, and what the server keeps in memory whatever the size of sessions.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllLimits {
    /// What requests may ask for.
    pub requests: Limits,
    /// What is kept in memory.
    pub memory: MemoryLimits,
}

/// What the server keeps in memory at most.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryLimits {
    /// Bytes of one item's text. A longer text is several items; each but the first one says which one
    /// it `continues`.
    pub item_text_bytes: usize,
    /// Bytes of output that the item of a call shows; the events have all of it.
    pub call_output_bytes: usize,
    /// Bytes of a window of items, about. One item is told in any case: the window says whether there
    /// are more.
    pub window_bytes: usize,
    /// Calls of one session that have not ended and are known whole.
    pub open_calls: usize,
    /// Calls of one session that have ended and are known whole.
    pub ended_calls: usize,
    /// Requests of one session's agent that wait for answers: further ones are refused, with a notice.
    pub open_requests: usize,
    /// Calls of one session of which a few bytes are known.
    pub known_calls: usize,
    /// Sessions in memory that somebody sends.
    pub sent_sessions: usize,
    /// Sessions in memory that are read from files.
    pub read_sessions: usize,
    /// Sessions that nobody has written for minutes, and of which something is held back.
    pub quiet_sessions: usize,
    /// Bytes of these.
    pub quiet_bytes: usize,
    /// Bytes of the newest rows of one session, for those who follow it.
    pub tail_bytes: usize,
    /// Bytes of the newest rows of all sessions.
    pub tails_bytes: usize,
}

impl AllLimits {
    pub(crate) fn of(requests: &Limits) -> AllLimits {
        AllLimits {
            requests: requests.clone(),
            memory: MemoryLimits {
                item_text_bytes: limits::TEXT_PART,
                call_output_bytes: limits::OUTPUT,
                window_bytes: narrows_store::MAX_BYTES,
                open_calls: limits::CALLS,
                ended_calls: limits::ENDED_CALLS,
                open_requests: limits::REQUESTS,
                known_calls: limits::KNOWN_CALLS,
                sent_sessions: ingest::MAX_WRITERS,
                read_sessions: ingest::MAX_FILE_WRITERS,
                quiet_sessions: ingest::MAX_QUIET_WRITERS,
                quiet_bytes: ingest::MAX_QUIET_BYTES,
                tail_bytes: live::MAX_TAIL_BYTES,
                tails_bytes: live::MAX_TOTAL_TAIL_BYTES,
            },
        }
    }
}
