//! Checks a store for damage: every row of every session, and the database around them.
//!
//! Above all table modules; none of them may use it. Reports go to [`crate::damage`].

pub(crate) mod database;
pub(crate) mod schema;
pub(crate) mod search_index;
mod session;
pub(crate) mod side_tables;
mod write_probe;

use crate::damage::Damage;
use crate::damage::key_scan::session_keys;
use crate::db::{Db, params};
use crate::durability::log_ends;
use crate::error::{Error, Result};
use crate::store::Store;
use search_index::TermCheck;
use session::check_slice;
use std::time::{Duration, Instant};

/// The pages of a database up to this size are checked also in a check with pauses.
const MAX_PAUSED_PAGE_CHECK_BYTES: u64 = 64 << 20;

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct IntegrityReport {
    /// All known damage, each place with the id of its session.
    pub damage: Vec<(Damage, String)>,
    /// Checked sessions.
    pub sessions: u64,
    /// Whether everything was checked before the time ran out.
    pub complete: bool,
}

impl Store {
    /// All known damage, each place with the id of its session.
    pub async fn damage(&self) -> Result<Vec<(Damage, String)>> {
        let registered = self.damage_registry().all();
        self.read(move |db| {
            let mut all = log_ends::recorded_losses(db).unwrap_or_default();
            let recorded = all.len();
            all.extend(registered);
            let (recorded, registered) = all.split_at(recorded);
            let new = registered.iter().filter(|damage| !recorded.contains(damage));
            let all: Vec<Damage> = recorded.iter().chain(new).cloned().collect();
            Ok(all.into_iter().map(|damage| with_session_id(db, damage)).collect())
        })
        .await
    }

    /// The number of known damaged places.
    pub fn damaged_places(&self) -> usize {
        self.damage_registry().count()
    }

    /// Starts to report the progress of the initial check, until [`Store::looked`] is called.
    pub fn looks(&self) {
        self.check_progress().set_running(true);
    }

    /// Ends the progress report of the initial check.
    pub fn looked(&self) {
        self.check_progress().set_running(false);
    }

    /// Checked sessions and all sessions, while the initial check runs.
    pub fn checking(&self) -> Option<(u64, u64)> {
        self.check_progress().get()
    }

    /// Checks everything, with a pause after each slice so that other users of the store are not held
    /// up. Stops after `timeout`; the report then says that it is not complete.
    pub async fn check(&self, timeout: Duration, pause: Duration) -> Result<IntegrityReport> {
        let deadline = Instant::now() + timeout;
        let progress = self.check_progress();
        let mut report = IntegrityReport { complete: true, ..IntegrityReport::default() };
        self.check_outside_logs(pause, &mut report).await;
        let size = self.size();
        if pause.is_zero() || size.database + size.wal < MAX_PAUSED_PAGE_CHECK_BYTES {
            // One long read, which delays WAL checkpoints under a heavy write load.
            let pages = self.read(move |db| Ok(database::check_pages(db, timeout / 2))).await;
            report.complete &= self.is_complete(pages);
        }
        let sessions = self.read(session_keys).await;
        let sessions = self.value_or(sessions, Vec::new(), &mut report);
        progress.set_total(sessions.len() as u64);
        for session in sessions {
            let mut position = (0, 0);
            loop {
                if Instant::now() >= deadline {
                    report.complete = false;
                    break;
                }
                let slice = self.read(move |db| check_slice(db, session, position)).await;
                match self.value_or(slice, None, &mut report) {
                    Some(next) => position = next,
                    None => break,
                }
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            if !report.complete && Instant::now() >= deadline {
                break;
            }
            report.sessions += 1;
            progress.set_done(report.sessions);
        }
        self.check_search_terms((deadline, pause), &mut report).await;
        report.damage = self.damage().await?;
        Ok(report)
    }

    async fn check_search_terms(
        &self,
        (deadline, pause): (Instant, Duration),
        report: &mut IntegrityReport,
    ) {
        let mut check = TermCheck::new();
        loop {
            if Instant::now() >= deadline {
                report.complete = false;
                return;
            }
            let slice = self.read(move |db| check.run_slice(db).map(|more| (check, more))).await;
            match self.value_or(slice.map(Some), None, report) {
                Some((next, true)) => check = next,
                _ => return,
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Checks the schema, the small tables, the side tables and the images.
    async fn check_outside_logs(&self, pause: Duration, report: &mut IntegrityReport) {
        let schema = self.read(database::check_schema).await;
        report.complete &= self.is_complete(schema);
        for name in database::SMALL_TABLES {
            let table = self.read(move |db| Ok(database::check_table_pages(db, name))).await;
            report.complete &= self.is_complete(table);
            tokio::time::sleep(pause).await;
        }
        let rows = self.read(side_tables::check_tables).await;
        self.value_or(rows, (), report);
        let mut after = Some(String::new());
        while let Some(last) = after {
            let next = self.read(move |db| side_tables::check_images(db, &last)).await;
            after = self.value_or(next, None, report);
            tokio::time::sleep(pause).await;
        }
    }

    /// Registers damage that made a check fail; true if the check came to its end.
    fn is_complete(&self, check: Result<bool>) -> bool {
        match check {
            Ok(is_complete) => is_complete,
            Err(Error::Damaged(detail)) => {
                self.damage_registry().add(vec![Damage::database(detail)]);
                true
            }
            Err(_) => false,
        }
    }

    fn value_or<T>(&self, check: Result<T>, default: T, report: &mut IntegrityReport) -> T {
        match check {
            Ok(value) => value,
            // The session was deleted meanwhile.
            Err(Error::NotFound(_)) => default,
            Err(error) => {
                report.complete &= self.is_complete(Err(error));
                default
            }
        }
    }
}

fn with_session_id(db: &Db<'_>, damage: Damage) -> (Damage, String) {
    if let Some(id) = damage.lost_session_id() {
        let id = id.to_owned();
        return (damage, id);
    }
    let sql = "SELECT id FROM session WHERE key = ?1";
    let id = db.query_opt(sql, &params![damage.session], |r| r.get::<String>(0));
    let id = match id {
        Ok(Some(id)) => id,
        _ => format!("#{}", damage.session),
    };
    (damage, id)
}
