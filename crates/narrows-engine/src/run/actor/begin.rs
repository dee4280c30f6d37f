//! Beginnings: of turns and of processes.

use super::{Actor, Process};
use crate::run::agents::Protocol;
use crate::run::child::{Child, environment};
use crate::run::driver::{Driver, Opening};
use crate::run::feed::Feed;
use crate::run::files::Files;
use crate::run::machine::Machine;
use crate::run::patience::insist;
use crate::run::state::Known;
use crate::run::turns::Progress;
use narrows::item::{Item, ItemBody};
use narrows_store::{MessageState, Session, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Whether Claude Code has begun a session: it then says by which version and model. Its id was given to
/// it, and says nothing.
async fn has_begun(store: &Store, id: &str) -> Result<bool, narrows_store::Error> {
    let row = store.session_row(id).await?;
    let info: Value = serde_json::from_str(row.info.get()).unwrap_or_default();
    Ok(info["model"].is_string() || info["version"].is_string())
}

/// The kind of notice that a session begins with which was begun elsewhere.
const TAKEN_UP: &str = "taken_up";
/// Items that are looked through for it.
const FEW: usize = 64;

/// Whether a session was begun elsewhere, and nothing is here of what was said in it.
async fn lacks_history(store: &Store, session: &Session) -> Result<bool, narrows_store::Error> {
    let kept = store.kept(session.key, FEW).await?;
    let said = |item: &Item| {
        use ItemBody::{Compaction, Text, Thinking, ToolCall};
        matches!(item.body, Text { .. } | Thinking { .. } | ToolCall { .. } | Compaction(_))
    };
    let begun =
        |item: &Item| matches!(&item.body, ItemBody::Notice { kind, .. } if *kind == TAKEN_UP);
    Ok(session.seq == 0 || kept.items.iter().any(begun) && !kept.items.iter().any(said))
}

impl Actor {
    /// Begins the next turn when there is one, and nothing else goes on.
    pub(super) async fn go_on(&mut self) {
        self.held &= !self.queue.is_empty();
        if self.turn.is_none() && !self.held {
            self.turn = self.queue.pop_front();
        }
        if self.turn.as_ref().is_none_or(|t| t.sent) {
            return;
        }
        // Another node may have taken over: nothing new is begun before it is known that none has.
        if self.lease.as_ref().is_some_and(|lease| !lease.is_sure()) {
            return;
        }
        self.open().await;
        let (Some(process), Some(turn)) = (&mut self.process, &mut self.turn) else { return };
        if !process.ready {
            return;
        }
        turn.sent = true;
        process.prompted = Instant::now();
        let after = self.feed.as_ref().map_or(self.session.seq, |f| f.seq);
        let (number, running) = (turn.number, MessageState::Running);
        turn.progress.send_replace(Progress { state: running, after: Some(after), until: None });
        let prompt = std::mem::take(&mut turn.prompt);
        let effects = process.driver.prompt(&prompt);
        self.keep_message(number, running, (Some(after), None)).await;
        match effects {
            Ok(effects) => self.apply(effects).await,
            Err(what) => self.fail("NOT_SENT", &what, "", false).await,
        }
    }

    /// The agent's process is there from now on, or it is said why not.
    pub(super) async fn open(&mut self) {
        if self.process.is_none()
            && let Err(what) = self.start().await
        {
            let what = format!("The agent does not start: {what}");
            self.fail("AGENT_NOT_STARTED", &what, "", true).await;
        }
    }

    /// Starts the agent's process.
    async fn start(&mut self) -> Result<(), String> {
        self.error = None;
        self.run.runs += 1;
        let store = |e: narrows_store::Error| e.to_string();
        let (beside, missing) = self.known.spec.directories(&self.run.directories);
        let text = |path: &std::path::PathBuf| path.to_str().map(str::to_owned);
        let directories: Vec<String> = beside.iter().filter_map(text).collect();
        if let Some(missing) = missing.first() {
            tracing::warn!(path = %missing.display(), "a folder of an agent is not there");
        }
        let mut roots = vec![self.run.cwd.clone()];
        roots.extend(directories.iter().cloned());
        let fence = self.fence();
        let Actor { store: kept, intake, run, .. } = &*self;
        let id = &self.session.id;
        let session = insist(fence.is_some(), || kept.session(id)).await.map_err(store)?;
        let feed = || Feed::open(kept, intake, session.clone(), roots.clone(), fence);
        let feed = insist(fence.is_some(), feed).await.map_err(store)?;
        // Something was said before: it is taken up, not begun. An agent of the protocol tells its id of a
        // session when it opens it; the id of Claude Code's was given to it.
        let is_acp = self.known.spec.protocol == Protocol::Acp;
        let mut resume = run.native.is_some() && (is_acp || feed.seq > 0 && run.runs > 1);
        let history = resume && is_acp && lacks_history(kept, &session).await.map_err(store)?;
        if resume && !is_acp {
            resume = insist(fence.is_some(), || has_begun(kept, id)).await.map_err(store)?;
        }
        let begins = history && feed.seq == 0;
        self.feed = Some(feed);
        if begins {
            let words =
                "This session was begun elsewhere. What was said before is told by the agent.";
            self.notice(TAKEN_UP, words).await;
        }
        let Actor { store: kept, run, .. } = &*self;
        let Known { spec, options } = &self.known;
        let opening = Opening {
            run: format!("r{}", self.run.runs),
            cwd: self.run.cwd.clone(),
            native: self.run.native.clone(),
            resume,
            history,
            mode: self.run.mode.clone(),
            model: self.run.model.clone(),
            argv: spec.argv.clone(),
            variables: environment(spec, options)
                .filter(|(_, value)| !value.is_empty())
                .filter_map(|(name, _)| name.to_str().map(str::to_owned))
                .collect(),
            login: spec.login.clone(),
            directories,
        };
        let mut driver = Driver::new(spec.protocol, opening);
        let root = Path::new(&self.run.cwd);
        let child = Child::start(spec, &driver.args(), root, options)?;
        insist(fence.is_some(), || kept.keep_run(run.clone(), fence)).await.map_err(store)?;
        // A large folder takes a while.
        let folder = root.to_owned();
        let (writers, key) = (Arc::clone(&self.writers), self.session.key);
        let files = tokio::task::spawn_blocking(move || Files::watch(&folder, key, writers)).await;
        let (files, now) = (files.map_err(|e| e.to_string())?, Instant::now());
        let machine = Machine::new(root.to_owned(), beside, Arc::clone(spec), Arc::clone(options));
        let effects = driver.start();
        self.process = Some(Process {
            child,
            driver,
            files,
            machine,
            began: now,
            rested: now,
            prompted: now,
            ready: false,
            hinted: false,
            asked: BTreeMap::new(),
            _attended: self.intake.attend(self.session.key),
        });
        self.show();
        self.keep_shown().await;
        self.apply(effects).await;
        Ok(())
    }
}
