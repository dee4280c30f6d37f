//! What a session's row has beside its header, made anew where it is not as it was written.

use super::RepairedSession;
use super::log::{Copied, Log};
use super::session::{Own, Sessions};
use crate::db::{Db, params};
use crate::error::Result;
use crate::log::keys;
use crate::{beside, era, figures, prompt, sum};

impl Sessions<'_> {
    /// A session of which only that is not as it was written.
    pub(super) fn mend(&self, log: Log<'_>, own: &Own, copied: &Copied) -> Result<RepairedSession> {
        let (key, db) = (log.session, Db::Sqlite(self.new));
        if !beside::names_hold(&db, key)? {
            let sql =
                "UPDATE session SET prompt = NULL, prompt_order = NULL, native = ?2 WHERE key = ?1";
            let native = copied.facts(own.ended, None)?.native;
            db.execute(sql, &params![key, native])?;
            prompt::find(&db, key)?;
        }
        let count = "UPDATE session SET bytes = ?2, waiting = (SELECT count(*) FROM item
             WHERE session = ?1 AND open = 1 AND kind = 'permission') WHERE key = ?1";
        db.execute(count, &params![key, copied.bytes])?;
        self.seal(key)?;
        Ok(RepairedSession {
            id: own.id.clone(),
            title: own.title.clone(),
            events: copied.events,
            items: copied.items,
            notes: vec!["its times, its counts or what it is called may differ".to_owned()],
            ..RepairedSession::default()
        })
    }

    /// Counts its calls, and gives what stands there its checksums.
    pub(super) fn seal(&self, key: i64) -> Result<()> {
        let (db, (first, last)) = (Db::Sqlite(self.new), keys(key));
        db.execute(
            "UPDATE session SET calls = (SELECT count(*) FROM call WHERE key BETWEEN ?2 AND ?3),
             failed = (SELECT coalesce(sum(failed), 0) FROM call WHERE key BETWEEN ?2 AND ?3)
             WHERE key = ?1",
            &params![key, first, last],
        )?;
        let sql = "SELECT key, prompt, prompt_order, native, project FROM session WHERE key = ?1";
        let sums = db.one(sql, &params![key], |r| {
            let of = |columns: &[usize]| -> Result<i64> {
                let values = columns.iter().map(|at| r.value(*at)).collect::<Result<Vec<_>>>()?;
                Ok(sum::of(&values))
            };
            Ok([of(&[0, 1, 2])?, of(&[0, 3])?, of(&[0, 4])?])
        })?;
        let [prompt, native, project] = sums;
        let sql = format!(
            "UPDATE session SET figures = {}, updated_era = updated >> {}, touched_era = touched >> {},
             prompt_crc = ?2, native_crc = ?3, project_crc = ?4 WHERE key = ?1",
            figures::standing(),
            era::UPDATED,
            era::TOUCHED
        );
        db.execute(&sql, &params![key, prompt, native, project]).map(|_| ())
    }
}
