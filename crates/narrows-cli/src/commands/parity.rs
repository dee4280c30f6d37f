//! `narrows parity`: whether two forms of one session give one transcript.

use crate::args::ParityArgs;
use crate::read::{self};
use crate::{Fault, fault, hide};
use narrows::parity::{Difference, Side, compare};
use narrows::{Config, Items};
use narrows_server::source::find;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Tells whether the two agree.
pub(crate) fn run(args: &ParityArgs) -> Result<bool, Fault> {
    let name = args.history.display().to_string();
    let session = find(&args.history).map_err(Fault::new(name))?.session;
    let live = items(args, &args.live, session)?;
    let history = items(args, &args.history, None)?;
    if live.iter().next().is_none() && history.iter().next().is_none() {
        return Err(fault("there is nothing to compare: neither of the two has an item"));
    }
    let found = compare(&live, &history);
    report(&found, live.iter().count(), history.iter().count())
        .map_err(Fault::new("standard output"))
}

fn items(args: &ParityArgs, file: &Path, only: Option<String>) -> Result<Items, Fault> {
    let hidden = hide::Hidden::read(&args.hide)?;
    let (paths, secrets) = (hidden.paths, Arc::new(hidden.secrets));
    let config = Config { paths, secrets, only, join: true, ..Config::default() };
    let mut items = Items::new();
    let outcome = read::session(Some(file), config, |steps, _, _| {
        for change in steps.drain(..).flat_map(|step| step.changes) {
            items.apply(change);
        }
        Ok(())
    })?;
    outcome.check()?;
    items.settle();
    Ok(items)
}

fn report(found: &[Difference], live: usize, history: usize) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let side = |side: Side| match side {
        Side::Live => "only live",
        Side::History => "only in the history",
        Side::Both => "not the same",
    };
    let mut told: Vec<(&str, Side)> = Vec::new();
    for d in found.iter().filter(|d| d.reason.is_some()) {
        if told.contains(&(d.what.as_str(), d.side)) {
            continue;
        }
        told.push((&d.what, d.side));
        let same = found.iter().filter(|o| (&o.what, o.side) == (&d.what, d.side)).count();
        let why = d.reason.unwrap_or_default();
        writeln!(out, "accepted: {} {} ({same}): {why}", d.what, side(d.side))?;
    }
    let mut real = found.iter().filter(|d| d.reason.is_none());
    let Some(first) = real.next() else {
        if found.is_empty() {
            writeln!(out, "equal: {history} items")?;
        } else {
            writeln!(out, "equal but for that: {live} items live, {history} in the history")?;
        }
        return Ok(true);
    };
    writeln!(out, "different: {} {}: {}", first.what, side(first.side), first.shown)?;
    match real.count() {
        0 => {}
        1 => writeln!(out, "and one more difference")?,
        more => writeln!(out, "and {more} more differences")?,
    }
    Ok(false)
}
