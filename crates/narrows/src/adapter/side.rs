//! The two forms of a session: what an agent streams and what it stores.

/// The forms of one session in which a fact occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Only the live stream.
    Live,
    /// Only the session file.
    History,
    /// Both, with different values.
    Both,
}
