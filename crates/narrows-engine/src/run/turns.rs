//! Turns: the progress of a message, the stream of its packets, and recovery of turns that an ended server
//! left open.

use super::AcceptedMessage;
use super::driver::Prompt;
use super::log_writer::RunLog;
use crate::ingest::{self, Ingest};
use crate::live::{After, Filter, Subscription, View, Wire};
use crate::live::{Ahead, Hub};
use bytes::Bytes;
use narrows::event::{Answer, Decision, Failure, Message, Note, Origin, QuestionAnswer, Response};
use narrows::time::Time;
use narrows::{Body, Format, Raw, Tree, limits};
use narrows_store::{
    Cursor, Error, EventRow, MessageRow, MessageState, Place, Result, Session, Store,
};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch;

/// The progress of a message's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnProgress {
    pub state: MessageState,
    /// The seq of the last event before the turn.
    pub after: Option<u64>,
    /// The seq of the event that ended it.
    pub until: Option<u64>,
}

impl TurnProgress {
    pub(crate) fn of(row: &MessageRow) -> Self {
        TurnProgress { state: row.state, after: row.after, until: row.until }
    }

    pub(crate) fn is_over(self) -> bool {
        matches!(self.state, MessageState::Done | MessageState::Dropped)
    }
}

/// Updates that occur only within a turn: no turn begins with them.
const MID_TURN_UPDATES: [&str; 4] =
    ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];
/// Delay before a request to an unavailable database is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(300);

/// The packets of one turn, from its prompt to its end.
#[derive(Debug)]
pub struct TurnStream {
    hub: Hub,
    session: Session,
    number: u64,
    progress: watch::Receiver<TurnProgress>,
    subscription: Option<Subscription>,
    is_ended: bool,
}

impl TurnStream {
    pub fn new(hub: &Hub, session: Session, accepted: AcceptedMessage) -> Self {
        let AcceptedMessage { number, progress } = accepted;
        TurnStream {
            hub: hub.clone(),
            session,
            number,
            progress,
            subscription: None,
            is_ended: false,
        }
    }

    /// The next bytes; `None` after the turn's last packet.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let mut now = *self.progress.borrow_and_update();
            if self.is_ended {
                return Ok(None);
            }
            if self.subscription.is_none() {
                if let Some(after) = now.after {
                    self.subscribe(after);
                } else if now.is_over() {
                    self.is_ended = true;
                    return Ok(Some(dropped_packet()));
                } else if self.progress.changed().await.is_err() {
                    // No actor owns the message, and it is still queued.
                    self.is_ended = true;
                    return Ok(Some(held_packet()));
                }
                continue;
            }
            let mut boundary = None;
            if now.until.is_none() && self.hub.store().is_shared() {
                let Some((to, row)) = self.turn_boundary().await? else { continue };
                boundary = Some(to);
                now = row.unwrap_or(now);
            }
            let Some(subscription) = &mut self.subscription else { continue };
            if let Some(until) = now.until {
                subscription.until(until);
                if subscription.has_told(until) {
                    return Ok(None);
                }
            } else if let Some(to) = boundary {
                subscription.until(to);
                return subscription.next_bytes().await;
            }
            tokio::select! {
                // The end is known before the next turn starts: the log may hold both.
                biased;
                // If the turn's node is gone, the log has its end, or nothing more comes.
                changed = self.progress.changed(), if now.until.is_none() => {
                    if changed.is_err() && self.progress.borrow().until.is_none() {
                        self.is_ended = true;
                    }
                }
                bytes = subscription.next_bytes() => return bytes,
            }
        }
    }

    fn subscribe(&mut self, after: u64) {
        // Another node may have written up to there, which this node has not seen yet.
        self.session.seq = self.session.seq.max(after);
        let after = Cursor { epoch: self.session.epoch.clone(), place: Place::after(after) };
        let after = After::Given(after.to_string());
        let (view, filter) = (View::Packets, Filter::default());
        let mut subscription =
            Subscription::new(&self.hub, &self.session, view, filter, Wire::Sse, &after);
        subscription.only_packets();
        self.subscription = Some(subscription);
    }

    /// Waits for the next events. If another node may run the turn, the log may be known further than the
    /// turn and may contain the next one: returns the seq up to which it belongs to this turn, and the
    /// turn's progress after that seq was known. `None` means to look again.
    async fn turn_boundary(&mut self) -> Result<Option<(u64, Option<TurnProgress>)>> {
        let Some(subscription) = &self.subscription else { return Ok(None) };
        let announce = Cursor::parse(&subscription.cursor()).map_or(0, |c| c.place.seq);
        let tail = self.hub.tail(&self.session);
        let mut watcher = tail.waker();
        let head = match tail.after(announce) {
            Ahead::Batch(batch) if batch.rows().iter().all(is_mid_turn) => {
                return Ok(Some((batch.last(), None)));
            }
            Ahead::Batch(batch) => batch.last(),
            Ahead::Stored => tail.head(),
            // The subscription reports it.
            Ahead::Ended => return Ok(Some((announce, None))),
            Ahead::Nothing { .. } => {
                tokio::select! {
                    () = watcher.woken() => {}
                    changed = self.progress.changed() => {
                        self.is_ended = changed.is_err() && self.progress.borrow().until.is_none();
                    }
                }
                return Ok(None);
            }
        };
        match self.hub.store().message(self.session.key, self.number).await {
            Ok(row) => Ok(Some((head, row.as_ref().map(TurnProgress::of)))),
            Err(Error::Closed) => Err(Error::Closed),
            Err(_) => {
                tokio::time::sleep(RETRY_DELAY).await;
                Ok(None)
            }
        }
    }
}

