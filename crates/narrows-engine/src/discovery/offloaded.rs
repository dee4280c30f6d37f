//! Offloaded outputs: tool outputs that an agent writes to files of their own, and files that are only
//! remembered.

use super::SessionFiles;
use super::file_identity::head;
use super::scan::{age, fingerprint};
use super::source_file::{FIRST_OUTPUT_SOURCE, QUIESCENT_AFTER};
use crate::ingest::IngestRequest;
use memchr::memmem;
use narrows::PARSER;
use narrows_store::FileMark;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest output that is read, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// How often an output is offered that no record has named.
const MAX_OFFERS: u64 = 16;
/// The offer count of an output that was ingested.
const INGESTED: u64 = 1 << 32;

/// An output that no record has named yet.
struct PendingOutput {
    path: PathBuf,
    file_name: String,
    named: bool,
    mark: FileMark,
}

/// The offloaded outputs of a session.
pub(super) struct OffloadedOutputs {
    pending: Vec<PendingOutput>,
    /// The marks of files to store.
    pub(super) marks: Vec<FileMark>,
}

impl OffloadedOutputs {
    /// Collects the outputs of a session; `known_marks` are those of earlier reads.
    pub(super) fn new(
        session: i64,
        found: &SessionFiles,
        known_marks: &[FileMark],
    ) -> OffloadedOutputs {
        let mut all = OffloadedOutputs { pending: Vec::new(), marks: Vec::new() };
        let mut next =
            known_marks.iter().map(|m| m.number + 1).max().unwrap_or(0).max(FIRST_OUTPUT_SOURCE);
        let outputs = found.outputs.iter().map(|path| (path, true));
        for (path, is_output) in outputs.chain(found.orphans.iter().map(|path| (path, false))) {
            // The file may have disappeared.
            let Ok(about) = path.symlink_metadata() else { continue };
            let (node, size, changed) = fingerprint(&about);
            let name = path.to_string_lossy().into_owned();
            let known =
                known_marks.iter().find(|m| m.path == name && m.number >= FIRST_OUTPUT_SOURCE);
            let same = known.filter(|m| !m.gone && m.size == size && m.changed == changed);
            let mark = FileMark {
                session,
                number: known.map_or(next, |m| m.number),
                path: name,
                node,
                size,
                changed,
                head: same.map(|m| m.head.clone()).unwrap_or_default(),
                tail_at: same.map_or(0, |m| m.tail_at),
                parent: Some(String::new()),
                parser: PARSER,
                ..FileMark::default()
            };
            if is_output && mark.tail_at < MAX_OFFERS {
                let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                all.pending.push(PendingOutput {
                    path: path.clone(),
                    file_name,
                    named: false,
                    mark,
                });
            } else if same.is_none_or(|m| m.parser < PARSER)
                && (is_output || !may_be_claimed(path, changed))
            {
                all.marks.push(mark);
            }
            next += u32::from(known.is_none());
        }
        all
    }

    /// Notes which outputs are named in some lines.
    pub(super) fn note_names(&mut self, lines: &[u8]) {
        for pending in self.pending.iter_mut().filter(|w| !w.named) {
            pending.named = memmem::find(lines, pending.file_name.as_bytes()).is_some();
        }
    }

    /// Pushes the outputs that were named, or all. They are stored together with the records that name
    /// them.
    pub(super) fn push_ready(&mut self, request: &mut IngestRequest, all: bool) -> io::Result<()> {
        for mut pending in std::mem::take(&mut self.pending) {
            if !pending.named && !all {
                self.pending.push(pending);
                continue;
            }
            let Ok(mut file) = File::open(&pending.path) else { continue };
            let mut bytes = Vec::new();
            (&file).take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
            if request.output(&pending.file_name, &String::from_utf8_lossy(&bytes)) {
                pending.mark.tail_at = INGESTED;
            } else if all {
                // It is offered again with new records.
                pending.mark.tail_at += 1;
            } else {
                self.pending.push(pending);
                continue;
            }
            pending.mark.head = head(&mut file)?;
            self.marks.push(pending.mark);
        }
        Ok(())
    }
}

/// Returns whether metadata that names a subagent's call may still appear: the file lies in its session's
/// directory.
fn may_be_claimed(path: &Path, changed: i64) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("subagents"))
        && age(changed) <= QUIESCENT_AFTER
}
