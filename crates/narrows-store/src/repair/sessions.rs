//! Finds the sessions of a damaged store, and copies or rebuilds each.

use super::session_log::{CopiedLog, SessionLog};
use super::session_row::NAMES_MAY_DIFFER;
use super::table_copy::{TableCopy, walk};
use super::{KnownEnds, RepairReport, RepairSource, SessionRepair};
use crate::append::SessionFacts;
use crate::buckets::next_revision;
use crate::checksum;
use crate::checksum::side_tables::visibility_sql;
use crate::damage::Damage;
use crate::damage::key_scan::{KeyScan, ScanStep};
use crate::db::{Db, params};
use crate::error::Result;
use crate::ids::{new_epoch, new_id, now};
use crate::integrity::database::type_mismatch_sql;
use crate::integrity::side_tables::session_row_matches;
use crate::items::first_prompt;
use crate::log::{LOG_COUNTERS, LogCounters};
use crate::sessions::row::{self, empty_info};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// The longest session id.
const MAX_ID_BYTES: usize = 64;

/// Repairs sessions one by one.
pub(super) struct SessionRepairer<'a> {
    source: &'a RepairSource<'a>,
    pub(super) new: &'a Connection,
    /// The keys of all sessions.
    pub(super) keys: Vec<i64>,
    /// The sessions whose rows cannot be read.
    unreadable: BTreeSet<i64>,
    ends: &'a KnownEnds,
    /// Ids and labels from the indexes.
    ids: BTreeMap<i64, String>,
    labels: BTreeMap<i64, String>,
}

/// A session's row in the old database.
pub(super) struct StoredSession {
    numbers: LogCounters,
    pub(super) id: String,
    label: Option<String>,
    pub(super) ended: bool,
    project: Option<String>,
    calls: u64,
    pub(super) title: Option<String>,
    /// Whether these parts match their checksums.
    names_match: bool,
    header_matches: bool,
    state_matches: bool,
    visibility_matches: bool,
    /// Whether lists can read each column.
    is_listable: bool,
}

