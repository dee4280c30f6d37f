//! Stores as older versions wrote them: their schema, with rows of a current store.

use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

macro_rules! sql {
    ($($file:literal),*) => { [$(include_str!(concat!("../../src/migrations/sqlite/", $file))),*] };
}

/// The schema of each version as released. Version 6 had no SQL.
const VERSIONS: [&str; 17] = sql!(
    "001_initial.sql",
    "002_projects_calls_usage.sql",
    "003_item_tree.sql",
    "004_runs.sql",
    "005_writer_and_lease.sql",
    "003_item_tree_indexes.sql",
    "007_received_and_waiting.sql",
    "008_checksums.sql",
    "009_token_makers.sql",
    "010_request_digest.sql",
    "011_first_answer.sql",
    "012_drop_browser_tokens.sql",
    "013_left_out_sessions.sql",
    "014_side_table_checksums.sql",
    "015_hidden_checksum.sql",
    "016_run_directories.sql",
    "017_remaining_checksums.sql"
);

/// Creates a store of an older version with the rows of another store.
pub fn older(from: &Path, to: &Path, version: usize) {
    let db = Connection::open(to).unwrap();
    for (at, step) in (1..).zip(&VERSIONS[..version]) {
        // These indexes were created after the columns of version 3 were filled.
        if at != 6 {
            db.execute_batch(step).unwrap();
        }
        if at == 3 {
            db.execute_batch(VERSIONS[5]).unwrap();
        }
    }
    db.execute("ATTACH ?1 AS newer", [from.to_str().unwrap()]).unwrap();
    let mut tables = db
        .prepare(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'",
        )
        .unwrap();
    let tables = tables.query_map([], |r| r.get::<_, String>(0)).unwrap();
    for table in tables.map(Result::unwrap) {
        // Shadow tables of the search index.
        if table.starts_with("search") || table.starts_with("sqlite_") {
            continue;
        }
        let mut columns = db.prepare(&format!("PRAGMA main.table_info({table})")).unwrap();
        let columns = columns.query_map([], |r| r.get::<_, String>(1)).unwrap();
        let columns = columns.map(|c| format!("\"{}\"", c.unwrap())).collect::<Vec<_>>().join(",");
        let copy =
            format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}");
        db.execute_batch(&copy).unwrap();
    }
    // All items wait to be indexed.
    let fresh = "INSERT OR IGNORE INTO main.fresh SELECT key FROM main.item";
    db.execute_batch(fresh).unwrap();
    // Columns unknown to that version.
    let forget = "DELETE FROM main.meta WHERE key = 'mark_key_again'";
    db.execute_batch(forget).unwrap();
    if version < 8 {
        db.execute_batch("DELETE FROM main.meta WHERE key LIKE 'summed%'").unwrap();
    }
    db.execute_batch(&format!("PRAGMA main.user_version = {version}")).unwrap();
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600)).unwrap();
}
