//! Full-text search over items.

pub(crate) mod index;
pub(crate) mod query;
pub(crate) mod trigrams;
