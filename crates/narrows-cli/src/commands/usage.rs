//! `narrows usage`: the tokens of session files, each model response counted once.

use super::check::collect_files;
use crate::args::UsageArgs;
use crate::error::{CliError, ErrorKind};
use crate::input::{ParseOutcome, parse_session};
use narrows::usage::{Ledger, Totals};
use narrows::{Body, Config, Secrets};
use narrows_engine::discovery::find;
use narrows_render::words::count;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Errors of single files that are printed.
const MAX_PRINTED_ERRORS: usize = 5;

pub(crate) fn run(args: &UsageArgs) -> Result<(), CliError> {
    let mut files = collect_files(&args.files)?;
    files.sort();
    files.dedup();
    let (agents, sessions): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_subagent_file(file));
    let mut totals = Totals::default();
    let mut read_subagents = HashSet::new();
    let mut errors = Vec::new();
    // A file named on the command line must be a session; a directory may hold other files too.
    let mut named_failed = false;
    // One session may have several files: live output, history, copies.
    let mut ids = HashSet::new();
    for file in &sessions {
        let found = find(file).map_err(CliError::cannot(format!("read {}", file.display())))?;
        let (outcome, id) = add_file(file, false, &mut totals)?;
        match outcome.check() {
            Ok(()) => {
                ids.insert(id.unwrap_or_else(|| file.display().to_string()));
                read_subagents.extend(found.subagents().map(Path::to_owned));
            }
            Err(error) => {
                let is_named = args.files.contains(file);
                // A session without any packet yet is no failure.
                named_failed |= is_named && outcome.tally.packets > 0;
                if is_named || outcome.tally.packets > 0 {
                    errors.push(error);
                }
            }
        }
    }
    let mut orphans = 0;
    for agent in agents.iter().filter(|a| !read_subagents.contains(*a)) {
        let (outcome, _) = add_file(agent, true, &mut totals)?;
        match outcome.check() {
            Ok(()) => orphans += 1,
            Err(error) => errors.push(error),
        }
    }
    if ids.len() + orphans == 0 {
        let only_error = (errors.len() < 2).then(|| errors.pop()).flatten();
        print_errors(&errors);
        return Err(only_error.unwrap_or_else(|| {
            CliError::new("no session found").kind(ErrorKind::UnrecognizedInput)
        }));
    }
    print_errors(&errors);
    report(&totals, ids.len(), orphans).map_err(CliError::stdout)?;
    if named_failed {
        return Err(CliError::new("the sums do not include the files that cannot be parsed")
            .kind(ErrorKind::UnrecognizedInput));
    }
    Ok(())
}

fn print_errors(errors: &[CliError]) {
    let mut out = io::stderr().lock();
    for error in errors.iter().take(MAX_PRINTED_ERRORS) {
        let _ = writeln!(out, "narrows: {error}");
    }
    if errors.len() > MAX_PRINTED_ERRORS {
        let _ = writeln!(out, "narrows: and {} more files", errors.len() - MAX_PRINTED_ERRORS);
    }
}

/// Adds the responses of one file; all of them are a subagent's if it is the file of one. Returns
/// the agent's own id of the session too.
fn add_file(
    file: &Path,
    is_subagent: bool,
    totals: &mut Totals,
) -> Result<(ParseOutcome, Option<String>), CliError> {
    // No text is printed, so none needs to be searched for secrets.
    let secrets = Arc::new(Secrets::none());
    let config = Config { events_only: true, join: true, secrets, ..Config::default() };
    let (mut id, mut ledger) = (None, Ledger::default());
    let outcome = parse_session(Some(file), config, |steps, _, tally| {
        for event in steps.drain(..).map(|step| step.event) {
            totals.take(&event, is_subagent, tally.kept, &mut ledger);
            if let Body::SessionInfo(info) = &event.body {
                id = info.native_id.as_ref().map(ToString::to_string).or(id.take());
            }
        }
        Ok(())
    })?;
    Ok((outcome, id))
}

fn is_subagent_file(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
}

fn report(totals: &Totals, sessions: usize, orphans: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{}", count(sessions, "session"))?;
    if orphans > 0 {
        write!(out, ", {} without a session", count(orphans, "subagent"))?;
    }
    writeln!(out)?;
    let titles = ["responses", "input", "output", "cache read", "cache 5 min", "cache 1 h"];
    write!(out, "{:<12}", "")?;
    titles.iter().try_for_each(|title| write!(out, "{title:>14}"))?;
    writeln!(out)?;
    for (name, subagents) in [("sessions", false), ("subagents", true)] {
        let (responses, usage) = totals.sum(subagents);
        // Older versions report one number without the lifetime of the cache entries.
        let written_5m = usage.cached_write_5m_tokens.or(usage.cached_write_tokens);
        let (cache_reads, hourly_writes) = (usage.cached_read_tokens, usage.cached_write_1h_tokens);
        let counts =
            [usage.input_tokens, usage.output_tokens, cache_reads, written_5m, hourly_writes];
        write!(out, "{name:<12}{responses:>14}")?;
        counts.iter().try_for_each(|n| write!(out, "{:>14}", n.unwrap_or(0)))?;
        writeln!(out)?;
    }
    Ok(())
}
