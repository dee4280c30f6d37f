//! The actor of one session's run: owns the agent process, the message queue and the current turn. `start`
//! begins turns and processes, `agent_io` handles output, `shutdown` ends both.

mod agent_io;
mod persistence;
mod publish;
mod replies;
mod shutdown;
mod start;

use super::RunError;
use super::child::{AgentLine, Child};
use super::client_services::ClientServices;
use super::cluster::{Lease, Waiters};
use super::driver::{Driver, PermissionReply, Prompt, RunSettings};
use super::file_attribution::FileAttribution;
use super::file_watcher::FileWatcher;
use super::log_writer::RunLog;
use super::state::{RunContext, RunState};
use super::turns::TurnProgress;
use crate::ingest::{AttendedSession, Ingest};
use crate::live::Hub;
use narrows::event::Note;
use narrows::time::Time;
use narrows::{Body, Raw, TextCleaner};
use narrows_store::{MessageRow, MessageState, RunRow, Session, Store};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Ids of closed requests that are remembered, so that a late answer gets `ALREADY_ANSWERED`.
const MAX_ANSWERED: usize = 1024;
/// An actor without a process ends after this time.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Lines of standard error that are reported with a failure.
const STDERR_TAIL_LINES: usize = 12;

/// A command to the actor.
#[derive(Debug)]
pub(super) enum RunCommand {
    Message {
        row: MessageRow,
        prompt: Prompt,
        respond: oneshot::Sender<watch::Receiver<TurnProgress>>,
    },
    /// Starts the agent before the first message.
    Open(oneshot::Sender<bool>),
    Cancel(oneshot::Sender<bool>),
    Stop(oneshot::Sender<bool>),
    CancelQueued {
        number: u64,
        respond: oneshot::Sender<bool>,
    },
    Configure {
        settings: RunSettings,
        hold: Option<bool>,
        respond: oneshot::Sender<Result<(), RunError>>,
    },
    Answer {
        request: String,
        reply: PermissionReply,
        respond: oneshot::Sender<Result<(), RunError>>,
    },
    Close,
}

/// A message and its turn.
#[derive(Debug)]
struct QueuedTurn {
    number: u64,
    prompt: Prompt,
    progress: watch::Sender<TurnProgress>,
    sent: bool,
    cancelled: Option<Instant>,
}

impl QueuedTurn {
    /// The turn of a message that was queued by an earlier actor of the session.
    fn waiting(number: u64, prompt: Prompt) -> QueuedTurn {
        let progress = TurnProgress { state: MessageState::Queued, after: None, until: None };
        let progress = watch::channel(progress).0;
        QueuedTurn { number, prompt, progress, sent: false, cancelled: None }
    }
}

/// The agent's process, its driver and the services that it uses.
#[derive(Debug)]
struct AgentProcess {
    child: Child,
    driver: Driver,
    files: FileWatcher,
    services: ClientServices,
    started_at: Instant,
    idle_since: Instant,
    /// When the last prompt was sent.
    prompted_at: Instant,
    ready: bool,
    /// Whether the login hint was shown for its silence.
    login_hinted: bool,
    /// Open requests: the tool call of each, and whether it is a question (not a permission request).
    open_requests: BTreeMap<String, (String, bool)>,
    /// Marks the session as attended while the process lives, so that it is not considered ended.
    _attended: AttendedSession,
}

/// A client request's id and its result.
type ClientResult = (Value, Result<Value, String>);

/// What an actor works with.
#[derive(Debug)]
pub(super) struct ActorContext {
    pub(super) store: Store,
    pub(super) ingest: Ingest,
    pub(super) hub: Hub,
    pub(super) waiters: Arc<Waiters>,
    /// The lease of the run, if the store is shared.
    pub(super) lease: Option<Lease>,
    pub(super) attribution: Arc<FileAttribution>,
}

#[derive(Debug)]
pub(super) struct Actor {
    store: Store,
    ingest: Ingest,
    hub: Hub,
    waiters: Arc<Waiters>,
    lease: Option<Lease>,
    attribution: Arc<FileAttribution>,
    /// Another node owns the session: nothing more is written.
    fenced: bool,
    session: Session,
    run: RunRow,
    context: RunContext,
    state: watch::Sender<RunState>,
    cleaner: TextCleaner,
    queue: VecDeque<QueuedTurn>,
    /// A turn was cancelled, or the agent or its server ended: queued messages do not start by themselves.
    held: bool,
    turn: Option<QueuedTurn>,
    process: Option<AgentProcess>,
    log: Option<RunLog>,
    answered: VecDeque<String>,
    client_results: (mpsc::Sender<ClientResult>, mpsc::Receiver<ClientResult>),
    error: Option<String>,
    idle_since: Instant,
    /// The published state may have changed.
    changed: bool,
}

