//! The stream-json of Claude Code.

pub(crate) mod records;
pub(crate) mod turns;
pub(crate) mod voice;
