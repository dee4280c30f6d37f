//! Looking whether a store is whole: every row of every session, and the database around them.

use crate::around;
use crate::beside;
use crate::careful::{Careful, Next};
use crate::damage::{self, Damage, Part};
use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::figures;
use crate::index;
use crate::log::{NUMBERS, Numbers, after, keys};
use crate::store::Store;
use crate::tail::Tail;
use crate::which::{Most, Which, take};
use crate::words::{self, Words};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rows that are read in one go.
const ROWS: usize = 1000;
const BYTES: usize = 1 << 20;

/// A database of this size is looked at in one go, as the doctor does.
const WHOLE: u64 = 64 << 20;

/// How far the first look at everything is.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    on: AtomicBool,
    done: AtomicU64,
    all: AtomicU64,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Places that cannot be read, each with the session's id.
    pub damage: Vec<(Damage, String)>,
    /// Sessions that were looked at.
    pub sessions: u64,
    /// Whether everything was looked at in the time that there was.
    pub complete: bool,
}

impl Store {
    /// What is known to be damaged, each place with the session's id.
    pub async fn damage(&self) -> Result<Vec<(Damage, String)>> {
        let all = self.damages().all();
        self.read(move |db| {
            let mut lost = crate::durable::lost(db).unwrap_or_default();
            let known = lost.len();
            lost.extend(all);
            let (known, found) = lost.split_at(known);
            let found = found.iter().filter(|damage| !known.contains(damage));
            let lost: Vec<Damage> = known.iter().chain(found).cloned().collect();
            Ok(lost.into_iter().map(|damage| named(db, damage)).collect())
        })
        .await
    }

    /// How many places are known to be damaged.
    pub fn damaged_places(&self) -> usize {
        self.damages().count()
    }

    /// From now on the first look at everything is under way, until [`Store::looked`] is called.
    pub fn looks(&self) {
        self.looking().on.store(true, Ordering::Relaxed);
    }

    /// The first look at everything is over.
    pub fn looked(&self) {
        self.looking().on.store(false, Ordering::Relaxed);
    }

    /// How many sessions of how many the first look at everything has passed, while it is under way.
    pub fn checking(&self) -> Option<(u64, u64)> {
        let Looking { on, done, all } = self.looking();
        let of = Ordering::Relaxed;
        on.load(of).then(|| (done.load(of), all.load(of)))
    }

