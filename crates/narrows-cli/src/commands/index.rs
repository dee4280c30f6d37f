//! `narrows index`: imports sessions of this machine.

use crate::args::{IndexArgs, RedactionArgs};
use crate::config::{data_dir, source_options};
use crate::error::CliError;
use crate::local_store::{
    WriterParts, import_new_sessions, is_store_in_use, open_writer, unless_locked,
};
use crate::runtime::{runtime, wait_for_shutdown};
use narrows_engine::discovery::spool::Spools;
use narrows_engine::discovery::{Follower, SourceOptions, Sums};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &IndexArgs) -> Result<(), CliError> {
    let data = data_dir(&args.data)?;
    let Some(options) = source_options(&args.redaction)? else {
        return Err(CliError::new("cannot import sessions: the config file disables discovery")
            .hint("remove `follow = false` from its [sources] section"));
    };
    let report = if is_store_in_use(&data)? {
        None
    } else {
        let options = Some(options.clone());
        unless_locked(import_new_sessions(&data, &args.redaction, options, !args.quiet))?
    };
    let Some(report) = report else {
        let message = "a running narrows imports sessions already; `narrows ls` lists them";
        return if args.quiet { Ok(()) } else { print_line(message) };
    };
    if !args.quiet {
        print_line(&summary(report.sums))?;
    }
    if args.follow {
        report.warn();
        return follow(&data, &args.redaction, options);
    }
    report.error().map_or(Ok(()), Err)
}

fn print_line(text: &str) -> Result<(), CliError> {
    writeln!(io::stdout().lock(), "{text}").map_err(CliError::stdout)
}

fn summary(sums: Sums) -> String {
    let failed = match sums.failed {
        0 => String::new(),
        n => format!(", {n} failed"),
    };
    match sums.fresh {
        0 => format!("nothing new{failed}"),
        n => {
            let (plural, events) = (if n == 1 { "" } else { "s" }, sums.events);
            format!("{n} session{plural} imported, {events} new events{failed}")
        }
    }
}

/// Imports what is written until a signal ends it.
fn follow(data: &Path, redaction: &RedactionArgs, options: SourceOptions) -> Result<(), CliError> {
    runtime()?.block_on(async {
        let WriterParts { store, intake, hub } = open_writer(data, redaction)?;
        let spools = Spools::new(data, store.clone(), intake.clone(), hub.clone()).with_live(true);
        let follower = Follower::start(store.clone(), intake.clone(), hub, options);
        let mut interval = tokio::time::interval(MAINTENANCE_INTERVAL);
        let shutdown = wait_for_shutdown();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                signal = &mut shutdown => {
                    signal.map_err(CliError::cannot("listen for signals"))?;
                    break;
                }
                _ = interval.tick() => {
                    spools.read().await;
                    intake.tidy().await;
                }
            }
        }
        follower.stop().await;
        intake.close().await;
        store.close().await;
        Ok(())
    })
}
