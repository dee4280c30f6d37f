//! Long outputs that an agent puts into files of their own, and files that are only remembered.

use super::Found;
use super::identity::head;
use super::look::{age, facts};
use super::part::{OUTPUTS, STILL};
use crate::ingest::Take;
use memchr::memmem;
use narrows::PARSER;
use narrows_store::FileMark;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest output that is read.
const MAX_OUTPUT: u64 = 64 << 20;
/// How often an output is offered that no record has named.
const MAX_OFFERS: u64 = 16;
/// An output that was taken.
const TAKEN: u64 = 1 << 32;

/// An output that no record has named so far.
struct Waiting {
    path: PathBuf,
    own: String,
    named: bool,
    mark: FileMark,
}

/// The outputs of a session.
pub(super) struct Outputs {
    waiting: Vec<Waiting>,
    /// What is remembered of files.
    pub(super) kept: Vec<FileMark>,
}

impl Outputs {
    /// Those of the files that were found; `marks` is what was known of them.
    pub(super) fn new(session: i64, found: &Found, marks: &[FileMark]) -> Outputs {
        let mut all = Outputs { waiting: Vec::new(), kept: Vec::new() };
        let mut next = marks.iter().map(|m| m.number + 1).max().unwrap_or(0).max(OUTPUTS);
        let outputs = found.outputs.iter().map(|path| (path, true));
        for (path, is_output) in outputs.chain(found.orphans.iter().map(|path| (path, false))) {
            // It may be gone by now.
            let Ok(about) = path.symlink_metadata() else { continue };
            let (node, size, changed) = facts(&about);
            let name = path.to_string_lossy().into_owned();
            let known = marks.iter().find(|m| m.path == name && m.number >= OUTPUTS);
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
                let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                all.waiting.push(Waiting { path: path.clone(), own, named: false, mark });
            } else if same.is_none_or(|m| m.parser < PARSER)
                && (is_output || !may_be_named(path, changed))
            {
                all.kept.push(mark);
            }
            next += u32::from(known.is_none());
        }
        all
    }

    /// Sees which outputs some lines name.
    pub(super) fn look(&mut self, lines: &[u8]) {
        for waiting in self.waiting.iter_mut().filter(|w| !w.named) {
            waiting.named = memmem::find(lines, waiting.own.as_bytes()).is_some();
        }
    }

    /// Gives those that were named, or all. They are kept together with the records that name them.
    pub(super) fn give(&mut self, take: &mut Take, all: bool) -> io::Result<()> {
        for mut waiting in std::mem::take(&mut self.waiting) {
            if !waiting.named && !all {
                self.waiting.push(waiting);
                continue;
            }
            let Ok(mut file) = File::open(&waiting.path) else { continue };
            let mut bytes = Vec::new();
            (&file).take(MAX_OUTPUT).read_to_end(&mut bytes)?;
            if take.output(&waiting.own, &String::from_utf8_lossy(&bytes)) {
                waiting.mark.tail_at = TAKEN;
            } else if all {
                // It is offered again when there are new records.
                waiting.mark.tail_at += 1;
            } else {
                self.waiting.push(waiting);
                continue;
            }
            waiting.mark.head = head(&mut file)?;
            self.kept.push(waiting.mark);
        }
        Ok(())
    }
}

/// Whether a note that tells whose a subagent is may still come: it lies in its session's folder.
fn may_be_named(path: &Path, changed: i64) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("subagents")) && age(changed) <= STILL
}