fn is_mid_turn(row: &EventRow) -> bool {
    MID_TURN_UPDATES.contains(&row.kind.as_ref())
}

/// The packet for a message whose turn never started.
fn dropped_packet() -> Bytes {
    let details = serde_json::json!({"code": "NOT_SENT"});
    error_packet("The message was removed from the queue.", &details)
}

/// The packet for a message that stays queued without an agent.
fn held_packet() -> Bytes {
    let details = serde_json::json!({"code": "HELD", "retryable": true});
    error_packet(
        "This message waits, held: another turn was cancelled, or the agent or its server ended before \
         its own. It goes on after the next message, or when it is released.",
        &details,
    )
}

fn error_packet(message: &str, details: &Value) -> Bytes {
    let packet = serde_json::json!({
        "type": "error",
        "message": message,
        "code": null,
        "details": details,
        "timestamp": Time::from_millis(narrows_store::now()),
    });
    format!("event: message\ndata: {packet}\n\n").into()
}

/// A message that no agent received. Images are only mentioned: they were not stored.
pub(super) fn unsent_message(prompt: &Prompt) -> Body<Raw> {
    let pictures = prompt.images.iter().map(|image| format!("[picture: {}]", image.mime_type));
    let text = Some(prompt.text.clone()).filter(|text| !text.is_empty());
    let lines: Vec<String> = text.into_iter().chain(pictures).collect();
    Body::UserMessage(Message {
        text: Raw::new(lines.join("\n")),
        images: Vec::new(),
        origin: Origin::Client,
        block_id: None,
        whole: false,
    })
}

/// A final error: the turn ends with it.
pub(super) fn failure(message: &str, code: &str, details: &str) -> Body<Raw> {
    Body::Error(Box::new(Failure {
        message: Raw::new(message),
        code: Some(Tree::text(code)),
        details: (!details.is_empty()).then(|| Tree::text(details)),
        retryable: Some(true),
        is_end: true,
    }))
}

/// A cancelled turn whose end the agent did not report.
pub(super) fn cancelled() -> Body<Raw> {
    Body::PromptResponse(Box::new(Response {
        stop_reason: Some(Raw::new("cancelled")),
        ..Response::default()
    }))
}

