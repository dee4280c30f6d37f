//! Requests to a run in a form that nodes can exchange, and their responses.

use super::actor::RunCommand;
use super::driver::{PermissionReply, Prompt, RunSettings};
use super::turns::TurnProgress;
use super::{ActorHandle, RunError, Runs};
use narrows_store::{Error, MessageState};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

/// A request to a session's run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RunRequest {
    Send {
        prompt: Prompt,
        key: Option<String>,
    },
    /// Start the agent.
    Open,
    Cancel,
    Stop,
    #[serde(rename = "TakeBack")]
    CancelQueued {
        number: u64,
    },
    #[serde(rename = "Choose")]
    Configure {
        #[serde(rename = "chosen")]
        settings: RunSettings,
        #[serde(default)]
        hold: Option<bool>,
    },
    Answer {
        request: String,
        reply: PermissionReply,
    },
}

/// The response to a request.
#[derive(Debug)]
pub(super) enum RunResponse {
    /// A message was queued; its progress, if this node knows it.
    Message { number: u64, progress: Option<watch::Receiver<TurnProgress>> },
    /// Whether there was something to do.
    Done(bool),
}

impl RunResponse {
    pub(super) fn is_done(&self) -> bool {
        matches!(self, RunResponse::Done(true) | RunResponse::Message { .. })
    }
}

impl Runs {
    /// Executes a request with the session's actor.
    pub(super) async fn execute(
        &self,
        handle: &ActorHandle,
        session: i64,
        request: &RunRequest,
    ) -> Result<RunResponse, RunError> {
        let done = match request {
            RunRequest::Send { prompt, key } => {
                return self.queue_message(handle, session, prompt, key.clone()).await;
            }
            RunRequest::Open => send_command(handle, RunCommand::Open).await?,
            RunRequest::Cancel => send_command(handle, RunCommand::Cancel).await?,
            RunRequest::Stop => send_command(handle, RunCommand::Stop).await?,
            RunRequest::CancelQueued { number } => {
                let number = *number;
                send_command(handle, |respond| RunCommand::CancelQueued { number, respond }).await?
            }
            RunRequest::Configure { settings, hold } => {
                let (settings, hold) = (settings.clone(), *hold);
                send_command(handle, |respond| RunCommand::Configure { settings, hold, respond })
                    .await??;
                true
            }
            RunRequest::Answer { request, reply } => {
                let (request, reply) = (request.clone(), reply.clone());
                send_command(handle, |respond| RunCommand::Answer { request, reply, respond })
                    .await??;
                true
            }
        };
        Ok(RunResponse::Done(done))
    }

    async fn queue_message(
        &self,
        handle: &ActorHandle,
        session: i64,
        prompt: &Prompt,
        key: Option<String>,
    ) -> Result<RunResponse, RunError> {
        let body = serde_json::to_string(prompt)
            .map_err(|e| RunError::Store(Error::Invalid(e.to_string())))?;
        if handle.state.borrow().queue.len() >= self.options().limits.queue {
            return Err(RunError::Full("too many messages wait for this agent".into()));
        }
        let store = &self.inner.store;
        let has_key = key.is_some();
        let (row, new) = store.add_message(session, key, body, handle.fence).await?;
        let number = row.number;
        if !new && matches!(row.state, MessageState::Done | MessageState::Dropped) {
            let (_, progress) = watch::channel(TurnProgress::of(&row));
            return Ok(RunResponse::Message { number, progress: Some(progress) });
        }
        let prompt = prompt.clone();
        match send_command(handle, |respond| RunCommand::Message { row, prompt, respond }).await {
            Ok(progress) => Ok(RunResponse::Message { number, progress: Some(progress) }),
            Err(refusal) => {
                // The actor has just ended. A retry without a key would send another message.
                if new && !has_key {
                    let (dropped, none) = (MessageState::Dropped, (None, None));
                    store.set_message(session, number, dropped, none, handle.fence).await?;
                }
                Err(refusal)
            }
        }
    }
}

/// Sends a command and waits for the response.
async fn send_command<T>(
    handle: &ActorHandle,
    command: impl FnOnce(oneshot::Sender<T>) -> RunCommand,
) -> Result<T, RunError> {
    let (respond, response) = oneshot::channel();
    let gone = || RunError::Store(Error::Closed);
    handle.commands.send(command(respond)).await.map_err(|_| gone())?;
    response.await.map_err(|_| gone())
}
