//! Materializing item rows that are behind their logs, as after a crash of the writer.

use super::Store;
use crate::append::Append;
use crate::db::params;
use crate::error::{Error, Result};
use crate::ids::now;
use crate::items::SessionSnapshot;

/// Sessions changed within this many milliseconds may be written by another node.
const ACTIVE_WRITER_MS: i64 = 60_000;

impl Store {
    /// Sessions whose item rows are behind and that no other node is writing.
    pub async fn unsettled(&self) -> Result<Vec<i64>> {
        let before = if self.is_shared() { now() - ACTIVE_WRITER_MS } else { i64::MAX };
        self.read(move |db| {
            let sql = "SELECT key FROM session WHERE settled < seq AND updated < ?1 ORDER BY key";
            db.query_all(sql, &params![before], |r| r.get(0))
        })
        .await
    }

    /// Brings the item rows of a session up to date; it must have no writer.
    pub async fn settle(&self, session: i64) -> Result<()> {
        let append = self.read(move |db| {
            let snapshot = SessionSnapshot::read(db, session)?;
            let items = snapshot.overlay.writes(db, session)?;
            let (after, next_order) = (snapshot.seq, snapshot.next_order);
            Ok(Append { session, after, settled: after, next_order, items, ..Append::default() })
        });
        let append = append.await?;
        if append.items.is_empty() {
            return Ok(());
        }
        let durable = self.append(append).await?;
        durable.await.map_err(|_| Error::Closed)?.map(|_| ())
    }
}
