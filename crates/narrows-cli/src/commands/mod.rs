//! One module per command. A command may use another, but nothing below `commands` uses one.

pub(crate) mod agents;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod index;
pub(crate) mod ingest;
mod live_transcript;
pub(crate) mod ls;
pub(crate) mod parse;
pub(crate) mod prune;
pub(crate) mod repair;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod sanitize;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod service;
mod session_index;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod token;
pub(crate) mod usage;
pub(crate) mod watch;
