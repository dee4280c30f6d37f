//! Where sessions lie on disk: found, followed, read into the store.

mod agent;
mod claude;
mod claude_home;
mod follow;
mod identity;
mod look;
mod outputs;
mod part;
mod progress;
mod queue;
mod reader;
mod session;
pub mod spool;
mod watch;

pub use agent::{Agent, SourceOptions, agents};
pub use claude::{Found, find};
pub use follow::{Follower, catch_up};
pub use identity::label_of;
pub use look::{Lying, Seen, look};
pub use part::has_line;
pub use progress::{Progress, Sums};
use session::leave_out;
pub use session::list_once;
