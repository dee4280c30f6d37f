//! Migrating a PostgreSQL database of an older version keeps everything, with the checksums that the new
//! version would have written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::FIXTURES;
use common::{data, full, open, temp_store};
use narrows_store::{ListFilter, Store, Window};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

macro_rules! sql {
    ($($file:literal),*) => { [$(include_str!(concat!("../src/migrations/postgres/", $file))),*] };
}

/// The released migrations since the first version for PostgreSQL. Version 6 has none.
const VERSIONS: [&str; 11] = sql!(
    "005_initial.sql",
    "007_received_and_waiting.sql",
    "008_checksums.sql",
    "009_token_makers.sql",
    "010_request_digest.sql",
    "011_first_answer.sql",
    "012_drop_browser_tokens.sql",
    "013_left_out_sessions.sql",
    "014_side_table_checksums.sql",
    "015_hidden_checksum.sql",
    "016_run_directories.sql"
);

/// Turns a database into one of an older version, with its rows.
fn downgrade(dir: &Path, version: usize) {
    let run_sql = |sql: &str| common::postgres::ask(dir, sql);
    run_sql("ALTER SCHEMA public RENAME TO newer; CREATE SCHEMA public");
    let steps = if version == 5 { 1 } else { version - 5 };
    for step in &VERSIONS[..steps] {
        run_sql(step);
    }
    let columns = "SELECT old.table_name, string_agg(format('%I', old.column_name), ', ')
         FROM information_schema.columns old
         JOIN information_schema.columns new USING (table_name, column_name)
         WHERE old.table_schema = 'public' AND new.table_schema = 'newer' GROUP BY 1";
    let mut copy = String::new();
    for line in run_sql(columns).lines() {
        let (table, columns) = line.split_once('|').unwrap();
        let _ = write!(
            copy,
            "INSERT INTO public.{table} ({columns}) SELECT {columns} FROM newer.{table};"
        );
    }
    run_sql(&copy);
    for table in ["session", "audit"] {
        run_sql(&format!(
            "SELECT setval(pg_get_serial_sequence('{table}', 'key'), (SELECT max(key) FROM {table}))"
        ));
    }
    // That version did not have these settings.
    run_sql("DELETE FROM meta WHERE key = 'mark_key_again'; DROP SCHEMA newer CASCADE");
    if version < 8 {
        run_sql("DELETE FROM meta WHERE key LIKE 'summed%'");
    }
    run_sql(&format!("UPDATE meta SET value = '{version}' WHERE key = 'schema'"));
}

/// Everything that the store returns for the sessions.
async fn snapshot(store: &Store) -> String {
    let mut all = format!("{:?}", store.mark_key());
    let list = ListFilter { limit: 99, ..ListFilter::default() };
    for mut row in store.list(list).await.unwrap().sessions {
        // An older version has no arrival times, and the rows are written later.
        (row.heard_at, row.live) = (0, false);
        let session = store.session(&row.id).await.unwrap();
        let items = store.items(session.key, Window::End, 9999).await.unwrap().items;
        let items: Vec<String> = items.iter().map(|row| common::print(&row.item)).collect();
        let events = common::written::events(store, session.key).await.unwrap();
        let events: Vec<String> = events.iter().map(common::written::one).collect();
        let files = store.files_of(session.key).await.unwrap();
        let sources = store.sources(session.key).await.unwrap();
        let seen = store.seen(session.key).await.unwrap();
        let request = store.request_at(session.key, 9).await.unwrap();
        let run = store.run(session.key).await.unwrap().map(|run| (run.agent, run.native));
        let messages = store.open_messages(session.key).await.unwrap();
        let _ = write!(
            all,
            "{row:?} {session:?} {items:?} {events:?} {files:?} {sources:?} {seen:?} {request:?}
             {run:?} {messages:?}"
        );
    }
    let tokens: Vec<String> =
        store.tokens().await.unwrap().iter().map(|token| token.id.clone()).collect();
    let _ = write!(all, "{tokens:?} {:?}", store.audited(None, 99).await.unwrap());
    all
}

/// Checksums that a row may lack, because the columns they cover may be empty or written later.
const OPTIONAL: [&str; 6] =
    ["blob.crc", "meta.crc", "run.lease_crc", "run.shown_crc", "source.crc", "source.file_crc"];

#[tokio::test(flavor = "multi_thread")]
async fn postgres_database_of_older_version_gets_all_checksums() {
    if !common::is_postgres() {
        return;
    }
    for version in [5, 7, 8, 10, 13, 16] {
        let (dir, store) = temp_store();
        full::fill(&store).await;
        let expected = snapshot(&store).await;
        store.close().await;
        downgrade(dir.path(), version);
        let store = open(&dir);
        let migrated = snapshot(&store).await;
        if version >= 9 {
            assert_eq!(migrated, expected, "{version}");
        }
        // Maintenance runs after a write.
        let session = store.session_by_label(FIXTURES[0]).await.unwrap();
        store.tag(&session.id, vec!["blue".into()], Vec::new()).await.unwrap();
        let missing = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL)
             + (SELECT count(*) FROM item WHERE crc IS NULL)";
        let is_done = async || common::raw_sql(&store, missing) == ["0"];
        common::wait_until("all rows have checksums", is_done).await;
        common::wait_for_maintenance(&store).await;
        let columns = "SELECT table_name, column_name FROM information_schema.columns
             WHERE table_schema = 'public' AND (column_name LIKE '%crc'
             OR column_name IN ('tally', 'figures', 'hidden', 'who'))";
        let columns = common::raw_sql(&store, columns);
        assert!(columns.len() > 30, "{columns:?}");
        for line in columns {
            let (table, crc) = line.split_once('|').unwrap();
            let missing = format!("SELECT count(*) FROM {table} WHERE {crc} IS NULL");
            let missing = common::raw_sql(&store, &missing);
            let optional = OPTIONAL.contains(&format!("{table}.{crc}").as_str());
            assert!(
                missing == ["0"] || optional,
                "{version}: {missing:?} rows of {table} lack {crc}"
            );
        }
        let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
        let lines: Vec<String> = checked.damage.iter().map(|(d, id)| d.words(id)).collect();
        assert!(checked.complete && lines.is_empty(), "{version}: {lines:?}");
        // A changed row is detected.
        common::raw_sql(&store, "UPDATE message SET body = 'other' WHERE number = 2");
        let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
        assert_eq!(checked.damage.len(), 1, "{version}: {:?}", checked.damage);
        store.close().await;
        assert!(data(&dir).exists());
    }
}
