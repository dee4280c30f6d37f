//! What the pipeline of one session keeps in memory at most, whatever the session's size.

/// Bytes of one item's text; what comes after is the next item, which says that it continues this one.
pub const TEXT_PART: usize = 1 << 20;
/// Bytes of a call's output that its item shows; the events tell all of it.
pub const OUTPUT: usize = 8 << 20;
/// Calls that are known whole: those that have not ended.
pub const CALLS: usize = 1 << 12;
/// Calls that have ended and are known whole: news of them come soon after.
pub const ENDED_CALLS: usize = 256;
/// Requests of one agent, for leave or with questions, that wait for their answers.
pub const REQUESTS: usize = 256;
/// Calls of which little more is known than which tool they used and how they ended.
pub const KNOWN_CALLS: usize = 1 << 14;
