//! The schema of the store and its migrations, for SQLite and PostgreSQL.
//!
//! `sqlite/` and `postgres/` hold the SQL with the same numbers; `backfill.rs` fills what SQL
//! cannot derive.

pub(crate) mod backfill;
pub(crate) mod postgres;
mod sqlite;

pub(crate) use sqlite::{SCHEMA, check_schema, migrate};

use crate::data_dir::DataDir;
use crate::db::sqlite::connection;
use crate::error::Result;
use rusqlite::Connection;

/// Opens the only connection that writes, and migrates the schema to the newest version.
pub(crate) fn open_writer(dir: &DataDir, max_bytes: Option<u64>) -> Result<Connection> {
    connection::open_writer(dir, max_bytes, migrate)
}
