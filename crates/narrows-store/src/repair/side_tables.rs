//! Copies the tables outside the logs.

use super::table_copy::TableCopy;
use super::{RepairReport, RepairSource};
use crate::blobs;
use crate::damage;
use crate::db::{Db, Row};
use crate::error::Result;
use crate::integrity::side_tables;
use crate::meta;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// Tables that are rebuilt, copied with their sessions, or describe deleted and lost sessions.
const SKIPPED_TABLES: [&str; 8] =
    ["session", "event", "item", "call", "edit", "fresh", "doomed", "damage"];

/// Copies the rows that match their checksums, and reports all others.
pub(super) fn copy(
    source: &RepairSource<'_>,
    new: &Connection,
    tables: &[TableCopy],
    sessions: &[i64],
    report: &mut RepairReport,
) -> Result<()> {
    let existing: BTreeSet<i64> = sessions.iter().copied().collect();
    // Where rows come from pages, the tables of the database only show whether all rows were reachable.
    let damaged_tables = match source.damaged.filter(|_| source.salvaged.is_some()) {
        Some(damaged) => TableCopy::all(damaged, new)?,
        None => Vec::new(),
    };
    for table in tables {
        let name = table.name.as_str();
        if SKIPPED_TABLES.contains(&name) {
            continue;
        }
        let mut mismatches = 0;
        let at = |column: &str| table.index_of(column);
        let matches =
            |row: &Row<'_>| table.has_column_types(row) && side_tables::row_matches(name, row, at);
        // The metadata of an image is repaired below; only its bytes must match.
        let is_image =
            |row: &Row<'_>| name == "blob" && blobs::is_sound(row, at("hash"), at("body"));
        let session_at = table.has_session().then(|| table.index_of("session"));
        let mut has_unreadable = table.copy(source.rows, new, sessions, |row| {
            let session = session_at.map(|at| row.get::<i64>(at));
            let is_stray = session.is_some_and(|key| key.is_ok_and(|key| !existing.contains(&key)));
            let matches = matches(row);
            mismatches += u64::from(!matches);
            !is_stray && (matches || is_image(row))
        })?;
        let damaged_table = damaged_tables.iter().find(|damaged| damaged.name == name);
        if let (Some(db), Some(damaged_table)) = (source.damaged, damaged_table) {
            has_unreadable |= damaged_table.copy(db, new, sessions, |_| false)?;
        }
        if has_unreadable {
            report.lost.push(format!("some {}", describe(name)));
        } else if mismatches > 0 {
            report.lost.push(format!("{mismatches} {}", describe(name)));
        }
    }
    let db = Db::Sqlite(new);
    blobs::repair_metadata(&db)?;
    meta::duplicate_redaction_key(&db)?;
    drop(damage::drain_reports());
    let old = Db::Sqlite(source.rows);
    let checked = side_tables::check_stray_rows(&old)
        .and_then(|()| side_tables::check_deletions_and_losses(&old));
    if checked.is_ok() {
        report.lost.extend(damage::drain_reports().into_iter().map(|damage| damage.what));
    }
    let moved = "SELECT 1 FROM item NOT INDEXED WHERE session <> key >> 32";
    if old.exists(moved, &[]).unwrap_or(false) {
        report.database.push("item rows name another session than their key".to_owned());
    }
    if let (None, Some(salvaged)) = (source.damaged, source.salvaged) {
        let pages = if salvaged.missing_pages == 0 {
            "some".to_owned()
        } else {
            salvaged.missing_pages.to_string()
        };
        report.lost.push(format!(
            "the content of {pages} missing pages of the database: it may include tokens, tags, usage \
             and source checkpoints"
        ));
    }
    Ok(())
}

/// The rows of a table, and the effect of their loss.
fn describe(table: &str) -> &str {
    match table {
        "token" => "tokens: requests with them are refused",
        "source" => "source checkpoints: packets and files are read again from their beginning",
        "made" => "parents of tokens: revoking a parent no longer revokes these tokens",
        "blob" | "blob_use" => "images",
        "usage" | "first_answer" => "token counts and costs",
        "active" => "activity times",
        "seen" => "lists of read records: some records may be read again",
        "tag" => "session tags",
        "request" => "responses of idempotent requests: a retry is processed again",
        "audit" => "audit log entries",
        "forgotten" => "tombstones of deleted sessions: their files may be read again",
        "run" | "message" | "command" => "queued messages and runs",
        "meta" => "store settings",
        other => other,
    }
}
