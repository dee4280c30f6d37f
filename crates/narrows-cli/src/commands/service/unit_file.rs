//! The unit file or plist on disk.

use super::UNIT_FILE_MARKER;
use crate::error::CliError;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// What is at the path of the unit file.
#[derive(Debug)]
pub(super) enum UnitFile {
    Missing,
    /// Written by narrows, with this text.
    Ours(String),
    Foreign,
}

pub(super) fn read(file: &Path) -> Result<UnitFile, CliError> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        // A dangling link is not missing: the user put it there.
        Err(e) if e.kind() == ErrorKind::NotFound && file.symlink_metadata().is_err() => {
            return Ok(UnitFile::Missing);
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(UnitFile::Foreign),
        Err(e) => return Err(CliError::cannot(format!("read {}", file.display()))(e)),
    };
    Ok(match String::from_utf8(bytes) {
        Ok(text) if is_ours(&text) => UnitFile::Ours(text),
        _ => UnitFile::Foreign,
    })
}

fn is_ours(text: &str) -> bool {
    // In XML, a declaration precedes the first comment.
    let first = text.lines().find(|line| !line.starts_with("<?xml")).unwrap_or_default();
    let comment = first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- "));
    comment.is_some_and(|text| text.starts_with(UNIT_FILE_MARKER))
}

/// Writes the file atomically.
pub(super) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).map_err(CliError::cannot(format!("create {}", dir.display())))?;
    }
    // Service managers ignore hidden files.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let new = file.with_file_name(format!(".{name}.new"));
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, file))
        .map_err(CliError::cannot(format!("write {}", file.display())))
}

/// Removes the file, if it exists.
pub(super) fn remove(file: &Path) -> Result<(), CliError> {
    match fs::remove_file(file) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(CliError::cannot(format!("remove {}", file.display()))(e))
        }
        _ => Ok(()),
    }
}
