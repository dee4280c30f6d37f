//! Durable rows on their way to subscribers: the hub of log tails, subscriptions and their frames, and
//! the bus that wakes other nodes. It knows neither where rows come from nor how a transport sends
//! frames, and imports no other module of this crate. Start at `hub`, then `subscription`.

mod batch;
mod bus;
mod cluster_sync;
mod filter;
mod frame;
mod hub;
mod log_tail;
mod preview;
mod session_list;
mod subscription;

pub use batch::Batch;
pub use bus::{Bus, Wake};
pub use cluster_sync::{ClusterObserver, ClusterSync};
pub use filter::{Filter, View};
pub use frame::TextFrames;
pub use hub::{Hub, PendingAppend, closed};
pub use hub::{MAX_TAIL_BYTES, MAX_TOTAL_TAIL_BYTES};
pub use log_tail::{LogTail, TailRead, TailWatcher};
pub use session_list::SessionListFollower;
pub use subscription::{Output, StartAt, Subscription, Transport};

// Former names, until their last users are renamed.
pub use log_tail::TailRead as Ahead;
pub use subscription::{StartAt as After, Transport as Wire};
