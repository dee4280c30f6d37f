//! Answers to questions of agents, given over a socket.

use crate::api::run::GiveAnswer;
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult};
use crate::state::AppState;
use http::StatusCode;
use narrows_store::Scope;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answers a question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerMessage {
    /// The session, by its id.
    pub session_id: String,
    /// The question.
    pub request_id: String,
    /// The answer: an option, answers to the agent's questions, or neither.
    #[serde(flatten)]
    pub answer: GiveAnswer,
}

/// Gives the answer to the agent, if the token may.
pub(super) async fn submit(app: &AppState, grant: &Grant, message: AnswerMessage) -> ApiResult<()> {
    if !grant.scopes.has(Scope::Approve) {
        let what = "this token may not answer agents: it needs the scope `approve`";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    let found = app.store.session(&message.session_id).await?;
    if !grant.sight.sees(&found.id, &found.tags) {
        return Err(ApiError::not_found("session"));
    }
    Ok(app.runs.answer(&found, &message.request_id, message.answer.into_reply()?).await?)
}
