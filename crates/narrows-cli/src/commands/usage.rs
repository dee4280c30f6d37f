//! `narrows usage`: the tokens of sessions, each answer of the model counted once.

use crate::args::UsageArgs;
use crate::drift::collect;
use crate::read::Outcome;
use crate::{Fault, NOT_UNDERSTOOD, fault, read};
use narrows::usage::{Ledger, Totals};
use narrows::{Body, Config, Secrets};
use narrows_server::source::find;
use narrows_show::words::count;
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
    // What was named is meant; a folder may hold other things too.
    let mut failed = None;
    // One session may have several files: what was printed, what is kept, copies.
    let mut ids = HashSet::new();
    for file in &sessions {
        let found = find(file).map_err(Fault::new(file.display().to_string()))?;
        let (outcome, id) = add(file, false, &mut totals)?;
        match outcome.check() {
            Ok(()) => {
                ids.insert(id.unwrap_or_else(|| file.display().to_string()));
                read.extend(found.subagents().map(Path::to_owned));
            }
            Err(fault) => {
                let named = args.files.contains(file);
                // A session of which nothing was written yet is among others no mistake.
                if outcome.tally.packets > 0 {
                    failed = failed.or_else(|| named.then_some(fault.code));
                    lost.push(fault);
                } else if named {
                    lost.push(fault);
                }
            }
        }
    }
    let mut alone = 0;
    for agent in agents.iter().filter(|a| !read.contains(*a)) {
        let (outcome, _) = add(agent, true, &mut totals)?;
        match outcome.check() {
            Ok(()) => alone += 1,
            Err(fault) => lost.push(fault),
        }
    }
    if ids.len() + alone == 0 {
        let why = (lost.len() < 2).then(|| lost.pop()).flatten();
        tell_lost(&lost);
        return Err(why.unwrap_or_else(|| Fault {
            code: NOT_UNDERSTOOD,
            ..fault("there is no session in any of it")
        }));
    }
    tell_lost(&lost);
    report(&totals, ids.len(), alone).map_err(Fault::new("standard output"))?;
    match failed {
        Some(code) => Err(Fault { code, ..fault("what was not understood is not in the sums") }),
        None => Ok(()),
    }
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
    let (mut id, mut ledger) = (None, Ledger::default());
    let outcome = read::session(Some(file), config, |steps, _, tally| {
        for event in steps.drain(..).map(|step| step.event) {
            totals.take(&event, sub, tally.kept, &mut ledger);
            if let Body::SessionInfo(info) = &event.body {
                id = info.native_id.as_ref().map(ToString::to_string).or(id.take());
            }
        }
        Ok(())
    })?;
    Ok((outcome, id))
}

fn is_agent(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
}

fn report(totals: &Totals, sessions: usize, alone: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{}", count(sessions, "session"))?;
    if alone > 0 {
        write!(out, ", {} without one", count(alone, "subagent"))?;
    }
    writeln!(out)?;
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
