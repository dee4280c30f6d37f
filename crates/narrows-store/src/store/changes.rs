//! What other nodes of a cluster changed.

use super::Store;
use crate::buckets::{LAST_COUNT, last_touched};
use crate::cluster::changes::News;
use crate::db::{Value, params};
use crate::error::Result;

impl Store {
    /// The changes after a revision.
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

    /// The ends of the given logs; deleted sessions are missing.
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
