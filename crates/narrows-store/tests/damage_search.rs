//! The search index: a flipped bit is reported, or changes no search result.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{Dice, copy, written};
use narrows_store::{Options, Query, Store, repair};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

async fn damage_lines(place: &Path, pause: Duration) -> Vec<String> {
    let store = match Store::open_read_only(place) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let checked = store.check(Duration::from_mins(1), pause).await.unwrap();
    assert!(checked.complete);
    checked.damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

/// The items that each term finds, as a search queries them: terms and item keys.
fn search_results(database: &Path, terms: &[String]) -> Option<BTreeSet<(String, i64)>> {
    let db = Connection::open(database).unwrap();
    let mut query = db.prepare("SELECT rowid FROM search WHERE search MATCH ?1").ok()?;
    let mut all = BTreeSet::new();
    for term in terms {
        let mut rows = query.query([term]).ok()?;
        while let Some(row) = rows.next().ok()? {
            all.insert((term.clone(), row.get(0).ok()?));
        }
    }
    Some(all)
}

/// All terms of the index.
fn index_terms(database: &Path) -> Vec<String> {
    let db = Connection::open(database).unwrap();
    db.execute_batch("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, search, row)").unwrap();
    let mut terms = db.prepare("SELECT term FROM terms WHERE term < 'z'").unwrap();
    terms.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Flips one bit of a value in a table of the index.
fn flip_value(database: &Path, table: &str, column: &str, dice: &mut Dice) -> String {
    let db = Connection::open(database).unwrap();
    let key = if table == "search_idx" { "segid, term" } else { "rowid, 0" };
    let sql = format!("SELECT {key}, {column} FROM {table}");
    let mut query = db.prepare(&sql).unwrap();
    let rows = query.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).unwrap();
    let rows: Vec<(i64, Value, Value)> = rows.map(Result::unwrap).collect();
    loop {
        let at = usize::try_from(dice.next(rows.len() as u64)).unwrap();
        let (first, second, value) = &rows[at];
        let mut flip = |mut bytes: Vec<u8>| {
            let place = usize::try_from(dice.next(bytes.len() as u64)).unwrap();
            bytes[place] ^= 1 << dice.next(8);
            bytes
        };
        let value = match value {
            Value::Blob(bytes) if !bytes.is_empty() => Value::Blob(flip(bytes.clone())),
            Value::Integer(n) => {
                let bytes = flip(n.to_le_bytes()[..2].to_vec());
                let low = i64::from(u16::from_le_bytes(bytes.try_into().unwrap()));
                Value::Integer(n & !0xffff | low)
            }
            _ => continue,
        };
        let set = match table {
            "search_idx" => {
                format!("UPDATE {table} SET {column} = ?1 WHERE segid = ?2 AND term = ?3")
            }
            _ => format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2 AND ?3 IS NOT NULL"),
        };
        if db.execute(&set, rusqlite::params![value, first, second]) == Ok(1) {
            return format!("{table}.{column} {first}: {value:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_search_index_bit_is_harmless_or_reported() {
    if common::is_postgres() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let (from, place) = (dir.path().join("closed"), dir.path().join("data"));
    assert_eq!(damage_lines(&from, Duration::ZERO).await, Vec::<String>::new());
    assert_eq!(damage_lines(&from, Duration::from_micros(1)).await, Vec::<String>::new());
    let terms = index_terms(&from.join("narrows.db"));
    assert!(terms.len() > 500, "{}", terms.len());
    let whole = search_results(&from.join("narrows.db"), &terms).unwrap();
    let (mut dice, mut undetected, mut harmful) =
        (Dice(number("NARROWS_SEED").unwrap_or(0x5ea)), Vec::new(), 0);
    for (table, column, times) in [
        ("search_data", "block", 60),
        ("search_idx", "term", 6),
        ("search_idx", "pgno", 6),
        ("search_docsize", "id", 6),
        ("search_docsize", "sz", 6),
        ("search_data", "id", 6),
    ] {
        for n in 0..times * number("NARROWS_FLIPS").unwrap_or(1) {
            copy(&from, &place);
            let database = place.join("narrows.db");
            let what = flip_value(&database, table, column, &mut dice);
            // Only missing results are harmful: each result is verified against its item.
            let now = search_results(&database, &terms);
            let all = now.is_some_and(|now| whole.is_subset(&now));
            // Without pauses as the doctor, with pauses as a server.
            let pause = Duration::from_micros(n % 2);
            let is_reported = !damage_lines(&place, pause).await.is_empty();
            harmful += u64::from(!all);
            if !all && !is_reported {
                undetected.push(what);
            }
        }
    }
    assert!(harmful > 20, "the test checks nothing: {harmful}");
    assert!(undetected.is_empty(), "unreported missing results: {undetected:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_search_term_is_reported_and_index_rebuilt() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, store) = (
        dir.path().join("data"),
        Store::open(&dir.path().join("data"), &Options::default()).unwrap(),
    );
    let mut book = common::TestSession::new(&store, "s").await;
    book.say("a", "the quick brown fox");
    book.say("b", "and something else");
    book.keep(&store).await;
    common::wait_for_maintenance(&store).await;
    let hits = async |store: &Store| {
        let query = Query { text: "quick".to_owned(), limit: 9, ..Query::default() };
        store.search(query).await.unwrap().hits.len()
    };
    assert_eq!(hits(&store).await, 1);
    store.close().await;
    assert_eq!(damage_lines(&place, Duration::ZERO).await, Vec::<String>::new());
    // An item gets the terms of another item: the index stays well-formed.
    let db = Connection::open(place.join("narrows.db")).unwrap();
    let (key, other): (i64, i64) = db
        .query_row("SELECT max(key), min(key) FROM item", [], |r| Ok((r.get(0)?, r.get(1)?)))
        .unwrap();
    let terms: String = {
        db.execute_batch("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, search, instance)")
            .unwrap();
        let mut query = db.prepare("SELECT term FROM terms WHERE doc = ?1").unwrap();
        let all = query.query_map([key], |r| r.get::<_, String>(0)).unwrap();
        all.map(Result::unwrap).collect::<Vec<_>>().join(" ")
    };
    let put = "INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)";
    db.execute(put, rusqlite::params![other, terms]).unwrap();
    drop(db);
    for pause in [Duration::ZERO, Duration::from_micros(1)] {
        let lines = damage_lines(&place, pause).await;
        let is_reported = |line: &String| line.contains("search") && line.contains("index");
        assert!(lines.iter().any(is_reported), "{lines:?}");
    }
    let report = repair(&place, false, |_| ()).unwrap();
    assert!(report.damaged && report.whole == 1, "{report:?}");
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(hits(&store).await, 1);
    store.close().await;
    assert_eq!(damage_lines(&place, Duration::ZERO).await, Vec::<String>::new());
}
