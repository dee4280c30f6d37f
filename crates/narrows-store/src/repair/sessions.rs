//! The sessions of a store that is made anew.

use super::copy::{Table, walk};
use super::log::{Copied, Log};
use super::{From, Repaired, RepairedSession};
use crate::append::SessionFacts;
use crate::beside;
use crate::careful::{Careful, Next};
use crate::damage::Damage;
use crate::db::{Db, params};
use crate::error::Result;
use crate::log::{NUMBERS, Numbers};
use crate::names::{new_epoch, new_id, now};
use crate::session_row::empty_info;
use crate::sessions::{name_sum, touched};
use crate::{prompt, sum};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Letters of an id.
const MAX_ID: usize = 64;

/// The sessions that there are.
pub(super) struct Sessions<'a> {
    from: &'a From<'a>,
    pub(super) new: &'a Connection,
    /// Their keys.
    pub(super) keys: Vec<i64>,
    /// Those whose own rows cannot be read.
    torn: BTreeSet<i64>,
    /// Where logs ended, and whose they were.
    ends: &'a BTreeMap<i64, (u64, String)>,
    /// Ids and labels, as the indexes have them.
    ids: BTreeMap<i64, String>,
    labels: BTreeMap<i64, String>,
}

/// A session's own row.
pub(super) struct Own {
    numbers: Numbers,
    pub(super) id: String,
    label: Option<String>,
    pub(super) ended: bool,
    project: Option<String>,
    calls: u64,
    pub(super) title: Option<String>,
    names: bool,
    facts: bool,
    state: bool,
    /// Whether it is known if it was shown.
    shown: bool,
}

