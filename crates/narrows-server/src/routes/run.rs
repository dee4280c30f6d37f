//! Running agents: start, send, cancel, answer.

use super::agent_sessions::resume_agent_session;
use super::extract::{Json, PathParams, QueryParams, session};
use super::sessions::make;
use super::stream::open_stream;
use crate::api::NewSession;
use crate::api::run::{
    AgentInfo, AgentList, Done, GiveAnswer, MessageTaken, NewRun, RunChange, RunQuery, SendMessage,
    SendQuery,
};
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use crate::stream::follow_turn;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use narrows_engine::live;
use narrows_engine::run::{Chosen, Prompt, Refusal, RunState, TurnFrames};
use narrows_store::NewAudit;
use std::time::Duration;

/// How long a request waits for a run to change.
const RUN_WAIT_TIMEOUT: Duration = Duration::from_secs(25);

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let conflict = |code, what: &'static str| ApiError::new(StatusCode::CONFLICT, code, what);
        match refusal {
            Refusal::NotAllowed => ApiError::new(
                StatusCode::FORBIDDEN,
                "RUN_NOT_ALLOWED",
                "this server does not run agents: start it with --allow-run",
            ),
            Refusal::NotRun => conflict("NOT_A_RUN", "narrows does not run this session"),
            Refusal::NoAgent(what) => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "NO_SUCH_AGENT", what)
            }
            Refusal::NoFolder => conflict(
                "NO_FOLDER",
                "the folder of this session is not on this node: send to the one that made it",
            ),
            Refusal::NotRunning => conflict("AGENT_NOT_RUNNING", "agent not running"),
            Refusal::NotAsked => ApiError::not_found("question"),
            Refusal::AlreadyAnswered => conflict(
                "ALREADY_ANSWERED",
                "somebody has answered this before, or nobody can any more",
            ),
            Refusal::NoSuchOption => ApiError::invalid("the answer is none of those on offer"),
            Refusal::Unfit(what) => ApiError::invalid(what),
            Refusal::Missing(what) => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "ANSWERS_MISSING", what)
            }
            Refusal::NotOffered(what) => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "NOT_OFFERED", what)
            }
            Refusal::NoReason => ApiError::invalid(
                "`message` goes with a refusal, and only to agents that can be told why (`denyReasons` \
                 of the run): answer without it, and send it as a message",
            ),
            Refusal::Full(what) => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY", what).retry_after(5)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

/// List the agents that can be run.
#[utoipa::path(get, path = "/api/agents", operation_id = "list_agents", security(("token" = ["read"])), responses(
    (status = 200, description = "The agents", body = AgentList),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn agents(State(app): State<AppState>) -> axum::Json<AgentList> {
    let options = app.runs.options();
    let path = options.env.iter().find(|(name, _)| name == "PATH").map(|(_, p)| p.as_os_str());
    let agents = options.agents.iter().map(|spec| {
        let problem = spec.program(path).err();
        AgentInfo {
            name: spec.name.clone(),
            title: spec.title().to_owned(),
            protocol: spec.protocol,
            installed: problem.is_none(),
            problem,
        }
    });
    axum::Json(AgentList { allow_run: options.allow, agents: agents.collect() })
}

/// Make a session that narrows runs.
///
/// The agent is started with the first message.
#[utoipa::path(post, path = "/api/runs", operation_id = "create_run", request_body = NewRun, security(("token" = ["run"])), responses(
    (status = 201, description = "It is new", body = crate::api::Session),
    (status = 200, description = "The session of this label, or of this `nativeId`", body = crate::api::Session),
    (status = "4XX", description = "Refused", body = ErrorBody),
    (status = 502, description = "The agent failed", body = ErrorBody),
))]
pub(super) async fn create(
    State(app): State<AppState>,
    grant: Grant,
    Json(new): Json<NewRun>,
) -> ApiResult<Response> {
    app.runs.check(&new.agent, new.cwd.as_deref(), &new.additional_directories)?;
    if let Some(native) = new.native_id.clone() {
        return resume_agent_session(app, grant, new, native).await;
    }
    // The agent's own file, when it is found, is known by this name.
    let native = app.runs.native(&new.agent);
    let label = new.label.clone().or_else(|| native.clone());
    let session = NewSession { label, tags: new.tags.clone() };
    let (made, status) = make(&app, &grant, session).await?;
    let choice = (new.mode.clone(), new.model.clone());
    let folders = (new.cwd.as_deref(), new.additional_directories.as_slice());
    app.runs.adopt(&made, &new.agent, folders, native, choice).await?;
    audit(&app, &grant, "run", &made.id).await;
    let row = app.store.session_row(&made.id).await?;
    Ok((status, axum::Json(row)).into_response())
}

