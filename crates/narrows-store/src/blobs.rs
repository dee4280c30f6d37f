//! Blobs: images of sessions, stored once by content hash.

use crate::checksum;
use crate::db::{Db, Row, params};
use crate::error::Result;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;

/// Hex digits of a SHA-256.
pub(crate) const HASH_LEN: usize = 64;

/// A blob to store.
#[derive(Debug, Clone)]
pub struct NewBlob {
    /// The SHA-256 of the bytes, in hexadecimal.
    pub hash: String,
    /// The MIME type, such as `image/png`.
    pub mime: String,
    /// The bytes.
    pub bytes: Bytes,
}

/// A stored blob.
#[derive(Debug, Clone)]
pub struct Blob {
    /// The MIME type, such as `image/png`.
    pub mime: String,
    /// The bytes.
    pub bytes: Bytes,
}

pub(crate) fn put(db: &Db<'_>, session: i64, blob: &NewBlob) -> Result<()> {
    let order = format!("blob {}", blob.hash);
    let size = blob.bytes.len();
    let sum = checksum::of_values(&params![blob.hash, blob.mime, size]);
    // Locks the row on PostgreSQL: another node may be about to delete it.
    let on_conflict =
        if db.is_postgres() { "(hash) DO UPDATE SET size = blob.size" } else { "DO NOTHING" };
    db.execute_before_commit(
        &order,
        &format!(
            "INSERT INTO blob (hash, mime, size, body, crc) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT {on_conflict}"
        ),
        &params![blob.hash, blob.mime, size, &blob.bytes[..], sum],
    )?;
    db.execute_pipelined(
        "INSERT INTO blob_use (session, hash, crc) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        &params![session, blob.hash, checksum::of_values(&params![session, blob.hash])],
    )
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Whether the content of a blob matches its hash; unknown for names that are no hash, which count
/// as sound.
pub(crate) fn is_sound(row: &Row<'_>, hash: usize, body: usize) -> bool {
    let Ok(hash) = row.get::<String>(hash) else { return false };
    let Ok(Some(bytes)) = row.bytes(body) else { return false };
    hash.len() != HASH_LEN || is_named(&hash, bytes)
}

/// Whether `hash` is the hash of `bytes`.
pub(crate) fn is_named(hash: &str, bytes: &[u8]) -> bool {
    sha256_hex(bytes) == hash
}

/// Repairs type and size of blobs whose row does not match its checksum while their content is
/// sound.
pub(crate) fn repair_metadata(db: &Db<'_>) -> Result<()> {
    let sql = "SELECT hash, mime, size, crc, length(body), substr(body, 1, 12) FROM blob";
    let mut damaged = Vec::new();
    db.query_each(sql, &[], |row| {
        if !checksum::row_matches(row, &[0, 1, 2], 3)? {
            let kind = image_type(row.bytes(5)?.unwrap_or_default());
            let mime = kind.map_or_else(|| row.get(1), |kind| Ok(kind.to_owned()))?;
            damaged.push((row.get::<String>(0)?, mime, row.get::<u64>(4)?));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (hash, mime, size) in damaged {
        let sum = checksum::of_values(&params![hash, mime, size]);
        let set = "UPDATE blob SET mime = ?2, size = ?3, crc = ?4 WHERE hash = ?1";
        db.execute(set, &params![hash, mime, size, sum])?;
    }
    Ok(())
}

/// The MIME type of an image, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("image/webp"),
        _ => None,
    }
}
