//! The schema of a store on PostgreSQL.

use crate::connection::SCHEMA;
use crate::db::{Db, Pg, PgAddress, params};
use crate::error::{Error, Result};
use crate::names::random;

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
    let key = {
        let fresh: [u8; 32] = random()?;
        let keep = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        db.execute(keep, &params!["mark_key", &fresh[..]])?;
        let schema = format!("{SCHEMA}");
        let told = "INSERT INTO meta VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        db.execute(told, &params!["schema", schema.as_bytes()])?;
        db.one("SELECT value FROM meta WHERE key = 'mark_key'", &[], |r| r.get(0))?
    };
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
