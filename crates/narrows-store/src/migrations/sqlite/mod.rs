//! The migrations of a store on SQLite.

use crate::checksum::backfill::{backfill_first, backfill_second};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::meta;
use crate::migrations::backfill;
use rusqlite::{Connection, TransactionBehavior};

/// A step of a migration.
enum MigrationStep {
    Sql(&'static str),
    Backfill(fn(&Db<'_>) -> Result<()>),
}

/// Migrations are append-only.
const MIGRATIONS: &[&[MigrationStep]] = &[
    &[MigrationStep::Sql(include_str!("001_initial.sql"))],
    &[MigrationStep::Sql(include_str!("002_projects_calls_usage.sql"))],
    &[
        MigrationStep::Sql(include_str!("003_item_tree.sql")),
        MigrationStep::Backfill(backfill::items),
        MigrationStep::Sql(include_str!("003_item_tree_indexes.sql")),
        MigrationStep::Backfill(backfill::sessions),
    ],
    &[MigrationStep::Sql(include_str!("004_runs.sql"))],
    &[MigrationStep::Sql(include_str!("005_writer_and_lease.sql"))],
    // Event blocks, which older programs cannot read.
    &[],
    &[MigrationStep::Sql(include_str!("007_received_and_waiting.sql"))],
    &[
        MigrationStep::Sql(include_str!("008_checksums.sql")),
        MigrationStep::Backfill(backfill::checksums),
    ],
    &[MigrationStep::Sql(include_str!("009_token_makers.sql"))],
    &[MigrationStep::Sql(include_str!("010_request_digest.sql"))],
    &[MigrationStep::Sql(include_str!("011_first_answer.sql"))],
    &[MigrationStep::Sql(include_str!("012_drop_browser_tokens.sql"))],
    &[MigrationStep::Sql(include_str!("013_left_out_sessions.sql"))],
    &[
        MigrationStep::Sql(include_str!("014_side_table_checksums.sql")),
        MigrationStep::Backfill(backfill_first),
    ],
    &[MigrationStep::Sql(include_str!("015_hidden_checksum.sql"))],
    &[MigrationStep::Sql(include_str!("016_run_directories.sql"))],
    &[
        MigrationStep::Sql(include_str!("017_remaining_checksums.sql")),
        MigrationStep::Backfill(backfill_second),
        MigrationStep::Backfill(meta::duplicate_redaction_key),
    ],
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
    for (at, steps) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for step in *steps {
            match step {
                MigrationStep::Sql(sql) => tx.execute_batch(sql)?,
                MigrationStep::Backfill(backfill_step) => backfill_step(&Db::Sqlite(&tx))?,
            }
        }
        tx.execute_batch(&format!("PRAGMA user_version = {}", at + 1))?;
        tx.commit()?;
    }
    Ok(())
}
