//! `narrows drift`: what an agent writes that the parser has not been taught.

use crate::args::DriftArgs;
use crate::{Fault, NOT_UNDERSTOOD, fault};
use narrows::drift::Drift;
use narrows::{Given, Packets};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// Tells whether everything is known, or nobody asked for a check.
pub(crate) fn run(args: &DriftArgs) -> Result<bool, Fault> {
    let mut files = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        collect(path, &mut files).map_err(Fault::new(name))?;
    }
    let mut drift = Drift::new();
    let terminal = io::stderr().is_terminal();
    for (i, file) in files.iter().enumerate() {
        if terminal && i % 50 == 0 && files.len() > 50 {
            let _ = write!(io::stderr(), "\r{i} of {} files", files.len());
        }
        look(file, &mut drift).map_err(Fault::new(file.display().to_string()))?;
    }
    if terminal && files.len() > 50 {
        let _ = write!(io::stderr(), "\r\u{1b}[K");
    }
    report(&drift, files.len()).map_err(Fault::new("standard output"))?;
    match drift.counts() {
        (0, _) => {
            let what = "nothing in it was understood: it holds no packets of a known agent";
            Err(Fault { code: NOT_UNDERSTOOD, ..fault(what) })
        }
        (_, unread) => Ok(!args.check || (unread == 0 && drift.unknown().next().is_none())),
    }
}

/// Every file of packets at or below a path. Links are not followed.
pub(crate) fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|e| e == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

fn look(file: &Path, drift: &mut Drift) -> io::Result<()> {
    drift.file();
    let mut input = File::open(file)?;
    let mut packets = Packets::default();
    let mut chunk = vec![0; 1 << 20];
    let mut push = |given: Given<'_>| {
        if let Given::Packet(packet) = given {
            drift.push(packet.bytes);
        }
    };
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => packets.push(&chunk[..n], &mut push),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    packets.finish(&mut push);
    Ok(())
}

fn report(drift: &Drift, files: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (read, unread) = drift.counts();
    let s = |n: u64| if n == 1 { "" } else { "s" };
    write!(out, "{read} packet{} in {files} file{}", s(read), s(files as u64))?;
    if unread > 0 {
        write!(out, ", {unread} line{} that cannot be read", s(unread))?;
    }
    writeln!(out)?;
    let mut version = None;
    for unknown in drift.unknown() {
        if version != Some(unknown.version) {
            version = Some(unknown.version);
            let name = if unknown.version.is_empty() { "not told" } else { unknown.version };
            writeln!(out, "\nversion {name}")?;
        }
        writeln!(out, "{:>8}  {}", unknown.count, unknown.name)?;
    }
    match (version, unread) {
        (None, 0) if read > 0 => writeln!(out, "everything in them is known")?,
        (None, _) if read > 0 => writeln!(out, "everything that could be read is known")?,
        _ => {}
    }
    Ok(())
}
