//! `narrows sanitize`: text in, clean text out.

use crate::args::SanitizeArgs;
use crate::hide::Hidden;
use crate::{Fault, open};
use narrows::lines::Line;
use narrows::sanitize::{Removed, TextStream};
use narrows::{Lines, TextCleaner};
use std::io::{self, Read, Write};

pub(crate) fn run(args: &SanitizeArgs) -> Result<(), Fault> {
    let hidden = Hidden::read(&args.hide)?;
    let (input, name) = open(args.file.as_deref())?;
    let mut out = io::stdout().lock();
    let removed = match (args.path, args.report) {
        (true, true) => fields(hidden, input, &name, &mut io::sink()),
        (true, false) => fields(hidden, input, &name, &mut out),
        (false, true) => text(hidden, input, &name, &mut io::sink()),
        (false, false) => text(hidden, input, &name, &mut out),
    }?;
    if args.report {
        report(&removed, &mut out).map_err(Fault::new("standard output"))
    } else {
        Ok(())
    }
}

fn text(
    hidden: Hidden,
    input: Box<dyn Read>,
    name: &str,
    out: &mut impl Write,
) -> Result<Removed, Fault> {
    let mut stream = TextStream::new(hidden.paths, hidden.secrets);
    read(input, name, |bytes| {
        out.write_all(stream.push(bytes).as_bytes()).and_then(|()| out.flush())
    })?;
    let last = out.write_all(stream.finish().as_bytes());
    last.and_then(|()| out.flush()).map_err(Fault::new("standard output"))?;
    Ok(stream.removed().clone())
}

fn fields(
    hidden: Hidden,
    input: Box<dyn Read>,
    name: &str,
    out: &mut impl Write,
) -> Result<Removed, Fault> {
    let mut cleaner = TextCleaner::new(hidden.paths, hidden.secrets);
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
    let last = out.write_all(ready.as_bytes()).and_then(|()| out.flush());
    last.map_err(Fault::new("standard output"))?;
    Ok(cleaner.removed().clone())
}

/// Kinds and counts, as a table.
fn report(removed: &Removed, out: &mut impl Write) -> io::Result<()> {
    if removed.is_empty() {
        return writeln!(out, "nothing to remove");
    }
    let width = removed.kinds().map(|(kind, _)| kind.len()).max().unwrap_or(0);
    for (kind, count) in removed.kinds() {
        writeln!(out, "{kind:<width$}  {count:>8}")?;
    }
    let total: u64 = removed.kinds().map(|(_, count)| count).sum();
    writeln!(out, "{:<width$}  {total:>8}", "total")
}

/// Reads the input to its end, or until the output takes no more.
fn read(
    mut input: Box<dyn Read>,
    name: &str,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Fault> {
    let mut chunk = vec![0; 64 << 10];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => take(&chunk[..n]).map_err(Fault::new("standard output"))?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Fault::new(name)(e)),
        }
    }
}
