//! Following a session: one loop for live, resume and history.

mod answer;
mod asked;
mod filter;
mod frame;
mod life;
mod list;
mod pause;
mod sse;
mod subscription;
mod ws;

pub use answer::AnswerMessage;
pub use asked::{ClientMessage, Flags, Subscribe};
pub use filter::{Filter, View};
pub(crate) use frame::{encode_sse, encode_ws};
pub(crate) use list::follow_list;
pub(crate) use sse::{follow, follow_turn, next_bytes};
pub use subscription::{After, Subscription, Wire};
pub(crate) use ws::{MAX_SUBSCRIPTIONS, serve};
