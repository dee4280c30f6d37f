//! Where packets come from, and how far they were read.

use crate::error::Result;
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension, params};

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

pub(crate) fn keep(db: &Connection, session: i64, mark: &SourceMark) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO source (session, number, format, path, read, rest, offset, last, roots,
         rest_order, at, rest_offset) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT DO UPDATE SET format = coalesce(excluded.format, format),
         path = coalesce(excluded.path, path), read = excluded.read, rest = excluded.rest,
         offset = excluded.offset, last = excluded.last, roots = excluded.roots,
         rest_order = excluded.rest_order, at = excluded.at, rest_offset = excluded.rest_offset",
    )?
    .execute(params![
        session,
        mark.number,
        mark.format,
        mark.path,
        mark.read,
        mark.rest,
        mark.offset,
        mark.last,
        mark.roots,
        i64::try_from(mark.rest_order).unwrap_or(i64::MAX),
        mark.at,
        mark.rest_offset
    ])?;
    Ok(())
}

impl Store {
    /// How far the sources of a session were read.
    pub async fn sources(&self, session: i64) -> Result<Vec<SourceMark>> {
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT format, path, read, rest, offset, last, roots, number, rest_order, at,
                 rest_offset FROM source
                 WHERE session = ?1",
            )?;
            let marks = query.query_map([session], |r| {
                Ok(SourceMark {
                    number: r.get(7)?,
                    rest_order: r.get(8)?,
                    at: r.get(9)?,
                    rest_offset: r.get(10)?,
                    format: r.get(0)?,
                    path: r.get(1)?,
                    read: r.get(2)?,
                    rest: r.get(3)?,
                    offset: r.get(4)?,
                    last: r.get::<_, Option<String>>(5)?.unwrap_or_default(),
                    roots: r.get::<_, Option<String>>(6)?.unwrap_or_default(),
                })
            })?;
            Ok(marks.collect::<rusqlite::Result<Vec<_>>>()?)
        })
        .await
    }

    /// A request that came before: the place of its first packet, and its answer if it has one.
    pub async fn request(&self, session: i64, key: &str) -> Result<Option<(u64, Option<String>)>> {
        let key = key.to_owned();
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT first, answer FROM request WHERE session = ?1 AND key = ?2",
            )?;
            let found = query.query_row(params![session, key], |r| Ok((r.get(0)?, r.get(1)?)));
            Ok(found.optional()?)
        })
        .await
    }
}
