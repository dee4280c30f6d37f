//! Blobs of a session.

use super::Store;
use crate::blobs::{Blob, HASH_LEN, sha256_hex};
use crate::damage::{self, Damage};
use crate::db::params;
use crate::error::{Error, Result};

impl Store {
    /// Reads a blob of a session.
    pub async fn blob(&self, session: i64, hash: &str) -> Result<Blob> {
        let hash = hash.to_owned();
        self.read(move |db| {
            let row = db.query_opt(
                "SELECT mime, body FROM blob JOIN blob_use u USING (hash)
                 JOIN session s ON s.key = u.session WHERE u.session = ?1 AND hash = ?2",
                &params![session, hash],
                |r| Ok(Blob { mime: r.get(0)?, bytes: r.get::<Vec<u8>>(1)?.into() }),
            )?;
            let blob = row.ok_or(Error::NotFound("picture"))?;
            // Blobs are named by their content.
            if hash.len() == HASH_LEN && sha256_hex(&blob.bytes) != hash {
                let message = "a blob does not match its hash";
                damage::report(Damage { session, ..Damage::other(message) });
                return Err(Error::Damaged(message.to_owned()));
            }
            Ok(blob)
        })
        .await
    }
}
