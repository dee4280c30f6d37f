//! Projections of the events for different kinds of clients. A view takes clean events and never
//! parses.

mod activity;
mod packets;
mod progress;

pub use activity::{Activity, ActivityConfig, Message};
pub use packets::{Packet, packets};
