//! One typed pipeline from the packets of a coding agent to a clean transcript.
//!
//! Agents emit packets, in one shape live and in another in what they store. This crate reads
//! them all through one entry, hides host paths, and gives the same items either way:
//!
//! ```text
//! bytes ─ Packets ─▶ packet ─ Adapter ─▶ raw event ─ Sanitizer ─▶ event ─ Calls ─▶ event ─ Fold ─▶ change
//! ```
//!
//! [`Pipeline`] is all of it: give it what [`Packets`] finds, take [`Step`]s, apply their changes to
//! [`Items`]. Nothing here does I/O or reads a clock; parsing never fails and never panics: a bad
//! line is a `malformed` event, a kind that nobody modelled an `unknown` one.
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
//! Read on in [`event`] (what can happen), [`tool`] (calls), [`item`] (what is seen),
//! [`change`] (how it changes), [`sanitize`] (what is hidden), [`view`] (other shapes of the same
//! events).

pub mod adapter;
pub mod artifact;
mod beside;
pub mod calls;
pub mod change;
pub mod check;
pub mod event;
pub mod fold;
pub mod frame;
pub mod id;
pub mod item;
#[doc(hidden)]
pub mod json;
pub mod limits;
pub mod pipeline;
mod recent;
mod redact;
pub mod session;
#[cfg(feature = "stored")]
pub mod stored;
mod tally;
pub mod time;
pub mod tool;
pub mod usage;
pub mod view;

/// The former path of [`frame::packets`] and [`Format`].
#[doc(hidden)]
pub mod packet {
    pub use crate::adapter::Format;
    pub use crate::frame::packets::{Framed as Given, HostEvent as Told, Packet};
}

pub use adapter::{Format, UnknownFormat, looks_like};
pub use beside::Beside;
pub use calls::Doing;
pub use change::{Change, Items};
pub use check::{drift, parity};
pub use event::{Body, Event, Row};
pub use fold::Fold;
pub use frame::lines::{self, Lines};
pub use frame::packets::{
    Framed as Given, HostEvent as Told, ORPHAN_PARENT as NOBODY, Packet, Packets,
};
pub use item::Item;
pub use pipeline::{Config, Pipeline, Step};
pub use sanitize::{
    Clean, Paths, Raw, Secrets, TextCleaner, Tree, sanitize_paths_in_text, strip_session_prefix,
};
pub use tally::Tally;

/// Grows when sessions that were read by an older version should be read again, since this one
/// understands more of them.
pub const PARSER: u32 = 4;

/// Redaction: the types of the crate `narrows-sanitize` and the stage that applies them to events.
pub mod sanitize {
    pub(crate) use crate::redact::EmittedText as Shown;
    pub use crate::redact::RedactionStage as Sanitizer;
    pub use narrows_sanitize::{
        Clean, MIN_KEYWORD, MIN_KNOWN, Mode, Paths, Raw, RedactionCounts as Removed,
        Redactor as TextCleaner, Rule, RuleError, Secrets, TextStream, Tree, UserRule,
        sanitize_paths_in_text, strip_session_prefix,
    };
}
