//! `narrows export`: writes a session to a file.

use super::show::open_session;
use crate::args::{ExportArgs, OutputFormat};
use crate::error::CliError;
use crate::local_store::LocalStore;
use narrows_render::{Style, words};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ExportArgs) -> Result<(), CliError> {
    if args.output.as_os_str() == "-" {
        return print(args);
    }
    let format = args.format.or_else(|| format_of(&args.output)).ok_or_else(|| {
        CliError::new(format!("cannot infer the format from `{}`", args.output.display()))
            .hint("use --format, or one of .md, .html, .json, .jsonl, .txt")
    })?;
    let name = args.output.display().to_string();
    // Checked before the session is read; a file created meanwhile is detected at the end.
    if !args.force && fs::symlink_metadata(&args.output).is_ok() {
        return Err(file_exists(&name));
    }
    let local = LocalStore::open(&args.local)?;
    let row = local.resolve_session(&args.session)?;
    let session = open_session(&local, row)?;
    let mut partial = PartialFile::create(&args.output)?;
    let written = session.write(&mut partial.file, format.into(), &Style::of_file());
    written.map_err(CliError::cannot(format!("write {name}")))?;
    let bytes = partial.publish(&args.output, args.force)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{name}  {}", words::bytes(bytes)).map_err(CliError::stdout)
}

/// Writes to standard output, which gets nothing but the session.
fn print(args: &ExportArgs) -> Result<(), CliError> {
    let format = args.format.unwrap_or(OutputFormat::Md);
    let local = LocalStore::open(&args.local)?;
    let row = local.resolve_session(&args.session)?;
    let session = open_session(&local, row)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let written = session.write(&mut out, format.into(), &Style::of_file());
    written.and_then(|()| out.flush()).map_err(CliError::stdout)
}

fn file_exists(name: &str) -> CliError {
    CliError::new(format!("cannot write {name}: the file exists"))
        .hint("use --force to overwrite it")
}

/// The format of a file extension.
fn format_of(file: &Path) -> Option<OutputFormat> {
    Some(match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "md" | "markdown" => OutputFormat::Md,
        "html" | "htm" => OutputFormat::Html,
        "json" => OutputFormat::Json,
        "jsonl" | "ndjson" => OutputFormat::Jsonl,
        "txt" | "text" => OutputFormat::Text,
        _ => return None,
    })
}

/// A temporary file that gets its name when it is complete, and is removed otherwise.
struct PartialFile {
    file: BufWriter<File>,
    path: PathBuf,
}

impl PartialFile {
    fn create(file: &Path) -> Result<PartialFile, CliError> {
        let cannot_write = || CliError::cannot(format!("write {}", file.display()));
        let name = file
            .file_name()
            .ok_or_else(|| CliError::new(format!("invalid file name `{}`", file.display())))?;
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.part", std::process::id()));
        let path = file.with_file_name(partial);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(cannot_write())?;
        Ok(PartialFile { file: BufWriter::with_capacity(64 << 10, file), path })
    }

    /// Gives the file its name; returns its size in bytes.
    fn publish(mut self, name: &Path, force: bool) -> Result<u64, CliError> {
        let cannot_write = || CliError::cannot(format!("write {}", name.display()));
        self.file.flush().map_err(cannot_write())?;
        let file = self.file.get_ref();
        file.sync_all().map_err(cannot_write())?;
        let bytes = file.metadata().map_err(cannot_write())?.len();
        if force {
            fs::rename(&self.path, name).map_err(cannot_write())?;
        } else {
            // Unlike a rename, a link fails if the name is taken.
            match fs::hard_link(&self.path, name) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(file_exists(&name.display().to_string()));
                }
                // Not every file system supports links.
                Err(_) => fs::rename(&self.path, name).map_err(cannot_write())?,
            }
        }
        Ok(bytes)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_inferred_from_extension() {
        let format = |name: &str| format_of(Path::new(name));
        assert_eq!(format("a.md"), Some(OutputFormat::Md));
        assert_eq!(format("a.b.HTML"), Some(OutputFormat::Html));
        assert_eq!(format("a.jsonl"), Some(OutputFormat::Jsonl));
        assert_eq!(format("a.txt"), Some(OutputFormat::Text));
        assert_eq!(format("a"), None);
        assert_eq!(format("a.pdf"), None);
    }

    #[test]
    fn partial_file_is_published_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("a.md");
        let list = || fs::read_dir(dir.path()).unwrap().count();
        drop(PartialFile::create(&name).unwrap());
        assert_eq!(list(), 0);
        let mut partial = PartialFile::create(&name).unwrap();
        partial.file.write_all(b"one").unwrap();
        assert_eq!(partial.publish(&name, false).unwrap(), 3);
        assert_eq!((list(), fs::read(&name).unwrap()), (1, b"one".to_vec()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&name).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(PartialFile::create(&name).unwrap().publish(&name, false).is_err());
        assert_eq!((list(), fs::read(&name).unwrap()), (1, b"one".to_vec()));
        let mut partial = PartialFile::create(&name).unwrap();
        partial.file.write_all(b"other").unwrap();
        assert_eq!(partial.publish(&name, true).unwrap(), 5);
        assert_eq!((list(), fs::read(&name).unwrap()), (1, b"other".to_vec()));
    }
}