pub(super) async fn audit(app: &AppState, grant: &Grant, action: &'static str, target: &str) {
    let (token, session) = (grant.token.clone(), Some(target.to_owned()));
    let line = NewAudit { token, action, session, detail: None };
    if let Err(error) = app.store.audit(line).await {
        tracing::warn!(%error, "the audit log could not be written");
    }
}

/// Tell how a session's run stands.
#[utoipa::path(get, path = "/api/sessions/{id}/run", operation_id = "run_state",
    params(("id" = String, Path, description = "The session"), RunQuery),
    security(("token" = ["read"])), responses(
    (status = 200, description = "How it stands", body = RunState),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn state(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<RunQuery>,
) -> ApiResult<axum::Json<RunState>> {
    let found = session(&app, &grant, &id).await?;
    let mut state = app.runs.state(&found).await?;
    if let Some(after) = query.after {
        let mut closing = app.hub.closing();
        tokio::select! {
            // Whoever had a state keeps it; whoever waits for one that is not there gets a new one later.
            _ = tokio::time::timeout(RUN_WAIT_TIMEOUT, state.wait_for(|s| s.version != after)) => {}
            () = live::closed(&mut closing) => {}
            () = grant.ended() => return Err(ApiError::unauthorized()),
        }
    }
    let now = state.borrow().clone();
    Ok(axum::Json(now))
}

/// Send a message to a session's agent.
///
/// The answer is the stream of that turn: packets, the last one `prompt_response` or `error`. The
/// turn goes on when the client leaves; its frames have cursors, from which the session's own
/// stream goes on. A message that comes while a turn runs waits for its end. Where the agent or the
/// server ends before its turn, it stays in the queue, held, and the stream ends with an `error` whose
/// `details` are `{"code": "HELD", "retryable": true}`: the same message with the same
/// `Idempotency-Key` follows its turn once it is released, and is told `HELD` again until then.
#[utoipa::path(post, path = "/api/sessions/{id}/send-message", operation_id = "send_message", request_body = SendMessage,
    params(
        ("id" = String, Path, description = "The session"),
        SendQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "The same key, the same message once"),
    ),
    security(("token" = ["run"])), responses(
    (status = 200, description = "Packets of the turn", body = crate::api::item::Packet, content_type = "text/event-stream"),
    (status = 202, description = "It was taken (with wait=false)", body = MessageTaken),
    (status = "4XX", description = "Refused", body = ErrorBody),
    (status = 503, description = "The store cannot be written now: try again", body = ErrorBody),
))]
pub(super) async fn send(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<SendQuery>,
    headers: HeaderMap,
    Json(message): Json<SendMessage>,
) -> ApiResult<Response> {
    if message.content.trim().is_empty() && message.images.is_empty() {
        return Err(ApiError::invalid("there is nothing to send: `content` is empty"));
    }
    let key = super::packets::idempotency_key(&headers)?;
    let found = session(&app, &grant, &id).await?;
    let permit = if query.wait == Some(false) { None } else { Some(open_stream(&app, &grant)?) };
    let prompt = Prompt { text: message.content, images: message.images };
    let accepted = app.runs.send(&found, prompt, key).await?;
    audit(&app, &grant, "message", &found.id).await;
    if let Some(permit) = permit {
        let frames = TurnFrames::new(&app.hub, found, accepted);
        return Ok(follow_turn(&app.hub, frames, permit));
    }
    let now = *accepted.progress.borrow();
    let taken = MessageTaken {
        id: accepted.number.to_string(),
        state: now.state.name().to_owned(),
        cursor: now.after.map(|after| format!("{}-{after}", found.epoch)),
    };
    Ok((StatusCode::ACCEPTED, axum::Json(taken)).into_response())
}

