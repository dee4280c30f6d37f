//! Checkpoints of a session's sources, and stored requests.

use super::Store;
use crate::checksum;
use crate::damage::{self, Damage};
use crate::db::params;
use crate::error::{Error, Result};
use crate::sources::checkpoint::{BodyDigest, KeptRequest, SourceMark};

impl Store {
    /// The checkpoints of a session's sources.
    pub async fn sources(&self, session: i64) -> Result<Vec<SourceMark>> {
        self.read(move |db| {
            db.query_all(
                r#"SELECT format, path, read, rest, "offset", last, roots, number, rest_order, at,
                 rest_offset, crc FROM source WHERE session = ?1 ORDER BY number"#,
                &params![session],
                |r| {
                    let checkpoint = SourceMark {
                        number: r.get(7)?,
                        rest_order: r.get(8)?,
                        at: r.get(9)?,
                        rest_offset: r.get(10)?,
                        format: r.get(0)?,
                        path: r.get(1)?,
                        read: r.get(2)?,
                        rest: r.get(3)?,
                        offset: r.get(4)?,
                        last: r.get::<Option<String>>(5)?.unwrap_or_default(),
                        roots: r.get::<Option<String>>(6)?.unwrap_or_default(),
                    };
                    if !checksum::matches(r.get(11)?, checkpoint.checksum(session)) {
                        // Resuming at a wrong position would lose or duplicate packets.
                        let message = "the checkpoint of a source does not match its checksum";
                        damage::report(Damage { session, ..Damage::other(message) });
                        return Err(Error::Damaged(message.to_owned()));
                    }
                    Ok(checkpoint)
                },
            )
        })
        .await
    }

    /// Keys and responses of the last requests whose first packet is at or before `place`.
    pub async fn request_at(
        &self,
        session: i64,
        place: u64,
    ) -> Result<Vec<(String, Option<String>)>> {
        self.read(move |db| {
            db.query_all(
                "SELECT key, answer FROM request WHERE session = ?1
                 AND first = (SELECT max(first) FROM request WHERE session = ?1 AND first <= ?2)",
                &params![session, place],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )
        })
        .await
    }

    /// Finds a stored request by its idempotency key.
    pub async fn request(&self, session: i64, key: &str) -> Result<Option<KeptRequest>> {
        let key = key.to_owned();
        self.read(move |db| {
            db.query_opt(
                "SELECT first, answer, digest FROM request WHERE session = ?1 AND key = ?2",
                &params![session, key],
                |r| {
                    let digest: Option<Vec<u8>> = r.get(2)?;
                    let digest = digest.as_deref().and_then(BodyDigest::read);
                    Ok(KeptRequest { first: r.get(0)?, answer: r.get(1)?, digest })
                },
            )
        })
        .await
    }
}
