//! Who did what that cannot be undone.

use crate::beside;
use crate::damage::{self, Damage};
use crate::db::params;
use crate::error::Result;
use crate::ids::now;
use crate::store::Store;
use crate::sum;
use serde::Serialize;

/// The action of an entry that is not as it was written.
const DAMAGED: &str = "damaged";

/// Something to be remembered.
#[derive(Debug, Clone, Default)]
pub struct NewAudit {
    /// The id of the token.
    pub token: String,
    /// What was done.
    pub action: &'static str,
    /// To which session.
    pub session: Option<String>,
    /// What else is to be known; never what a session says.
    pub detail: Option<String>,
}

/// Something that was done.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Audited {
    /// Its number.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The id of the token.
    pub token: String,
    /// What was done.
    pub action: String,
    /// To which session.
    pub session: Option<String>,
    /// What else is to be known.
    pub detail: Option<String>,
}

impl Store {
    /// Remembers what was done.
    pub async fn audit(&self, new: NewAudit) -> Result<()> {
        self.write(256, move |db| {
            let at = now();
            let sum = sum::of(&params![at, new.token, new.action, new.session, new.detail]);
            db.later(
                "INSERT INTO audit (at, token, action, session, detail, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                &params![at, new.token, new.action, new.session, new.detail, sum],
            )
        })
        .await
    }

    /// What was done, the newest first.
    pub async fn audited(&self, before: Option<i64>, limit: usize) -> Result<Vec<Audited>> {
        self.read(move |db| {
            let query =
                "SELECT key, at, token, action, session, detail, crc FROM audit WHERE key < ?1
                 ORDER BY key DESC LIMIT ?2";
            db.all(query, &params![before.unwrap_or(i64::MAX), limit], |r| {
                let number = r.get(0)?;
                if !sum::row_holds(r, &[1, 2, 3, 4, 5], 6).unwrap_or(false) {
                    damage::found(Damage::other(beside::AUDIT));
                    // Its place stays: whoever reads sees that there was something.
                    return Ok(Audited {
                        number,
                        action: DAMAGED.to_owned(),
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
