//! Where Claude Code keeps its sessions: `projects/<folder>/<session>.jsonl` below its own folder,
//! with what belongs to a session in a folder of the same name.

use super::claude::{self, cwd, has_ending, is_agent, name, session, stem};
use super::{Agent, Found, Lying, SourceOptions};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Days after which it deletes a session, if its settings say nothing else.
const KEEPS_DAYS: u32 = 30;

/// The folders of Claude Code.
#[derive(Debug)]
pub(super) struct ClaudeHome {
    folders: Vec<PathBuf>,
}

impl ClaudeHome {
    pub(super) fn new(options: &SourceOptions) -> Self {
        if !options.claude_dirs.is_empty() {
            return ClaudeHome { folders: options.claude_dirs.clone() };
        }
        let home = options.home.iter();
        let folders = home.flat_map(|h| [h.join(".claude"), h.join(".config/claude")]).collect();
        ClaudeHome { folders }
    }
}

impl Agent for ClaudeHome {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn places(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("projects")).collect()
    }

    fn list(&self, place: &Path, refused: &mut Vec<(PathBuf, String)>) -> io::Result<Vec<Lying>> {
        let mut all = Vec::new();
        for project in fs::read_dir(place)? {
            let Ok(project) = project.map(|entry| entry.path()) else { continue };
            // A folder that cannot be read, or is gone by now, hides no other.
            let Some(entries) = entries(&project, refused) else { continue };
            for entry in entries {
                let path = entry.path();
                if has_ending(&path, "jsonl") {
                    match self.session_of(place, &path) {
                        Some(main) => add(&path, main, &mut all, refused),
                        // A file of a subagent that does not say whose it is.
                        None => note(&path, fs::symlink_metadata(&path).map(drop), refused),
                    }
                } else if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    beside(&path, &mut all, refused);
                }
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
            // Older versions put the files of subagents beside the session's: they tell whose.
            let id = session(path).ok().flatten()?;
            return Some(folder.join(format!("{id}.jsonl")));
        }
        let own = parts.get(1)?.as_os_str().to_str()?;
        Some(folder.join(format!("{own}.jsonl")))
    }

    fn files(&self, main: &Path) -> io::Result<Found> {
        claude::kept(main)
    }

    fn cwd(&self, main: &Path) -> Option<String> {
        cwd(main).ok().flatten()
    }

    fn keeps_days(&self) -> Option<u32> {
        let days = self.folders.iter().filter_map(|folder| {
            let settings = fs::read(folder.join("settings.json")).ok()?;
            let settings: serde_json::Value = serde_json::from_slice(&settings).ok()?;
            settings["cleanupPeriodDays"].as_u64()
        });
        let days = days.min().unwrap_or(u64::from(KEEPS_DAYS));
        u32::try_from(days).ok()
    }
}

/// What is in a folder; none where nothing is, or nobody may look.
fn entries(folder: &Path, refused: &mut Vec<(PathBuf, String)>) -> Option<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => Some(entries.flatten().collect()),
        Err(error) => {
            note(folder, Err(error), refused);
            None
        }
    }
}

fn add(path: &Path, main: PathBuf, all: &mut Vec<Lying>, refused: &mut Vec<(PathBuf, String)>) {
    match Lying::at(path.to_owned(), main) {
        Ok(found) => all.extend(found),
        Err(error) => note(path, Err(error), refused),
    }
}

/// Remembers what could not be looked at, unless it is not there or no folder.
fn note(path: &Path, looked: io::Result<()>, refused: &mut Vec<(PathBuf, String)>) {
    use io::ErrorKind::{NotADirectory, NotFound};
    if let Err(error) = looked
        && !matches!(error.kind(), NotFound | NotADirectory)
    {
        // Of a folder in which nothing can be looked at, one file is enough.
        let said = |(known, _): &(PathBuf, String)| known.parent() == path.parent();
        if path.extension().is_none() || !refused.iter().any(said) {
            refused.push((path.to_owned(), error.to_string()));
        }
    }
}

/// Files of subagents and of long outputs, in the folder of a session.
fn beside(folder: &Path, all: &mut Vec<Lying>, refused: &mut Vec<(PathBuf, String)>) {
    let main = folder.with_file_name(format!("{}.jsonl", name(folder)));
    for part in ["subagents", "tool-results"] {
        for entry in entries(&folder.join(part), refused).into_iter().flatten() {
            let path = entry.path();
            if part == "tool-results" || (is_agent(&path) && !stem(&path).is_empty()) {
                add(&path, main.clone(), all, refused);
            }
        }
    }
}
