//! Checkpoints of sources: where writing a session resumes. Also the stored requests, which may be
//! repeated.

use crate::checksum;
use crate::db::{Db, Value, params};
use crate::error::Result;
use std::collections::BTreeMap;

/// The length and hash of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyDigest {
    /// Bytes of the body.
    pub length: u64,
    /// The SHA-256 of the body.
    pub sha256: [u8; 32],
}

impl BodyDigest {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [&self.length.to_be_bytes()[..], &self.sha256].concat()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<BodyDigest> {
        let (length, sha256) = bytes.split_first_chunk::<8>()?;
        Some(BodyDigest { length: u64::from_be_bytes(*length), sha256: sha256.try_into().ok()? })
    }
}

/// A stored request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRequest {
    /// The number of its first packet.
    pub first: u64,
    /// Its response, once it is complete.
    pub answer: Option<String>,
    /// The digest of its body; unknown for older versions.
    pub digest: Option<BodyDigest>,
}

/// The checkpoint of a source. Roots and paths belong to this machine and are never served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMark {
    /// The number of the source in its session.
    pub number: u32,
    /// The format, if known.
    pub format: Option<String>,
    /// The path, if the source is a file.
    pub path: Option<String>,
    /// The last packet read.
    pub read: u64,
    /// The checkpoint: the last packet after which no text was held back.
    pub rest: u64,
    /// The byte offset of the last line read, for sources counted in bytes.
    pub offset: u64,
    /// The byte offset of the line after the checkpoint.
    pub rest_offset: u64,
    /// The order of the next item at the checkpoint.
    pub rest_order: u64,
    /// The last event, as `packet.index`.
    pub last: String,
    /// The roots of the session, one per line.
    pub roots: String,
    /// Increases with the log: shows which source was read last.
    pub at: u64,
}

impl SourceMark {
    /// The checksum of the columns that every update writes.
    pub(crate) fn checksum(&self, session: i64) -> i64 {
        let SourceMark {
            number, read, rest, offset, rest_offset, rest_order, last, roots, at, ..
        } = self;
        checksum::of_values(&params![
            session,
            *number,
            *read,
            *rest,
            *offset,
            *rest_offset,
            *rest_order,
            last,
            roots,
            *at
        ])
    }
}

/// The checksum of a source's format or path, if any.
pub(crate) fn text_checksum(session: i64, number: u32, text: Option<&str>) -> Option<i64> {
    text.map(|text| checksum::of_values(&params![session, number, text]))
}

/// Writes checkpoints, each with its session. The last one of a source wins.
pub(crate) fn put(db: &Db<'_>, checkpoints: &[(i64, &SourceMark)]) -> Result<()> {
    let mut last: BTreeMap<(i64, u32), [Value<'_>; 15]> = BTreeMap::new();
    for (session, checkpoint) in checkpoints {
        let mut row = params![
            *session,
            checkpoint.number,
            checkpoint.format,
            checkpoint.path,
            checkpoint.read,
            checkpoint.rest,
            checkpoint.offset,
            checkpoint.last,
            checkpoint.roots,
            checkpoint.rest_order,
            checkpoint.at,
            checkpoint.rest_offset,
            Value::Null,
            Value::Null,
            Value::Null
        ];
        row[12] = Value::Int(checkpoint.checksum(*session));
        for (at, text) in [(13, &checkpoint.format), (14, &checkpoint.path)] {
            let sum = text_checksum(*session, checkpoint.number, text.as_deref());
            row[at] = sum.map_or(Value::Null, Value::Int);
        }
        let earlier = last.remove(&(*session, checkpoint.number));
        if let Some([_, _, format, path, .., format_crc, path_crc]) = earlier {
            for (at, earlier, crc) in [(2, format, format_crc), (3, path, path_crc)] {
                if row[at] == Value::Null {
                    (row[at], row[at + 11]) = (earlier, crc);
                }
            }
        }
        last.insert((*session, checkpoint.number), row);
    }
    let (n, t) = ("bigint", "text");
    db.insert(
        r#"source (session, number, format, path, read, rest, "offset", last, roots, rest_order, at,
         rest_offset, crc, format_crc, path_crc)"#,
        [n, n, t, t, n, n, n, t, t, n, n, n, n, n, n],
        last.into_values().collect(),
        r#"ON CONFLICT (session, number) DO UPDATE SET
         format = coalesce(excluded.format, source.format),
         path = coalesce(excluded.path, source.path), read = excluded.read, rest = excluded.rest,
         "offset" = excluded."offset", last = excluded.last, roots = excluded.roots,
         rest_order = excluded.rest_order, at = excluded.at, rest_offset = excluded.rest_offset,
         crc = excluded.crc, format_crc = coalesce(excluded.format_crc, source.format_crc),
         path_crc = coalesce(excluded.path_crc, source.path_crc)"#,
    )
}
