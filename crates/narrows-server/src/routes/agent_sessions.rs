//! The sessions that an agent keeps by itself.

use super::extract::{PathParams, QueryParams};
use super::run::audit;
use super::sessions::{MAX_LABEL_CHARS, make};
use crate::api::NewSession;
use crate::api::run::{AgentSessionQuery, AgentSessions, Done, NewRun};
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use narrows_engine::run::Unlisted;
use narrows_store::NewAudit;

impl From<Unlisted> for ApiError {
    fn from(why: Unlisted) -> Self {
        match why {
            Unlisted::Refused(refusal) => refusal.into(),
            Unlisted::Unable(what) => ApiError::new(StatusCode::CONFLICT, "NOT_SUPPORTED", what),
            Unlisted::Unknown(what) => ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", what),
            Unlisted::Failed(what) => ApiError::new(StatusCode::BAD_GATEWAY, "AGENT_FAILED", what),
        }
    }
}

/// An agent's sessions are those of everybody who uses it.
fn sees_all(grant: &Grant) -> ApiResult<()> {
    if grant.sight.is_all() {
        return Ok(());
    }
    let what = "a token that is limited to some sessions cannot see those that an agent keeps";
    Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what))
}

/// List the sessions that an agent keeps by itself.
///
/// The agent is started for it. One that does not offer `session/list` answers `NOT_SUPPORTED`.
#[utoipa::path(get, path = "/api/agents/{agent}/sessions", operation_id = "list_agent_sessions",
    params(("agent" = String, Path, description = "The agent's name"), AgentSessionQuery),
    security(("token" = ["run"])), responses(
    (status = 200, description = "The sessions", body = AgentSessions),
    (status = "4XX", description = "Refused", body = ErrorBody),
    (status = 502, description = "The agent failed", body = ErrorBody),
))]
pub(super) async fn list(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(agent): PathParams<String>,
    QueryParams(query): QueryParams<AgentSessionQuery>,
) -> ApiResult<axum::Json<AgentSessions>> {
    sees_all(&grant)?;
    let sessions = app.runs.agent_sessions(&agent, query.cwd.as_deref()).await?;
    Ok(axum::Json(AgentSessions { sessions }))
}

/// Let an agent forget one of the sessions that it keeps. What narrows has of it stays.
///
/// One that does not offer `session/delete` answers `NOT_SUPPORTED`.
#[utoipa::path(delete, path = "/api/agents/{agent}/sessions/{session}", operation_id = "delete_agent_session",
    params(
        ("agent" = String, Path, description = "The agent's name"),
        ("session" = String, Path, description = "The agent's own id of the session"),
    ),
    security(("token" = ["run"])), responses(
    (status = 200, description = "It is forgotten", body = Done),
    (status = "4XX", description = "Refused", body = ErrorBody),
    (status = 502, description = "The agent failed", body = ErrorBody),
))]
pub(super) async fn remove(
    State(app): State<AppState>,
    grant: Grant,
    PathParams((agent, session)): PathParams<(String, String)>,
) -> ApiResult<axum::Json<Done>> {
    sees_all(&grant)?;
    app.runs.delete_agent_session(&agent, &session).await?;
    let line = NewAudit {
        token: grant.token.clone(),
        action: "forget",
        session: None,
        detail: Some(session),
    };
    if let Err(error) = app.store.audit(line).await {
        tracing::warn!(%error, "the audit log could not be written");
    }
    Ok(axum::Json(Done { done: true }))
}

/// Goes on with a session that an agent keeps by itself.
pub(super) async fn resume_agent_session(
    app: AppState,
    grant: Grant,
    new: NewRun,
    native: String,
) -> ApiResult<Response> {
    // Two who want the same get the same.
    static RESUME_LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    sees_all(&grant)?;
    app.runs.takes_up(&new.agent, &native)?;
    let _alone = RESUME_LOCK.lock().await;
    let known = app.runs.taken_up(&new.agent, &native).await?;
    let (session, status) = match known {
        Some((session, true)) => (session, StatusCode::OK),
        other => {
            let cwd = match new.cwd {
                Some(cwd) => cwd,
                None => app.runs.agent_folder(&new.agent, &native).await?,
            };
            let (made, status) = if let Some((recorded, _)) = other {
                (recorded, StatusCode::OK)
            } else {
                let usual = format!("acp:{}:{native}", new.agent);
                let label =
                    new.label.or(Some(usual).filter(|label| label.len() <= MAX_LABEL_CHARS));
                make(&app, &grant, NewSession { label, tags: new.tags }).await?
            };
            let run = app.store.run(made.key).await?;
            if run.is_some_and(|run| run.native.as_ref() != Some(&native)) {
                let what = "the session of this label is another one";
                return Err(ApiError::new(StatusCode::CONFLICT, "LABEL_TAKEN", what));
            }
            let folders = (Some(cwd.as_str()), new.additional_directories.as_slice());
            let choice = (new.mode, new.model);
            app.runs.adopt(&made, &new.agent, folders, Some(native), choice).await?;
            audit(&app, &grant, "run", &made.id).await;
            // What was said before is there for whoever looks, before anybody says more.
            app.runs.open(&made).await?;
            (made, status)
        }
    };
    let row = app.store.session_row(&session.id).await?;
    Ok((status, axum::Json(row)).into_response())
}
