//! `narrows repair`.

use crate::args::RepairArgs;
use crate::settings::data_dir;
use crate::table::{json_line, unwritten};
use crate::{Fault, fault};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_show::escape;
use narrows_show::words::count;
use narrows_store::{Error, Repaired, RepairedSession, Repairing};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// Runs of lost events that are listed of one session.
const RUNS: usize = 10;

pub(crate) fn run(args: &RepairArgs) -> Result<bool, Fault> {
    let data = data_dir(&args.data)?;
    let bar = bar();
    let repaired = narrows_store::repair(&data, args.check, |now| show(&bar, now));
    bar.finish_and_clear();
    let repaired = repaired.map_err(|error| failed(error, &data))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        json_line(&mut out, &repaired)?;
    } else {
        told(&repaired, args.check, &mut out).map_err(unwritten)?;
    }
    out.flush().map_err(unwritten)?;
    Ok(!(args.check && repaired.damaged))
}

fn failed(error: Error, data: &Path) -> Fault {
    match error {
        Error::NotFound("store") => fault(format!("there is no store in {}", data.display())),
        Error::Damaged(_) => {
            fault(format!("{error}: `narrows restore` puts a copy in its place, if there is one"))
        }
        error => fault(error.to_string()),
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::hidden();
    if io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    }
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar:.dim} {pos}/{len}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, Repairing { what, done, all }: Repairing) {
    bar.set_message(what);
    bar.set_length(all);
    bar.set_position(done);
    bar.tick();
}

/// What was kept and what is lost.
fn told(repaired: &Repaired, dry: bool, out: &mut impl Write) -> io::Result<()> {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let whole = count(number(repaired.whole), "session");
    if !repaired.damaged {
        return writeln!(out, "the store is whole: {whole}, nothing to repair");
    }
    let are = if repaired.whole == 1 { "is as it was" } else { "are as they were" };
    writeln!(out, "{whole} {are}")?;
    for session in &repaired.sessions {
        of_session(session, out)?;
    }
    for name in &repaired.gone {
        writeln!(out, "session {}: lost, all of it", escape::line(name))?;
    }
    for what in &repaired.lost {
        writeln!(out, "lost: {}", escape::line(what))?;
    }
    if !repaired.database.is_empty() {
        let lines = count(repaired.database.len(), "place");
        writeln!(out, "the database itself was damaged in {lines} or more")?;
    }
    match &repaired.aside {
        Some(aside) => {
            // Of a database that was deleted, only the write-ahead log is left.
            let mut log = aside.clone().into_os_string();
            log.push("-wal");
            let kept = if aside.exists() { aside.as_os_str() } else { &log };
            writeln!(out, "the store as it was is kept as {}", kept.display())
        }
        None if dry => writeln!(out, "nothing was changed: `narrows repair` does it"),
        None => Ok(()),
    }
}

fn of_session(session: &RepairedSession, out: &mut impl Write) -> io::Result<()> {
    let RepairedSession { id, title, events, lost, items, lost_items, notes } = session;
    let title = title.as_deref().map(|title| format!(" ({})", escape::line(title)));
    let missing: u64 = lost.iter().map(|(first, last)| last - first + 1).sum();
    write!(out, "session {}{}: ", escape::line(id), title.unwrap_or_default())?;
    write!(out, "{events} of {} events kept", events + missing)?;
    write!(out, ", {items} of {} items", items + lost_items)?;
    if !lost.is_empty() {
        let run = |(first, last): &(u64, u64)| {
            if first == last { first.to_string() } else { format!("{first}–{last}") }
        };
        let runs: Vec<String> = lost.iter().take(RUNS).map(run).collect();
        let more = lost.len().saturating_sub(RUNS);
        let more = if more > 0 { format!(" and {more} more runs") } else { String::new() };
        write!(out, "; lost: {}{more}", runs.join(", "))?;
    }
    for note in notes {
        write!(out, "; {}", escape::line(note))?;
    }
    writeln!(out)
}
