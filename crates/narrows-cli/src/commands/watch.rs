//! `narrows watch`: follows a session live.

use super::live_transcript::LiveTranscript;
use crate::args::WatchArgs;
use crate::config::{data_dir, source_options};
use crate::error::CliError;
use crate::local_store::{
    WriterParts, is_store_in_use, open_writer, refresh, resolve_session, store_error, unless_locked,
};
use crate::output::terminal_style;
use crate::runtime::{runtime, wait_for_shutdown};
use narrows_engine::discovery::Follower;
use narrows_engine::discovery::spool::Spools;
use narrows_engine::ingest::Intake;
use narrows_store::{ListFilter, SessionRow, Store};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

const LOG_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Newer sessions and spool files are looked for once in this many polls of the log.
const POLLS_PER_SESSION_CHECK: u32 = 10;

pub(crate) fn run(args: &WatchArgs) -> Result<(), CliError> {
    let data = data_dir(&args.local.data)?;
    if !args.local.no_scan {
        // A new session can be named only after it is imported.
        refresh(&args.local.data, &args.local.redaction)?;
    }
    let runtime = runtime()?;
    // If no other process imports what agents write, this one does.
    let is_imported = args.local.no_scan || is_store_in_use(&data)?;
    let sources = if is_imported { None } else { source_options(&args.local.redaction)? };
    runtime.block_on(async {
        let writer = match sources {
            Some(options) => unless_locked(open_writer(&data, &args.local.redaction))?
                .map(|parts| (parts, options)),
            None => None,
        };
        let (store, importer) = match writer {
            Some((WriterParts { store, intake, hub }, options)) => {
                let spools = Spools::new(&data, store.clone(), intake.clone(), hub.clone());
                let follower = Follower::start(store.clone(), intake.clone(), hub, options);
                (store, Some((intake, follower, spools.with_live(true))))
            }
            None => (Store::open_read_only(&data).map_err(store_error)?, None),
        };
        let import = importer.as_ref().map(|(intake, _, spools)| (intake, spools));
        let watching = watch(args, &store, import);
        let result = tokio::select! {
            result = watching => result,
            signal = wait_for_shutdown() => signal.map_err(CliError::cannot("listen for signals")),
        };
        if let Some((intake, follower, _)) = importer {
            follower.stop().await;
            intake.close().await;
            store.close().await;
        }
        result
    })
}

async fn watch(
    args: &WatchArgs,
    store: &Store,
    import: Option<(&Intake, &Spools)>,
) -> Result<(), CliError> {
    let mut style = terminal_style(None, args.color);
    style.tools = args.tool_output;
    style.thinking = args.thinking;
    let mut transcript: Option<LiveTranscript<_>> = None;
    let mut polls = 0_u32;
    let mut said_waiting = false;
    loop {
        if polls.is_multiple_of(POLLS_PER_SESSION_CHECK) {
            if let Some((intake, spools)) = import {
                spools.read().await;
                intake.tidy().await;
            }
            let row = match (&args.session, &transcript) {
                (Some(name), None) => Some(resolve_session(store, name).await?),
                (Some(_), Some(_)) => None,
                (None, _) => newest(store).await?,
            };
            if let Some(row) = row
                && transcript.as_ref().is_none_or(|t| t.session_id() != row.id)
            {
                let out = BufWriter::new(io::stdout());
                let style = style.clone();
                transcript =
                    Some(LiveTranscript::from_last(store, row, args.last, out, style).await?);
            }
            if transcript.is_none() && !said_waiting {
                said_waiting = true;
                writeln!(io::stderr(), "no sessions yet: waiting for one")
                    .map_err(CliError::cannot("write to standard error"))?;
            }
        }
        if let Some(transcript) = &mut transcript
            && !transcript.print_new(store).await?
            && args.exit_on_end
        {
            return Ok(());
        }
        polls = polls.wrapping_add(1);
        tokio::time::sleep(LOG_POLL_INTERVAL).await;
    }
}

async fn newest(store: &Store) -> Result<Option<SessionRow>, CliError> {
    let one = ListFilter { limit: 1, ..ListFilter::default() };
    Ok(store.list(one).await.map_err(store_error)?.sessions.into_iter().next())
}
