//! Discovery of the agents' session files on this machine. `scan` finds them, `watcher` reports changes,
//! `follower` schedules the work and `session_reader` ingests one session from where it was last read.
//! `source` describes an agent's files; `claude` implements it; `spool` holds recorded sessions.

mod claude;
mod file_identity;
mod file_merge;
mod follower;
mod job_queue;
mod offloaded;
mod progress;
mod scan;
mod session_lookup;
mod session_reader;
mod source;
mod source_file;
pub mod spool;
mod watcher;

pub use claude::{SessionFiles, find};
pub use file_identity::label_of;
pub use follower::{Follower, catch_up};
pub use progress::{DiscoveryProgress, DiscoveryTotals};
pub use scan::{ScanResult, SessionFile, look};
use session_lookup::apply_excludes;
pub use session_lookup::list_once;
pub use source::{SessionSource, SourceOptions, agents};
pub use source_file::has_line;

// Former names, until their last users are renamed.
pub use claude::SessionFiles as Found;
pub use progress::{DiscoveryProgress as Progress, DiscoveryTotals as Sums};
pub use scan::{ScanResult as Seen, SessionFile as Lying};
pub use source::SessionSource as Agent;
