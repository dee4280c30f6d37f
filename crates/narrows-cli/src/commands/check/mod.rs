//! `narrows check`: the parser against recorded sessions.

mod drift;
mod parity;

use crate::args::{CheckArgs, CheckCommand};
use crate::error::CliError;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns whether the check passed.
pub(crate) fn run(args: &CheckArgs) -> Result<bool, CliError> {
    match &args.command {
        CheckCommand::Parity(args) => parity::run(args),
        CheckCommand::Drift(args) => drift::run(args),
    }
}

/// Collects each named file, and all .jsonl files in each named directory. Does not follow symbolic
/// links.
pub(super) fn collect_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files).map_err(CliError::cannot(format!("read {}", path.display())))?;
    }
    Ok(files)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let file_type = entry.file_type()?;
        let path = entry.path();
        if file_type.is_dir() {
            collect(&path, files)?;
        } else if file_type.is_file() && path.extension().is_some_and(|e| e == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}
