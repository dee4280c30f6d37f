//! Memory limits of the pipeline of one session, independent of the size of the session.

/// Bytes of text in one item; longer text continues in the next item.
pub const TEXT_PART: usize = 1 << 20;
/// Bytes of output in the item of a call; the events have the full output.
pub const OUTPUT: usize = 8 << 20;
/// Calls whose full state is in memory.
pub const CALLS: usize = 1 << 12;
/// Ended calls whose full state is in memory; updates of a call come soon after its end.
pub const ENDED_CALLS: usize = 256;
/// Open requests of one agent: for permission, or with questions.
pub const REQUESTS: usize = 256;
/// Calls of which only the tool and the status are remembered.
pub const KNOWN_CALLS: usize = 1 << 14;
