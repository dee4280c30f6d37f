//! What can be wanted of a session's agent, in words that one node can give to another; and what
//! comes of it.

use super::actor::Order;
use super::driver::{Chosen, Prompt, Reply};
use super::turns::Progress;
use super::{Handle, Refusal, Runs};
use narrows_store::{Error, MessageState};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

/// What is wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Wanted {
    Send {
        prompt: Prompt,
        key: Option<String>,
    },
    /// That its agent is there.
    Open,
    Cancel,
    Stop,
    TakeBack {
        number: u64,
    },
    Choose {
        chosen: Chosen,
        #[serde(default)]
        hold: Option<bool>,
    },
    Answer {
        request: String,
        reply: Reply,
    },
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Got {
    /// A message was taken; how its turn goes, where that is known here.
    Message { number: u64, progress: Option<watch::Receiver<Progress>> },
    /// Whether there was something to do.
    Done(bool),
}

impl Got {
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Got::Done(true) | Got::Message { .. })
    }
}

impl Runs {
    /// Does it with a session's own task.
    pub(super) async fn obey(
        &self,
        handle: &Handle,
        session: i64,
        wanted: &Wanted,
    ) -> Result<Got, Refusal> {
        let done = match wanted {
            Wanted::Send { prompt, key } => {
                return self.take_message(handle, session, prompt, key.clone()).await;
            }
            Wanted::Open => ask(handle, Order::Open).await?,
            Wanted::Cancel => ask(handle, Order::Cancel).await?,
            Wanted::Stop => ask(handle, Order::Stop).await?,
            Wanted::TakeBack { number } => {
                let number = *number;
                ask(handle, |tell| Order::TakeBack { number, tell }).await?
            }
            Wanted::Choose { chosen, hold } => {
                let (chosen, hold) = (chosen.clone(), *hold);
                ask(handle, |tell| Order::Choose { chosen, hold, tell }).await??;
                true
            }
            Wanted::Answer { request, reply } => {
                let (request, reply) = (request.clone(), reply.clone());
                ask(handle, |tell| Order::Answer { request, reply, tell }).await??;
                true
            }
        };
        Ok(Got::Done(done))
    }

    async fn take_message(
        &self,
        handle: &Handle,
        session: i64,
        prompt: &Prompt,
        key: Option<String>,
    ) -> Result<Got, Refusal> {
        let body = serde_json::to_string(prompt)
            .map_err(|e| Refusal::Store(Error::Invalid(e.to_string())))?;
        if handle.state.borrow().queue.len() >= self.options().limits.queue {
            return Err(Refusal::Full("too many messages wait for this agent".into()));
        }
        let store = &self.inner.store;
        let has_key = key.is_some();
        let (row, new) = store.add_message(session, key, body, handle.fence).await?;
        let number = row.number;
        if !new && matches!(row.state, MessageState::Done | MessageState::Dropped) {
            let (_, progress) = watch::channel(Progress::of(&row));
            return Ok(Got::Message { number, progress: Some(progress) });
        }
        let prompt = prompt.clone();
        match ask(handle, |tell| Order::Message { row, prompt, tell }).await {
            Ok(progress) => Ok(Got::Message { number, progress: Some(progress) }),
            Err(refusal) => {
                // The task has just ended. Whoever sends it again without a key sends another one.
                if new && !has_key {
                    let (dropped, none) = (MessageState::Dropped, (None, None));
                    store.set_message(session, number, dropped, none, handle.fence).await?;
                }
                Err(refusal)
            }
        }
    }
}

/// Gives an order, and waits for what comes of it.
async fn ask<T>(
    handle: &Handle,
    order: impl FnOnce(oneshot::Sender<T>) -> Order,
) -> Result<T, Refusal> {
    let (tell, told) = oneshot::channel();
    let gone = || Refusal::Store(Error::Closed);
    handle.orders.send(order(tell)).await.map_err(|_| gone())?;
    told.await.map_err(|_| gone())
}
