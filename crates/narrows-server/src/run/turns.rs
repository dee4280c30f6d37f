//! Turns: how far they are, what is told of them, and what an ended server left of them.

use crate::hub::Hub;
use crate::intake::Intake;
use crate::stream::{After, Filter, Subscription, View, Wire};
use bytes::Bytes;
use narrows::event::{Answer, Decision, Failure, QuestionAnswer, Response};
use narrows::item::ItemBody;
use narrows::{Body, Format, Raw, Tree};
use narrows_store::{Cursor, MessageRow, MessageState, Place, Result, Session, Store};
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

/// One turn, as packets: from its prompt to its end.
#[derive(Debug)]
pub(crate) struct TurnFrames {
    hub: Hub,
    session: Session,
    progress: watch::Receiver<Progress>,
    subscription: Option<Subscription>,
    over: bool,
}

impl TurnFrames {
    pub(crate) fn new(hub: &Hub, session: Session, progress: watch::Receiver<Progress>) -> Self {
        TurnFrames { hub: hub.clone(), session, progress, subscription: None, over: false }
    }

    /// The next bytes; none after the turn's last packet.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let now = *self.progress.borrow_and_update();
            if self.over {
                return Ok(None);
            }
            let Some(subscription) = &mut self.subscription else {
                if let Some(after) = now.after {
                    let after =
                        Cursor { epoch: self.session.epoch.clone(), place: Place::after(after) };
                    let after = After::Given(after.to_string());
                    let (view, filter) = (View::Packets, Filter::default());
                    let mut made = Subscription::new(
                        &self.hub,
                        &self.session,
                        view,
                        filter,
                        Wire::Sse,
                        &after,
                    );
                    made.only_packets();
                    self.subscription = Some(made);
                    continue;
                }
                if now.is_over() || self.progress.changed().await.is_err() {
                    self.over = true;
                    return Ok(Some(dropped()));
                }
                continue;
            };
            if let Some(until) = now.until {
                subscription.until(until);
                if subscription.has_told(until) {
                    return Ok(None);
                }
            }
            tokio::select! {
                bytes = crate::stream::next_bytes(subscription) => return bytes,
                // Whoever ran the turn may be gone: the log tells its end, or nobody does.
                changed = self.progress.changed(), if now.until.is_none() => {
                    if changed.is_err() && self.progress.borrow().until.is_none() {
                        self.over = true;
                    }
                }
            }
        }
    }
}

/// The packet for a message whose turn never began.
fn dropped() -> Bytes {
    let packet = r#"{"type":"error","message":"The message was taken back before its turn.","code":"NOT_SENT"}"#;
    format!("event: message\ndata: {packet}\n\n").into()
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
        usage: None,
        settles: false,
        cost_usd: None,
        duration_ms: None,
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
    }))
}

/// Items that are looked through for questions.
const RECENT: usize = 2000;

/// Closes what an ended server left open: its agents are gone.
pub(super) async fn settle(store: &Store, intake: &Intake) -> Result<()> {
    for (id, message) in store.open_messages().await? {
        let session = store.session(&id).await?;
        if message.state == MessageState::Queued {
            let dropped = MessageState::Dropped;
            store.set_message(session.key, message.number, dropped, None, None).await?;
            continue;
        }
        let kept = store.kept(session.key, RECENT).await?;
        let mut bodies: Vec<Body<Raw>> = Vec::new();
        for item in kept.items.iter().filter(|item| item.is_open()) {
            match &item.body {
                ItemBody::Permission { request_id, tool_call_id, .. } => {
                    bodies.push(withdrawn(request_id.as_str(), tool_call_id.as_str(), false));
                }
                ItemBody::Question { request_id: Some(_), tool_call_id, .. } => {
                    bodies.push(withdrawn("", tool_call_id.as_str(), true));
                }
                _ => {}
            }
        }
        let what = "narrows ended while the agent worked, and the agent with it.";
        bodies.push(failed(what, "AGENT_NOT_RUNNING", ""));
        let mut feed = super::feed::Feed::open(store, intake, session.clone(), Vec::new()).await?;
        feed.tell(Format::Auto, bodies, true).await?;
        let (done, until) = (MessageState::Done, Some(feed.seq));
        store.set_message(session.key, message.number, done, None, until).await?;
    }
    Ok(())
}
