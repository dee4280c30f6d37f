//! The data model: events, items, the changes between them, and their parts.
//!
//! Plain data with serde; nothing here parses a format, redacts text or does I/O. Start with
//! [`event`] (what adapters produce) and [`item`] (what a person sees).

pub mod artifact;
pub mod change;
pub mod event;
pub mod id;
pub mod item;
#[cfg(feature = "stored")]
pub(crate) mod read_back;
pub mod session;
pub mod time;
pub mod tool;
pub mod usage;
