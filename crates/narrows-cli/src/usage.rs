//! `narrows usage`: the tokens of sessions, each answer of the model counted once.

use crate::args::UsageArgs;
use crate::drift::collect;
use crate::{Fault, read};
use narrows::usage::Totals;
use narrows::{Body, Config, Secrets};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(args: &UsageArgs) -> Result<(), Fault> {
    let mut files = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        collect(path, &mut files).map_err(Fault::new(name))?;
    }
    // Files of subagents are read with the session that they belong to.
    let named = args.files.clone();
    files.retain(|file| named.contains(file) || !is_agent(file));
    let mut totals = Totals::default();
    // Nothing of the texts is shown: they need not be searched for secrets.
    let secrets = Arc::new(Secrets::none());
    for file in &files {
        let secrets = secrets.clone();
        let config = Config { events_only: true, join: true, secrets, ..Config::default() };
        read::session(Some(file), config, |steps, _| {
            for event in steps.drain(..).map(|step| step.event) {
                if let Body::Usage(gauge) = &event.body
                    && let Some(answer) = &gauge.answer
                {
                    totals.add(answer, event.parent.is_some());
                }
            }
            Ok(())
        })?;
    }
    report(&totals, files.len()).map_err(Fault::new("standard output"))
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
