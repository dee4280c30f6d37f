//! Claude Code's session store: `projects/<directory>/<session>.jsonl` below its own directory, with
//! further files of a session in a directory of the same name.

use super::files::{self, has_ending, is_agent, name, session_id, stem, working_dir};
use crate::discovery::{SessionFile, SessionFiles, SessionSource, SourceOptions};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Days until it deletes a session, unless its settings say otherwise.
const DEFAULT_RETENTION_DAYS: u32 = 30;

/// The directories of Claude Code.
#[derive(Debug)]
pub(in crate::discovery) struct ClaudeHome {
    folders: Vec<PathBuf>,
}

impl ClaudeHome {
    pub(in crate::discovery) fn new(options: &SourceOptions) -> Self {
        if !options.claude_dirs.is_empty() {
            return ClaudeHome { folders: options.claude_dirs.clone() };
        }
        let home = options.home.iter();
        let folders = home.flat_map(|h| [h.join(".claude"), h.join(".config/claude")]).collect();
        ClaudeHome { folders }
    }
}

impl SessionSource for ClaudeHome {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn places(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("projects")).collect()
    }

    fn list(
        &self,
        place: &Path,
        unreadable: &mut Vec<(PathBuf, String)>,
    ) -> io::Result<Vec<SessionFile>> {
        let mut all = Vec::new();
        for project in fs::read_dir(place)? {
            let Ok(project) = project.map(|entry| entry.path()) else { continue };
            // A directory that is unreadable or gone must not hide others.
            let Some(entries) = entries(&project, unreadable) else { continue };
            for entry in entries {
                let path = entry.path();
                if has_ending(&path, "jsonl") {
                    match self.session_of(place, &path) {
                        Some(main) => add(&path, main, &mut all, unreadable),
                        // A subagent's file that does not name its session.
                        None => {
                            note_error(&path, fs::symlink_metadata(&path).map(drop), unreadable)
                        }
                    }
                } else if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    add_session_dir(&path, &mut all, unreadable);
                }
            }
        }
        // A subagent's file of a session without a main file may be a session of its own.
        let mains: HashSet<PathBuf> =
            all.iter().filter(|f| f.path == f.main).map(|f| f.path.clone()).collect();
        for file in all.iter_mut().filter(|f| is_agent(&f.path) && !mains.contains(&f.main)) {
            if file.path.parent() == file.main.parent() && files::is_alone(&file.path) {
                file.main.clone_from(&file.path);
            }
        }
        Ok(all)
    }

    fn session_of(&self, place: &Path, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(place).ok()?;
        let parts: Vec<_> = below.components().collect();
        let folder = place.join(parts.first()?);
        if let [_, _] = parts.as_slice() {
            if !has_ending(path, "jsonl") {
                return None;
            }
            if !is_agent(path) {
                return Some(path.to_owned());
            }
            // Older versions store subagents next to the session; the records name the session.
            let id = session_id(path).ok().flatten()?;
            return Some(folder.join(format!("{id}.jsonl")));
        }
        let own = parts.get(1)?.as_os_str().to_str()?;
        Some(folder.join(format!("{own}.jsonl")))
    }

    fn files(&self, main: &Path) -> io::Result<SessionFiles> {
        files::session_files(main)
    }

    fn cwd(&self, main: &Path) -> Option<String> {
        working_dir(main).ok().flatten()
    }

    fn keeps_days(&self) -> Option<u32> {
        let days = self.folders.iter().filter_map(|folder| {
            let settings = fs::read(folder.join("settings.json")).ok()?;
            let settings: serde_json::Value = serde_json::from_slice(&settings).ok()?;
            settings["cleanupPeriodDays"].as_u64()
        });
        let days = days.min().unwrap_or(u64::from(DEFAULT_RETENTION_DAYS));
        u32::try_from(days).ok()
    }
}

/// The entries of a directory; `None` if it is missing or unreadable.
fn entries(folder: &Path, unreadable: &mut Vec<(PathBuf, String)>) -> Option<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => Some(entries.flatten().collect()),
        Err(error) => {
            note_error(folder, Err(error), unreadable);
            None
        }
    }
}

fn add(
    path: &Path,
    main: PathBuf,
    all: &mut Vec<SessionFile>,
    unreadable: &mut Vec<(PathBuf, String)>,
) {
    match SessionFile::at(path.to_owned(), main) {
        Ok(found) => all.extend(found),
        Err(error) => note_error(path, Err(error), unreadable),
    }
}

/// Notes a path that could not be read, unless it is missing or no directory.
fn note_error(path: &Path, result: io::Result<()>, unreadable: &mut Vec<(PathBuf, String)>) {
    use io::ErrorKind::{NotADirectory, NotFound};
    if let Err(error) = result
        && !matches!(error.kind(), NotFound | NotADirectory)
    {
        // One file is enough for a directory in which no file is readable.
        let is_sibling_noted = |(known, _): &(PathBuf, String)| known.parent() == path.parent();
        if path.extension().is_none() || !unreadable.iter().any(is_sibling_noted) {
            unreadable.push((path.to_owned(), error.to_string()));
        }
    }
}

/// Adds subagents and offloaded outputs in the directory of a session.
fn add_session_dir(
    folder: &Path,
    all: &mut Vec<SessionFile>,
    unreadable: &mut Vec<(PathBuf, String)>,
) {
    let main = folder.with_file_name(format!("{}.jsonl", name(folder)));
    for part in ["subagents", "tool-results"] {
        for entry in entries(&folder.join(part), unreadable).into_iter().flatten() {
            let path = entry.path();
            if part == "tool-results" || (is_agent(&path) && !stem(&path).is_empty()) {
                add(&path, main.clone(), all, unreadable);
            }
        }
    }
}
