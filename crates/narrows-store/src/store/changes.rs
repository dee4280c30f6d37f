//! What other nodes of a cluster changed.

use super::Store;
use crate::buckets::{MAX_REVISION, last_revision};
use crate::cluster::changes::News;
use crate::db::{Value, params};
use crate::error::Result;

impl Store {
    /// The changes after a revision.
    pub async fn news(&self, after: i64) -> Result<News> {
        self.read(move |db| {
            let mut changes = News { touched: last_revision(db)?, ..News::default() };
            let newest = format!("SELECT coalesce({MAX_REVISION}, 0)");
            changes.newest = db.query_one(&newest, &[], |r| r.get(0))?;
            let tombstones = db.query_all(
                "SELECT kind, id FROM gone WHERE touched > ?1 ORDER BY touched",
                &params![after],
                |r| Ok((r.get::<String>(0)?, r.get::<String>(1)?)),
            )?;
            for (kind, id) in tombstones {
                match kind.as_str() {
                    "session" => changes.sessions.push(id),
                    "token" => changes.tokens.push(id),
                    _ => changes.tags.push(id),
                }
            }
            Ok(changes)
        })
        .await
    }

    /// The ends of the given logs; deleted sessions are missing.
    pub async fn heads(&self, sessions: Vec<i64>) -> Result<Vec<(i64, u64, bool)>> {
        self.read(move |db| {
            let list = Value::List(sessions.iter().map(|key| Value::Int(*key)).collect());
            db.query_all("SELECT key, seq, ended FROM session WHERE key = ANY (?1)", &[list], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?))
            })
        })
        .await
    }
}
