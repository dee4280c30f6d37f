//! `narrows check parity`: whether two formats of one session give one transcript.

use crate::args::ParityArgs;
use crate::config::RedactionSettings;
use crate::error::CliError;
use crate::input::parse_session;
use narrows::parity::{Difference, Side, compare};
use narrows::{Config, Items};
use narrows_engine::discovery::find;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Returns whether the transcripts agree but for accepted differences.
pub(super) fn run(args: &ParityArgs) -> Result<bool, CliError> {
    let cannot_read = CliError::cannot(format!("read {}", args.history.display()));
    let session = find(&args.history).map_err(cannot_read)?.session;
    let live = load_items(args, &args.live, session)?;
    let history = load_items(args, &args.history, None)?;
    if live.iter().next().is_none() && history.iter().next().is_none() {
        return Err(CliError::new("cannot compare: neither file has a transcript item"));
    }
    let differences = compare(&live, &history);
    report(&differences, live.iter().count(), history.iter().count()).map_err(CliError::stdout)
}

fn load_items(args: &ParityArgs, file: &Path, only: Option<String>) -> Result<Items, CliError> {
    let settings = RedactionSettings::load(&args.redaction)?;
    let (paths, secrets) = (settings.paths, Arc::new(settings.secrets));
    let config = Config { paths, secrets, only, join: true, ..Config::default() };
    let mut items = Items::new();
    let outcome = parse_session(Some(file), config, |steps, _, _| {
        for change in steps.drain(..).flat_map(|step| step.changes) {
            items.apply(change);
        }
        Ok(())
    })?;
    outcome.check()?;
    items.settle();
    Ok(items)
}

fn report(differences: &[Difference], live: usize, history: usize) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let side_label = |side: Side| match side {
        Side::Live => "only live",
        Side::History => "only in the history",
        Side::Both => "differs",
    };
    let mut reported: Vec<(&str, Side)> = Vec::new();
    for d in differences.iter().filter(|d| d.reason.is_some()) {
        if reported.contains(&(d.what.as_str(), d.side)) {
            continue;
        }
        reported.push((&d.what, d.side));
        let count = differences.iter().filter(|o| (&o.what, o.side) == (&d.what, d.side)).count();
        let reason = d.reason.unwrap_or_default();
        writeln!(out, "accepted: {} {} ({count}): {reason}", d.what, side_label(d.side))?;
    }
    let mut unexpected = differences.iter().filter(|d| d.reason.is_none());
    let Some(first) = unexpected.next() else {
        if differences.is_empty() {
            writeln!(out, "equal: {history} items")?;
        } else {
            writeln!(out, "equal otherwise: {live} items live, {history} in the history")?;
        }
        return Ok(true);
    };
    writeln!(out, "different: {} {}: {}", first.what, side_label(first.side), first.shown)?;
    match unexpected.count() {
        0 => {}
        1 => writeln!(out, "and 1 more difference")?,
        more => writeln!(out, "and {more} more differences")?,
    }
    Ok(false)
}
