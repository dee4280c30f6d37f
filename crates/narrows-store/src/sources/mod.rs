//! Sources of a session: how far they were read, and the files that they are.

pub(crate) mod checkpoint;
pub(crate) mod files;
