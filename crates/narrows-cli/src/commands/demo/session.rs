//! The sample session: the files of `demo/`, embedded in the program.
//!
//! Uses nothing else of the crate; an integration test includes this file.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The main file first, then the files of its subagent, in the layout of the agent.
const FILES: &[(&str, &str)] = &[
    (
        "5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19.jsonl",
        include_str!("../../../demo/5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19.jsonl"),
    ),
    (
        "5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.jsonl",
        include_str!(
            "../../../demo/5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.jsonl"
        ),
    ),
    (
        "5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.meta.json",
        include_str!(
            "../../../demo/5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.meta.json"
        ),
    ),
];

/// The relative path and content of each file.
pub(crate) fn files() -> &'static [(&'static str, &'static str)] {
    FILES
}

/// Writes the files into a directory, readable only by the owner. Returns the main file.
pub(crate) fn write_to(dir: &Path) -> io::Result<PathBuf> {
    for (name, text) in files() {
        let file = dir.join(name);
        if let Some(parent) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
        file.write_all(text.as_bytes())?;
    }
    Ok(dir.join(FILES[0].0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn write_to_creates_files_for_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("new/demo");
        let main = write_to(&dir).unwrap();
        // Writing again overwrites.
        assert_eq!(write_to(&dir).unwrap(), main);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(fs::read_to_string(&main).unwrap(), files()[0].1);
        for (name, text) in files() {
            let file = dir.join(name);
            assert_eq!(fs::read_to_string(&file).unwrap(), *text);
            assert_eq!(mode(&file), 0o600, "{name}");
            assert_eq!(mode(file.parent().unwrap()), 0o700, "{name}");
        }
    }

    #[test]
    fn files_contain_only_the_example_secret() {
        let all: String = files().iter().map(|(_, text)| *text).collect();
        // The agent stores every tool result twice: for the model and for programs.
        assert_eq!(all.matches("AKIAIOSFODNN7EXAMPLE").count(), 2);
        assert_eq!(all.matches("AKIA").count(), 2);
    }
}
