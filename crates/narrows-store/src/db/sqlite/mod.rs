//! SQLite: connections to the database of a data directory.

pub(crate) mod connection;
