//! Who may do what: tokens, tickets, and the one guard that every request passes.

mod throttle;
mod tickets;
mod tokens;

pub(crate) use throttle::Throttle;
pub(crate) use tickets::Tickets;
pub use tokens::{Grant, NewToken, StreamPermit, Tokens, hash_of, new_secret};
