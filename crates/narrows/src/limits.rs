//! Memory limits of the pipeline of one session, independent of the size of the session.

/// Bytes of text in one item; longer text continues in the next item.
pub const MAX_ITEM_TEXT_BYTES: usize = 1 << 20;
/// Bytes of output in the item of a call; the events have the full output.
pub const MAX_ITEM_OUTPUT_BYTES: usize = 8 << 20;
/// Calls whose full state is in memory.
pub const MAX_TRACKED_CALLS: usize = 1 << 12;
/// Ended calls whose full state is in memory; updates of a call come soon after its end.
pub const MAX_ENDED_CALLS: usize = 256;
/// Open requests of one agent: for permission, or with questions.
pub const REQUESTS: usize = 256;
/// Calls of which only the tool and the status are remembered.
pub const MAX_EVICTED_CALLS: usize = 1 << 14;

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::{
    MAX_ENDED_CALLS as ENDED_CALLS, MAX_EVICTED_CALLS as KNOWN_CALLS,
    MAX_ITEM_OUTPUT_BYTES as OUTPUT, MAX_ITEM_TEXT_BYTES as TEXT_PART, MAX_TRACKED_CALLS as CALLS,
};