/// Closes a request that can no longer be answered.
pub(super) fn request_closed(request: &str, call: &str, question: bool) -> Body<Raw> {
    if question {
        let (tool_call_id, answers) = (Raw::new(call), Vec::new());
        return Body::QuestionAnswer(Box::new(QuestionAnswer { tool_call_id, answers }));
    }
    Body::PermissionAnswer(Box::new(Answer {
        request_id: Raw::new(request),
        tool_call_id: Raw::new(call),
        decision: Decision::Cancelled,
        option_id: None,
        option: None,
        waited_ms: None,
    }))
}

/// A request was refused because too many are open; its tool call is cancelled.
pub(super) fn request_refused(call: Option<&str>) -> Vec<Body<Raw>> {
    let count = limits::REQUESTS;
    let what = format!("{count} questions of the agent wait for an answer: one more was refused.");
    let note = Body::Notice(Note { kind: Raw::new("warning"), text: Raw::new(what) });
    let cancelled = call.map(|call| ingest::cancelled_call(Raw::new(call)));
    cancelled.into_iter().chain([note]).collect()
}

/// Items that are searched for open requests.
const RECENT_ITEMS: usize = 2000;

/// How to close a session whose run was interrupted.
#[derive(Debug)]
pub(super) struct InterruptedTurns {
    /// The fencing token of the closing node.
    pub(super) fence: Option<u64>,
    pub(super) what: &'static str,
    pub(super) code: &'static str,
    /// Log the interruption even if no turn was open.
    pub(super) announce: bool,
}

/// Closes what an ended server left open: its agents are gone.
pub(super) async fn close_all(store: &Store, ingest: &Ingest) -> Result<()> {
    for id in store.unfinished().await? {
        let session = store.session(&id).await?;
        let what = "narrows ended while the agent worked, and the agent with it.";
        let interrupted =
            InterruptedTurns { fence: None, what, code: "AGENT_NOT_RUNNING", announce: false };
        close(store, ingest, &session, interrupted).await?;
    }
    Ok(())
}

/// The queued messages of a session in order. A message whose body cannot be read stays in the table.
pub(super) async fn waiting(store: &Store, session: i64) -> Result<Vec<(u64, Prompt)>> {
    let mut waiting = Vec::new();
    for message in store.open_messages(session).await? {
        if message.state != MessageState::Queued {
            continue;
        }
        match serde_json::from_str(&message.body) {
            Ok(prompt) => waiting.push((message.number, prompt)),
            Err(error) => {
                let number = message.number;
                tracing::error!(%error, session, number, "cannot read a queued message");
            }
        }
    }
    Ok(waiting)
}

/// Closes what is open of one session: the running turn fails and open requests are closed. Queued messages
/// stay queued.
pub(super) async fn close(
    store: &Store,
    ingest: &Ingest,
    session: &Session,
    interrupted: InterruptedTurns,
) -> Result<()> {
    let InterruptedTurns { fence, what, code, announce } = interrupted;
    let mut running = store.open_messages(session.key).await?;
    running.retain(|message| message.state == MessageState::Running);
    let kept = store.kept(session.key, RECENT_ITEMS).await?;
    let mut bodies: Vec<Body<Raw>> = kept.items.iter().filter_map(ingest::withdrawal).collect();
    if running.is_empty() && bodies.is_empty() && !announce {
        return Ok(());
    }
    bodies.push(if running.is_empty() {
        Body::Notice(Note { kind: Raw::new("warning"), text: Raw::new(what) })
    } else {
        failure(what, code, "")
    });
    let mut log = RunLog::open(store, ingest, session.clone(), Vec::new(), fence).await?;
    log.append_events(Format::Auto, bodies, true).await?;
    for message in running {
        let (done, until) = (MessageState::Done, Some(log.seq));
        store.set_message(session.key, message.number, done, (None, until), fence).await?;
    }
    Ok(())
}
