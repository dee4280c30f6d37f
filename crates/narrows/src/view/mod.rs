//! Other shapes of the same events. A view projects clean events; it never parses.

mod activity;
mod packets;
mod progress;

pub use activity::{Activity, ActivityConfig, Message};
pub use packets::{Packet, packets};