impl<'a> Sessions<'a> {
    /// Finds them, and copies their rows.
    pub(super) fn find(
        from: &'a From<'a>,
        new: &'a Connection,
        tables: &[Table],
        ends: &'a BTreeMap<i64, (u64, String)>,
        repaired: &mut Repaired,
    ) -> Result<Sessions<'a>> {
        if let Some(table) = tables.iter().find(|table| table.name == "session") {
            table.copy(from.rows, new, &[], |_| true)?;
        }
        let named = |at: usize, column: &str, index: &str| -> BTreeMap<i64, String> {
            let mut names = from.rescued.map(|found| found.names[at].clone()).unwrap_or_default();
            let Some(list) = from.list else { return names };
            let sql = format!(
                "SELECT key, {column} FROM session INDEXED BY {index} WHERE {column} IS NOT NULL"
            );
            // As far as it can be read.
            let _ = Db::Sqlite(list).each(&sql, &[], |r| {
                names.insert(r.get(0)?, r.get(1)?);
                Ok(std::ops::ControlFlow::Continue(()))
            });
            names
        };
        let ids = named(0, "id", "sqlite_autoindex_session_1");
        let labels = named(1, "label", "sqlite_autoindex_session_2");
        let there = Db::Sqlite(new).all("SELECT key FROM session", &[], |r| r.get(0))?;
        let mut sessions =
            Sessions { from, new, keys: there, torn: BTreeSet::new(), ends, ids, labels };
        sessions.find_torn(repaired)?;
        sessions.keys.extend(&sessions.torn);
        sessions.keys.sort_unstable();
        Ok(sessions)
    }

    /// Sessions whose rows are not there though they were not deleted: an index knows them, they have
    /// events, or they lie where rows cannot be read. Each gets a row.
    fn find_torn(&mut self, repaired: &mut Repaired) -> Result<()> {
        let there: BTreeSet<i64> = self.keys.iter().copied().collect();
        let mut deleted = BTreeSet::new();
        walk(self.from.rows, ("doomed", "session"), (i64::MIN, i64::MAX), |key, _| {
            deleted.insert(key);
            Ok(())
        })?;
        let gaps = self.gaps(&there)?;
        let lies_there = |key: &i64| gaps.iter().any(|(first, last)| (first..=last).contains(&key));
        let mut missing: BTreeSet<i64> = self.ids.keys().copied().collect();
        missing.extend(self.with_events()?);
        missing.extend(self.ends.keys().copied().filter(lies_there));
        for key in missing {
            if there.contains(&key) || deleted.contains(&key) || key <= 0 {
                continue;
            }
            self.torn.insert(key);
            let sql = format!(
                "INSERT INTO session (key, id, epoch, created, updated, touched, info)
                 VALUES (?1, ?2, ?3, ?4, ?4, {}, ?5)",
                touched(&Db::Sqlite(self.new))
            );
            let values = (new_id()?, new_epoch()?, now(), empty_info());
            let values = params![key, values.0, values.1, values.2, values.3];
            Db::Sqlite(self.new).execute(&sql, &values)?;
        }
        repaired.damaged |= !gaps.is_empty();
        Ok(())
    }

    /// Where rows of sessions cannot be read.
    fn gaps(&self, there: &BTreeSet<i64>) -> Result<Vec<(i64, i64)>> {
        let all = (1, i64::from(u32::MAX));
        // Any may be missing.
        let Some(connection) = self.from.list else { return Ok(vec![all]) };
        let (db, mut gaps) = (Db::Sqlite(connection), Vec::new());
        let mut rows = Careful::new("session", all.0, all.1, false);
        loop {
            match rows.next(&db)? {
                Next::End => return Ok(gaps),
                Next::Gap(first, last) => gaps.push((first, last)),
                // It was found, and could not be read.
                Next::Key(key) if !there.contains(&key) => gaps.push((key, key)),
                Next::Key(_) => {}
            }
        }
    }

    /// The sessions that have events.
    fn with_events(&self) -> Result<Vec<i64>> {
        let (db, mut low, mut found) = (Db::Sqlite(self.from.rows), 1_i64 << 32, Vec::new());
        loop {
            match Careful::new("event", low, i64::MAX, false).next(&db)? {
                Next::End => return Ok(found),
                Next::Gap(_, i64::MAX) => return Ok(found),
                Next::Gap(_, last) => low = last + 1,
                Next::Key(key) => {
                    found.push(key >> 32);
                    low = ((key >> 32) + 1) << 32;
                }
            }
        }
    }

    fn own(&self, key: i64) -> Result<Own> {
        let sql = format!(
            "SELECT {NUMBERS}, id, epoch, label, name_crc, info, title, agent, model, status,
             facts_crc, state, state_crc, ended, project, calls, coalesce(nullif(title, ''), prompt),
             hidden = {} FROM session WHERE key = ?1",
            beside::hidden("copy_of", "left_out")
        );
        Db::Sqlite(self.new).one(&sql, &params![key], |r| {
            Ok(Own {
                numbers: Numbers::read(r).unwrap_or_default(),
                id: r.get(5).unwrap_or_default(),
                label: r.get(7).unwrap_or_default(),
                names: sum::row_holds(r, &[5, 6, 7], 8).unwrap_or(false),
                facts: sum::row_holds(r, &[9, 10, 11, 12, 13], 14).unwrap_or(false),
                state: sum::row_holds(r, &[15], 16).unwrap_or(false),
                ended: r.get(17).unwrap_or_default(),
                project: r.get(18).unwrap_or_default(),
                calls: r.get(19).unwrap_or_default(),
                title: r.get(20).unwrap_or_default(),
                shown: r.get(21).unwrap_or_default(),
            })
        })
    }

    /// Copies one session; makes anew what cannot be.
    pub(super) fn one(&self, key: i64, lost: &[Damage], repaired: &mut Repaired) -> Result<()> {
        let own = self.own(key)?;
        // What is said of a session that is gone is not of another one that has its key.
        let is_own = |lost: &&Damage| {
            lost.session == key
                && (lost.first > 0 || lost.lost_name().is_none_or(|id| !own.names || id == own.id))
        };
        let lost: Vec<Damage> = lost.iter().filter(is_own).cloned().collect();
        let log = Log { old: self.from.rows, new: self.new, session: key };
        let copied = log.copy()?;
        let calls = log.calls()?;
        if calls != Some(own.calls) {
            log.make_calls()?;
        }
        let Own { numbers, .. } = &own;
        let is_whole = !self.torn.contains(&key)
            && own.names
            && own.facts
            && own.state
            && own.shown
            && numbers.hold()
            && !copied.torn
            && copied.gaps.is_empty()
            && (copied.last, copied.items) == (numbers.seq, numbers.items)
            && self.ends.get(&key).is_none_or(|(last, _)| *last <= copied.last)
            && lost.is_empty();
        if is_whole && calls == Some(own.calls) && beside::row_holds(&Db::Sqlite(self.new), key)? {
            repaired.whole += 1;
        } else if is_whole {
            repaired.sessions.push(self.mend(log, &own, &copied)?);
        } else {
            repaired.sessions.push(self.make(log, &own, copied, &lost)?);
        }
        Ok(())
    }

    /// Makes a session of what there is of it.
    fn make(
        &self,
        log: Log<'_>,
        own: &Own,
        mut copied: Copied,
        before: &[Damage],
    ) -> Result<RepairedSession> {
        let (key, db) = (log.session, Db::Sqlite(self.new));
        let mut told = RepairedSession { title: own.title.clone(), ..RepairedSession::default() };
        told.events = copied.events;
        let torn = self.torn.contains(&key);
        let names = own.names && !torn;
        let id = if names { own.id.clone() } else { self.id(key, own, &copied)? };
        let label = if names { own.label.clone() } else { self.labels.get(&key).cloned() };
        if !names {
            told.notes
                .push("its row could not be read: its names, times and tags may differ".into());
        }
        let mut last = self.ends.get(&key).map_or(0, |(last, _)| *last).max(copied.last);
        if own.numbers.hold() && !torn {
            last = last.max(own.numbers.seq);
        }
        let back = self.from.rescued.is_some_and(|rescued| rescued.back.contains(&key));
        for damage in before {
            if damage.last <= copied.last && back {
                let (first, last) = (damage.first.max(1), damage.last);
                told.notes.push(format!(
                    "events {first}–{last} were lost with the write-ahead log and are back"
                ));
            } else if damage.last <= copied.last {
                told.notes.push(format!(
                    "events {}–{} were lost before; others have their numbers now",
                    damage.first, damage.last
                ));
            }
            last = last.max(damage.last);
        }
        if copied.last < last {
            copied.gaps.push((copied.last + 1, last));
        }
        told.lost.clone_from(&copied.gaps);
        // So that the log is read to its end.
        self.number(key, last, 0, copied.items, own.numbers.next_order)?;
        log.replay(last)?;
        let mut next_order = log.next_order()?;
        if own.numbers.hold() {
            next_order = next_order.max(own.numbers.next_order);
        }
        for gap in &copied.gaps {
            log.tell(&id, *gap, next_order)?;
            next_order = next_order.max(log.next_order()?);
        }
        log.make_calls()?;
        let count = "SELECT count(*) FROM item WHERE session = ?1";
        let items: u64 = db.one(count, &params![key], |r| r.get(0))?;
        self.number(key, last, last, items, next_order)?;
        told.items = items - (copied.gaps.len() as u64).min(items);
        let were = if own.numbers.hold() { own.numbers.items } else { 0 };
        told.lost_items = were.saturating_sub(told.items);
        if torn || !own.facts || !own.state {
            let facts = copied.facts(own.ended, own.project.as_deref())?;
            told.title = facts.title.clone().or(told.title);
            self.head(key, &facts)?;
            told.notes.push("its header was made anew from its log".into());
        }
        if torn {
            prompt::find(&db, key)?;
        }
        if !own.shown {
            let show = "UPDATE session SET copy_of = NULL, left_out = 0, hidden = 1 WHERE key = ?1";
            db.execute(show, &params![key])?;
            told.notes.push("whether it was hidden is not known: it is shown".into());
        }
        // Whoever has seen it is told to read it again.
        let epoch = new_epoch()?;
        let sum = name_sum(&id, &epoch, label.as_deref());
        db.execute("UPDATE OR IGNORE session SET label = ?2 WHERE key = ?1", &params![key, label])?;
        let kept = "SELECT label FROM session WHERE key = ?1";
        let kept: Option<String> = db.one(kept, &params![key], |r| r.get(0))?;
        let sum = if kept == label { sum } else { name_sum(&id, &epoch, kept.as_deref()) };
        db.execute(
            "UPDATE session SET id = ?2, epoch = ?3, name_crc = ?4, bytes = ?5, waiting = (SELECT
             count(*) FROM item WHERE session = ?1 AND open = 1 AND kind = 'permission')
             WHERE key = ?1",
            &params![key, id, epoch, sum, copied.bytes],
        )?;
        self.seal(key)?;
        told.id = id;
        Ok(told)
    }

    /// The id of a session whose row cannot be believed: as its events name it, or an index.
    fn id(&self, key: i64, own: &Own, copied: &Copied) -> Result<String> {
        let ends = self.ends.get(&key).map(|(_, id)| id);
        let own = (!self.torn.contains(&key)).then_some(&own.id);
        let told = [copied.id.as_ref(), self.ids.get(&key), ends, own];
        let is_id = |id: &&String| {
            (1..=MAX_ID).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic())
        };
        let db = Db::Sqlite(self.new);
        for id in told.into_iter().flatten().filter(is_id) {
            let other = "SELECT 1 FROM session WHERE id = ?1 AND key <> ?2";
            if !db.exists(other, &params![id, key])? {
                return Ok(id.clone());
            }
        }
        new_id()
    }

    fn number(&self, key: i64, seq: u64, settled: u64, items: u64, next_order: u64) -> Result<()> {
        let tally = sum::tally_of(seq, settled, next_order, items);
        let sql =
            "UPDATE session SET seq = ?2, settled = ?3, items = ?4, next_order = ?5, tally = ?6
             WHERE key = ?1";
        let values = params![key, seq, settled, items, next_order, tally];
        Db::Sqlite(self.new).execute(sql, &values).map(|_| ())
    }

    fn head(&self, key: i64, facts: &SessionFacts) -> Result<()> {
        let SessionFacts { info, state, title, agent, model, status, native, project } = facts;
        let sum = sum::of(&params![info, title, agent, model, status]);
        let state_sum = sum::of(&params![state]);
        let sql = "UPDATE session SET info = ?2, state = ?3, title = ?4, agent = ?5, model = ?6,
             status = ?7, native = coalesce(?8, native), project = coalesce(?9, project),
             facts_crc = ?10, state_crc = ?11 WHERE key = ?1";
        let values =
            params![key, info, state, title, agent, model, status, native, project, sum, state_sum];
        Db::Sqlite(self.new).execute(sql, &values).map(|_| ())
    }
}
