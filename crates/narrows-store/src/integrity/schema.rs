//! Compares the schema of a database with that of a new one. SQLite trusts its schema table: a column
//! whose name changed on disk is a column of another name.

use crate::db::Db;
use crate::error::Result;
use crate::migrations::migrate;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Tables, indexes and triggers by name: the type, the table and the statement of each.
type SchemaRows = BTreeMap<String, [String; 3]>;

/// The schema that this version creates.
fn expected() -> &'static SchemaRows {
    static EXPECTED: OnceLock<SchemaRows> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let schema = Connection::open_in_memory().map_err(Into::into).and_then(|mut db| {
            migrate(&mut db)?;
            read(&db)
        });
        // If it cannot be created, nothing is compared.
        schema.unwrap_or_default()
    })
}

fn read(db: &Connection) -> Result<SchemaRows> {
    let sql = "SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_schema";
    let rows = Db::Sqlite(db).query_all(sql, &[], |r| {
        let sql: String = r.get(3)?;
        Ok((r.get::<String>(0)?, [r.get(1)?, r.get(2)?, normalize(&sql)]))
    })?;
    // SQLite owns the tables of the full-text index.
    Ok(rows.into_iter().filter(|(name, _)| !name.starts_with("search_")).collect())
}

/// Removes comments and extra white space from a statement.
fn normalize(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// Describes the first difference from the expected schema.
pub(crate) fn difference(db: &Connection) -> Result<Option<String>> {
    let schema = read(db)?;
    let entry = expected().iter().find(|(name, expected)| schema.get(*name) != Some(*expected));
    Ok(entry.map(|(name, _)| format!("the schema of `{name}` differs from the expected one")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_comparison_ignores_comments_and_finds_renamed_column() {
        let sql = "CREATE TABLE a (\n  -- What it is.\n  b TEXT, -- and\n  c TEXT\n)";
        assert_eq!(normalize(sql), "CREATE TABLE a ( b TEXT, c TEXT )");
        assert!(expected().len() > 20);
        let mut db = Connection::open_in_memory().expect("a database");
        migrate(&mut db).expect("a store");
        assert_eq!(difference(&db), Ok(None));
        db.execute_batch("ALTER TABLE tag RENAME COLUMN tag TO tog").expect("renamed");
        assert!(matches!(difference(&db), Ok(Some(text)) if text.contains("tag")));
    }
}
