//! The file of the service: whose it is, writing it, removing it.

use super::MARK;
use crate::Fault;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// What is where the file belongs.
#[derive(Debug)]
pub(super) enum Present {
    Nothing,
    /// With this text.
    Ours(String),
    Foreign,
}

pub(super) fn present(file: &Path) -> Result<Present, Fault> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        // A link to nowhere is something that somebody put there.
        Err(e) if e.kind() == ErrorKind::NotFound && file.symlink_metadata().is_err() => {
            return Ok(Present::Nothing);
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Present::Foreign),
        Err(e) => return Err(Fault::new(file.display().to_string())(e)),
    };
    Ok(match String::from_utf8(bytes) {
        Ok(text) if is_ours(&text) => Present::Ours(text),
        _ => Present::Foreign,
    })
}

fn is_ours(text: &str) -> bool {
    // XML has its declaration before the first comment.
    let first = text.lines().find(|line| !line.starts_with("<?xml")).unwrap_or_default();
    let comment = first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- "));
    comment.is_some_and(|said| said.starts_with(MARK))
}

/// Writes it whole or not at all.
pub(super) fn write(file: &Path, text: &str) -> Result<(), Fault> {
    let what = || Fault::new(file.display().to_string());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(Fault::new(folder.display().to_string()))?;
    }
    // A name that no service manager reads.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let new = file.with_file_name(format!(".{name}.new"));
    fs::write(&new, text).and_then(|()| fs::rename(&new, file)).map_err(what())
}

/// Removes it; that it is gone already is fine.
pub(super) fn remove(file: &Path) -> Result<(), Fault> {
    match fs::remove_file(file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Fault::new(file.display().to_string())(e)),
        _ => Ok(()),
    }
}
