//! Durable rows on their way to subscribers: the hub of log tails, subscriptions and their frames, and
//! the bus that wakes other nodes. Knows neither where rows come from nor how frames are transported.

mod batch;
mod bus;
mod cluster_sync;
mod filter;
mod frame;
mod hub;
mod log_tail;
mod pause;
mod preview;
mod session_list;
mod subscription;

pub use batch::Batch;
pub use bus::{Bus, Wake};
pub use cluster_sync::{ClusterObserver, ClusterSync};
pub use filter::{Filter, View};
pub use frame::TextFrames;
pub use hub::{Delivery, Hub, MAX_BYTES, MAX_SESSION_BYTES, closed};
pub use log_tail::{Ahead, Tail, Waker};
pub use session_list::SessionListFollower;
pub use subscription::{After, Output, Subscription, Wire};
