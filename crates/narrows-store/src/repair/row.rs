//! What a session's row has beside its header, made anew where it is not as it was written.

use super::RepairedSession;
use super::log::{Copied, Log};
use super::session::{Own, Sessions};
use crate::db::{Db, params};
use crate::error::Result;
use crate::log::keys;
use crate::names::now;
use crate::sessions::touched;
use crate::{beside, era, figures, prompt, sum};

/// What is said of a session of which something of that is not as it was.
pub(super) const OTHERWISE: &str = "its times, its counts or what it is called may differ";
/// A clock may be so much ahead.
const AHEAD: i64 = 24 * 60 * 60 * 1000;

impl Sessions<'_> {
    /// A session of which only that is not as it was written.
    pub(super) fn mend(&self, log: Log<'_>, own: &Own, copied: &Copied) -> Result<RepairedSession> {
        let (key, db) = (log.session, Db::Sqlite(self.new));
        self.mend_names(key, own, copied)?;
        self.mend_times(key, own)?;
        let count = "UPDATE session SET bytes = ?2, waiting = (SELECT count(*) FROM item
             WHERE session = ?1 AND open = 1 AND kind = 'permission') WHERE key = ?1";
        db.execute(count, &params![key, copied.bytes])?;
        self.seal(key)?;
        Ok(RepairedSession {
            id: own.id.clone(),
            title: own.title.clone(),
            events: copied.events,
            items: copied.items,
            notes: vec![OTHERWISE.to_owned()],
            ..RepairedSession::default()
        })
    }

    /// What it is called, where that is not as it was written: as its log tells it, else not at all.
    pub(super) fn mend_names(&self, key: i64, own: &Own, copied: &Copied) -> Result<()> {
        let db = Db::Sqlite(self.new);
        for lost in beside::lost_names(&db, key)? {
            match lost {
                "prompt_crc" => {
                    let sql =
                        "UPDATE session SET prompt = NULL, prompt_order = NULL, prompt_crc = NULL
                         WHERE key = ?1";
                    db.execute(sql, &params![key])?;
                    prompt::find(&db, key)?;
                }
                "native_crc" => {
                    let native = copied.facts(own.ended, None)?.native;
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

    /// Its times, where one may be anything: one that cannot be is another one of them.
    pub(super) fn mend_times(&self, key: i64, own: &Own) -> Result<()> {
        let (db, now) = (Db::Sqlite(self.new), now());
        // What is no number is none, or as in a new row.
        let numbers = "SELECT name, \"notnull\" FROM pragma_table_info('session')
             WHERE type = 'INTEGER' AND pk = 0";
        let numbers = db.all(numbers, &[], |r| Ok((r.get::<String>(0)?, r.get::<bool>(1)?)))?;
        for (name, must) in numbers {
            let none = if must { "0" } else { "NULL" };
            let sql = format!(
                "UPDATE session SET \"{name}\" = {none}
                 WHERE key = ?1 AND typeof(\"{name}\") NOT IN ('integer', 'null')"
            );
            db.execute(&sql, &params![key])?;
        }
        let holds = format!("SELECT {} FROM session WHERE key = ?1", figures::HOLD.as_str());
        if db.one(&holds, &params![key], |r| r.get::<bool>(0)).unwrap_or(false) {
            return Ok(());
        }
        let sql = "SELECT updated, heard, created FROM session WHERE key = ?1";
        let times = db.one(sql, &params![key], |r| {
            Ok([0, 1, 2].map(|at| r.get(at).ok().filter(|at: &i64| (1..now + AHEAD).contains(at))))
        })?;
        let any = times.into_iter().flatten().next().unwrap_or(now);
        let [updated, heard, created] = times.map(|time| time.unwrap_or(any));
        // Whoever follows the list is told; the count itself may be anything, and others come after it.
        let sql =
            "UPDATE session SET updated = ?2, heard = ?3, created = ?4, ended = ?5, touched = 0,
             touched_era = 0, pen = 0 WHERE key = ?1";
        db.execute(sql, &params![key, updated, heard, created, own.ended])?;
        let sql = format!("UPDATE session SET touched = {} WHERE key = ?1", touched(&db));
        db.execute(&sql, &params![key]).map(|_| ())
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
