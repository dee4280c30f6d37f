//! The index of search: a bit of it that changes is said, or changes nothing that is found.
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

async fn says(place: &Path, pause: Duration) -> Vec<String> {
    let store = match Store::open_read_only(place) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let checked = store.check(Duration::from_mins(1), pause).await.unwrap();
    assert!(checked.complete);
    checked.damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

/// What each word of the index leads to, as a search asks for it: words and items.
fn found(database: &Path, words: &[String]) -> Option<BTreeSet<(String, i64)>> {
    let db = Connection::open(database).unwrap();
    let mut query = db.prepare("SELECT rowid FROM search WHERE search MATCH ?1").ok()?;
    let mut all = BTreeSet::new();
    for word in words {
        let mut rows = query.query([word]).ok()?;
        while let Some(row) = rows.next().ok()? {
            all.insert((word.clone(), row.get(0).ok()?));
        }
    }
    Some(all)
}

/// All words of the index.
fn words(database: &Path) -> Vec<String> {
    let db = Connection::open(database).unwrap();
    db.execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, search, row)").unwrap();
    let mut words = db.prepare("SELECT term FROM words WHERE term < 'z'").unwrap();
    words.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Flips one bit of a value in one of the tables that the index is kept in.
fn change(database: &Path, table: &str, column: &str, dice: &mut Dice) -> String {
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
async fn a_flipped_bit_of_the_index_of_search_hides_nothing_or_is_said() {
    if common::is_postgres() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let (from, place) = (dir.path().join("closed"), dir.path().join("data"));
    assert_eq!(says(&from, Duration::ZERO).await, Vec::<String>::new());
    assert_eq!(says(&from, Duration::from_micros(1)).await, Vec::<String>::new());
    let words = words(&from.join("narrows.db"));
    assert!(words.len() > 500, "{}", words.len());
    let whole = found(&from.join("narrows.db"), &words).unwrap();
    let (mut dice, mut silent, mut hidden) =
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
            let what = change(&database, table, column, &mut dice);
            // The item decides: what is found too often does no harm.
            let now = found(&database, &words);
            let all = now.is_some_and(|now| whole.is_subset(&now));
            // As the doctor looks, and as a server.
            let pause = Duration::from_micros(n % 2);
            let said = !says(&place, pause).await.is_empty();
            hidden += u64::from(!all);
            if !all && !said {
                silent.push(what);
            }
        }
    }
    assert!(hidden > 20, "the test looks at nothing: {hidden}");
    assert!(silent.is_empty(), "something is not found, and nobody says so: {silent:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_became_another_is_said_and_the_index_made_anew() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, store) = (
        dir.path().join("data"),
        Store::open(&dir.path().join("data"), &Options::default()).unwrap(),
    );
    let mut book = common::Book::new(&store, "s").await;
    book.say("a", "the quick brown fox");
    book.say("b", "and something else");
    book.keep(&store).await;
    common::settled(&store).await;
    let hits = async |store: &Store| {
        let query = Query { text: "quick".to_owned(), limit: 9, ..Query::default() };
        store.search(query).await.unwrap().hits.len()
    };
    assert_eq!(hits(&store).await, 1);
    store.close().await;
    assert_eq!(says(&place, Duration::ZERO).await, Vec::<String>::new());
    // An item that has another item's words: nothing is out of order.
    let db = Connection::open(place.join("narrows.db")).unwrap();
    let (key, other): (i64, i64) = db
        .query_row("SELECT max(key), min(key) FROM item", [], |r| Ok((r.get(0)?, r.get(1)?)))
        .unwrap();
    let words: String = {
        db.execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, search, instance)")
            .unwrap();
        let mut query = db.prepare("SELECT term FROM words WHERE doc = ?1").unwrap();
        let all = query.query_map([key], |r| r.get::<_, String>(0)).unwrap();
        all.map(Result::unwrap).collect::<Vec<_>>().join(" ")
    };
    let put = "INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)";
    db.execute(put, rusqlite::params![other, words]).unwrap();
    drop(db);
    for pause in [Duration::ZERO, Duration::from_micros(1)] {
        let said = says(&place, pause).await;
        assert!(said.iter().any(|line| line.contains("index of search")), "{said:?}");
    }
    let report = repair(&place, false, |_| ()).unwrap();
    assert!(report.damaged && report.whole == 1, "{report:?}");
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(hits(&store).await, 1);
    store.close().await;
    assert_eq!(says(&place, Duration::ZERO).await, Vec::<String>::new());
}
