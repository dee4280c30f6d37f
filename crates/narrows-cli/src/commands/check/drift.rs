//! `narrows check drift`: what an agent writes that the parser does not know.

use super::collect_files;
use crate::args::DriftArgs;
use crate::error::{CliError, ErrorKind};
use crate::input::probe_file;
use narrows::drift::Drift;
use narrows::{Format, Given, Packets};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

const READ_CHUNK_BYTES: usize = 1 << 20;
/// The progress line is updated after this many files, and omitted for fewer.
const PROGRESS_STEP_FILES: usize = 50;

/// Returns whether everything is known, or `--exit-code` is not given.
pub(super) fn run(args: &DriftArgs) -> Result<bool, CliError> {
    let files = collect_files(&args.files)?;
    let mut drift = Drift::new();
    let shows_progress = io::stderr().is_terminal() && files.len() > PROGRESS_STEP_FILES;
    for (i, file) in files.iter().enumerate() {
        if shows_progress && i % PROGRESS_STEP_FILES == 0 {
            let _ = write!(io::stderr(), "\r{i} of {} files", files.len());
        }
        read_file(file, &mut drift)
            .map_err(CliError::cannot(format!("read {}", file.display())))?;
    }
    if shows_progress {
        let _ = write!(io::stderr(), "\r\u{1b}[K");
    }
    report(&drift, files.len()).map_err(CliError::stdout)?;
    let (readable, unreadable) = drift.counts();
    if readable == 0 {
        return Err(CliError::new("cannot check for drift: no packet of a known agent")
            .kind(ErrorKind::UnrecognizedInput));
    }
    require_recognized(&files)?;
    Ok(!args.exit_code || (unreadable == 0 && drift.unknown().next().is_none()))
}

/// Fails if the other commands would read none of the files: unknown kinds matter only for a known agent.
fn require_recognized(files: &[PathBuf]) -> Result<(), CliError> {
    let mut first_error = None;
    for file in files {
        match probe_file(file, Format::Auto)?.check() {
            Ok(()) => return Ok(()),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map_or(Ok(()), Err)
}

fn read_file(file: &Path, drift: &mut Drift) -> io::Result<()> {
    drift.file();
    let mut input = File::open(file)?;
    let mut packets = Packets::default();
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    let mut push = |framed: Given<'_>| {
        if let Given::Packet(packet) = framed {
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
    let (packets, unreadable) = drift.counts();
    let s = |n: u64| if n == 1 { "" } else { "s" };
    write!(out, "{packets} packet{} in {files} file{}", s(packets), s(files as u64))?;
    if unreadable > 0 {
        write!(out, ", {unreadable} unreadable line{}", s(unreadable))?;
    }
    writeln!(out)?;
    let mut version = None;
    for unknown in drift.unknown() {
        if version != Some(unknown.version) {
            version = Some(unknown.version);
            let name = if unknown.version.is_empty() { "unknown" } else { unknown.version };
            writeln!(out, "\nversion {name}")?;
        }
        writeln!(out, "{:>8}  {}", unknown.count, unknown.name)?;
    }
    match (version, unreadable) {
        (None, 0) if packets > 0 => writeln!(out, "all kinds and fields are known")?,
        (None, _) if packets > 0 => writeln!(out, "all readable kinds and fields are known")?,
        _ => {}
    }
    Ok(())
}
