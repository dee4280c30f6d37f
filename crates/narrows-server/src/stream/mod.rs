//! Following a session: one loop for live, resume and history.

mod client_message;
mod lifetime;
mod permission_reply;
mod session_list;
mod sse;
mod ws;

pub use client_message::{ActivityFilter, ClientMessage, Subscribe};
pub use permission_reply::AnswerMessage;
pub(crate) use session_list::follow_list;
pub(crate) use sse::{follow, follow_turn};
pub(crate) use ws::serve;
