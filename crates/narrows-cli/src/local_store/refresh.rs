//! Brings the store up to date before sessions are shown.
//!
//! Only one process writes the store. If another one does, it imports sessions, and this one only
//! reads.

use super::ImportProgressBar;
use crate::args::{DataArgs, RedactionArgs};
use crate::config::{RedactionSettings, data_dir, source_options};
use crate::error::{CliError, ErrorKind};
use crate::runtime::runtime;
use narrows_engine::discovery::spool::{self, Spools};
use narrows_engine::discovery::{Progress, SourceOptions, Sums, catch_up};
use narrows_engine::ingest::{Hidden, Intake};
use narrows_engine::live::Hub;
use narrows_store::{ADDRESS_FILE, DataDir, Error, ListFilter, Options, Store};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for the first session of a store that another process creates.
const NEW_STORE_TIMEOUT: Duration = Duration::from_secs(3);
const NEW_STORE_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How often to try again when other processes lock and release the store meanwhile.
const MAX_ATTEMPTS: u32 = 5;

/// What an import has done.
pub(crate) struct ImportReport {
    pub(crate) sums: Sums,
    last_error: Option<String>,
}

impl ImportReport {
    /// The error if some sessions could not be read.
    pub(crate) fn error(&self) -> Option<CliError> {
        let sessions = match self.sums.failed {
            0 => return None,
            1 => "1 session".to_owned(),
            n => format!("{n} sessions"),
        };
        let why = self.last_error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        Some(CliError::new(format!("cannot read {sessions}{why}")))
    }

    /// Prints the error, if there is one, without failing.
    pub(crate) fn warn(&self) {
        if let Some(error) = self.error() {
            let _ = writeln!(io::stderr(), "narrows: {error}");
        }
    }
}

/// The parts that write sessions into a store.
pub(crate) struct WriterParts {
    pub(crate) store: Store,
    pub(crate) intake: Intake,
    pub(crate) hub: Hub,
}

/// Returns none if another process has locked the store.
pub(crate) fn unless_locked<T>(result: Result<T, CliError>) -> Result<Option<T>, CliError> {
    match result {
        Err(error) if error.is(ErrorKind::StoreLocked) => Ok(None),
        result => result.map(Some),
    }
}

/// Whether another process writes the store: a server, or another command.
pub(crate) fn is_store_in_use(data: &Path) -> Result<bool, CliError> {
    Ok(DataDir::open(data).map_err(CliError::new)?.is_in_use())
}

/// Imports new sessions, unless another process does.
pub(crate) fn refresh(data: &DataArgs, redaction: &RedactionArgs) -> Result<(), CliError> {
    let data = data_dir(data)?;
    let options = source_options(redaction)?;
    // Spool files are imported even if discovery is turned off.
    if options.is_none() && !spool::folder(&data).exists() {
        return Ok(());
    }
    for _ in 0..MAX_ATTEMPTS {
        if !is_store_in_use(&data)?
            && let Some(report) =
                unless_locked(import_new_sessions(&data, redaction, options.clone(), true))?
        {
            report.warn();
            return Ok(());
        }
        if is_imported_by_other(&data)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether another process imports sessions. Waits for the first session of a store that is just
/// being created.
fn is_imported_by_other(data: &Path) -> Result<bool, CliError> {
    let deadline = Instant::now() + NEW_STORE_TIMEOUT;
    let runtime = runtime()?;
    while is_store_in_use(data)? {
        // A server writes this file after its first scan.
        if data.join(ADDRESS_FILE).exists() || Instant::now() > deadline {
            return Ok(true);
        }
        let has_session = runtime.block_on(async {
            let one = ListFilter { limit: 1, ..ListFilter::default() };
            Store::open_read_only(data)?.list(one).await.map(|page| !page.sessions.is_empty())
        });
        if has_session.unwrap_or(false) {
            return Ok(true);
        }
        std::thread::sleep(NEW_STORE_POLL_INTERVAL);
    }
    Ok(false)
}

/// Opens the store for writing.
pub(crate) fn open_writer(data: &Path, redaction: &RedactionArgs) -> Result<WriterParts, CliError> {
    let store = Store::open(data, &Options::default()).map_err(|e| match e {
        Error::Locked(_) => CliError::new(e).kind(ErrorKind::StoreLocked),
        e => CliError::new(e),
    })?;
    let mut settings = RedactionSettings::load_for_this_machine(redaction)?;
    settings.secrets.set_key(store.mark_key());
    if let Ok(secret) = std::fs::read_to_string(data.join(narrows_store::TOKEN_FILE)) {
        settings.secrets.add_known(secret.trim());
    }
    let hidden = Hidden { paths: settings.paths, secrets: Arc::new(settings.secrets) };
    let hub = Hub::new(store.clone());
    let intake = Intake::new(store.clone(), hub.clone(), hidden);
    Ok(WriterParts { store, intake, hub })
}

/// Imports everything that is new, and indexes it for search.
pub(crate) fn import_new_sessions(
    data: &Path,
    redaction: &RedactionArgs,
    options: Option<SourceOptions>,
    show_progress: bool,
) -> Result<ImportReport, CliError> {
    runtime()?.block_on(async {
        let WriterParts { store, intake, hub } = open_writer(data, redaction)?;
        let spools = Spools::new(data, store.clone(), intake.clone(), hub.clone()).with_live(true);
        let progress = Arc::<Progress>::default();
        let bar = ImportProgressBar::new(show_progress && io::stderr().is_terminal());
        let imported = match options {
            Some(options) => {
                let import =
                    catch_up(store.clone(), intake.clone(), hub, options, Arc::clone(&progress));
                bar.track_import(import, &progress).await
            }
            None => Ok(Sums::default()),
        };
        let spooled = spools.read().await;
        intake.close().await;
        bar.track_indexing(&store).await;
        store.close().await;
        bar.finish();
        let mut sums = imported.map_err(CliError::new)?;
        sums.fresh += spooled.sessions;
        sums.events += spooled.events;
        sums.failed += spooled.failed;
        Ok(ImportReport { sums, last_error: progress.fault() })
    })
}
