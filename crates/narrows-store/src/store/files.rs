//! Files that sessions are read from.

use super::Store;
use crate::db::params;
use crate::error::Result;
use crate::sessions::bump_revision;
use crate::sources::checkpoint::text_checksum;
use crate::sources::files::{FileMark, MISSING_CHECKSUM, UNCHECKPOINTED, files, is_missing};
use std::ops::ControlFlow;

impl Store {
    /// All files that sessions are read from.
    pub async fn files(&self) -> Result<Vec<FileMark>> {
        // Rows of deleted sessions exist for a while.
        self.read(|db| files(db, "path IS NOT NULL AND s.key IS NOT NULL", &[])).await
    }

    /// The files of one session.
    pub async fn files_of(&self, session: i64) -> Result<Vec<FileMark>> {
        self.read(move |db| files(db, "path IS NOT NULL AND session = ?1", &params![session])).await
    }

    /// Inserts or updates files.
    pub async fn keep_files(&self, marks: Vec<FileMark>) -> Result<()> {
        self.write(256 * marks.len(), move |db| {
            for m in &marks {
                if !m.gone && is_missing(db, m)? {
                    bump_revision(db, m.session)?;
                }
                let path_crc = text_checksum(m.session, m.number, Some(&m.path));
                let file_crc = m.checksum() + if m.gone { MISSING_CHECKSUM } else { 0 };
                db.execute_pipelined(
                    "INSERT INTO source (session, number, path, node, size, changed, head, tail, tail_at,
                     parent, gone, parser, path_crc, file_crc)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                     ON CONFLICT (session, number) DO UPDATE SET path = excluded.path,
                     node = excluded.node, size = excluded.size, changed = excluded.changed,
                     head = excluded.head, tail = excluded.tail, tail_at = excluded.tail_at,
                     parent = excluded.parent, gone = excluded.gone, parser = excluded.parser,
                     path_crc = excluded.path_crc, file_crc = excluded.file_crc",
                    &params![
                        m.session, m.number, m.path, m.node, m.size, m.changed, m.head, m.tail,
                        m.tail_at, m.parent, m.gone, m.parser, path_crc, file_crc
                    ],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Marks files as missing, unless they were replaced since.
    pub async fn lose_files(&self, marks: Vec<FileMark>) -> Result<()> {
        self.write(256 * marks.len(), move |db| {
            for m in &marks {
                let updated = db.execute(
                    "UPDATE source SET gone = 1, file_crc = file_crc + 4294967296
                     WHERE session = ?1 AND number = ?2 AND path = ?3 AND gone = 0",
                    &params![m.session, m.number, m.path],
                )?;
                if updated > 0 {
                    bump_revision(db, m.session)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// The record hashes of a session up to its last checkpoint, in order, and those read since.
    pub async fn seen(&self, session: i64) -> Result<(Vec<u64>, Vec<u64>)> {
        self.read(move |db| {
            let (mut checkpointed, mut uncheckpointed) = (Vec::new(), Vec::new());
            db.query_each(
                "SELECT source, records FROM seen WHERE session = ?1 ORDER BY seq",
                &params![session],
                |row| {
                    let (source, records) = (row.get::<u32>(0)?, row.bytes(1)?);
                    let hashes = records.unwrap_or_default().chunks_exact(8);
                    let to = if source == UNCHECKPOINTED {
                        &mut uncheckpointed
                    } else {
                        &mut checkpointed
                    };
                    to.extend(hashes.filter_map(|n| n.try_into().ok().map(u64::from_le_bytes)));
                    Ok(ControlFlow::Continue(()))
                },
            )?;
            Ok((checkpointed, uncheckpointed))
        })
        .await
    }
}