/// Cancel the turn that runs.
///
/// Messages that wait for their turn are held: they go on after the next message, or when
/// `PATCH …/run` says `{"hold": false}`.
#[utoipa::path(post, path = "/api/sessions/{id}/cancel", operation_id = "cancel_turn", params(("id" = String, Path, description = "The session")),
    security(("token" = ["run"])), responses(
    (status = 200, description = "Whether there was one", body = Done),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn cancel(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
) -> ApiResult<axum::Json<Done>> {
    let found = session(&app, &grant, &id).await?;
    Ok(axum::Json(Done { done: app.runs.cancel(&found).await? }))
}

/// End a session's agent. A message starts it again.
///
/// Messages that wait for their turn are held, as after `cancel`. Their streams end with an `error`
/// whose `details` have the code `HELD`: the message is kept.
#[utoipa::path(post, path = "/api/sessions/{id}/stop", operation_id = "stop_agent", params(("id" = String, Path, description = "The session")),
    security(("token" = ["run"])), responses(
    (status = 200, description = "Whether there was one", body = Done),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn stop(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
) -> ApiResult<axum::Json<Done>> {
    let found = session(&app, &grant, &id).await?;
    audit(&app, &grant, "stop", &found.id).await;
    Ok(axum::Json(Done { done: app.runs.stop(&found).await? }))
}

/// Choose the agent's mode, model or other options, or release messages that are held.
#[utoipa::path(patch, path = "/api/sessions/{id}/run", operation_id = "choose", request_body = RunChange,
    params(("id" = String, Path, description = "The session")),
    security(("token" = ["run"])), responses(
    (status = 200, description = "It was asked for", body = Done),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn update_run(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    Json(change): Json<RunChange>,
) -> ApiResult<axum::Json<Done>> {
    let found = session(&app, &grant, &id).await?;
    let RunChange { mode, model, hold, options } = change;
    let chosen = Chosen { mode, model, options: options.into_iter().collect() };
    Ok(axum::Json(Done { done: app.runs.choose(&found, chosen, hold).await? }))
}

/// Take a message back that waits for its turn.
#[utoipa::path(delete, path = "/api/sessions/{id}/queue/{message}", operation_id = "take_back",
    params(
        ("id" = String, Path, description = "The session"),
        ("message" = String, Path, description = "The message"),
    ),
    security(("token" = ["run"])), responses(
    (status = 200, description = "Whether it waited", body = Done),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn delete_queued_message(
    State(app): State<AppState>,
    grant: Grant,
    PathParams((id, message)): PathParams<(String, String)>,
) -> ApiResult<axum::Json<Done>> {
    let found = session(&app, &grant, &id).await?;
    let number = message.parse().map_err(|_| ApiError::not_found("message"))?;
    Ok(axum::Json(Done { done: app.runs.take_back(&found, number).await? }))
}

/// Answer a question of an agent. The first answer counts.
#[utoipa::path(post, path = "/api/sessions/{id}/permissions/{request}", operation_id = "answer_question", request_body = GiveAnswer,
    params(
        ("id" = String, Path, description = "The session"),
        ("request" = String, Path, description = "The question's `requestId`"),
    ),
    security(("token" = ["approve"])), responses(
    (status = 200, description = "The agent was told", body = Done),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn answer(
    State(app): State<AppState>,
    grant: Grant,
    PathParams((id, request)): PathParams<(String, String)>,
    Json(answer): Json<GiveAnswer>,
) -> ApiResult<axum::Json<Done>> {
    let found = session(&app, &grant, &id).await?;
    app.runs.answer(&found, &request, answer.into_reply()?).await?;
    audit(&app, &grant, "answer", &found.id).await;
    Ok(axum::Json(Done { done: true }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_store::Error;

    #[test]
    fn another_node_tells_clients_the_same() {
        let all = [
            Refusal::NotAllowed,
            Refusal::NotRun,
            Refusal::NoAgent("there is no agent `x`".to_owned()),
            Refusal::NoFolder,
            Refusal::NotRunning,
            Refusal::NotAsked,
            Refusal::AlreadyAnswered,
            Refusal::NoSuchOption,
            Refusal::NoReason,
            Refusal::Unfit("`age` is missing".to_owned()),
            Refusal::Missing("question 1".to_owned()),
            Refusal::NotOffered("there is no option `x`".to_owned()),
            Refusal::Full("too many messages wait for this agent".into()),
            Refusal::Store(Error::Invalid("another message".to_owned())),
            Refusal::Store(Error::NotFound("session")),
            Refusal::Store(Error::Busy),
            Refusal::Store(Error::KeyReused),
            Refusal::Store(Error::Full),
            Refusal::Store(Error::Closed),
            Refusal::Store(Error::Unavailable("PostgreSQL: it does not answer".to_owned())),
        ];
        for refusal in all {
            let text = serde_json::to_string(&refusal).expect("text");
            let again: Refusal = serde_json::from_str(&text).expect(&text);
            let (one, other) = (ApiError::from(refusal), ApiError::from(again));
            assert_eq!(one.code_and_message(), other.code_and_message(), "{text}");
        }
    }
}
