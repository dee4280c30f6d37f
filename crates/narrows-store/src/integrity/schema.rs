//! What the list of tables of a database should say. SQLite believes what stands there: a column whose
//! name has changed on the disk is a column of another name.

use crate::connection::migrate;
use crate::db::Db;
use crate::error::Result;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Tables, indexes and triggers by their names: what each is, of which table, and the statement that
/// made it.
type Layout = BTreeMap<String, [String; 3]>;

/// As this version makes it.
fn own() -> &'static Layout {
    static OWN: OnceLock<Layout> = OnceLock::new();
    OWN.get_or_init(|| {
        let made = Connection::open_in_memory().map_err(Into::into).and_then(|mut db| {
            migrate(&mut db)?;
            read(&db)
        });
        // Without it nothing is compared.
        made.unwrap_or_default()
    })
}

fn read(db: &Connection) -> Result<Layout> {
    let sql = "SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_schema";
    let rows = Db::Sqlite(db).all(sql, &[], |r| {
        let sql: String = r.get(3)?;
        Ok((r.get::<String>(0)?, [r.get(1)?, r.get(2)?, plain(&sql)]))
    })?;
    // The tables of the index of search are SQLite's own.
    Ok(rows.into_iter().filter(|(name, _)| !name.starts_with("search_")).collect())
}

/// A statement without what it says for people.
fn plain(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(before, _)| before));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// What a database says otherwise than it should.
pub(crate) fn differs(db: &Connection) -> Result<Option<String>> {
    let there = read(db)?;
    let other = own().iter().find(|(name, should)| there.get(*name) != Some(*should));
    Ok(other.map(|(name, _)| format!("the list of tables says something else of {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_for_people_does_not_count() {
        let made = "CREATE TABLE a (\n  -- What it is.\n  b TEXT, -- and\n  c TEXT\n)";
        assert_eq!(plain(made), "CREATE TABLE a ( b TEXT, c TEXT )");
        assert!(own().len() > 20);
        let mut db = Connection::open_in_memory().expect("a database");
        migrate(&mut db).expect("a store");
        assert_eq!(differs(&db), Ok(None));
        db.execute_batch("ALTER TABLE tag RENAME COLUMN tag TO tog").expect("renamed");
        assert!(matches!(differs(&db), Ok(Some(what)) if what.contains("tag")));
    }
}
