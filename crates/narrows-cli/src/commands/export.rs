//! `narrows export`.

use crate::args::{ExportArgs, ShowFormat};
use crate::library::Library;
use crate::show::session;
use crate::{Fault, fault};
use narrows_show::{Style, words};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ExportArgs) -> Result<(), Fault> {
    if args.output.as_os_str() == "-" {
        return print(args);
    }
    let form = args.format.or_else(|| form_of(&args.output)).ok_or_else(|| {
        fault(format!(
            "the ending of `{}` tells no form: use .md, .html, .json, .jsonl or .txt, or --format",
            args.output.display()
        ))
    })?;
    let name = args.output.display().to_string();
    // Told before anything is read; a file that comes meanwhile is noticed at the end.
    if !args.force && fs::symlink_metadata(&args.output).is_ok() {
        return Err(there_already(&name));
    }
    let library = Library::open(&args.library)?;
    let row = library.session(&args.session)?;
    let session = session(&library, row)?;
    let mut draft = Draft::beside(&args.output)?;
    let written = session.write(&mut draft.file, form.into(), &Style::of_file());
    written.map_err(Fault::new(name.as_str()))?;
    let bytes = draft.keep(&args.output, args.force)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{name}  {}", words::bytes(bytes)).map_err(Fault::new("standard output"))
}

/// Writes to standard output, and nothing else there.
fn print(args: &ExportArgs) -> Result<(), Fault> {
    let form = args.format.unwrap_or(ShowFormat::Md);
    let library = Library::open(&args.library)?;
    let row = library.session(&args.session)?;
    let session = session(&library, row)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let written = session.write(&mut out, form.into(), &Style::of_file());
    written.and_then(|()| out.flush()).map_err(Fault::new("standard output"))
}

fn there_already(name: &str) -> Fault {
    fault(format!("`{name}` is there already: --force writes over it"))
}

/// The form that a file's ending tells.
fn form_of(file: &Path) -> Option<ShowFormat> {
    Some(match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "md" | "markdown" => ShowFormat::Md,
        "html" | "htm" => ShowFormat::Html,
        "json" => ShowFormat::Json,
        "jsonl" | "ndjson" => ShowFormat::Jsonl,
        "txt" | "text" => ShowFormat::Text,
        _ => return None,
    })
}

/// A file that has its name only when it is complete. It is removed if it is not kept.
struct Draft {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Draft {
    fn beside(file: &Path) -> Result<Draft, Fault> {
        let name = file
            .file_name()
            .ok_or_else(|| fault(format!("`{}` is no name of a file", file.display())))?;
        let mut draft = std::ffi::OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.part", std::process::id()));
        let path = file.with_file_name(draft);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(Fault::new(file.display().to_string()))?;
        Ok(Draft { file: BufWriter::with_capacity(64 << 10, file), path })
    }

    /// Gives the file its name; tells its length.
    fn keep(mut self, name: &Path, force: bool) -> Result<u64, Fault> {
        let failed = || Fault::new(name.display().to_string());
        self.file.flush().map_err(failed())?;
        let file = self.file.get_ref();
        file.sync_all().map_err(failed())?;
        let bytes = file.metadata().map_err(failed())?.len();
        if force {
            fs::rename(&self.path, name).map_err(failed())?;
        } else {
            // A link is refused where a name is taken, a renaming is not.
            match fs::hard_link(&self.path, name) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(there_already(&name.display().to_string()));
                }
                // Not every file system has links.
                Err(_) => fs::rename(&self.path, name).map_err(failed())?,
            }
        }
        Ok(bytes)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_forms() {
        let form = |name: &str| form_of(Path::new(name));
        assert_eq!(form("a.md"), Some(ShowFormat::Md));
        assert_eq!(form("a.b.HTML"), Some(ShowFormat::Html));
        assert_eq!(form("a.jsonl"), Some(ShowFormat::Jsonl));
        assert_eq!(form("a.txt"), Some(ShowFormat::Text));
        assert_eq!(form("a"), None);
        assert_eq!(form("a.pdf"), None);
    }

    #[test]
    fn a_draft_becomes_a_file_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("a.md");
        let list = || fs::read_dir(dir.path()).unwrap().count();
        drop(Draft::beside(&name).unwrap());
        assert_eq!(list(), 0);
        let mut draft = Draft::beside(&name).unwrap();
        draft.file.write_all(b"one").unwrap();
        assert_eq!(draft.keep(&name, false).unwrap(), 3);
        assert_eq!((list(), fs::read(&name).unwrap()), (1, b"one".to_vec()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&name).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(Draft::beside(&name).unwrap().keep(&name, false).is_err());
        assert_eq!((list(), fs::read(&name).unwrap()), (1, b"one".to_vec()));
        let mut draft = Draft::beside(&name).unwrap();
        draft.file.write_all(b"other").unwrap();
        assert_eq!(draft.keep(&name, true).unwrap(), 5);
        assert_eq!((list(), fs::read(&name).unwrap()), (1, b"other".to_vec()));
    }
}
