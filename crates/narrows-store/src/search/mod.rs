//! Full-text search: the trigram index, and queries that verify its candidates. Knows items and
//! sessions, not the store.

pub(crate) mod index;
pub(crate) mod query;
pub(crate) mod trigrams;
