//! Turns: how far they are, what is told of them, and what an ended server left of them.

use super::Accepted;
use super::driver::Prompt;
use super::feed::Feed;
use crate::hub::{Ahead, Hub};
use crate::intake::{self, Intake};
use crate::stream::{After, Filter, Subscription, View, Wire};
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

/// How far a message's turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) state: MessageState,
    /// The log's last event before it.
    pub(crate) after: Option<u64>,
    /// The event that ended it.
    pub(crate) until: Option<u64>,
}

impl Progress {
    pub(crate) fn of(row: &MessageRow) -> Self {
        Progress { state: row.state, after: row.after, until: row.until }
    }

    pub(crate) fn is_over(self) -> bool {
        matches!(self.state, MessageState::Done | MessageState::Dropped)
    }
}

/// What is said in the midst of a turn: with none of these another one begins.
const MIDST: [&str; 4] =
    ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];
/// How soon a database that was away is asked again.
const AGAIN: Duration = Duration::from_millis(300);

/// One turn, as packets: from its prompt to its end.
#[derive(Debug)]
pub(crate) struct TurnFrames {
    hub: Hub,
    session: Session,
    number: u64,
    progress: watch::Receiver<Progress>,
    subscription: Option<Subscription>,
    over: bool,
}

impl TurnFrames {
    pub(crate) fn new(hub: &Hub, session: Session, accepted: Accepted) -> Self {
        let Accepted { number, progress } = accepted;
        TurnFrames { hub: hub.clone(), session, number, progress, subscription: None, over: false }
    }

    /// The next bytes; none after the turn's last packet.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let mut now = *self.progress.borrow_and_update();
            if self.over {
                return Ok(None);
            }
            if self.subscription.is_none() {
                if let Some(after) = now.after {
                    self.subscribe(after);
                } else if now.is_over() {
                    self.over = true;
                    return Ok(Some(dropped()));
                } else if self.progress.changed().await.is_err() {
                    // Nobody runs it any more, and it waits still.
                    self.over = true;
                    return Ok(Some(held()));
                }
                continue;
            }
            let mut sure = None;
            if now.until.is_none() && self.hub.store().is_shared() {
                let Some((to, row)) = self.look_ahead().await? else { continue };
                sure = Some(to);
                now = row.unwrap_or(now);
            }
            let Some(subscription) = &mut self.subscription else { continue };
            if let Some(until) = now.until {
                subscription.until(until);
                if subscription.has_told(until) {
                    return Ok(None);
                }
            } else if let Some(to) = sure {
                subscription.until(to);
                return crate::stream::next_bytes(subscription).await;
            }
            tokio::select! {
                // The end is known before another turn begins: what lies ahead may hold both.
                biased;
                // Whoever ran the turn may be gone: the log tells its end, or nobody does.
                changed = self.progress.changed(), if now.until.is_none() => {
                    if changed.is_err() && self.progress.borrow().until.is_none() {
                        self.over = true;
                    }
                }
                bytes = crate::stream::next_bytes(subscription) => return bytes,
            }
        }
    }

    fn subscribe(&mut self, after: u64) {
        // Another node may have written so far, of which nothing was heard here yet.
        self.session.seq = self.session.seq.max(after);
        let after = Cursor { epoch: self.session.epoch.clone(), place: Place::after(after) };
        let after = After::Given(after.to_string());
        let (view, filter) = (View::Packets, Filter::default());
        let mut made = Subscription::new(&self.hub, &self.session, view, filter, Wire::Sse, &after);
        made.only_packets();
        self.subscription = Some(made);
    }

    /// Waits for what comes next. Where another node may run the turn, the log may be known further
    /// than the turn, and hold another one: returns how much of it belongs to this one, and how the
    /// turn stood after that was known. None when it is to be looked at anew.
    async fn look_ahead(&mut self) -> Result<Option<(u64, Option<Progress>)>> {
        let Some(subscription) = &self.subscription else { return Ok(None) };
        let told = Cursor::parse(&subscription.cursor()).map_or(0, |c| c.place.seq);
        let tail = self.hub.tail(&self.session);
        let mut waker = tail.waker();
        let head = match tail.after(told) {
            Ahead::Batch(batch) if batch.rows().iter().all(is_midst) => {
                return Ok(Some((batch.last(), None)));
            }
            Ahead::Batch(batch) => batch.last(),
            Ahead::Stored => tail.head(),
            // The subscription tells so.
            Ahead::Ended => return Ok(Some((told, None))),
            Ahead::Nothing { .. } => {
                tokio::select! {
                    () = waker.woken() => {}
                    changed = self.progress.changed() => {
                        self.over = changed.is_err() && self.progress.borrow().until.is_none();
                    }
                }
                return Ok(None);
            }
        };
        match self.hub.store().message(self.session.key, self.number).await {
            Ok(row) => Ok(Some((head, row.as_ref().map(Progress::of)))),
            Err(Error::Closed) => Err(Error::Closed),
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                Ok(None)
            }
        }
    }
}

