//! The session that a file is of.

use super::SourceOptions;
use super::identity::label_of;
use super::reader::Reader;
use crate::ingest::Intake;
use crate::live::Hub;
use narrows::{Format, PARSER};
use narrows_store::{Error, FileMark, NewSession, Session, Store};
use std::path::Path;

/// Lists a session that came by two ways once: of those that an agent calls by this name, or of all.
pub async fn list_once(store: &Store, intake: &Intake, hub: &Hub, native: Option<&str>) {
    // Files of agents are not followed on a shared store.
    if store.is_shared() {
        return;
    }
    let runs = intake.clone();
    match store.list_once(native, move |key| runs.is_attended(key)).await {
        Ok(hidden) => hidden.into_iter().for_each(|id| hub.forget(id)),
        // What was read is kept: it is looked at again later.
        Err(error) => tracing::warn!(%error, "sessions that came by two ways are listed twice"),
    }
}

/// Hides what was read of projects that are left out by now, and shows what is not any more.
pub(super) async fn leave_out(store: &Store, hub: &Hub, options: &SourceOptions) {
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
        Err(error) => tracing::error!(%error, "projects that are left out are still shown"),
    }
}

impl Reader {
    /// The session of a label; none when it was deleted here.
    pub(super) async fn session(&self, label: &str) -> Result<Option<Session>, Error> {
        match self.store.session_by_label(label).await {
            Err(Error::NotFound(_)) => {}
            found => return found.map(Some),
        }
        let mut recorded = None;
        match self.store.session_by_native(label).await {
            // One that was read from a file of another name repeats records of this one.
            Ok(session) if self.is_of_a_file(&session).await? => {}
            // What a recorder saw of it names no records: nobody could tell what is known already.
            Ok(session) if self.is_of_a_recorder(&session).await? => recorded = Some(session),
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

    /// Whether a session was made from a file, rather than by somebody who sent it.
    async fn is_of_a_file(&self, session: &Session) -> Result<bool, Error> {
        let marks = self.store.files_of(session.key).await?;
        let names = marks.iter().filter(|m| m.parent.is_none());
        let mut names = names.map(|m| label_of(Path::new(&m.path)));
        Ok(names.any(|name| session.label.as_ref() == Some(&name)))
    }

    /// Whether a session was recorded between an agent and its client.
    async fn is_of_a_recorder(&self, session: &Session) -> Result<bool, Error> {
        let sources = self.store.sources(session.key).await?;
        let main = sources.iter().find(|s| s.number == 0);
        Ok(main.is_some_and(|m| m.format.as_deref() == Some(Format::Acp.name())))
    }

    /// A session that an older parser read is read again, from the file that is still there.
    pub(super) async fn up_to_date(&self, session: Session, main: &Path) -> Result<Session, Error> {
        let marks = self.store.files_of(session.key).await?;
        let main = main.to_string_lossy();
        let old = |m: &FileMark| m.parser < PARSER && m.path == main;
        // Of what is gone, what the older one made of it is all there is; a file of which nothing
        // was read has no head.
        if !marks.iter().any(old) || marks.iter().any(|m| m.gone && !m.head.is_empty()) {
            return Ok(session);
        }
        let fresh = self.store.begin_anew(&session.id).await?;
        self.intake.forget(session.key).await;
        self.hub.begun_anew(&session);
        Ok(fresh)
    }
}
