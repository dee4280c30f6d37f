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

    /// What was kept of a session, if it is there.
    pub fn kept(&self, session: &str) -> Option<Vec<Value>> {
        let text = std::fs::read_to_string(self.file(session)?).ok()?;
        Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}
