//! The migrations of a store on PostgreSQL.

use crate::beside;
use crate::db::{Db, Pg, PgAddress, Value};
use crate::error::{Error, Result};
use crate::meta;
use crate::migrations::SCHEMA;
use crate::migrations::backfill;

/// The advisory lock of the migrating node; other nodes wait for it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7234116)";
/// The first schema that supported PostgreSQL.
const FIRST: u32 = 5;
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
pub(crate) fn prepare(address: &PgAddress) -> Result<[u8; 32]> {
    let pg = Pg::open(address)?;
    pg.say_and_wait("BEGIN")?;
    // A migration by another node may take long.
    pg.say_and_wait("SET LOCAL lock_timeout = '60s'")?;
    pg.say_and_wait(LOCK)?;
    let db = Db::Postgres(&pg);
    let found = schema_of(&db)?;
    if found > SCHEMA {
        pg.roll_back();
        return Err(Error::Newer { found, known: SCHEMA });
    }
    let done = if found == 0 { 0 } else { (found + 1 - FIRST) as usize };
    for sql in MIGRATIONS.iter().skip(done) {
        pg.say_and_wait(sql)?;
    }
    if found < beside::SECOND {
        backfill::sums(&db)?;
        beside::fill_all(&db)?;
    }
    let key = meta::mark_key(&db)?;
    meta::put(&db, "schema", &Value::Bytes(SCHEMA.to_string().as_bytes()))?;
    pg.say_and_wait("COMMIT")?;
    Ok(key)
}

fn schema_of(db: &Db<'_>) -> Result<u32> {
    let there = "SELECT to_regclass('meta') IS NOT NULL";
    if !db.one(there, &[], |r| r.get::<bool>(0))? {
        return Ok(0);
    }
    let told: Option<Vec<u8>> =
        db.optional("SELECT value FROM meta WHERE key = 'schema'", &[], |r| r.get(0))?;
    let number = told.and_then(|t| String::from_utf8(t).ok()).and_then(|t| t.parse().ok());
    number.ok_or_else(|| Error::Refused("this database holds something else".to_owned()))
}
