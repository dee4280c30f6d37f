//! Repairs the columns of a session's row outside its header: names, times and counters.

use super::SessionRepair;
use super::session_log::{CopiedLog, SessionLog};
use super::sessions::{SessionRepairer, StoredSession};
use crate::buckets::{self, next_revision};
use crate::checksum;
use crate::checksum::session_counters::current_sum_sql;
use crate::db::{Db, params};
use crate::error::Result;
use crate::ids::now;
use crate::integrity::side_tables::{COUNTERS_MATCH, mismatched_names};
use crate::items::first_prompt;
use crate::keys::keys;

/// The note on a session whose names, times or counters were repaired.
pub(super) const NAMES_MAY_DIFFER: &str = "its times, counters or names may differ";
/// The most that a stored time may be ahead of the clock.
const MAX_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;

impl SessionRepairer<'_> {
    /// Repairs a session of which only these columns do not match.
    pub(super) fn repair_row(
        &self,
        log: SessionLog<'_>,
        stored: &StoredSession,
        copied: &CopiedLog,
    ) -> Result<SessionRepair> {
        let (key, db) = (log.session, Db::Sqlite(self.new));
        self.repair_names(key, stored, copied)?;
        self.repair_times(key, stored)?;
        let update = "UPDATE session SET bytes = ?2, waiting = (SELECT count(*) FROM item
             WHERE session = ?1 AND open = 1 AND kind = 'permission') WHERE key = ?1";
        db.execute(update, &params![key, copied.bytes])?;
        self.update_counters(key)?;
        Ok(SessionRepair {
            id: stored.id.clone(),
            title: stored.title.clone(),
            events: copied.events,
            items: copied.items,
            notes: vec![NAMES_MAY_DIFFER.to_owned()],
            ..SessionRepair::default()
        })
    }

    /// Repairs mismatched names: takes them from the log, otherwise clears them.
    pub(super) fn repair_names(
        &self,
        key: i64,
        stored: &StoredSession,
        copied: &CopiedLog,
    ) -> Result<()> {
        let db = Db::Sqlite(self.new);
        for checksum in mismatched_names(&db, key)? {
            match checksum {
                "prompt_crc" => {
                    let sql =
                        "UPDATE session SET prompt = NULL, prompt_order = NULL, prompt_crc = NULL
                         WHERE key = ?1";
                    db.execute(sql, &params![key])?;
                    first_prompt::find(&db, key)?;
                }
                "native_crc" => {
                    let native = copied.header(stored.ended, None)?.native;
                    let sql = "UPDATE session SET native = ?2 WHERE key = ?1";
                    db.execute(sql, &params![key, native])?;
                }
                _ => {
                    db.execute("UPDATE session SET project = NULL WHERE key = ?1", &params![key])?;
                }
            }
        }
        Ok(())
    }

    /// Repairs mismatched times: an impossible time is replaced by another one of the session.
    pub(super) fn repair_times(&self, key: i64, stored: &StoredSession) -> Result<()> {
        let (db, now) = (Db::Sqlite(self.new), now());
        // Values of other types are cleared, or set as in a new row.
        let columns = "SELECT name, \"notnull\" FROM pragma_table_info('session')
             WHERE type = 'INTEGER' AND pk = 0";
        let columns =
            db.query_all(columns, &[], |r| Ok((r.get::<String>(0)?, r.get::<bool>(1)?)))?;
        for (name, is_not_null) in columns {
            let empty = if is_not_null { "0" } else { "NULL" };
            let sql = format!(
                "UPDATE session SET \"{name}\" = {empty}
                 WHERE key = ?1 AND typeof(\"{name}\") NOT IN ('integer', 'null')"
            );
            db.execute(&sql, &params![key])?;
        }
        let sql = format!("SELECT {} FROM session WHERE key = ?1", COUNTERS_MATCH.as_str());
        if db.query_one(&sql, &params![key], |r| r.get::<bool>(0)).unwrap_or(false) {
            return Ok(());
        }
        let sql = "SELECT updated, heard, created FROM session WHERE key = ?1";
        let times = db.query_one(sql, &params![key], |r| {
            let is_possible = |time: &i64| (1..now + MAX_AHEAD_MS).contains(time);
            Ok([0, 1, 2].map(|at| r.get(at).ok().filter(is_possible)))
        })?;
        let any = times.into_iter().flatten().next().unwrap_or(now);
        let [updated, heard, created] = times.map(|time| time.unwrap_or(any));
        // A new revision notifies followers of the list. The stored one may be anything, and the next one
        // follows the highest: it is cleared first.
        let sql =
            "UPDATE session SET updated = ?2, heard = ?3, created = ?4, ended = ?5, touched = 0,
             touched_era = 0, pen = 0 WHERE key = ?1";
        db.execute(sql, &params![key, updated, heard, created, stored.ended])?;
        let sql = format!("UPDATE session SET touched = {} WHERE key = ?1", next_revision(&db));
        db.execute(&sql, &params![key]).map(|_| ())
    }

    /// Counts the tool calls of a session, and writes the checksums of these columns.
    pub(super) fn update_counters(&self, key: i64) -> Result<()> {
        let (db, (first, last)) = (Db::Sqlite(self.new), keys(key));
        db.execute(
            "UPDATE session SET calls = (SELECT count(*) FROM call WHERE key BETWEEN ?2 AND ?3),
             failed = (SELECT coalesce(sum(failed), 0) FROM call WHERE key BETWEEN ?2 AND ?3)
             WHERE key = ?1",
            &params![key, first, last],
        )?;
        let sql = "SELECT key, prompt, prompt_order, native, project FROM session WHERE key = ?1";
        let checksums = db.query_one(sql, &params![key], |r| {
            let of_columns = |columns: &[usize]| -> Result<i64> {
                let values = columns.iter().map(|at| r.value(*at)).collect::<Result<Vec<_>>>()?;
                Ok(checksum::of_values(&values))
            };
            Ok([of_columns(&[0, 1, 2])?, of_columns(&[0, 3])?, of_columns(&[0, 4])?])
        })?;
        let [prompt, agent_session_id, project] = checksums;
        let sql = format!(
            "UPDATE session SET figures = {}, updated_era = updated >> {}, touched_era = touched >> {},
             prompt_crc = ?2, native_crc = ?3, project_crc = ?4 WHERE key = ?1",
            current_sum_sql(),
            buckets::TIME_BITS,
            buckets::REVISION_BITS
        );
        db.execute(&sql, &params![key, prompt, agent_session_id, project]).map(|_| ())
    }
}
