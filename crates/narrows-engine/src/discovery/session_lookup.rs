//! Finds or creates the session of a file, and hides duplicates and excluded sessions.

use super::SourceOptions;
use super::file_identity::label_of;
use super::session_reader::SessionReader;
use crate::ingest::Ingest;
use crate::live::Hub;
use narrows::{Format, PARSER};
use narrows_store::{Error, FileMark, NewSession, Session, Store};
use std::path::Path;

/// Lists a session once that arrived both as a file and as a recording or run: the one with this native id,
/// or all.
pub async fn list_once(store: &Store, ingest: &Ingest, hub: &Hub, native: Option<&str>) {
    // Session files are not followed on a shared store.
    if store.is_shared() {
        return;
    }
    let runs = ingest.clone();
    match store.list_once(native, move |key| runs.is_attended(key)).await {
        Ok(hidden) => hidden.into_iter().for_each(|id| hub.forget(id)),
        // What was read is stored; the next read tries again.
        Err(error) => tracing::warn!(%error, "cannot hide duplicate sessions"),
    }
}

/// Hides sessions of excluded projects that were read before, and shows those that are no longer excluded.
pub(super) async fn apply_excludes(store: &Store, hub: &Hub, options: &SourceOptions) {
    if store.is_shared() {
        return;
    }
    let done = async {
        if options.exclude.is_empty() && !store.leaves_some_out().await? {
            return Ok(Vec::new());
        }
        let options = options.clone();
        store.leave_out(move |root| options.leaves_out(root)).await
    };
    match done.await {
        Ok(hidden) => hidden.into_iter().for_each(|id| hub.forget(id)),
        Err(error) => tracing::error!(%error, "cannot hide sessions of excluded projects"),
    }
}

impl SessionReader {
    /// The session of a label; `None` if it was deleted here.
    pub(super) async fn session(&self, label: &str) -> Result<Option<Session>, Error> {
        match self.store.session_by_label(label).await {
            Err(Error::NotFound(_)) => {}
            found => return found.map(Some),
        }
        let mut recorded = None;
        match self.store.session_by_native(label).await {
            // A session that was read from a file of another name has the records of this one too.
            Ok(session) if self.is_from_file(&session).await? => {}
            // A recording has no record ids, so known records cannot be recognized.
            Ok(session) if self.is_recorded(&session).await? => recorded = Some(session),
            Err(Error::NotFound(_)) => {}
            found => return found.map(Some),
        }
        if self.store.forgotten().await?.iter().any(|l| l == label) {
            return Ok(None);
        }
        let new = NewSession { label: Some(label.to_owned()), tags: Vec::new() };
        let (session, _) = self.store.create_beside(new, recorded.map(|r| r.key)).await?;
        self.hub.changed();
        Ok(Some(session))
    }

    /// Returns whether a session was created from a file, not by an upload.
    async fn is_from_file(&self, session: &Session) -> Result<bool, Error> {
        let marks = self.store.files_of(session.key).await?;
        let names = marks.iter().filter(|m| m.parent.is_none());
        let mut names = names.map(|m| label_of(Path::new(&m.path)));
        Ok(names.any(|name| session.label.as_ref() == Some(&name)))
    }

    /// Returns whether a session was recorded between an agent and its client.
    async fn is_recorded(&self, session: &Session) -> Result<bool, Error> {
        let sources = self.store.sources(session.key).await?;
        let main = sources.iter().find(|s| s.number == 0);
        Ok(main.is_some_and(|m| m.format.as_deref() == Some(Format::Acp.name())))
    }

    /// Resets a session that an older parser read, so that its file is read again.
    pub(super) async fn reset_if_outdated(
        &self,
        session: Session,
        main: &Path,
    ) -> Result<Session, Error> {
        let marks = self.store.files_of(session.key).await?;
        let main = main.to_string_lossy();
        let old = |m: &FileMark| m.parser < PARSER && m.path == main;
        // Files that are gone cannot be read again, so the older result stays; a file of which nothing was
        // read has no head.
        if !marks.iter().any(old) || marks.iter().any(|m| m.gone && !m.head.is_empty()) {
            return Ok(session);
        }
        let fresh = self.store.begin_anew(&session.id).await?;
        self.ingest.forget(session.key).await;
        self.hub.begun_anew(&session);
        Ok(fresh)
    }
}
