//! `narrows sanitize`: redacts text.

use crate::args::SanitizeArgs;
use crate::config::RedactionSettings;
use crate::error::CliError;
use crate::input::open_input;
use narrows::lines::Line;
use narrows::sanitize::{Removed, TextStream};
use narrows::{Lines, TextCleaner};
use std::io::{self, Read, Write};

pub(crate) fn run(args: &SanitizeArgs) -> Result<(), CliError> {
    let settings = RedactionSettings::load(&args.redaction)?;
    let (input, name) = open_input(args.file.as_deref())?;
    let mut out = io::stdout().lock();
    let removed = match (args.path, args.report) {
        (true, true) => redact_paths(settings, input, &name, &mut io::sink()),
        (true, false) => redact_paths(settings, input, &name, &mut out),
        (false, true) => redact_text(settings, input, &name, &mut io::sink()),
        (false, false) => redact_text(settings, input, &name, &mut out),
    }?;
    if args.report { report(&removed, &mut out).map_err(CliError::stdout) } else { Ok(()) }
}

fn redact_text(
    settings: RedactionSettings,
    input: Box<dyn Read>,
    name: &str,
    out: &mut impl Write,
) -> Result<Removed, CliError> {
    let mut stream = TextStream::new(settings.paths, settings.secrets);
    read(input, name, |bytes| {
        out.write_all(stream.push(bytes).as_bytes()).and_then(|()| out.flush())
    })?;
    let written = out.write_all(stream.finish().as_bytes());
    written.and_then(|()| out.flush()).map_err(CliError::stdout)?;
    Ok(stream.removed().clone())
}

/// Redacts each line as one path.
fn redact_paths(
    settings: RedactionSettings,
    input: Box<dyn Read>,
    name: &str,
    out: &mut impl Write,
) -> Result<Removed, CliError> {
    let mut cleaner = TextCleaner::new(settings.paths, settings.secrets);
    let mut lines = Lines::default();
    let mut ready = String::new();
    let mut clean = |line: Line<'_>, ready: &mut String| {
        ready.push_str(&cleaner.field(&String::from_utf8_lossy(line.bytes)));
        ready.push('\n');
    };
    read(input, name, |bytes| {
        lines.push(bytes, |line| clean(line, &mut ready));
        out.write_all(std::mem::take(&mut ready).as_bytes()).and_then(|()| out.flush())
    })?;
    lines.finish(|line| clean(line, &mut ready));
    let written = out.write_all(ready.as_bytes()).and_then(|()| out.flush());
    written.map_err(CliError::stdout)?;
    Ok(cleaner.removed().clone())
}

/// Prints kinds and counts.
fn report(removed: &Removed, out: &mut impl Write) -> io::Result<()> {
    if removed.is_empty() {
        return writeln!(out, "nothing to redact");
    }
    let width = removed.kinds().map(|(kind, _)| kind.len()).max().unwrap_or(0);
    for (kind, count) in removed.kinds() {
        writeln!(out, "{kind:<width$}  {count:>8}")?;
    }
    let total: u64 = removed.kinds().map(|(_, count)| count).sum();
    writeln!(out, "{:<width$}  {total:>8}", "total")
}

/// Hands the input to `on_chunk`, whose errors are those of the output.
fn read(
    mut input: Box<dyn Read>,
    name: &str,
    mut on_chunk: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), CliError> {
    let mut chunk = vec![0; 64 << 10];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => on_chunk(&chunk[..n]).map_err(CliError::stdout)?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(CliError::cannot(format!("read {name}"))(e)),
        }
    }
}
