//! `narrows usage`: the tokens of sessions, each answer of the model counted once.

use crate::args::UsageArgs;
use crate::drift::collect;
use crate::read::Outcome;
use crate::{Fault, NOT_UNDERSTOOD, fault, read};
use narrows::usage::Totals;
use narrows::{Body, Config, Secrets};
use narrows_server::source::find;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(args: &UsageArgs) -> Result<(), Fault> {
    let mut files = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        collect(path, &mut files).map_err(Fault::new(name))?;
    }
    files.sort();
    files.dedup();
    let (agents, sessions): (Vec<_>, Vec<_>) = files.into_iter().partition(|f| is_agent(f));
    let mut totals = Totals::default();
    let mut read = HashSet::new();
    let mut lost = Vec::new();
    // One session may have several files: what was printed, what is kept, copies.
    let mut ids = HashSet::new();
    let mut alone = 0;
    for file in &sessions {
        let found = find(file).map_err(Fault::new(file.display().to_string()))?;
        let named = args.files.contains(file);
        let (outcome, id) = add(file, false, &mut totals)?;
        match outcome.check() {
            Ok(()) => {
                ids.insert(id.unwrap_or_else(|| file.display().to_string()));
            }
            // What was named is meant; a folder may hold other things too.
            Err(fault) if named => return Err(fault),
            Err(fault) => {
                lost.extend((outcome.tally.packets > 0).then_some(fault));
                continue;
            }
        }
        // The ones that it did ask for have been read with it.
        read.extend(found.asked().map(Path::to_owned));
        // In a folder, the others are found by themselves.
        for agent in found.unasked().filter(|_| named) {
            add(agent, true, &mut totals)?;
        }
    }
    for agent in agents.iter().filter(|a| !read.contains(*a)) {
        let (outcome, _) = add(agent, true, &mut totals)?;
        match outcome.check() {
            Ok(()) => alone += 1,
            Err(fault) => lost.push(fault),
        }
    }
    tell_lost(&lost);
    if ids.len() + alone == 0 {
        let why = lost.into_iter().next();
        return Err(why.unwrap_or_else(|| Fault {
            code: NOT_UNDERSTOOD,
            ..fault("there is no session file (.jsonl) here")
        }));
    }
    report(&totals, ids.len()).map_err(Fault::new("standard output"))
}

/// Files in folders that are no sessions are named, but stop nothing.
fn tell_lost(lost: &[Fault]) {
    const MOST: usize = 5;
    let mut out = io::stderr().lock();
    for fault in lost.iter().take(MOST) {
        let _ = writeln!(out, "narrows: {}", fault.error);
    }
    if lost.len() > MOST {
        let _ = writeln!(out, "narrows: and {} more files", lost.len() - MOST);
    }
}

/// Counts the answers of one session; all of them are a subagent's in a file of one. Tells the
/// session's own id too.
fn add(file: &Path, sub: bool, totals: &mut Totals) -> Result<(Outcome, Option<String>), Fault> {
    // Nothing of the texts is shown: they need not be searched for secrets.
    let secrets = Arc::new(Secrets::none());
    let config = Config { events_only: true, join: true, secrets, ..Config::default() };
    let mut id = None;
    let outcome = read::session(Some(file), config, |steps, _| {
        for event in steps.drain(..).map(|step| step.event) {
            match &event.body {
                Body::Usage(gauge) => {
                    if let Some(answer) = &gauge.answer {
                        totals.add(answer, sub || event.parent.is_some());
                    }
                }
                Body::SessionInfo(info) => {
                    id = info.native_id.as_ref().map(ToString::to_string).or(id.take());
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok((outcome, id))
}

fn is_agent(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
}

fn report(totals: &Totals, files: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let s = if files == 1 { "" } else { "s" };
    writeln!(out, "{files} session{s}")?;
    let head = ["answers", "input", "output", "cache read", "cache 5 min", "cache 1 h"];
    write!(out, "{:<12}", "")?;
    head.iter().try_for_each(|h| write!(out, "{h:>14}"))?;
    writeln!(out)?;
    for (name, subs) in [("sessions", false), ("subagents", true)] {
        let (answers, u) = totals.sum(subs);
        // Older versions do not tell for how long they keep what they write.
        let short = u.cached_write_5m_tokens.or(u.cached_write_tokens);
        let (read, long) = (u.cached_read_tokens, u.cached_write_1h_tokens);
        let counts = [u.input_tokens, u.output_tokens, read, short, long];
        write!(out, "{name:<12}{answers:>14}")?;
        counts.iter().try_for_each(|n| write!(out, "{:>14}", n.unwrap_or(0)))?;
        writeln!(out)?;
    }
    Ok(())
}
