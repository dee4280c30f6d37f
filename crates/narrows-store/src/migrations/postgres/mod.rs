//! The migrations of a store on PostgreSQL.

use crate::checksum::backfill::{backfill_first, backfill_second};
use crate::checksum::columns;
use crate::db::{Db, Pg, PgConfig, Value};
use crate::error::{Error, Result};
use crate::meta;
use crate::migrations::SCHEMA;
use crate::migrations::backfill;

/// The advisory lock of the migrating node; other nodes wait for it.
const LOCK_MIGRATIONS: &str = "SELECT pg_advisory_xact_lock(7234116)";
/// The first schema that supported PostgreSQL.
const FIRST_SCHEMA: u32 = 5;
/// Migrations are append-only and have the numbers of the SQLite ones.
const MIGRATIONS: &[&str] = &[
    include_str!("005_initial.sql"),
    "",
    include_str!("007_received_and_waiting.sql"),
    include_str!("008_checksums.sql"),
    include_str!("009_token_makers.sql"),
    include_str!("010_request_digest.sql"),
    include_str!("011_first_answer.sql"),
    include_str!("012_drop_browser_tokens.sql"),
    include_str!("013_left_out_sessions.sql"),
    include_str!("014_side_table_checksums.sql"),
    include_str!("015_hidden_checksum.sql"),
    include_str!("016_run_directories.sql"),
    include_str!("017_remaining_checksums.sql"),
];

/// Migrates the schema; returns the installation's key for redaction placeholders.
pub(crate) fn migrate(address: &PgConfig) -> Result<[u8; 32]> {
    let pg = Pg::open(address)?;
    pg.batch_execute("BEGIN")?;
    // A migration by another node may take long.
    pg.batch_execute("SET LOCAL lock_timeout = '60s'")?;
    pg.batch_execute(LOCK_MIGRATIONS)?;
    let db = Db::Postgres(&pg);
    let found = schema_of(&db)?;
    if found > SCHEMA {
        pg.roll_back();
        return Err(Error::Newer { found, known: SCHEMA });
    }
    let done = if found == 0 { 0 } else { (found + 1 - FIRST_SCHEMA) as usize };
    for sql in MIGRATIONS.iter().skip(done) {
        pg.batch_execute(sql)?;
    }
    if found < columns::SECOND_SCHEMA {
        backfill::checksums(&db)?;
        backfill_first(&db)?;
        backfill_second(&db)?;
        meta::duplicate_redaction_key(&db)?;
    }
    let key = meta::redaction_key(&db)?;
    meta::set(&db, "schema", &Value::Bytes(SCHEMA.to_string().as_bytes()))?;
    pg.batch_execute("COMMIT")?;
    Ok(key)
}

fn schema_of(db: &Db<'_>) -> Result<u32> {
    let has_meta = "SELECT to_regclass('meta') IS NOT NULL";
    if !db.query_one(has_meta, &[], |r| r.get::<bool>(0))? {
        return Ok(0);
    }
    let stored: Option<Vec<u8>> =
        db.query_opt("SELECT value FROM meta WHERE key = 'schema'", &[], |r| r.get(0))?;
    let number = stored.and_then(|t| String::from_utf8(t).ok()).and_then(|t| t.parse().ok());
    number.ok_or_else(|| Error::Refused("the database is not a narrows store".to_owned()))
}
