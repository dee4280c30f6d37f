//! Files that sessions are read from: what they are known by, and what was read of them.

use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::sum;

/// A file of a session. Nothing shows its path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMark {
    /// The session's key.
    pub session: i64,
    /// Which source of the session.
    pub number: u32,
    /// Where it lies.
    pub path: String,
    /// What the disk calls it: device and node.
    pub node: String,
    /// Its length when it was read last, in bytes.
    pub size: u64,
    /// When it was written last, as the disk tells.
    pub changed: i64,
    /// A hash of how it begins.
    pub head: Vec<u8>,
    /// A hash of the last line that was read, and where that begins.
    pub tail: Vec<u8>,
    /// Where the last line that was read begins.
    pub tail_at: u64,
    /// The call whose subagent wrote it.
    pub parent: Option<String>,
    /// It is there no more.
    pub gone: bool,
    /// The parser that read it.
    pub parser: u32,
    /// Whether its session is over, as far as is known. Only told, not kept.
    pub ended: bool,
}

/// In the checksum of a file, whether it is there is a number of its own: a statement changes that
/// without reading the row.
pub(crate) const GONE: i64 = 1 << 32;

impl FileMark {
    /// The checksum of what it is known by, but for its path.
    pub(crate) fn sum(&self) -> i64 {
        let FileMark { session, number, node, size, changed, head, tail, tail_at, parent, .. } =
            self;
        sum::of(&params![
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

/// Where records stand that were read since the last rest.
pub(crate) const LOOSE: u32 = 1;

/// Keeps records that were read up to the event `seq`.
pub(crate) fn keep_seen(db: &Db<'_>, session: i64, seq: u64, records: &[u64]) -> Result<()> {
    // SQLite makes a text of two blobs.
    let joined = if db.is_postgres() {
        "seen.records || excluded.records"
    } else {
        "CAST(seen.records || excluded.records AS BLOB)"
    };
    let bytes = bytes(records);
    let sum = records_sum(&bytes);
    // Records that give no event come after the same one.
    db.later(
        &format!(
            "INSERT INTO seen (session, seq, source, records, crc) VALUES (?1, ?2, 0, ?3, ?4)
             ON CONFLICT (session, seq, source) DO UPDATE SET records = {joined},
             crc = seen.crc + ?5"
        ),
        &params![session, seq, bytes, place_sum(session, seq, 0) + sum, sum],
    )
}

/// Keeps the records that were read since the last rest: all of them.
pub(crate) fn keep_loose(db: &Db<'_>, session: i64, records: &[u64]) -> Result<()> {
    let bytes = bytes(records);
    let sum = place_sum(session, 0, LOOSE) + records_sum(&bytes);
    db.later(
        "INSERT INTO seen (session, seq, source, records, crc) VALUES (?1, 0, ?2, ?3, ?4)
         ON CONFLICT (session, seq, source) DO UPDATE SET records = excluded.records,
         crc = excluded.crc",
        &params![session, LOOSE, bytes, sum],
    )
}

/// What records are checked by: each by itself, so that more of them are added.
pub(crate) fn records_sum(records: &[u8]) -> i64 {
    records.chunks(8).map(|record| i64::from(crc32fast::hash(record))).sum()
}

/// The same of where they stand.
pub(crate) fn place_sum(session: i64, seq: u64, source: u32) -> i64 {
    sum::of(&params![session, seq, source])
}

fn bytes(records: &[u64]) -> Vec<u8> {
    records.iter().flat_map(|r| r.to_le_bytes()).collect()
}

pub(crate) fn is_gone(db: &Db<'_>, mark: &FileMark) -> Result<bool> {
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
    db.all(&sql, values, |r| {
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
