//! `narrows sanitize`: text in, clean text out.

use crate::Fault;
use crate::args::SanitizeArgs;
use narrows::lines::Line;
use narrows::sanitize::TextStream;
use narrows::{Lines, Paths};
use std::io::{self, Read, Write};

pub(crate) fn run(args: &SanitizeArgs) -> Result<(), Fault> {
    let mut paths = Paths::new();
    if let Some(root) = &args.root {
        paths.add_root(root);
    }
    if args.path { fields(&paths) } else { text(paths) }
}

fn text(paths: Paths) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    let mut stream = TextStream::new(paths);
    read(|bytes| out.write_all(stream.push(bytes).as_bytes()).and_then(|()| out.flush()))?;
    let last = out.write_all(stream.finish().as_bytes());
    last.and_then(|()| out.flush()).map_err(Fault::new("standard output"))
}

fn fields(paths: &Paths) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    let mut lines = Lines::default();
    let mut ready = String::new();
    let clean = |line: Line<'_>, ready: &mut String| {
        ready.push_str(&paths.field(&String::from_utf8_lossy(line.bytes)));
        ready.push('\n');
    };
    read(|bytes| {
        lines.push(bytes, |line| clean(line, &mut ready));
        out.write_all(std::mem::take(&mut ready).as_bytes()).and_then(|()| out.flush())
    })?;
    lines.finish(|line| clean(line, &mut ready));
    out.write_all(ready.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Fault::new("standard output"))
}

/// Reads standard input to its end, or until the output takes no more.
fn read(mut take: impl FnMut(&[u8]) -> io::Result<()>) -> Result<(), Fault> {
    let mut input = io::stdin().lock();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => take(&chunk[..n]).map_err(Fault::new("standard output"))?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Fault::new("standard input")(e)),
        }
    }
}
