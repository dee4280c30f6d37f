//! Following a session: one loop for live, resume and history.

mod answer;
mod asked;
mod life;
mod list;
mod sse;
mod ws;

pub use answer::AnswerMessage;
pub use asked::{ClientMessage, Flags, Subscribe};
pub(crate) use list::follow_list;
pub(crate) use sse::{follow, follow_turn};
pub(crate) use ws::{MAX_SUBSCRIPTIONS, serve};
