//! Where packets come from, and how far they were read.

use crate::damage::{self, Damage};
use crate::db::{Db, Value, params};
use crate::error::{Error, Result};
use crate::store::Store;
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

    fn read(bytes: &[u8]) -> Option<BodyDigest> {
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
    fn sum(&self, session: i64) -> i64 {
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

impl Store {
    /// How far the sources of a session were read.
    pub async fn sources(&self, session: i64) -> Result<Vec<SourceMark>> {
        self.read(move |db| {
            db.all(
                r#"SELECT format, path, read, rest, "offset", last, roots, number, rest_order, at,
                 rest_offset, crc FROM source WHERE session = ?1 ORDER BY number"#,
                &params![session],
                |r| {
                    let mark = SourceMark {
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
                    if !sum::holds(r.get(11)?, mark.sum(session)) {
                        // To go on from a wrong place would lose packets or take them twice.
                        let what = "how far the packets of a session were read cannot be known";
                        damage::found(Damage { session, ..Damage::other(what) });
                        return Err(Error::Damaged(what.to_owned()));
                    }
                    Ok(mark)
                },
            )
        })
        .await
    }

    /// The key of the last request whose first packet stands at this place or before it, and its answer.
    pub async fn request_at(
        &self,
        session: i64,
        place: u64,
    ) -> Result<Vec<(String, Option<String>)>> {
        self.read(move |db| {
            db.all(
                "SELECT key, answer FROM request WHERE session = ?1
                 AND first = (SELECT max(first) FROM request WHERE session = ?1 AND first <= ?2)",
                &params![session, place],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )
        })
        .await
    }

    /// A request that came before.
    pub async fn request(&self, session: i64, key: &str) -> Result<Option<KeptRequest>> {
        let key = key.to_owned();
        self.read(move |db| {
            db.optional(
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
