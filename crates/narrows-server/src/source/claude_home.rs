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

    fn list(&self, place: &Path) -> io::Result<Vec<Lying>> {
        let mut all = Vec::new();
        for project in fs::read_dir(place)?.flatten() {
            // A folder that cannot be read, or is gone by now, hides no other.
            let Ok(entries) = fs::read_dir(project.path()) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                if has_ending(&path, "jsonl") {
                    if let Some(main) = self.session_of(place, &path) {
                        all.extend(Lying::at(path, main));
                    }
                } else if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    beside(&path, &mut all);
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

/// Files of subagents and of long outputs, in the folder of a session.
fn beside(folder: &Path, all: &mut Vec<Lying>) {
    let main = folder.with_file_name(format!("{}.jsonl", name(folder)));
    for part in ["subagents", "tool-results"] {
        for entry in fs::read_dir(folder.join(part)).into_iter().flatten().flatten() {
            let path = entry.path();
            if part == "tool-results" || (is_agent(&path) && !stem(&path).is_empty()) {
                all.extend(Lying::at(path, main.clone()));
            }
        }
    }
}
