//! Sessions that outlive the process: one file each.

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct State(pub Option<PathBuf>);

impl State {
    fn file(&self, session: &str) -> Option<PathBuf> {
        // An id is never a path.
        let name: String =
            session.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        Some(self.0.as_ref()?.join(format!("{name}.jsonl")))
    }

    pub fn keep(&self, session: &str, record: &Value) {
        let Some(file) = self.file(session) else { return };
        if let Some(folder) = file.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
        if let Ok(mut opened) = opened {
            let _ = opened.write_all(format!("{record}\n").as_bytes());
        }
    }

    /// The sessions that are kept, by name.
    pub fn names(&self) -> Vec<String> {
        let folder = self.0.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        let files = folder.into_iter().flatten().flatten();
        let name = |file: std::fs::DirEntry| {
            file.file_name().to_str()?.strip_suffix(".jsonl").map(str::to_owned)
        };
        let mut names: Vec<String> = files.filter_map(name).collect();
        names.sort();
        names
    }

    /// Forgets a session; false when there is none.
    pub fn forget(&self, session: &str) -> bool {
        self.file(session).is_some_and(|file| std::fs::remove_file(file).is_ok())
    }

    /// What was kept of a session, if it is there.
    pub fn kept(&self, session: &str) -> Option<Vec<Value>> {
        let text = std::fs::read_to_string(self.file(session)?).ok()?;
        Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}
