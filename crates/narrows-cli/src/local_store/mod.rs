//! The sessions of this machine, as the commands that show them see them.

use crate::args::LibraryArgs;
use crate::index::before_showing;
use crate::settings::data_dir;
use crate::{Fault, fault, misused, serve};
use narrows_store::{Error, ListFilter, SessionRow, Store};
use std::future::Future;
use tokio::runtime::{Handle, Runtime};

/// The name of the session that changed last.
pub(crate) const LATEST: &str = "latest";
pub(crate) const NOTHING: &str =
    "there are no sessions yet: `narrows sample` puts one in to look at";

/// The store, to be read.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) store: Store,
    runtime: Runtime,
}

impl Library {
    /// Opens the store; looks for new sessions first, unless somebody does that already.
    pub(crate) fn open(args: &LibraryArgs) -> Result<Library, Fault> {
        if !args.no_scan {
            before_showing(&args.data, &args.hide)?;
        }
        Library::as_it_is(args)
    }

    /// Opens the store, and looks for nothing.
    pub(crate) fn as_it_is(args: &LibraryArgs) -> Result<Library, Fault> {
        let data = data_dir(&args.data)?;
        let runtime = serve::runtime()?;
        let store = runtime.block_on(async { Store::open_read_only(&data) }).map_err(failed)?;
        Ok(Library { store, runtime })
    }

    /// Waits for the store.
    pub(crate) fn wait<T>(
        &self,
        work: impl Future<Output = narrows_store::Result<T>>,
    ) -> Result<T, Fault> {
        self.runtime.block_on(work).map_err(failed)
    }

    /// The session that a name means.
    pub(crate) fn session(&self, name: &str) -> Result<SessionRow, Fault> {
        self.runtime.block_on(session(&self.store, name))
    }

    /// What the store needs to be waited for.
    pub(crate) fn runtime(&self) -> Handle {
        self.runtime.handle().clone()
    }
}

fn names(s: &SessionRow) -> impl Iterator<Item = &String> {
    [Some(&s.id), s.label.as_ref(), s.native_id.as_ref()].into_iter().flatten()
}

/// The session that a name means: the beginning of an id, a label or the agent's own id, or
/// `latest`.
pub(crate) async fn session(store: &Store, name: &str) -> Result<SessionRow, Fault> {
    if name.trim().is_empty() {
        return Err(misused(
            "a session has a name: `narrows ls` lists them, `latest` is the newest",
        ));
    }
    let all = ListFilter { limit: usize::MAX >> 1, ..ListFilter::default() };
    let found = store.list(all).await.map_err(failed)?.sessions;
    let mut named: Vec<&SessionRow> = if name == LATEST {
        found.iter().take(1).collect()
    } else {
        found.iter().filter(|s| names(s).any(|n| n.starts_with(name))).collect()
    };
    if let Some(exact) = named.iter().find(|s| names(s).any(|n| n == name)) {
        named = vec![exact];
    }
    match named.as_slice() {
        [one] => Ok((*one).clone()),
        [] if name == LATEST => Err(fault(NOTHING)),
        [] => Err(fault(format!("no session begins with `{name}`: `narrows ls` lists them"))),
        several => {
            let some: Vec<&str> = several.iter().take(5).map(|s| s.id.as_str()).collect();
            let more = if several.len() > some.len() { ", …" } else { "" };
            Err(fault(format!(
                "`{name}` begins {} sessions: {}{more}",
                several.len(),
                some.join(", ")
            )))
        }
    }
}

/// An error of the store, for people.
pub(crate) fn failed(error: Error) -> Fault {
    match error {
        Error::NotFound("store") => fault(NOTHING),
        error => fault(error.to_string()),
    }
}
