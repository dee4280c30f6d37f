//! Sources of a session: their checkpoints, and the files among them.

pub(crate) mod checkpoint;
pub(crate) mod files;