fn is_midst(row: &EventRow) -> bool {
    MIDST.contains(&row.kind.as_ref())
}

/// The packet for a message whose turn never began.
fn dropped() -> Bytes {
    let details = serde_json::json!({"code": "NOT_SENT"});
    unsent("The message was taken back before its turn.", &details)
}

/// The packet for a message that stays in the queue without an agent.
fn held() -> Bytes {
    let details = serde_json::json!({"code": "HELD", "retryable": true});
    unsent(
        "This message waits, held: another turn was cancelled, or the agent or its server ended before \
         its own. It goes on after the next message, or when it is released.",
        &details,
    )
}

fn unsent(message: &str, details: &Value) -> Bytes {
    let packet = serde_json::json!({
        "type": "error",
        "message": message,
        "code": null,
        "details": details,
        "timestamp": Time::from_millis(narrows_store::now()),
    });
    format!("event: message\ndata: {packet}\n\n").into()
}

/// What a user said that no agent has heard. Pictures are mentioned: nobody has taken them.
pub(super) fn said(prompt: &Prompt) -> Body<Raw> {
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

/// Something failed for good: what was open stays undone.
pub(super) fn failed(message: &str, code: &str, details: &str) -> Body<Raw> {
    Body::Error(Box::new(Failure {
        message: Raw::new(message),
        code: Some(Tree::text(code)),
        details: (!details.is_empty()).then(|| Tree::text(details)),
        retryable: Some(true),
        is_end: true,
    }))
}

/// The turn was cancelled, and the agent did not tell so.
pub(super) fn cancelled() -> Body<Raw> {
    Body::PromptResponse(Box::new(Response {
        stop_reason: Some(Raw::new("cancelled")),
        ..Response::default()
    }))
}

/// Nobody will answer any more.
pub(super) fn withdrawn(request: &str, call: &str, question: bool) -> Body<Raw> {
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

/// So much waits for answers that a request was refused; the call that it was about goes no further.
pub(super) fn too_many(call: Option<&str>) -> Vec<Body<Raw>> {
    let count = limits::REQUESTS;
    let what = format!("{count} questions of the agent wait for an answer: one more was refused.");
    let note = Body::Notice(Note { kind: Raw::new("warning"), text: Raw::new(what) });
    let cancelled = call.map(|call| intake::cancelled_call(Raw::new(call)));
    cancelled.into_iter().chain([note]).collect()
}

/// Items that are looked through for questions.
const RECENT: usize = 2000;

/// What is closed of a session that nobody runs any more, and how that is told.
#[derive(Debug)]
pub(super) struct Left {
    /// The number by which whoever closes it holds the session.
    pub(super) fence: Option<u64>,
    pub(super) what: &'static str,
    pub(super) code: &'static str,
    /// It is told though no turn was open.
    pub(super) told: bool,
}

/// Closes what an ended server left open: its agents are gone.
pub(super) async fn settle(store: &Store, intake: &Intake) -> Result<()> {
    for id in store.unfinished().await? {
        let session = store.session(&id).await?;
        let what = "narrows ended while the agent worked, and the agent with it.";
        let left = Left { fence: None, what, code: "AGENT_NOT_RUNNING", told: false };
        close(store, intake, &session, left).await?;
    }
    Ok(())
}

/// The messages of a session that wait for their turn, in order. One whose body cannot be read stays
/// in the table.
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
                tracing::error!(%error, session, number, "a message that waits cannot be read");
            }
        }
    }
    Ok(waiting)
}

/// Closes what is open of one session: a turn fails and questions are withdrawn. What waits goes on
/// waiting.
pub(super) async fn close(
    store: &Store,
    intake: &Intake,
    session: &Session,
    left: Left,
) -> Result<()> {
    let Left { fence, what, code, told } = left;
    let mut running = store.open_messages(session.key).await?;
    running.retain(|message| message.state == MessageState::Running);
    let kept = store.kept(session.key, RECENT).await?;
    let mut bodies: Vec<Body<Raw>> = kept.items.iter().filter_map(intake::withdrawn).collect();
    if running.is_empty() && bodies.is_empty() && !told {
        return Ok(());
    }
    bodies.push(if running.is_empty() {
        Body::Notice(Note { kind: Raw::new("warning"), text: Raw::new(what) })
    } else {
        failed(what, code, "")
    });
    let mut feed = Feed::open(store, intake, session.clone(), Vec::new(), fence).await?;
    feed.tell(Format::Auto, bodies, true).await?;
    for message in running {
        let (done, until) = (MessageState::Done, Some(feed.seq));
        store.set_message(session.key, message.number, done, (None, until), fence).await?;
    }
    Ok(())
}
