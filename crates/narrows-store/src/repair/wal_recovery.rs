//! Rows that only stand in a write-ahead log that SQLite gave up. A copy of it was kept when the store was
//! opened; since then others may have written. So only what was lost is taken of it, and only of sessions
//! that did not go on.

use super::cells::{Cells, columns};
use super::pages::{Page, Pages, SIZE};
use super::rescue::{Rescued, Shape, Trees, shapes};
use crate::damage::Damage;
use crate::db::{Db, Value, params};
use crate::dir::DataDir;
use crate::durable;
use crate::error::Result;
use crate::frames;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::Path;

/// Brings back what the copies of damaged logs hold of sessions that lost their ends, or all.
pub(super) fn bring(dir: &DataDir, new: &Connection, rescued: &mut Rescued) -> Result<()> {
    let copies = frames::copies(dir);
    if copies.is_empty() {
        return Ok(());
    }
    let lost = durable::lost(&Db::Sqlite(&rescued.db))?;
    rescued.back = sessions(&Db::Sqlite(&rescued.db), &lost)?;
    let shapes = shapes(new)?;
    rescued.db.execute_batch("BEGIN")?;
    // The newest first: of what stands in several, that counts.
    for copy in copies.iter().rev() {
        one(dir, copy, &shapes, rescued)?;
    }
    // Pictures of others were not lost.
    let unused = "DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM blob_use)";
    rescued.db.execute_batch(unused)?;
    rescued.db.execute_batch("COMMIT")?;
    Ok(())
}

/// The sessions of which something was lost and that did not go on since.
fn sessions(db: &Db<'_>, lost: &[Damage]) -> Result<BTreeSet<i64>> {
    let mut back = BTreeSet::new();
    for damage in lost {
        let sql = "SELECT seq FROM session WHERE key = ?1";
        let seq = db.optional(sql, &params![damage.session], |r| r.get::<u64>(0))?;
        if seq.map_or(damage.first == 0, |seq| seq + 1 == damage.first) {
            back.insert(damage.session);
        }
    }
    Ok(back)
}

fn one(dir: &DataDir, copy: &Path, shapes: &[Shape], rescued: &Rescued) -> Result<()> {
    let pages = Pages::with(dir, copy);
    let trees = Trees::find(&pages);
    let mut page: Page = [0; SIZE];
    for number in (1..=pages.count).filter(|number| pages.is_logged(*number)) {
        if !pages.read(number, &mut page) {
            continue;
        }
        let Some(cells) = Cells::of(&page, number) else { continue };
        for (row, bytes) in cells.rows(&pages, &page) {
            if let Some(values) = columns(&bytes)
                && let Some((shape, values)) =
                    Shape::proven(shapes, trees.owner(number), &cells, row, &values)
            {
                take(shape, &values, rescued)?;
            }
        }
    }
    Ok(())
}

/// Takes a row that is as it was written, if it is of one of the sessions.
fn take(shape: &Shape, values: &[Value<'_>], rescued: &Rescued) -> Result<()> {
    let number = |column: &str| match shape.get(values, column) {
        Value::Int(n) => n,
        _ => 0,
    };
    let session = match shape.name.as_str() {
        "event" | "item" | "call" | "edit" => number("key") >> 32,
        "session" => return session_row(shape, values, number("key"), number("seq"), rescued),
        // Its bytes say what it is.
        "blob" => return rescued.put(shape, values, "IGNORE"),
        "audit" | "damage" | "doomed" => return Ok(()),
        _ => number("session"),
    };
    if rescued.back.contains(&session) {
        // What was written later counts, but for what was not lost.
        let how = if shape.name == "event" { "IGNORE" } else { "REPLACE" };
        rescued.put(shape, values, how)?;
    }
    Ok(())
}

fn session_row(
    shape: &Shape,
    values: &[Value<'_>],
    key: i64,
    seq: i64,
    rescued: &Rescued,
) -> Result<()> {
    if !rescued.back.contains(&key) {
        return Ok(());
    }
    let db = Db::Sqlite(&rescued.db);
    let there = "SELECT seq FROM session WHERE key = ?1";
    let there = db.optional(there, &params![key], |r| r.get::<i64>(0))?;
    if there.is_some_and(|there| there >= seq) {
        return Ok(());
    }
    // Another one may have its label by now.
    let other = "SELECT 1 FROM session WHERE key <> ?1 AND (id = ?2 OR label = ?3)";
    let names = ["id", "label"].map(|column| shape.get(values, column));
    if !db.exists(other, &[Value::Int(key), names[0].clone(), names[1].clone()])? {
        rescued.put(shape, values, "REPLACE")?;
    }
    Ok(())
}
