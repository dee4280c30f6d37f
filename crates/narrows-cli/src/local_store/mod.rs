//! The store of this machine, as commands that show sessions read it. Works with and without a
//! running server.

mod progress_bar;
mod refresh;

pub(crate) use progress_bar::{ImportProgressBar, step_bar};
pub(crate) use refresh::{
    WriterParts, import_new_sessions, is_store_in_use, open_writer, refresh, unless_locked,
};

use crate::args::LocalStoreArgs;
use crate::config::data_dir;
use crate::error::CliError;
use crate::runtime::runtime;
use narrows_store::{Error, ListFilter, SessionRow, Store};
use std::future::Future;
use tokio::runtime::{Handle, Runtime};

/// The name of the session that changed last.
pub(crate) const LATEST: &str = "latest";
/// How many sessions to list when all are wanted. The store reads one row more than the limit.
pub(crate) const NO_LIMIT: usize = usize::MAX >> 1;
/// How many candidates an ambiguous name lists.
const MAX_LISTED_CANDIDATES: usize = 5;

/// The store, opened for reading.
#[derive(Debug)]
pub(crate) struct LocalStore {
    pub(crate) store: Store,
    runtime: Runtime,
}

impl LocalStore {
    /// Opens the store. Imports new sessions first, unless another process does.
    pub(crate) fn open(args: &LocalStoreArgs) -> Result<LocalStore, CliError> {
        if !args.no_scan {
            refresh(&args.data, &args.redaction)?;
        }
        LocalStore::open_without_scan(args)
    }

    pub(crate) fn open_without_scan(args: &LocalStoreArgs) -> Result<LocalStore, CliError> {
        let data = data_dir(&args.data)?;
        let runtime = runtime()?;
        let store =
            runtime.block_on(async { Store::open_read_only(&data) }).map_err(store_error)?;
        Ok(LocalStore { store, runtime })
    }

    /// Runs a query of the store to its end.
    pub(crate) fn block_on<T>(
        &self,
        query: impl Future<Output = narrows_store::Result<T>>,
    ) -> Result<T, CliError> {
        self.runtime.block_on(query).map_err(store_error)
    }

    pub(crate) fn resolve_session(&self, name: &str) -> Result<SessionRow, CliError> {
        self.runtime.block_on(resolve_session(&self.store, name))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }
}

/// Finds the session with a name: the prefix of an id, of a label or of the agent's own session id,
/// or `latest`.
pub(crate) async fn resolve_session(store: &Store, name: &str) -> Result<SessionRow, CliError> {
    if name.trim().is_empty() {
        return Err(CliError::usage("invalid session name: it is empty")
            .hint("`narrows ls` lists sessions, `latest` is the newest"));
    }
    let all = ListFilter { limit: NO_LIMIT, ..ListFilter::default() };
    let sessions = store.list(all).await.map_err(store_error)?.sessions;
    let mut matches: Vec<&SessionRow> = if name == LATEST {
        sessions.iter().take(1).collect()
    } else {
        sessions.iter().filter(|s| names(s).any(|n| n.starts_with(name))).collect()
    };
    if let Some(exact) = matches.iter().find(|s| names(s).any(|n| n == name)) {
        matches = vec![exact];
    }
    // Another session may be listed in the place of what was sent under a label.
    let filter = ListFilter { label: Some(name.to_owned()), limit: 1, ..ListFilter::default() };
    let hidden = match matches.as_slice() {
        [] => store.list(filter).await.map_err(store_error)?.sessions,
        _ => Vec::new(),
    };
    matches.extend(&hidden);
    match matches.as_slice() {
        [one] => Ok((*one).clone()),
        [] if name == LATEST => Err(no_sessions()),
        [] => Err(CliError::new(format!("no session has the prefix `{name}`"))
            .hint("`narrows ls` lists sessions")),
        several => {
            let listed: Vec<&str> =
                several.iter().take(MAX_LISTED_CANDIDATES).map(|s| s.id.as_str()).collect();
            let more = if several.len() > listed.len() { ", …" } else { "" };
            Err(CliError::new(format!(
                "ambiguous session `{name}`: {} sessions have this prefix: {}{more}",
                several.len(),
                listed.join(", ")
            )))
        }
    }
}

fn names(s: &SessionRow) -> impl Iterator<Item = &String> {
    [Some(&s.id), s.label.as_ref(), s.native_id.as_ref()].into_iter().flatten()
}

/// The error of an empty store.
pub(crate) fn no_sessions() -> CliError {
    CliError::new("no sessions found").hint("`narrows demo` imports a sample session")
}

pub(crate) fn store_error(error: Error) -> CliError {
    match error {
        Error::NotFound("store") => no_sessions(),
        error => CliError::new(error),
    }
}
