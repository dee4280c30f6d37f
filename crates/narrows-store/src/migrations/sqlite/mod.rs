//! The migrations of a store on SQLite.

use crate::beside;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::migrations::backfill;
use rusqlite::{Connection, TransactionBehavior};

/// A step of a migration.
enum Part {
    Sql(&'static str),
    Fill(fn(&Db<'_>) -> Result<()>),
}

/// Migrations are append-only.
const MIGRATIONS: &[&[Part]] = &[
    &[Part::Sql(include_str!("001_initial.sql"))],
    &[Part::Sql(include_str!("002_projects_calls_usage.sql"))],
    &[
        Part::Sql(include_str!("003_item_tree.sql")),
        Part::Fill(backfill::items),
        Part::Sql(include_str!("003_item_tree_indexes.sql")),
        Part::Fill(backfill::sessions),
    ],
    &[Part::Sql(include_str!("004_runs.sql"))],
    &[Part::Sql(include_str!("005_writer_and_lease.sql"))],
    // Event blocks, which older programs cannot read.
    &[],
    &[Part::Sql(include_str!("007_received_and_waiting.sql"))],
    &[Part::Sql(include_str!("008_checksums.sql")), Part::Fill(backfill::sums)],
    &[Part::Sql(include_str!("009_token_makers.sql"))],
    &[Part::Sql(include_str!("010_request_digest.sql"))],
    &[Part::Sql(include_str!("011_first_answer.sql"))],
    &[Part::Sql(include_str!("012_drop_browser_tokens.sql"))],
    &[Part::Sql(include_str!("013_left_out_sessions.sql"))],
    &[Part::Sql(include_str!("014_side_table_checksums.sql")), Part::Fill(beside::fill_first)],
    &[Part::Sql(include_str!("015_hidden_checksum.sql"))],
    &[Part::Sql(include_str!("016_run_directories.sql"))],
    &[Part::Sql(include_str!("017_remaining_checksums.sql")), Part::Fill(beside::fill_second)],
];

/// The number of the newest schema.
pub(crate) const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// The schema of a database.
pub(crate) fn schema_of(db: &Connection) -> Result<u32> {
    Ok(db.query_row("PRAGMA user_version", [], |r| r.get(0))?)
}

pub(crate) fn check_schema(db: &Connection) -> Result<u32> {
    let found = schema_of(db)?;
    if found > SCHEMA {
        return Err(Error::Newer { found, known: SCHEMA });
    }
    Ok(found)
}

/// Migrates the schema. Each migration is one transaction, so that a crash leaves a valid older
/// schema.
pub(crate) fn migrate(db: &mut Connection) -> Result<()> {
    let found = check_schema(db)?;
    for (at, parts) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for part in *parts {
            match part {
                Part::Sql(sql) => tx.execute_batch(sql)?,
                Part::Fill(fill) => fill(&Db::Sqlite(&tx))?,
            }
        }
        tx.execute_batch(&format!("PRAGMA user_version = {}", at + 1))?;
        tx.commit()?;
    }
    Ok(())
}
