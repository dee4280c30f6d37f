//! A session to look at before there is one of your own: the files of `sample/`, in the program.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The session's own file is the first; the others lie beside it as the agent keeps them.
const FILES: &[(&str, &str)] = &[
    (
        "5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19.jsonl",
        include_str!("../sample/5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19.jsonl"),
    ),
    (
        "5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.jsonl",
        include_str!(
            "../sample/5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.jsonl"
        ),
    ),
    (
        "5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.meta.json",
        include_str!(
            "../sample/5a7d1e0c-3b52-4c8e-9f41-0e2d6c7b8a19/subagents/agent-a3f9c2d17be04586e.meta.json"
        ),
    ),
];

/// Where each file belongs, and what is in it.
pub(crate) fn files() -> &'static [(&'static str, &'static str)] {
    FILES
}

/// Writes the session below a folder; gives its main file, which may be read like any other.
pub(crate) fn write_to(dir: &Path) -> io::Result<PathBuf> {
    for (name, text) in files() {
        let file = dir.join(name);
        if let Some(folder) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
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
    fn it_is_laid_out_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("new/sample");
        let main = write_to(&dir).unwrap();
        // Again is fine.
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
    fn it_holds_one_secret_and_that_is_an_example() {
        let all: String = files().iter().map(|(_, text)| *text).collect();
        // Once for the model and once for the program, as the agent keeps every result.
        assert_eq!(all.matches("AKIAIOSFODNN7EXAMPLE").count(), 2);
        assert_eq!(all.matches("AKIA").count(), 2);
    }
}
