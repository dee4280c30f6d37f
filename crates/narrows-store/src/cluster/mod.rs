//! Sharing a store between several nodes.

pub(crate) mod changes;
