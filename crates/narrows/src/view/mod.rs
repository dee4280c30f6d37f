//! Projections of the events for different kinds of clients. A view takes clean events and never
//! parses.

mod activity;
mod packets;
mod progress;

pub use activity::{Activity, ActivityConfig, ActivityMessage};
pub use packets::{ClientPacket, packets};
// Former names, for the crates that still use them.
#[doc(hidden)]
pub use activity::ActivityMessage as Message;
#[doc(hidden)]
pub use packets::ClientPacket as Packet;
