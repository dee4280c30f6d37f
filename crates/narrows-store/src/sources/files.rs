//! Files of sessions: their identity on disk, and the records read from them.

use crate::checksum;
use crate::db::{Db, Value, params};
use crate::error::Result;

/// A file of a session. Its path is never served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMark {
    /// The key of the session.
    pub session: i64,
    /// The number of the source in its session.
    pub number: u32,
    /// The path.
    pub path: String,
    /// The device and inode.
    pub node: String,
    /// The size when it was read last, in bytes.
    pub size: u64,
    /// The modification time when it was read last.
    pub changed: i64,
    /// A hash of the beginning.
    pub head: Vec<u8>,
    /// A hash of the last line read.
    pub tail: Vec<u8>,
    /// The byte offset of the last line read.
    pub tail_at: u64,
    /// The call whose subagent wrote it.
    pub parent: Option<String>,
    /// Whether the file is missing.
    pub gone: bool,
    /// The version of the parser that read it.
    pub parser: u32,
    /// Whether the session has ended. Read only.
    pub ended: bool,
}

/// Added to the checksum of a missing file: a statement can set the flag without reading the row.
pub(crate) const MISSING_CHECKSUM: i64 = 1 << 32;

impl FileMark {
    /// The checksum of the file's identity, without its path.
    pub(crate) fn checksum(&self) -> i64 {
        let FileMark { session, number, node, size, changed, head, tail, tail_at, parent, .. } =
            self;
        checksum::of_values(&params![
            *session,
            *number,
            node,
            *size,
            *changed,
            head,
            tail,
            *tail_at,
            parent,
            self.parser
        ])
    }
}

/// The row of records read since the last checkpoint.
pub(crate) const UNCHECKPOINTED: u32 = 1;

/// Appends record hashes that were read up to the event `seq`.
pub(crate) fn append_seen_records(
    db: &Db<'_>,
    session: i64,
    seq: u64,
    records: &[u64],
) -> Result<()> {
    // On SQLite, `||` of two blobs is a text.
    let appended = if db.is_postgres() {
        "seen.records || excluded.records"
    } else {
        "CAST(seen.records || excluded.records AS BLOB)"
    };
    let bytes = to_bytes(records);
    let sum = records_checksum(&bytes);
    // Several records may precede the same event.
    db.execute_pipelined(
        &format!(
            "INSERT INTO seen (session, seq, source, records, crc) VALUES (?1, ?2, 0, ?3, ?4)
             ON CONFLICT (session, seq, source) DO UPDATE SET records = {appended},
             crc = seen.crc + ?5"
        ),
        &params![session, seq, bytes, records_key_checksum(session, seq, 0) + sum, sum],
    )
}

/// Replaces the record hashes read since the last checkpoint.
pub(crate) fn set_uncheckpointed_records(db: &Db<'_>, session: i64, records: &[u64]) -> Result<()> {
    let bytes = to_bytes(records);
    let sum = records_key_checksum(session, 0, UNCHECKPOINTED) + records_checksum(&bytes);
    db.execute_pipelined(
        "INSERT INTO seen (session, seq, source, records, crc) VALUES (?1, 0, ?2, ?3, ?4)
         ON CONFLICT (session, seq, source) DO UPDATE SET records = excluded.records,
         crc = excluded.crc",
        &params![session, UNCHECKPOINTED, bytes, sum],
    )
}

/// The checksum of records: a sum, so that records can be appended.
pub(crate) fn records_checksum(records: &[u8]) -> i64 {
    records.chunks(8).map(|record| i64::from(crc32fast::hash(record))).sum()
}

/// The checksum of a records row's key.
pub(crate) fn records_key_checksum(session: i64, seq: u64, source: u32) -> i64 {
    checksum::of_values(&params![session, seq, source])
}

fn to_bytes(records: &[u64]) -> Vec<u8> {
    records.iter().flat_map(|r| r.to_le_bytes()).collect()
}

pub(crate) fn is_missing(db: &Db<'_>, mark: &FileMark) -> Result<bool> {
    db.exists(
        "SELECT 1 FROM source WHERE session = ?1 AND number = ?2 AND gone = 1",
        &params![mark.session, mark.number],
    )
}

pub(crate) fn files(db: &Db<'_>, only: &str, values: &[Value<'_>]) -> Result<Vec<FileMark>> {
    let sql = format!(
        "SELECT session, number, path, coalesce(node, ''), coalesce(size, 0), coalesce(changed, 0),
         head, tail, coalesce(tail_at, 0), parent, gone, coalesce(parser, 0), coalesce(s.ended, 0)
         FROM source LEFT JOIN session s ON s.key = session WHERE {only} ORDER BY session, number"
    );
    db.query_all(&sql, values, |r| {
        Ok(FileMark {
            session: r.get(0)?,
            number: r.get(1)?,
            path: r.get(2)?,
            node: r.get(3)?,
            size: r.get(4)?,
            changed: r.get(5)?,
            head: r.get::<Option<_>>(6)?.unwrap_or_default(),
            tail: r.get::<Option<_>>(7)?.unwrap_or_default(),
            tail_at: r.get(8)?,
            parent: r.get(9)?,
            gone: r.get(10)?,
            parser: r.get(11)?,
            ended: r.get(12)?,
        })
    })
}
