//! Secrets and paths that are planted in sessions: what the columns of the database hold.

use crate::canaries::{ROOT, SECRETS, machine};
use crate::home::Machine;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// Every value of every table, unpacked, with the table's name.
fn values(machine: &Machine) -> Vec<(String, String)> {
    let file = machine.data().join("narrows.db");
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("database");
    let mut tables =
        db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("list");
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))
        .expect("list")
        .map(|name| name.expect("name"))
        .collect();
    let mut all = Vec::new();
    for table in tables {
        // The index of search has a table that only it can read; its rows are in others.
        let Ok(mut query) = db.prepare(&format!("SELECT * FROM \"{table}\"")) else { continue };
        let columns = query.column_count();
        let mut rows = query.query([]).expect("rows");
        while let Ok(Some(row)) = rows.next() {
            for column in 0..columns {
                let value = match row.get_ref(column).expect("value") {
                    ValueRef::Text(text) => text.to_vec(),
                    ValueRef::Blob(kept) => [kept, b"\n", &narrows_store::plain(kept)].concat(),
                    _ => continue,
                };
                all.push((table.clone(), String::from_utf8_lossy(&value).to_lowercase()));
            }
        }
    }
    all
}

#[test]
fn no_column_holds_a_secret_and_only_sources_tell_where_the_agent_worked() {
    let (machine, _) = machine();
    machine.told(&["index"]);
    let all = values(&machine);
    let holds = |table: &str, what: &str| all.iter().any(|(t, v)| t == table && v.contains(what));
    assert!(holds("item", "offloaded: ") && holds("event", "redacted:"), "packed values are read");
    assert!(holds("source", ROOT), "the session goes on from there");
    for (table, value) in &all {
        for (secret, _) in SECRETS {
            assert!(!value.contains(&secret.to_lowercase()), "{table} holds {secret}: {value}");
        }
        let home = machine.home().to_str().expect("path").to_lowercase();
        for path in [ROOT, "canary-root", &home] {
            assert!(table == "source" || !value.contains(path), "{table} tells {path}: {value}");
        }
    }
}
