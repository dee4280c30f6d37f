//! The task of one session that is run: its agent, its queue, its turns.

mod asked;
mod begin;
mod ending;
mod kept;
mod show;
mod speak;

use super::Refusal;
use super::child::{Child, Line};
use super::driver::{Chosen, Driver, Prompt, Reply};
use super::far::{Lease, Wakes};
use super::feed::Feed;
use super::files::Files;
use super::machine::Machine;
use super::state::{Known, RunState};
use super::turns::Progress;
use super::writers::Writers;
use crate::hub::Hub;
use crate::intake::{Attended, Intake};
use narrows::event::Note;
use narrows::time::Time;
use narrows::{Body, Raw, TextCleaner};
use narrows_store::{MessageRow, MessageState, RunRow, Session, Store};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Answered questions that are remembered, to tell who comes late.
const MAX_ANSWERED: usize = 1024;
/// A task without a process ends after so long.
const AT_REST: Duration = Duration::from_mins(5);
/// Lines of standard error that are told.
const LAST_WORDS: usize = 12;

/// What the task is asked to do.
#[derive(Debug)]
pub(super) enum Order {
    Message {
        row: MessageRow,
        prompt: Prompt,
        tell: oneshot::Sender<watch::Receiver<Progress>>,
    },
    /// The agent is to be there before anything is said.
    Open(oneshot::Sender<bool>),
    Cancel(oneshot::Sender<bool>),
    Stop(oneshot::Sender<bool>),
    TakeBack {
        number: u64,
        tell: oneshot::Sender<bool>,
    },
    Choose {
        chosen: Chosen,
        hold: Option<bool>,
        tell: oneshot::Sender<Result<(), Refusal>>,
    },
    Answer {
        request: String,
        reply: Reply,
        tell: oneshot::Sender<Result<(), Refusal>>,
    },
    Close,
}

/// A message and its turn.
#[derive(Debug)]
struct Turn {
    number: u64,
    prompt: Prompt,
    progress: watch::Sender<Progress>,
    sent: bool,
    cancelled: Option<Instant>,
}

impl Turn {
    /// That of a message which an earlier task of the session has left.
    fn waiting(number: u64, prompt: Prompt) -> Turn {
        let progress = Progress { state: MessageState::Queued, after: None, until: None };
        let progress = watch::channel(progress).0;
        Turn { number, prompt, progress, sent: false, cancelled: None }
    }
}

/// A process and how it is spoken to.
#[derive(Debug)]
struct Process {
    child: Child,
    driver: Driver,
    files: Files,
    machine: Machine,
    began: Instant,
    rested: Instant,
    /// When the last prompt was sent.
    prompted: Instant,
    ready: bool,
    /// It was said what to do about its silence.
    hinted: bool,
    /// Questions that wait: their calls, and whether the agent asks or wants leave.
    asked: BTreeMap<String, (String, bool)>,
    /// As long as it lives, its session is not over.
    _attended: Attended,
}

/// What an agent got of the machine: the request, and the answer to it.
type Given = (Value, Result<Value, String>);

/// Where a session is run: what its task works with.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) intake: Intake,
    pub(super) hub: Hub,
    pub(super) wakes: Arc<Wakes>,
    /// The right to run it, where other nodes could.
    pub(super) lease: Option<Lease>,
    pub(super) writers: Arc<Writers>,
}

#[derive(Debug)]
pub(super) struct Actor {
    store: Store,
    intake: Intake,
    hub: Hub,
    wakes: Arc<Wakes>,
    lease: Option<Lease>,
    writers: Arc<Writers>,
    /// Another node has the session: nothing is written any more.
    fenced: bool,
    session: Session,
    run: RunRow,
    known: Known,
    state: watch::Sender<RunState>,
    cleaner: TextCleaner,
    queue: VecDeque<Turn>,
    /// A turn was cancelled, or the agent or its server ended: what waits does not begin by itself.
    held: bool,
    turn: Option<Turn>,
    process: Option<Process>,
    feed: Option<Feed>,
    answered: VecDeque<String>,
    given: (mpsc::Sender<Given>, mpsc::Receiver<Given>),
    error: Option<String>,
    rested: Instant,
    /// Something happened that may be shown.
    changed: bool,
}

impl Actor {
    pub(super) fn new(
        place: Place,
        session: Session,
        run: RunRow,
        known: Known,
        state: watch::Sender<RunState>,
        waiting: Vec<(u64, Prompt)>,
    ) -> Self {
        let queue: VecDeque<Turn> =
            waiting.into_iter().map(|(number, prompt)| Turn::waiting(number, prompt)).collect();
        let Place { store, intake, hub, wakes, lease, writers } = place;
        Actor {
            cleaner: intake.cleaner(&run.cwd),
            store,
            intake,
            hub,
            wakes,
            lease,
            writers,
            fenced: false,
            session,
            run,
            known,
            state,
            held: !queue.is_empty(),
            queue,
            turn: None,
            process: None,
            feed: None,
            answered: VecDeque::new(),
            given: mpsc::channel(64),
            error: None,
            rested: Instant::now(),
            changed: true,
        }
    }

