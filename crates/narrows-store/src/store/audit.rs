//! The audit log.

use super::Store;
use crate::access::audit::{Audited, DAMAGED_ACTION, NewAudit};
use crate::checksum;
use crate::checksum::columns;
use crate::damage::{self, Damage};
use crate::db::params;
use crate::error::Result;
use crate::ids::now;

impl Store {
    /// Appends an entry.
    pub async fn audit(&self, new: NewAudit) -> Result<()> {
        self.write(256, move |db| {
            let at = now();
            let sum =
                checksum::of_values(&params![at, new.token, new.action, new.session, new.detail]);
            db.execute_pipelined(
                "INSERT INTO audit (at, token, action, session, detail, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                &params![at, new.token, new.action, new.session, new.detail, sum],
            )
        })
        .await
    }

    /// Reads entries before a number, newest first.
    pub async fn audited(&self, before: Option<i64>, limit: usize) -> Result<Vec<Audited>> {
        self.read(move |db| {
            let query =
                "SELECT key, at, token, action, session, detail, crc FROM audit WHERE key < ?1
                 ORDER BY key DESC LIMIT ?2";
            db.query_all(query, &params![before.unwrap_or(i64::MAX), limit], |r| {
                let number = r.get(0)?;
                if !checksum::row_matches(r, &[1, 2, 3, 4, 5], 6).unwrap_or(false) {
                    damage::report(Damage::other(columns::AUDIT_MISMATCH));
                    // Keep the number, so that the gap is visible.
                    return Ok(Audited {
                        number,
                        action: DAMAGED_ACTION.to_owned(),
                        ..Audited::default()
                    });
                }
                Ok(Audited {
                    number,
                    at: r.get(1)?,
                    token: r.get(2)?,
                    action: r.get(3)?,
                    session: r.get(4)?,
                    detail: r.get(5)?,
                })
            })
        })
        .await
    }
}
