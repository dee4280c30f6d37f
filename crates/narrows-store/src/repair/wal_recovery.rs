//! Recovers rows from the copies of damaged write-ahead logs. The store may have been written since a
//! copy was made, so only lost rows are recovered, and only of sessions that did not continue.

use super::page_cells::{PageCells, decode_columns};
use super::page_source::{PAGE_BYTES, PageBuffer, PageSource};
use super::salvage::{PageTree, SalvagedRows};
use super::table_shape::TableShape;
use crate::damage::Damage;
use crate::data_dir::DataDir;
use crate::db::{Db, Value, params};
use crate::durability::{log_ends, wal_frames};
use crate::error::Result;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::Path;

/// Recovers the rows of sessions that lost their newest events or all of them.
pub(super) fn recover(dir: &DataDir, new: &Connection, salvaged: &mut SalvagedRows) -> Result<()> {
    let copies = wal_frames::copies(dir);
    if copies.is_empty() {
        return Ok(());
    }
    let losses = log_ends::recorded_losses(&Db::Sqlite(&salvaged.db))?;
    salvaged.recovered = recoverable_sessions(&Db::Sqlite(&salvaged.db), &losses)?;
    let shapes = TableShape::all(new)?;
    salvaged.db.execute_batch("BEGIN")?;
    // The newest copy first: its rows win.
    for copy in copies.iter().rev() {
        recover_copy(dir, copy, &shapes, salvaged)?;
    }
    // Images of other sessions were not lost.
    let unused = "DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM blob_use)";
    salvaged.db.execute_batch(unused)?;
    salvaged.db.execute_batch("COMMIT")?;
    Ok(())
}

/// The sessions that lost events and did not continue since.
fn recoverable_sessions(db: &Db<'_>, losses: &[Damage]) -> Result<BTreeSet<i64>> {
    let mut recoverable = BTreeSet::new();
    for damage in losses {
        let sql = "SELECT seq FROM session WHERE key = ?1";
        let seq = db.query_opt(sql, &params![damage.session], |r| r.get::<u64>(0))?;
        if seq.map_or(damage.first == 0, |seq| seq + 1 == damage.first) {
            recoverable.insert(damage.session);
        }
    }
    Ok(recoverable)
}

fn recover_copy(
    dir: &DataDir,
    copy: &Path,
    shapes: &[TableShape],
    salvaged: &SalvagedRows,
) -> Result<()> {
    let pages = PageSource::with_wal(dir, copy);
    let tree = PageTree::read(&pages);
    let mut page: PageBuffer = [0; PAGE_BYTES];
    for number in (1..=pages.count).filter(|number| pages.is_in_wal(*number)) {
        if !pages.read(number, &mut page) {
            continue;
        }
        let Some(cells) = PageCells::parse(&page, number) else { continue };
        for (rowid, bytes) in cells.rows(&pages, &page) {
            if let Some(values) = decode_columns(&bytes)
                && let Some((shape, values)) =
                    TableShape::find_verified(shapes, tree.owner(number), &cells, rowid, &values)
            {
                recover_row(shape, &values, salvaged)?;
            }
        }
    }
    Ok(())
}

/// Inserts a verified row if it belongs to a recoverable session.
fn recover_row(shape: &TableShape, values: &[Value<'_>], salvaged: &SalvagedRows) -> Result<()> {
    let number = |column: &str| match shape.value(values, column) {
        Value::Int(n) => n,
        _ => 0,
    };
    let session = match shape.name.as_str() {
        "event" | "item" | "call" | "edit" => number("key") >> 32,
        "session" => {
            return recover_session_row(shape, values, number("key"), number("seq"), salvaged);
        }
        // An image is named by the hash of its bytes.
        "blob" => return salvaged.insert(shape, values, "IGNORE"),
        "audit" | "damage" | "doomed" => return Ok(()),
        _ => number("session"),
    };
    if salvaged.recovered.contains(&session) {
        // The copy has the newer rows, except of events that were not lost.
        let on_conflict = if shape.name == "event" { "IGNORE" } else { "REPLACE" };
        salvaged.insert(shape, values, on_conflict)?;
    }
    Ok(())
}

fn recover_session_row(
    shape: &TableShape,
    values: &[Value<'_>],
    key: i64,
    seq: i64,
    salvaged: &SalvagedRows,
) -> Result<()> {
    if !salvaged.recovered.contains(&key) {
        return Ok(());
    }
    let db = Db::Sqlite(&salvaged.db);
    let current = "SELECT seq FROM session WHERE key = ?1";
    let current = db.query_opt(current, &params![key], |r| r.get::<i64>(0))?;
    if current.is_some_and(|current| current >= seq) {
        return Ok(());
    }
    // Another session may have its label by now.
    let conflict = "SELECT 1 FROM session WHERE key <> ?1 AND (id = ?2 OR label = ?3)";
    let names = ["id", "label"].map(|column| shape.value(values, column));
    if !db.exists(conflict, &[Value::Int(key), names[0].clone(), names[1].clone()])? {
        salvaged.insert(shape, values, "REPLACE")?;
    }
    Ok(())
}
