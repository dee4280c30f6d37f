//! A typed pipeline from the packets of a coding agent to a clean transcript.
//!
//! Agents emit packets in one format live and in another in their session files. This crate reads both
//! through one entry, redacts host paths and secrets, and produces the same items from either:
//!
//! ```text
//! bytes ─ Packets ─▶ packet ─ Adapter ─▶ raw event ─ RedactionStage ─▶ event ─ ToolCallTracker ─▶ event ─ Fold ─▶ change
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
pub mod check;
pub mod fold;
pub mod frame;
#[doc(hidden)]
pub mod json;
pub mod limits;
pub mod model;
#[cfg(feature = "stored")]
pub mod persisted;
pub mod pipeline;
mod redact;
mod subagent_files;
mod tally;
pub mod tool_calls;
pub mod view;

pub use adapter::{Format, UnknownFormat, looks_like};
pub use check::{drift, parity};
pub use event::{Body, Event, PrintedEvent};
pub use fold::Fold;
pub use frame::lines::{self, Lines};
pub use frame::packets::{Framed, HostEvent, ORPHAN_PARENT, Packet, Packets};
pub use model::change::{Change, Items};
pub use model::item::Item;
pub use model::{artifact, change, event, id, item, session, time, tool, usage};
pub use pipeline::{Config, Pipeline, Step};
pub use sanitize::{
    Clean, Paths, Raw, Redactor, Secrets, Tree, sanitize_paths_in_text, strip_session_prefix,
};
pub use subagent_files::SubagentFiles;
pub use tally::Tally;
pub use tool_calls::CallActivity;

// Former names, for the crates that still use them.
#[cfg(feature = "stored")]
#[doc(hidden)]
pub use persisted as stored;
#[doc(hidden)]
pub use {
    PARSER_VERSION as PARSER, event::PrintedEvent as Row, frame::packets::Framed as Given,
    frame::packets::HostEvent as Told, frame::packets::ORPHAN_PARENT as NOBODY,
    sanitize::Redactor as TextCleaner, subagent_files::SubagentFiles as Beside,
    tool_calls as calls, tool_calls::CallActivity as Doing,
};

/// Version of the parser. It increases when this version understands more of a session than older ones,
/// so that stored sessions should be parsed again.
pub const PARSER_VERSION: u32 = 4;

/// Redaction: the types of the crate `narrows-sanitize` and the stage that applies them to events.
pub mod sanitize {
    pub use crate::redact::RedactionStage;
    pub use narrows_sanitize::{
        Clean, MIN_KEYWORD_LEN, MIN_KNOWN_LEN, Mode, Paths, Raw, RedactionCounts, Redactor, Rule,
        RuleError, Secrets, TextStream, Tree, UserRule, sanitize_paths_in_text,
        strip_session_prefix,
    };

    // Former names, for the crates that still use them.
    #[doc(hidden)]
    pub use narrows_sanitize::{
        MIN_KNOWN_LEN as MIN_KNOWN, RedactionCounts as Removed, Redactor as TextCleaner,
    };
}
