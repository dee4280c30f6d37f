//! Where packets come from, and how far they were read.

use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::sum;
use std::collections::BTreeMap;

/// What a request held, as far as it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyDigest {
    /// Bytes of the body.
    pub length: u64,
    /// Their SHA-256.
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

/// A request that came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRequest {
    /// The place of its first packet.
    pub first: u64,
    /// Its answer, if it was answered.
    pub answer: Option<String>,
    /// What it held. Earlier versions did not keep it.
    pub digest: Option<BodyDigest>,
}

/// How far a source was read. Roots and paths are those of this machine: nothing shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMark {
    /// Which source of the session.
    pub number: u32,
    /// The dialect, where it is known.
    pub format: Option<String>,
    /// The file, where it is one.
    pub path: Option<String>,
    /// The last packet that was read.
    pub read: u64,
    /// The last packet of which, and of all before it, nothing was held back.
    pub rest: u64,
    /// Where the last line that was read begins, where bytes are counted.
    pub offset: u64,
    /// Where the line after the last rest begins.
    pub rest_offset: u64,
    /// The order of the next item at that rest.
    pub rest_order: u64,
    /// Its last event: `packet.index`.
    pub last: String,
    /// The roots of the session, one a line.
    pub roots: String,
    /// Grows with the log: which source was read last.
    pub at: u64,
}

impl SourceMark {
    /// The checksum of what is written of it each time.
    pub(crate) fn sum(&self, session: i64) -> i64 {
        let SourceMark {
            number, read, rest, offset, rest_offset, rest_order, last, roots, at, ..
        } = self;
        sum::of(&params![
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

/// The checksum of a source's format or path, where there is one.
pub(crate) fn sum_of(session: i64, number: u32, text: Option<&str>) -> Option<i64> {
    text.map(|text| sum::of(&params![session, number, text]))
}

/// Keeps marks, each with its session. Of one source the last counts.
pub(crate) fn keep(db: &Db<'_>, marks: &[(i64, &SourceMark)]) -> Result<()> {
    let mut last: BTreeMap<(i64, u32), [Value<'_>; 15]> = BTreeMap::new();
    for (session, mark) in marks {
        let mut row = params![
            *session,
            mark.number,
            mark.format,
            mark.path,
            mark.read,
            mark.rest,
            mark.offset,
            mark.last,
            mark.roots,
            mark.rest_order,
            mark.at,
            mark.rest_offset,
            Value::Null,
            Value::Null,
            Value::Null
        ];
        row[12] = Value::Int(mark.sum(*session));
        for (at, text) in [(13, &mark.format), (14, &mark.path)] {
            let sum = sum_of(*session, mark.number, text.as_deref());
            row[at] = sum.map_or(Value::Null, Value::Int);
        }
        let known = last.remove(&(*session, mark.number));
        if let Some([_, _, format, path, .., format_crc, path_crc]) = known {
            for (at, known, crc) in [(2, format, format_crc), (3, path, path_crc)] {
                if row[at] == Value::Null {
                    (row[at], row[at + 11]) = (known, crc);
                }
            }
        }
        last.insert((*session, mark.number), row);
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
