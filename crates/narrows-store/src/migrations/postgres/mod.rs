//! The schema of a store on PostgreSQL.

use crate::connection::SCHEMA;
use crate::db::{Db, Pg, PgAddress, Value};
use crate::error::{Error, Result};
use crate::{beside, fill, meta};

/// Whoever changes the schema has this lock; other nodes wait.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7234116)";
/// The first schema that there was on PostgreSQL.
const FIRST: u32 = 5;
/// Migrations are only ever added; they have the numbers of those of SQLite.
const MIGRATIONS: &[&str] = &[
    include_str!("sql/postgres/005.sql"),
    "",
    include_str!("sql/postgres/007.sql"),
    include_str!("sql/postgres/008.sql"),
    include_str!("sql/postgres/009.sql"),
    include_str!("sql/postgres/010.sql"),
    include_str!("sql/postgres/011.sql"),
    include_str!("sql/postgres/012.sql"),
    include_str!("sql/postgres/013.sql"),
    include_str!("sql/postgres/014.sql"),
    include_str!("sql/postgres/015.sql"),
    include_str!("sql/postgres/016.sql"),
    include_str!("sql/postgres/017.sql"),
];

/// Brings the schema up to date; returns the installation's key for the marks of secrets.
pub(crate) fn prepare(address: &PgAddress) -> Result<[u8; 32]> {
    let pg = Pg::open(address)?;
    pg.say_and_wait("BEGIN")?;
    // Another node may be at it for long.
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
        fill::sums(&db)?;
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
