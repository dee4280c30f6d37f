//! A store that several nodes share.

pub(crate) mod changes;