    /// Looks at everything, for so long at most, with a pause after each part: whoever works with the
    /// store is not held up. What is not looked at is told.
    pub async fn check(&self, patience: Duration, pause: Duration) -> Result<Checked> {
        let until = Instant::now() + patience;
        let looking = self.looking();
        let mut checked = Checked { complete: true, ..Checked::default() };
        self.check_around(pause, &mut checked).await;
        let size = self.size();
        if pause.is_zero() || size.database + size.wal < WHOLE {
            // One long read, which holds up whoever writes much meanwhile.
            let whole = self.read(move |db| Ok(around::database(db, patience / 2))).await;
            checked.complete &= self.noted(whole);
        }
        let found = self.read(sessions).await;
        let sessions = self.noted_or(found, Vec::new(), &mut checked);
        looking.all.store(sessions.len() as u64, Ordering::Relaxed);
        for session in sessions {
            let (mut seq, mut from) = (0, 0);
            loop {
                if Instant::now() >= until {
                    checked.complete = false;
                    break;
                }
                let slice = self.read(move |db| slice(db, session, seq, from)).await;
                match self.noted_or(slice, None, &mut checked) {
                    Some(next) => (seq, from) = next,
                    None => break,
                }
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            if !checked.complete && Instant::now() >= until {
                break;
            }
            checked.sessions += 1;
            looking.done.store(checked.sessions, Ordering::Relaxed);
        }
        self.check_words((until, pause), &mut checked).await;
        checked.damage = self.damage().await?;
        Ok(checked)
    }

    /// Looks at the words of the index of search.
    async fn check_words(&self, (until, pause): (Instant, Duration), checked: &mut Checked) {
        let mut words = Words::new();
        loop {
            if Instant::now() >= until {
                checked.complete = false;
                return;
            }
            let looked = self.read(move |db| words.more(db).map(|more| (words, more))).await;
            match self.noted_or(looked.map(Some), None, checked) {
                Some((next, true)) => words = next,
                _ => return,
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Looks at what is not of the logs.
    async fn check_around(&self, pause: Duration, checked: &mut Checked) {
        let layout = self.read(around::layout).await;
        checked.complete &= self.noted(layout);
        for name in around::SMALL {
            let looked = self.read(move |db| Ok(around::table(db, name))).await;
            checked.complete &= self.noted(looked);
            tokio::time::sleep(pause).await;
        }
        let rows = self.read(around::rows).await;
        self.noted_or(rows, (), checked);
        let mut after = Some(String::new());
        while let Some(last) = after {
            let next = self.read(move |db| around::pictures(db, &last)).await;
            after = self.noted_or(next, None, checked);
            tokio::time::sleep(pause).await;
        }
    }

    /// Notes what failed; true if it came to its end.
    fn noted(&self, made: Result<bool>) -> bool {
        match made {
            Ok(complete) => complete,
            Err(Error::Damaged(what)) => {
                self.damages().keep(vec![Damage::database(what)]);
                true
            }
            Err(_) => false,
        }
    }

    fn noted_or<T>(&self, made: Result<T>, other: T, checked: &mut Checked) -> T {
        match made {
            Ok(made) => made,
            // Deleted meanwhile.
            Err(Error::NotFound(_)) => other,
            Err(error) => {
                checked.complete &= self.noted(Err(error));
                other
            }
        }
    }
}

fn named(db: &Db<'_>, damage: Damage) -> (Damage, String) {
    if let Some(name) = damage.lost_name() {
        let name = name.to_owned();
        return (damage, name);
    }
    let sql = "SELECT id FROM session WHERE key = ?1";
    let id = db.optional(sql, &params![damage.session], |r| r.get::<String>(0));
    let id = match id {
        Ok(Some(id)) => id,
        _ => format!("#{}", damage.session),
    };
    (damage, id)
}

/// The keys of all sessions that can be found.
pub(crate) fn sessions(db: &Db<'_>) -> Result<Vec<i64>> {
    match db.all("SELECT key FROM session ORDER BY key", &[], |r| r.get(0)) {
        Err(Error::Damaged(_)) if !db.is_postgres() => {}
        found => return found,
    }
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'session'";
    let last = db.optional(sql, &[], |r| r.get::<i64>(0)).ok().flatten();
    let mut all = Careful::new("session", 1, last.unwrap_or(i64::from(u32::MAX)), false);
    let mut keys = Vec::new();
    loop {
        match all.next(db)? {
            Next::Key(key) => keys.push(key),
            Next::Gap(first, last) => {
                let what =
                    format!("rows of sessions cannot be read (between #{first} and #{last})");
                damage::found(Damage::database(what));
            }
            Next::End => return Ok(keys),
        }
    }
}

/// Looks at some events after `seq` and some items from an order on; then at where to go on.
fn slice(db: &Db<'_>, session: i64, seq: u64, from: u64) -> Result<Option<(u64, u64)>> {
    let sql = format!(
        "SELECT {NUMBERS}, id, epoch, label, name_crc, info, title, agent, model, status, facts_crc,
         state, state_crc, hidden = {}, {} FROM session WHERE key = ?1",
        beside::hidden("copy_of", "left_out"),
        figures::HOLD.as_str()
    );
    let found = db.optional(&sql, &params![session], |r| {
        use crate::sum::row_holds;
        let sound = row_holds(r, &[5, 6, 7], 8)?
            && row_holds(r, &[9, 10, 11, 12, 13], 14)?
            && row_holds(r, &[15], 16)?
            && r.get::<bool>(17)?;
        if !sound {
            damage::found(Damage::new(session, Part::Session, 0, 0));
        }
        if !r.get::<bool>(18)? {
            let what = "the times or counts of a session are not as they were written";
            damage::found(Damage { session, ..Damage::other(what) });
        }
        Numbers::read(r)
    })?;
    let numbers = found.ok_or(Error::NotFound("session"))?;
    let written = numbers.hold();
    let numbers = numbers.checked(db, session)?;
    if seq < numbers.seq {
        let rows = after(db, session, seq, numbers.seq, ROWS, BYTES)?;
        if let Some(last) = rows.last() {
            return Ok(Some((last.seq, from)));
        }
    }
    let (_, last) = keys(session);
    let low = crate::log::event_key(session, from);
    let none = Tail::default();
    let most = Most::items(ROWS);
    let (items, _) = take(db, session, &Which::All, (low, last + 1), false, most, &none)?;
    if let Some(row) = items.last() {
        let next = row.order.max(from) + 1;
        // What cannot be read may seem to go on for ever; a session that is not sure of its end has one
        // where that begins.
        let ends = if written { next >= numbers.next_order } else { damage::is_notice(&row.item) };
        if !ends {
            return Ok(Some((numbers.seq, next)));
        }
    }
    beside::of_session(db, session)?;
    if !words::has_all(db, keys(session))? || !index::leads(db, session)? {
        damage::found(Damage::database(index::ASTRAY));
    }
    if written && !db.is_postgres() {
        indexes(db, session, numbers.items)?;
    }
    Ok(None)
}

/// Whether the indexes have the items of a session, no more and no fewer than the session counts.
fn indexes(db: &Db<'_>, session: i64, items: u64) -> Result<()> {
    let (first, last) = keys(session);
    let count = |of: &str| {
        let sql = format!("SELECT count(*) FROM item {of} AND key BETWEEN ?1 AND ?2");
        db.one(&sql, &params![first, last], |r| r.get::<u64>(0))
    };
    let rows = count("NOT INDEXED WHERE true")?;
    if rows != items {
        let what = format!("a session has {rows} rows of items where it should have {items}");
        damage::found(Damage { session, ..Damage::database(what) });
    }
    // What an index has of a session's items, in any order.
    let sum = |what: &str, of: &str| -> Result<(u64, i64)> {
        let sql = format!("SELECT key, {what} FROM item {of} AND key BETWEEN ?1 AND ?2");
        let (mut count, mut sum) = (0, 0);
        db.each(&sql, &params![first, last], |r| {
            count += 1;
            sum ^= crate::sum::of(&[r.value(0)?, r.value(1)?]);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((count, sum))
    };
    let named = format!("INDEXED BY item_id WHERE session = {session}");
    let top = format!("INDEXED BY item_top WHERE session = {session} AND top = 1");
    for (what, table, index) in [
        ("id", "NOT INDEXED WHERE true", named.as_str()),
        ("session", "NOT INDEXED WHERE top = 1", top.as_str()),
        (
            "parent",
            "NOT INDEXED WHERE parent IS NOT NULL",
            "INDEXED BY item_child WHERE parent IS NOT NULL",
        ),
    ] {
        if sum(what, table)? != sum(what, index)? {
            let what = "an index of items does not agree with them".to_owned();
            damage::found(Damage { session, ..Damage::database(what) });
        }
    }
    Ok(())
}
