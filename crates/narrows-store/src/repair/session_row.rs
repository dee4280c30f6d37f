//! Repairs the columns of a session's row outside its header: names, times and counters.

use super::SessionRepair;
use super::session_log::{CopiedLog, SessionLog};
use super::sessions::{SessionRepairer, StoredSession};
use crate::buckets;
use crate::checksum;
use crate::checksum::session_counters::current_sum_sql;
use crate::db::{Db, params};
use crate::error::Result;
use crate::integrity::side_tables::session_names_match;
use crate::items::first_prompt;
use crate::keys::keys;

impl SessionRepairer<'_> {
    /// Repairs a session of which only these columns do not match.
    pub(super) fn repair_row(
        &self,
        log: SessionLog<'_>,
        stored: &StoredSession,
        copied: &CopiedLog,
    ) -> Result<SessionRepair> {
        let (key, db) = (log.session, Db::Sqlite(self.new));
        if !session_names_match(&db, key)? {
            let sql =
                "UPDATE session SET prompt = NULL, prompt_order = NULL, native = ?2 WHERE key = ?1";
            let native = copied.header(stored.ended, None)?.native;
            db.execute(sql, &params![key, native])?;
            first_prompt::find(&db, key)?;
        }
        let update = "UPDATE session SET bytes = ?2, waiting = (SELECT count(*) FROM item
             WHERE session = ?1 AND open = 1 AND kind = 'permission') WHERE key = ?1";
        db.execute(update, &params![key, copied.bytes])?;
        self.update_counters(key)?;
        Ok(SessionRepair {
            id: stored.id.clone(),
            title: stored.title.clone(),
            events: copied.events,
            items: copied.items,
            notes: vec!["its times, counters or first prompt may differ".to_owned()],
            ..SessionRepair::default()
        })
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