impl Actor {
    pub(super) fn new(
        place: ActorContext,
        session: Session,
        run: RunRow,
        context: RunContext,
        state: watch::Sender<RunState>,
        waiting: Vec<(u64, Prompt)>,
    ) -> Self {
        let queue: VecDeque<QueuedTurn> = waiting
            .into_iter()
            .map(|(number, prompt)| QueuedTurn::waiting(number, prompt))
            .collect();
        let ActorContext { store, ingest, hub, waiters, lease, attribution } = place;
        Actor {
            cleaner: ingest.cleaner(&run.cwd),
            store,
            ingest,
            hub,
            waiters,
            lease,
            attribution,
            fenced: false,
            session,
            run,
            context,
            state,
            held: !queue.is_empty(),
            queue,
            turn: None,
            process: None,
            log: None,
            answered: VecDeque::new(),
            client_results: mpsc::channel(64),
            error: None,
            idle_since: Instant::now(),
            changed: true,
        }
    }

    pub(super) async fn run(mut self, commands: &mut mpsc::Receiver<RunCommand>) {
        loop {
            self.start_next_turn().await;
            if self.fenced || self.lease.as_ref().is_some_and(Lease::is_lost) {
                return self.abandon().await;
            }
            if std::mem::take(&mut self.changed) {
                self.publish_state();
            }
            let deadline =
                self.silence_deadline().map_or(self.deadline(), |at| at.min(self.deadline()));
            let is_idle = self.process.is_none() && self.turn.is_none() && self.queue.is_empty();
            if is_idle && self.idle_since.elapsed() > IDLE_TIMEOUT {
                return;
            }
            let Actor { process, client_results, lease, .. } = &mut self;
            let event = tokio::select! {
                command = commands.recv() => ActorEvent::Command(command),
                event = next_agent_event(process) => event,
                Some((id, client_results)) = client_results.1.recv() => ActorEvent::ClientResult(id, client_results),
                () = tokio::time::sleep_until(deadline.into()) => ActorEvent::Deadline,
                () = lease_changed(lease) => ActorEvent::LeaseChanged,
            };
            // Most lines change only the log; effects that change the state set the flag themselves.
            self.changed = !matches!(event, ActorEvent::Lines(Some(_)) | ActorEvent::LeaseChanged);
            match event {
                ActorEvent::Command(None | Some(RunCommand::Close)) => {
                    // Callers that wait for the end expect the queue to be gone.
                    self.shutdown().await;
                    self.publish_state();
                    return;
                }
                ActorEvent::Command(Some(command)) => self.handle(command).await,
                ActorEvent::Lines(Some(lines)) => self.on_lines(lines).await,
                ActorEvent::Lines(None) => self.on_exit().await,
                ActorEvent::FilesChanged(bodies) => self.log_events(bodies, false).await,
                ActorEvent::ClientResult(id, client_results) => {
                    if let Some(process) = &mut self.process {
                        let effects = process.driver.on_client_result(&id, client_results);
                        self.apply(effects).await;
                    }
                }
                ActorEvent::Deadline => self.on_deadline().await,
                ActorEvent::LeaseChanged => {}
            }
        }
    }

    async fn handle(&mut self, command: RunCommand) {
        match command {
            RunCommand::Message { row, prompt, respond } => {
                let progress = self.enqueue(row, prompt).await;
                // A client that reads the state after this answer must see the message.
                self.publish_state();
                let _ = respond.send(progress);
            }
            RunCommand::Open(respond) => {
                self.ensure_process().await;
                let _ = respond.send(true);
            }
            RunCommand::Cancel(respond) => {
                let _ = respond.send(self.cancel().await);
            }
            RunCommand::Stop(respond) => {
                let was = self.process.is_some();
                // Otherwise the next queued message would restart the agent at once.
                self.hold_queue();
                self.stop_process("stopped").await;
                let _ = respond.send(was);
            }
            RunCommand::CancelQueued { number, respond } => {
                let at = self.queue.iter().position(|t| t.number == number);
                let taken = at.and_then(|at| self.queue.remove(at));
                if let Some(turn) = &taken {
                    self.finish_turn(turn, MessageState::Dropped, None).await;
                }
                let _ = respond.send(taken.is_some());
            }
            RunCommand::Configure { settings, hold, respond } => {
                let _ = respond.send(self.configure(&settings, hold).await);
            }
            RunCommand::Answer { request, reply, respond } => {
                let _ = respond.send(self.submit_reply(&request, &reply).await);
            }
            RunCommand::Close => {}
        }
    }