impl<'a> SessionRepairer<'a> {
    /// Finds the sessions, and copies their rows.
    pub(super) fn find(
        source: &'a RepairSource<'a>,
        new: &'a Connection,
        tables: &[TableCopy],
        ends: &'a KnownEnds,
        report: &mut RepairReport,
    ) -> Result<SessionRepairer<'a>> {
        if let Some(table) = tables.iter().find(|table| table.name == "session") {
            table.copy(source.rows, new, &[], |_| true)?;
        }
        let indexed_names = |at: usize, column: &str, index: &str| -> BTreeMap<i64, String> {
            let mut names = source.salvaged.map(|rows| rows.names[at].clone()).unwrap_or_default();
            let Some(damaged) = source.damaged else { return names };
            let sql = format!(
                "SELECT key, {column} FROM session INDEXED BY {index} WHERE {column} IS NOT NULL"
            );
            // As far as the index can be read.
            let _ = Db::Sqlite(damaged).query_each(&sql, &[], |r| {
                names.insert(r.get(0)?, r.get(1)?);
                Ok(std::ops::ControlFlow::Continue(()))
            });
            names
        };
        let ids = indexed_names(0, "id", "sqlite_autoindex_session_1");
        let labels = indexed_names(1, "label", "sqlite_autoindex_session_2");
        let keys = Db::Sqlite(new).query_all("SELECT key FROM session", &[], |r| r.get(0))?;
        let mut sessions =
            SessionRepairer { source, new, keys, unreadable: BTreeSet::new(), ends, ids, labels };
        sessions.find_unreadable(report)?;
        sessions.keys.extend(&sessions.unreadable);
        sessions.keys.sort_unstable();
        Ok(sessions)
    }

    /// Finds sessions without a readable row that were not deleted: those that an index or an event
    /// names, and those with a known log end where rows cannot be read. Inserts a row for each.
    fn find_unreadable(&mut self, report: &mut RepairReport) -> Result<()> {
        let existing: BTreeSet<i64> = self.keys.iter().copied().collect();
        let mut deleted = BTreeSet::new();
        walk(self.source.rows, ("doomed", "session"), (i64::MIN, i64::MAX), |key, _| {
            deleted.insert(key);
            Ok(())
        })?;
        let gaps = self.row_gaps(&existing)?;
        let is_in_gap = |key: &i64| gaps.iter().any(|(first, last)| (first..=last).contains(&key));
        let mut missing: BTreeSet<i64> = self.ids.keys().copied().collect();
        missing.extend(self.keys_with_events()?);
        missing.extend(self.ends.keys().copied().filter(is_in_gap));
        for key in missing {
            if existing.contains(&key) || deleted.contains(&key) || key <= 0 {
                continue;
            }
            self.unreadable.insert(key);
            let sql = format!(
                "INSERT INTO session (key, id, epoch, created, updated, touched, info)
                 VALUES (?1, ?2, ?3, ?4, ?4, {}, ?5)",
                next_revision(&Db::Sqlite(self.new))
            );
            let values = (new_id()?, new_epoch()?, now(), empty_info());
            let values = params![key, values.0, values.1, values.2, values.3];
            Db::Sqlite(self.new).execute(&sql, &values)?;
        }
        report.damaged |= !gaps.is_empty();
        Ok(())
    }

    /// The ranges of keys whose session rows cannot be read.
    fn row_gaps(&self, existing: &BTreeSet<i64>) -> Result<Vec<(i64, i64)>> {
        let all = (1, i64::from(u32::MAX));
        // Any row may be missing.
        let Some(connection) = self.source.damaged else { return Ok(vec![all]) };
        let (db, mut gaps) = (Db::Sqlite(connection), Vec::new());
        let mut scan = KeyScan::new("session", all.0, all.1, false);
        loop {
            match scan.next(&db)? {
                ScanStep::End => return Ok(gaps),
                ScanStep::Gap(first, last) => gaps.push((first, last)),
                // The row was found and could not be copied.
                ScanStep::Key(key) if !existing.contains(&key) => gaps.push((key, key)),
                ScanStep::Key(_) => {}
            }
        }
    }

    /// The keys of sessions that have events.
    fn keys_with_events(&self) -> Result<Vec<i64>> {
        let (db, mut low, mut found) = (Db::Sqlite(self.source.rows), 1_i64 << 32, Vec::new());
        loop {
            match KeyScan::new("event", low, i64::MAX, false).next(&db)? {
                ScanStep::End => return Ok(found),
                ScanStep::Gap(_, i64::MAX) => return Ok(found),
                ScanStep::Gap(_, last) => low = last + 1,
                ScanStep::Key(key) => {
                    found.push(key >> 32);
                    low = ((key >> 32) + 1) << 32;
                }
            }
        }
    }

    fn stored_session(&self, key: i64) -> Result<StoredSession> {
        let sql = format!(
            "SELECT {LOG_COUNTERS}, id, epoch, label, name_crc, info, title, agent, model, status,
             facts_crc, state, state_crc, ended, project, calls, coalesce(nullif(title, ''), prompt),
             hidden = {} FROM session WHERE key = ?1",
            visibility_sql("copy_of", "left_out")
        );
        let db = Db::Sqlite(self.new);
        let mismatch = type_mismatch_sql(&db, "session")?.unwrap_or_else(|| "false".to_owned());
        let mismatch = format!("SELECT 1 FROM session WHERE key = ?1 AND ({mismatch})");
        let is_listable = row::is_listable(&db, key)? && !db.exists(&mismatch, &params![key])?;
        db.query_one(&sql, &params![key], |r| {
            let numbers = LogCounters::read(r);
            // Without a checksum, any value would match.
            let is_text = |at: usize| r.get::<Option<String>>(at).is_ok();
            let are_texts = |columns: &[usize]| columns.iter().all(|at| is_text(*at));
            Ok(StoredSession {
                is_listable: is_listable && numbers.is_ok(),
                numbers: numbers.unwrap_or_default(),
                id: r.get(5).unwrap_or_default(),
                label: r.get(7).unwrap_or_default(),
                names_match: are_texts(&[5, 6, 7])
                    && checksum::row_matches(r, &[5, 6, 7], 8).unwrap_or(false),
                header_matches: are_texts(&[9, 10, 11, 12, 13])
                    && checksum::row_matches(r, &[9, 10, 11, 12, 13], 14).unwrap_or(false),
                state_matches: is_text(15) && checksum::row_matches(r, &[15], 16).unwrap_or(false),
                ended: r.get(17).unwrap_or_default(),
                project: r.get(18).unwrap_or_default(),
                calls: r.get(19).unwrap_or_default(),
                title: r.get(20).unwrap_or_default(),
                visibility_matches: r.get(21).unwrap_or_default(),
            })
        })
    }

    /// Copies a session, and rebuilds its damaged parts. `losses` are the recorded losses of all sessions.
    pub(super) fn repair(
        &self,
        key: i64,
        losses: &[Damage],
        report: &mut RepairReport,
    ) -> Result<()> {
        let stored = self.stored_session(key)?;
        // The loss of a whole session does not concern another session that has its key now.
        let is_own = |loss: &&Damage| {
            loss.session == key
                && (loss.first > 0
                    || loss
                        .lost_session_id()
                        .is_none_or(|id| !stored.names_match || id == stored.id))
        };
        let losses: Vec<Damage> = losses.iter().filter(is_own).cloned().collect();
        let log = SessionLog { old: self.source.rows, new: self.new, session: key };
        let copied = log.copy()?;
        let calls = log.copy_calls()?;
        if calls != Some(stored.calls) {
            log.rebuild_calls()?;
        }
        let StoredSession { numbers, .. } = &stored;
        let is_intact = !self.unreadable.contains(&key)
            && stored.names_match
            && stored.header_matches
            && stored.state_matches
            && stored.visibility_matches
            && numbers.hold()
            && !copied.has_unreadable
            && copied.gaps.is_empty()
            && (copied.last, copied.items) == (numbers.seq, numbers.items)
            && self.ends.get(&key).is_none_or(|(last, _)| *last <= copied.last)
            && losses.is_empty();
        let db = Db::Sqlite(self.new);
        let is_listable = stored.is_listable && calls == Some(stored.calls);
        if is_intact && is_listable && session_row_matches(&db, key)? {
            report.whole += 1;
        } else if is_intact {
            report.sessions.push(self.repair_row(log, &stored, &copied)?);
        } else {
            report.sessions.push(self.rebuild(log, &stored, copied, &losses)?);
        }
        Ok(())
    }

    /// Rebuilds a session from the copied rows.
    fn rebuild(
        &self,
        log: SessionLog<'_>,
        stored: &StoredSession,
        mut copied: CopiedLog,
        losses: &[Damage],
    ) -> Result<SessionRepair> {
        let (key, db) = (log.session, Db::Sqlite(self.new));
        let mut repair = SessionRepair { title: stored.title.clone(), ..SessionRepair::default() };
        repair.events = copied.events;
        let is_unreadable = self.unreadable.contains(&key);
        let names_match = stored.names_match && !is_unreadable;
        let id = if names_match { stored.id.clone() } else { self.find_id(key, stored, &copied)? };
        let label = if names_match { stored.label.clone() } else { self.labels.get(&key).cloned() };
        if !names_match {
            let note = "its row could not be read: its names, times and tags may differ";
            repair.notes.push(note.into());
        }
        let mut last = self.ends.get(&key).map_or(0, |(last, _)| *last).max(copied.last);
        if stored.numbers.hold() && !is_unreadable {
            last = last.max(stored.numbers.seq);
        }
        let is_recovered =
            self.source.salvaged.is_some_and(|salvaged| salvaged.recovered.contains(&key));
        for loss in losses {
            if loss.last <= copied.last && is_recovered {
                repair.notes.push(format!(
                    "events {}–{} were lost with the write-ahead log and are recovered",
                    loss.first.max(1),
                    loss.last
                ));
            } else if loss.last <= copied.last {
                repair.notes.push(format!(
                    "events {}–{} were lost before; newer events have their numbers now",
                    loss.first, loss.last
                ));
            }
            last = last.max(loss.last);
        }
        if copied.last < last {
            copied.gaps.push((copied.last + 1, last));
        }
        repair.lost.clone_from(&copied.gaps);
        // Makes the log readable up to its end.
        self.write_counters(key, last, 0, copied.items, stored.numbers.next_order)?;
        log.rebuild_items(last)?;
        let mut next_order = log.next_order()?;
        if stored.numbers.hold() {
            next_order = next_order.max(stored.numbers.next_order);
        }
        for gap in &copied.gaps {
            log.write_notice(&id, *gap, next_order)?;
            next_order = next_order.max(log.next_order()?);
        }
        log.rebuild_calls()?;
        let count = "SELECT count(*) FROM item WHERE session = ?1";
        let items: u64 = db.query_one(count, &params![key], |r| r.get(0))?;
        self.write_counters(key, last, last, items, next_order)?;
        repair.items = items - (copied.gaps.len() as u64).min(items);
        let items_before = if stored.numbers.hold() { stored.numbers.items } else { 0 };
        repair.lost_items = items_before.saturating_sub(repair.items);
        if is_unreadable || !stored.header_matches || !stored.state_matches {
            let header = copied.header(stored.ended, stored.project.as_deref())?;
            repair.title = header.title.clone().or(repair.title);
            self.write_header(key, &header)?;
            repair.notes.push("its header was rebuilt from its log".into());
        }
        if is_unreadable {
            first_prompt::find(&db, key)?;
        } else if !stored.is_listable || !session_row_matches(&db, key)? {
            self.repair_names(key, stored, &copied)?;
            self.repair_times(key, stored)?;
            repair.notes.push(NAMES_MAY_DIFFER.to_owned());
        }
        if !stored.visibility_matches {
            let show = "UPDATE session SET copy_of = NULL, left_out = 0, hidden = 1 WHERE key = ?1";
            db.execute(show, &params![key])?;
            repair.notes.push("it is listed: whether it was hidden is unknown".into());
        }
        self.write_names(key, &id, label.as_deref(), copied.bytes)?;
        self.update_counters(key)?;
        repair.id = id;
        Ok(repair)
    }

    /// The id of a session whose row cannot be trusted: from its events, an index or its log end.
    fn find_id(&self, key: i64, stored: &StoredSession, copied: &CopiedLog) -> Result<String> {
        let of_log_end = self.ends.get(&key).map(|(_, id)| id);
        let of_row = (!self.unreadable.contains(&key)).then_some(&stored.id);
        let candidates = [copied.id.as_ref(), self.ids.get(&key), of_log_end, of_row];
        let is_valid = |id: &&String| {
            (1..=MAX_ID_BYTES).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic())
        };
        let db = Db::Sqlite(self.new);
        for id in candidates.into_iter().flatten().filter(is_valid) {
            let conflict = "SELECT 1 FROM session WHERE id = ?1 AND key <> ?2";
            if !db.exists(conflict, &params![id, key])? {
                return Ok(id.clone());
            }
        }
        new_id()
    }

    fn write_counters(
        &self,
        key: i64,
        seq: u64,
        materialized: u64,
        items: u64,
        next_order: u64,
    ) -> Result<()> {
        let crc = checksum::of_log_counters(seq, materialized, next_order, items);
        let sql =
            "UPDATE session SET seq = ?2, settled = ?3, items = ?4, next_order = ?5, tally = ?6
             WHERE key = ?1";
        let values = params![key, seq, materialized, items, next_order, crc];
        Db::Sqlite(self.new).execute(sql, &values).map(|_| ())
    }

    /// Writes the id, a free label, the size of the log and a new epoch, which makes clients reload.
    fn write_names(&self, key: i64, id: &str, label: Option<&str>, log_bytes: u64) -> Result<()> {
        let db = Db::Sqlite(self.new);
        let epoch = new_epoch()?;
        db.execute("UPDATE OR IGNORE session SET label = ?2 WHERE key = ?1", &params![key, label])?;
        let sql = "SELECT label FROM session WHERE key = ?1";
        let label: Option<String> = db.query_one(sql, &params![key], |r| r.get(0))?;
        let crc = checksum::of_session_names(id, &epoch, label.as_deref());
        db.execute(
            "UPDATE session SET id = ?2, epoch = ?3, name_crc = ?4, bytes = ?5, waiting = (SELECT
             count(*) FROM item WHERE session = ?1 AND open = 1 AND kind = 'permission')
             WHERE key = ?1",
            &params![key, id, epoch, crc, log_bytes],
        )
        .map(|_| ())
    }

    fn write_header(&self, key: i64, header: &SessionFacts) -> Result<()> {
        let SessionFacts { info, state, title, agent, model, status, native, project } = header;
        let crc = checksum::of_values(&params![info, title, agent, model, status]);
        let state_crc = checksum::of_values(&params![state]);
        let sql = "UPDATE session SET info = ?2, state = ?3, title = ?4, agent = ?5, model = ?6,
             status = ?7, native = coalesce(?8, native), project = coalesce(?9, project),
             facts_crc = ?10, state_crc = ?11 WHERE key = ?1";
        let values =
            params![key, info, state, title, agent, model, status, native, project, crc, state_crc];
        Db::Sqlite(self.new).execute(sql, &values).map(|_| ())
    }
}