    pub(super) async fn run(mut self, orders: &mut mpsc::Receiver<Order>) {
        loop {
            self.go_on().await;
            if self.fenced || self.lease.as_ref().is_some_and(Lease::is_lost) {
                return self.cut().await;
            }
            if std::mem::take(&mut self.changed) {
                self.show();
            }
            let deadline = self.silent().map_or(self.deadline(), |at| at.min(self.deadline()));
            let at_rest = self.process.is_none() && self.turn.is_none() && self.queue.is_empty();
            if at_rest && self.rested.elapsed() > AT_REST {
                return;
            }
            let Actor { process, given, lease, .. } = &mut self;
            let happened = tokio::select! {
                order = orders.recv() => Happened::Order(order),
                happened = agent(process) => happened,
                Some((id, given)) = given.1.recv() => Happened::Given(id, given),
                () = tokio::time::sleep_until(deadline.into()) => Happened::Late,
                () = held(lease) => Happened::Held,
            };
            // Most lines change nothing but the log; what they bring about tells so itself.
            self.changed = !matches!(happened, Happened::Lines(Some(_)) | Happened::Held);
            match happened {
                Happened::Order(None | Some(Order::Close)) => {
                    // Whoever waits for the end waits for the queue to go.
                    self.shut().await;
                    self.show();
                    return;
                }
                Happened::Order(Some(order)) => self.obey(order).await,
                Happened::Lines(Some(lines)) => self.heard(lines).await,
                Happened::Lines(None) => self.gone().await,
                Happened::Files(bodies) => self.tell(bodies, false).await,
                Happened::Given(id, given) => {
                    if let Some(process) = &mut self.process {
                        let effects = process.driver.give(&id, given);
                        self.apply(effects).await;
                    }
                }
                Happened::Late => self.late().await,
                Happened::Held => {}
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Message { row, prompt, tell } => {
                let progress = self.accept(row, prompt).await;
                // Whoever asks after the answer finds it.
                self.show();
                let _ = tell.send(progress);
            }
            Order::Open(tell) => {
                self.open().await;
                let _ = tell.send(true);
            }
            Order::Cancel(tell) => {
                let _ = tell.send(self.cancel().await);
            }
            Order::Stop(tell) => {
                let was = self.process.is_some();
                // Or the next message would start it again at once.
                self.hold_waiting();
                self.end("stopped").await;
                let _ = tell.send(was);
            }
            Order::TakeBack { number, tell } => {
                let at = self.queue.iter().position(|t| t.number == number);
                let taken = at.and_then(|at| self.queue.remove(at));
                if let Some(turn) = &taken {
                    self.close_turn(turn, MessageState::Dropped, None).await;
                }
                let _ = tell.send(taken.is_some());
            }
            Order::Choose { chosen, hold, tell } => {
                let _ = tell.send(self.choose(&chosen, hold).await);
            }
            Order::Answer { request, reply, tell } => {
                let _ = tell.send(self.answer(&request, &reply).await);
            }
            Order::Close => {}
        }
    }

    /// Takes a message; one that is here already is not taken twice.
    async fn accept(&mut self, mut row: MessageRow, prompt: Prompt) -> watch::Receiver<Progress> {
        if let Some(turn) = self.queue.iter().find(|t| t.number == row.number && self.held) {
            // Nobody knows when it is released: whoever follows it is told that it is held.
            return watch::channel(*turn.progress.borrow()).1;
        }
        let mut all = self.turn.iter().chain(&self.queue);
        if let Some(turn) = all.find(|t| t.number == row.number) {
            return turn.progress.subscribe();
        }
        // It may have come and gone since the row was read.
        if let Ok(Some(now)) = self.store.message(self.session.key, row.number).await {
            row = now;
        }
        let (progress, told) = watch::channel(Progress::of(&row));
        if Progress::of(&row).is_over() {
            return told;
        }
        let turn = Turn { number: row.number, prompt, progress, sent: false, cancelled: None };
        // Whoever stopped the agent and now says something else means this first.
        if std::mem::take(&mut self.held) {
            self.queue.push_front(turn);
        } else {
            self.queue.push_back(turn);
        }
        told
    }

    async fn cancel(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        self.held = true;
        if !turn.sent {
            // The agent has not begun: there is nothing to wait for.
            let turn = self.turn.take();
            if let Some(turn) = turn {
                self.close_turn(&turn, MessageState::Dropped, None).await;
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
        self.tell(vec![Body::Notice(note)], false).await;
    }

    /// Tells what narrows itself has to tell.
    async fn tell(&mut self, bodies: Vec<Body<Raw>>, end: bool) {
        if bodies.is_empty() {
            return;
        }
        if self.feed.is_none() {
            let roots = vec![self.run.cwd.clone()];
            let session = self.session.clone();
            let fence = self.fence();
            self.feed = Feed::open(&self.store, &self.intake, session, roots, fence).await.ok();
        }
        let format =
            self.process.as_ref().map_or(narrows::Format::Auto, |process| process.driver.format());
        if let Some(feed) = &mut self.feed
            && let Err(error) = feed.tell(format, bodies, end).await
        {
            self.refused(&error, "what is to be told could not be kept");
        }
    }

    fn clean(&mut self, text: &str) -> String {
        self.cleaner.text(text, narrows::sanitize::Mode::Text).as_str().to_owned()
    }
}

enum Happened {
    Order(Option<Order>),
    Lines(Option<Vec<Line>>),
    Files(Vec<Body<Raw>>),
    Given(Value, Result<Value, String>),
    Late,
    /// There is news of the right to run it.
    Held,
}

/// Waits for what an agent says, or does to its files.
async fn agent(process: &mut Option<Process>) -> Happened {
    let Some(Process { child, files, .. }) = process else { return std::future::pending().await };
    tokio::select! {
        lines = child.lines() => Happened::Lines(lines),
        bodies = files.next() => Happened::Files(bodies),
    }
}

async fn held(lease: &mut Option<Lease>) {
    match lease {
        Some(lease) => lease.changed().await,
        None => std::future::pending().await,
    }
}

fn now() -> String {
    Time::from_millis(narrows_store::now()).as_str().to_owned()
}