    /// Queues a message. A message that is already queued or running is not queued twice.
    async fn enqueue(
        &mut self,
        mut row: MessageRow,
        prompt: Prompt,
    ) -> watch::Receiver<TurnProgress> {
        if let Some(turn) = self.queue.iter().find(|t| t.number == row.number && self.held) {
            // The time of its release is unknown: the follower gets a closed channel, which means held.
            return watch::channel(*turn.progress.borrow()).1;
        }
        let mut all = self.turn.iter().chain(&self.queue);
        if let Some(turn) = all.find(|t| t.number == row.number) {
            return turn.progress.subscribe();
        }
        // The turn may have ended since the row was read.
        if let Ok(Some(now)) = self.store.message(self.session.key, row.number).await {
            row = now;
        }
        let (progress, receiver) = watch::channel(TurnProgress::of(&row));
        if TurnProgress::of(&row).is_over() {
            return receiver;
        }
        let turn =
            QueuedTurn { number: row.number, prompt, progress, sent: false, cancelled: None };
        // A new message after a stop goes before the held ones.
        if std::mem::take(&mut self.held) {
            self.queue.push_front(turn);
        } else {
            self.queue.push_back(turn);
        }
        receiver
    }

    async fn cancel(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        self.held = true;
        if !turn.sent {
            // The agent has not started the turn: there is nothing to wait for.
            let turn = self.turn.take();
            if let Some(turn) = turn {
                self.finish_turn(&turn, MessageState::Dropped, None).await;
            }
            return true;
        }
        turn.cancelled.get_or_insert_with(Instant::now);
        if let Some(process) = &mut self.process {
            let effects = process.driver.cancel();
            self.apply(effects).await;
        }
        true
    }

    async fn notice(&mut self, kind: &str, text: &str) {
        let note = Note { kind: Raw::new(kind), text: Raw::new(text) };
        self.log_events(vec![Body::Notice(note)], false).await;
    }

    /// Appends events of narrows itself to the log.
    async fn log_events(&mut self, bodies: Vec<Body<Raw>>, end: bool) {
        if bodies.is_empty() {
            return;
        }
        if self.log.is_none() {
            let roots = vec![self.run.cwd.clone()];
            let session = self.session.clone();
            let fence = self.fence();
            self.log = RunLog::open(&self.store, &self.ingest, session, roots, fence).await.ok();
        }
        let format =
            self.process.as_ref().map_or(narrows::Format::Auto, |process| process.driver.format());
        if let Some(log) = &mut self.log
            && let Err(error) = log.append_events(format, bodies, end).await
        {
            self.on_store_error(&error, "cannot log an event of a run");
        }
    }

    fn redact(&mut self, text: &str) -> String {
        self.cleaner.text(text, narrows::sanitize::Mode::Text).as_str().to_owned()
    }
}

enum ActorEvent {
    Command(Option<RunCommand>),
    Lines(Option<Vec<AgentLine>>),
    FilesChanged(Vec<Body<Raw>>),
    ClientResult(Value, Result<Value, String>),
    Deadline,
    /// The lease was renewed or lost.
    LeaseChanged,
}

/// Waits for output of the agent or changes of its files.
async fn next_agent_event(process: &mut Option<AgentProcess>) -> ActorEvent {
    let Some(AgentProcess { child, files, .. }) = process else {
        return std::future::pending().await;
    };
    tokio::select! {
        lines = child.lines() => ActorEvent::Lines(lines),
        bodies = files.next() => ActorEvent::FilesChanged(bodies),
    }
}

async fn lease_changed(lease: &mut Option<Lease>) {
    match lease {
        Some(lease) => lease.changed().await,
        None => std::future::pending().await,
    }
}

fn now() -> String {
    Time::from_millis(narrows_store::now()).as_str().to_owned()
}
