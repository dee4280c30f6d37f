//! Pictures, kept once by their content.

use crate::error::{Error, Result};
use crate::store::Store;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

/// A picture to be kept.
#[derive(Debug, Clone)]
pub struct NewBlob {
    /// The SHA-256 of its bytes, in hexadecimal.
    pub hash: String,
    /// `image/png` and the like.
    pub mime: String,
    /// The bytes.
    pub bytes: Bytes,
}

/// A picture.
#[derive(Debug, Clone)]
pub struct Blob {
    /// `image/png` and the like.
    pub mime: String,
    /// The bytes.
    pub bytes: Bytes,
}

pub(crate) fn keep(db: &Connection, session: i64, blob: &NewBlob) -> Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO blob VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        blob.hash,
        blob.mime,
        blob.bytes.len(),
        &blob.bytes[..]
    ])?;
    db.prepare_cached("INSERT OR IGNORE INTO blob_use VALUES (?1, ?2)")?
        .execute(params![session, blob.hash])?;
    Ok(())
}

impl Store {
    /// A picture of a session.
    pub async fn blob(&self, session: i64, hash: &str) -> Result<Blob> {
        let hash = hash.to_owned();
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT mime, body FROM blob JOIN blob_use u USING (hash)
                 JOIN session s ON s.key = u.session WHERE u.session = ?1 AND hash = ?2",
            )?;
            let found = query.query_row(params![session, hash], |r| {
                Ok(Blob { mime: r.get(0)?, bytes: r.get::<_, Vec<u8>>(1)?.into() })
            });
            found.optional()?.ok_or(Error::NotFound("picture"))
        })
        .await
    }
}
