//! A typed pipeline from the packets of a coding agent to a clean transcript.
//!
//! Agents emit packets in one format live and in another in their session files. This crate reads both
//! through one entry, redacts host paths and secrets, and produces the same items from either:
//!
//! ```text
//! bytes ─ Packets ─▶ packet ─ Adapter ─▶ raw event ─ Sanitizer ─▶ event ─ Calls ─▶ event ─ Fold ─▶ change
//! ```
//!
//! [`Pipeline`] is all of it: push the output of [`Packets`] into it, and apply the changes of its
//! [`Step`]s to [`Items`]. Nothing here does I/O or reads a clock. Parsing never fails and never panics:
//! an invalid line becomes a `malformed` event, an unknown kind an `unknown` one.
//!
//! ```
//! use narrows::{Config, Items, Packets, Pipeline};
//!
//! let live = br#"{"sessionUpdate":"tool_call","toolCallId":"c1","title":"bash","kind":"execute","status":"pending"}
//! {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","rawInput":{"command":"ls /tmp/s/work"},"rawOutput":{"output":"a.txt"}}
//! "#;
//! let mut config = Config::default();
//! config.paths.add_root("/tmp/s/work");
//! let mut pipeline = Pipeline::new(config);
//! let mut steps = Vec::new();
//! Packets::default().push(live, |framed| pipeline.push(framed, &mut steps));
//! pipeline.finish(&mut steps);
//!
//! let mut items = Items::new();
//! for step in steps {
//!     step.changes.into_iter().for_each(|change| items.apply(change));
//! }
//! let json = serde_json::to_value(items.ordered()[0]).unwrap();
//! assert_eq!(json["toolCall"]["command"], "ls .");
//! assert_eq!(json["toolCall"]["status"], "completed");
//! ```
//!
//! Continue in [`model`] (events, items, changes), [`sanitize`] (redaction), [`tool_calls`] and [`fold`]
//! (the stages after it) and [`view`] (projections for clients).

pub mod adapter;
mod bounded_map;
pub mod drift;
pub mod fold;
mod foreign;
pub mod json;
pub mod limits;
pub mod lines;
pub mod model;
pub mod packet;
pub mod parity;
#[cfg(feature = "stored")]
pub mod persisted;
pub mod pipeline;
pub mod sanitize;
mod subagent_files;
mod tally;
pub mod tool_calls;
pub mod view;

pub use model::{artifact, change, event, id, item, session, time, tool, usage};
#[cfg(feature = "stored")]
pub use persisted as stored;
pub use tool_calls as calls;

/// The old name of [`bounded_map`].
mod recent {
    pub(crate) use crate::bounded_map::BoundedMap as Recent;
}

pub use calls::Doing;
pub use change::{Change, Items};
pub use event::{Body, Event, Row};
pub use fold::Fold;
pub use foreign::looks_like;
pub use item::Item;
pub use lines::Lines;
pub use packet::{Format, Given, NOBODY, Packet, Packets, Told};
pub use pipeline::{Config, Pipeline, Step};
pub use sanitize::{
    Clean, Paths, Raw, Secrets, TextCleaner, Tree, sanitize_paths_in_text, strip_session_prefix,
};
pub use subagent_files::Beside;
pub use tally::Tally;

/// Version of the parser. It increases when this version understands more of a session than older ones,
/// so that stored sessions should be parsed again.
pub const PARSER: u32 = 4;
