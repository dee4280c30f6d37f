//! `narrows repair`: rebuilds a damaged store.

use crate::args::RepairArgs;
use crate::config::data_dir;
use crate::error::CliError;
use crate::local_store::step_bar;
use crate::output::json_line;
use narrows_render::escape;
use narrows_render::words::count;
use narrows_store::{Error, Repaired, RepairedSession, Repairing};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Ranges of lost events that are printed per session.
const MAX_PRINTED_RANGES: usize = 10;

pub(crate) fn run(args: &RepairArgs) -> Result<bool, CliError> {
    let data = data_dir(&args.data)?;
    let bar = step_bar();
    let repaired = narrows_store::repair(&data, args.check, |Repairing { what, done, all }| {
        bar.set_message(what);
        bar.set_length(all);
        bar.set_position(done);
        bar.tick();
    });
    bar.finish_and_clear();
    let repaired = repaired.map_err(|error| repair_error(error, &data))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        json_line(&mut out, &repaired)?;
    } else {
        report(&repaired, args.check, &mut out).map_err(CliError::stdout)?;
    }
    out.flush().map_err(CliError::stdout)?;
    Ok(!(args.check && repaired.damaged))
}

fn repair_error(error: Error, data: &Path) -> CliError {
    match error {
        Error::NotFound("store") => CliError::new(format!("no store in {}", data.display())),
        Error::Damaged(_) => {
            CliError::new(error).hint("`narrows restore` replaces the store with a backup")
        }
        error => CliError::new(error),
    }
}

/// Prints what was recovered and what is lost.
fn report(repaired: &Repaired, dry_run: bool, out: &mut impl Write) -> io::Result<()> {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let intact = count(number(repaired.whole), "session");
    if !repaired.damaged {
        return writeln!(out, "the store is intact: {intact}, nothing to repair");
    }
    writeln!(out, "{intact} intact")?;
    for session in &repaired.sessions {
        report_session(session, out)?;
    }
    for name in &repaired.gone {
        writeln!(out, "session {}: lost completely", escape::line(name))?;
    }
    for what in &repaired.lost {
        writeln!(out, "lost: {}", escape::line(what))?;
    }
    if !repaired.database.is_empty() {
        let places = count(repaired.database.len(), "place");
        writeln!(out, "the database file was damaged in at least {places}")?;
    }
    match &repaired.aside {
        Some(aside) => {
            // If the database was deleted, only its write-ahead log is left.
            let mut wal = aside.clone().into_os_string();
            wal.push("-wal");
            let kept = if aside.exists() { aside.as_os_str() } else { &wal };
            writeln!(out, "the old store is kept as {}", kept.display())
        }
        None if dry_run => writeln!(out, "nothing changed; `narrows repair` repairs the store"),
        None => Ok(()),
    }
}

fn report_session(session: &RepairedSession, out: &mut impl Write) -> io::Result<()> {
    let RepairedSession { id, title, events, lost, items, lost_items, notes } = session;
    let title = title.as_deref().map(|title| format!(" ({})", escape::line(title)));
    let missing: u64 = lost.iter().map(|(first, last)| last - first + 1).sum();
    write!(out, "session {}{}: ", escape::line(id), title.unwrap_or_default())?;
    write!(out, "{events} of {} events recovered", events + missing)?;
    write!(out, ", {items} of {} items", items + lost_items)?;
    if !lost.is_empty() {
        let range = |(first, last): &(u64, u64)| {
            if first == last { first.to_string() } else { format!("{first}–{last}") }
        };
        let ranges: Vec<String> = lost.iter().take(MAX_PRINTED_RANGES).map(range).collect();
        let more = lost.len().saturating_sub(MAX_PRINTED_RANGES);
        let more = if more > 0 { format!(" and {more} more ranges") } else { String::new() };
        write!(out, "; lost: {}{more}", ranges.join(", "))?;
    }
    for note in notes {
        write!(out, "; {}", escape::line(note))?;
    }
    writeln!(out)
}
