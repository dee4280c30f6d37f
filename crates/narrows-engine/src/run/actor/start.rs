//! Starts of turns and processes.

use super::{Actor, AgentProcess};
use crate::run::agents::Protocol;
use crate::run::child::{Child, environment};
use crate::run::client_services::ClientServices;
use crate::run::driver::{Driver, SessionStart};
use crate::run::file_watcher::FileWatcher;
use crate::run::log_writer::RunLog;
use crate::run::retry::retry_unavailable;
use crate::run::state::RunContext;
use crate::run::turns::TurnProgress;
use narrows::item::{Item, ItemBody};
use narrows_store::{MessageState, Session, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Returns whether Claude Code has started a session: its first record names version and model. Its session
/// id proves nothing, because narrows chose it.
async fn has_begun(store: &Store, id: &str) -> Result<bool, narrows_store::Error> {
    let row = store.session_row(id).await?;
    let info: Value = serde_json::from_str(row.info.get()).unwrap_or_default();
    Ok(info["model"].is_string() || info["version"].is_string())
}

/// The kind of the notice that opens a session which was begun outside of narrows.
const RESUMED_NOTICE: &str = "taken_up";
/// Items that are searched for the notice.
const HISTORY_SCAN_ITEMS: usize = 64;

/// Returns whether a session was begun elsewhere and its history is missing here.
async fn lacks_history(store: &Store, session: &Session) -> Result<bool, narrows_store::Error> {
    let stored = store.kept(session.key, HISTORY_SCAN_ITEMS).await?;
    let is_conversation = |item: &Item| {
        use ItemBody::{Compaction, Text, Thinking, ToolCall};
        matches!(item.body, Text { .. } | Thinking { .. } | ToolCall { .. } | Compaction(_))
    };
    let is_resumed_notice = |item: &Item| matches!(&item.body, ItemBody::Notice { kind, .. } if *kind == RESUMED_NOTICE);
    Ok(session.seq == 0
        || stored.items.iter().any(is_resumed_notice) && !stored.items.iter().any(is_conversation))
}

impl Actor {
    /// Starts the next queued turn if no turn is running.
    pub(super) async fn start_next_turn(&mut self) {
        self.held &= !self.queue.is_empty();
        if self.turn.is_none() && !self.held {
            self.turn = self.queue.pop_front();
        }
        if self.turn.as_ref().is_none_or(|t| t.sent) {
            return;
        }
        // Another node may have taken over: nothing starts unless the lease is certainly valid.
        if self.lease.as_ref().is_some_and(|lease| !lease.is_sure()) {
            return;
        }
        self.ensure_process().await;
        let (Some(process), Some(turn)) = (&mut self.process, &mut self.turn) else { return };
        if !process.ready {
            return;
        }
        turn.sent = true;
        process.prompted_at = Instant::now();
        let after = self.log.as_ref().map_or(self.session.seq, |f| f.seq);
        let (number, running) = (turn.number, MessageState::Running);
        turn.progress.send_replace(TurnProgress {
            state: running,
            after: Some(after),
            until: None,
        });
        let prompt = std::mem::take(&mut turn.prompt);
        let effects = process.driver.prompt(&prompt);
        self.persist_message(number, running, (Some(after), None)).await;
        match effects {
            Ok(effects) => self.apply(effects).await,
            Err(what) => self.fail_turn("NOT_SENT", &what, "", false).await,
        }
    }

    /// Ensures that the process runs; a failure to start fails the turn.
    pub(super) async fn ensure_process(&mut self) {
        if self.process.is_none()
            && let Err(what) = self.start_process().await
        {
            let what = format!("The agent does not start: {what}");
            self.fail_turn("AGENT_NOT_STARTED", &what, "", true).await;
        }
    }

    /// Starts the agent's process.
    async fn start_process(&mut self) -> Result<(), String> {
        self.error = None;
        self.run.runs += 1;
        let store = |e: narrows_store::Error| e.to_string();
        let (existing, missing) = self.context.spec.directories(&self.run.directories);
        let text = |path: &std::path::PathBuf| path.to_str().map(str::to_owned);
        let directories: Vec<String> = existing.iter().filter_map(text).collect();
        if let Some(missing) = missing.first() {
            tracing::warn!(path = %missing.display(), "an additional directory of an agent does not exist");
        }
        let mut roots = vec![self.run.cwd.clone()];
        roots.extend(directories.iter().cloned());
        let fence = self.fence();
        let Actor { store: stored, ingest, run, .. } = &*self;
        let id = &self.session.id;
        let session =
            retry_unavailable(fence.is_some(), || stored.session(id)).await.map_err(store)?;
        let log = || RunLog::open(stored, ingest, session.clone(), roots.clone(), fence);
        let log = retry_unavailable(fence.is_some(), log).await.map_err(store)?;
        // A session with earlier messages is resumed, not begun. ACP agents report the session id when they
        // open a session; Claude Code's id was given to it.
        let is_acp = self.context.spec.protocol == Protocol::Acp;
        let mut resume = run.native.is_some() && (is_acp || log.seq > 0 && run.runs > 1);
        let history = resume && is_acp && lacks_history(stored, &session).await.map_err(store)?;
        if resume && !is_acp {
            resume = retry_unavailable(fence.is_some(), || has_begun(stored, id))
                .await
                .map_err(store)?;
        }
        let begins = history && log.seq == 0;
        self.log = Some(log);
        if begins {
            let text =
                "This session was begun elsewhere. What was said before is told by the agent.";
            self.notice(RESUMED_NOTICE, text).await;
        }
        let Actor { store: stored, run, .. } = &*self;
        let RunContext { spec, options } = &self.context;
        let session_start = SessionStart {
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
        let mut driver = Driver::new(spec.protocol, session_start);
        let root = Path::new(&self.run.cwd);
        let child = Child::start(spec, &driver.args(), root, options)?;
        retry_unavailable(fence.is_some(), || stored.keep_run(run.clone(), fence))
            .await
            .map_err(store)?;
        // Watching a large directory takes a while.
        let workspace = root.to_owned();
        let (attribution, key) = (Arc::clone(&self.attribution), self.session.key);
        let files =
            tokio::task::spawn_blocking(move || FileWatcher::watch(&workspace, key, attribution))
                .await;
        let (files, now) = (files.map_err(|e| e.to_string())?, Instant::now());
        let services =
            ClientServices::new(root.to_owned(), existing, Arc::clone(spec), Arc::clone(options));
        let effects = driver.start();
        self.process = Some(AgentProcess {
            child,
            driver,
            files,
            services,
            started_at: now,
            idle_since: now,
            prompted_at: now,
            ready: false,
            login_hinted: false,
            open_requests: BTreeMap::new(),
            _attended: self.ingest.attend(self.session.key),
        });
        self.publish_state();
        self.persist_state().await;
        self.apply(effects).await;
        Ok(())
    }
}
