//! What other nodes did: for those who were not woken, or not in time.

use crate::db::{Db, Value, params};
use crate::era::LAST_COUNT;
use crate::error::Result;
use crate::names::now;
use crate::sessions::{last_touched, touched};
use crate::store::Store;

/// A node that was away for longer begins anew.
const KEPT_MS: i64 = 3600 * 1000;

/// What is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Session,
    Token,
    /// A tag, of some session.
    Tag,
}

impl Gone {
    fn name(self) -> &'static str {
        match self {
            Gone::Session => "session",
            Gone::Token => "token",
            Gone::Tag => "tag",
        }
    }
}

/// Remembers that something is gone, where other nodes must hear of it.
pub(crate) fn gone(db: &Db<'_>, what: Gone, id: &str) -> Result<()> {
    if !db.is_postgres() {
        return Ok(());
    }
    let touched = touched(db);
    db.later(
        &format!("INSERT INTO gone VALUES (?1, ?2, {touched}, ?3)"),
        &params![what.name(), id, now()],
    )
}

/// Forgets what every node has heard of long ago.
pub(crate) fn forget(db: &Db<'_>) -> Result<()> {
    if db.is_postgres() {
        db.later("DELETE FROM gone WHERE at < ?1", &params![now() - KEPT_MS])?;
        db.later("DELETE FROM command WHERE created < ?1", &params![now() - KEPT_MS])?;
    }
    Ok(())
}

/// What happened in a store that several nodes use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The count of changes up to which all of it is told.
    pub touched: i64,
    /// The newest change of any session.
    pub newest: i64,
    /// Sessions that were deleted, by id. Some may have been told before.
    pub sessions: Vec<String>,
    /// Tokens that were revoked, by id.
    pub tokens: Vec<String>,
    /// Tags that some session has no more.
    pub tags: Vec<String>,
}

impl Store {
    /// What happened after a count of changes.
    pub async fn news(&self, after: i64) -> Result<News> {
        self.read(move |db| {
            let mut news = News { touched: last_touched(db)?, ..News::default() };
            let newest = format!("SELECT coalesce({LAST_COUNT}, 0)");
            news.newest = db.one(&newest, &[], |r| r.get(0))?;
            let gone = db.all(
                "SELECT kind, id FROM gone WHERE touched > ?1 ORDER BY touched",
                &params![after],
                |r| Ok((r.get::<String>(0)?, r.get::<String>(1)?)),
            )?;
            for (kind, id) in gone {
                match kind.as_str() {
                    "session" => news.sessions.push(id),
                    "token" => news.tokens.push(id),
                    _ => news.tags.push(id),
                }
            }
            Ok(news)
        })
        .await
    }

    /// Where the logs of these sessions end; one that is not told is gone.
    pub async fn heads(&self, sessions: Vec<i64>) -> Result<Vec<(i64, u64, bool)>> {
        self.read(move |db| {
            let list = Value::List(sessions.iter().map(|key| Value::Int(*key)).collect());
            db.all("SELECT key, seq, ended FROM session WHERE key = ANY (?1)", &[list], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?))
            })
        })
        .await
    }
}
