//! Row keys of events and items: the session in the high 32 bits, the number within it in the low 32.
//! Keys of one session are adjacent, in the order of their numbers.

/// The maximum number of an event in its session: the low half of a row key.
pub(crate) const MAX_SEQ: u64 = u32::MAX as u64;

/// The key of an event row, or of an item row by its order.
pub(crate) fn event_key(session: i64, seq: u64) -> i64 {
    (session << 32) | i64::try_from(seq.min(MAX_SEQ)).unwrap_or(i64::MAX)
}

/// The first and the last key of a session's rows.
pub(crate) fn keys(session: i64) -> (i64, i64) {
    (event_key(session, 0), event_key(session, MAX_SEQ))
}

/// The number within its session that a key contains.
pub(crate) fn number(key: i64) -> u64 {
    u64::try_from(key & 0xffff_ffff).unwrap_or(0)
}
