//! Sessions: make, list, show, tag, delete.

use super::extract::{Json, PathParams, QueryParams, limit, session};
use crate::api::{NewSession, Prune, Pruned, SessionPage, SessionQuery, TagChange};
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use narrows_store::{Error, ListFilter, NewAudit, Retention, Session, SessionRow, Sight};
use serde::Serialize;

pub(super) const MAX_LABEL_CHARS: usize = 200;
const MAX_TAG_CHARS: usize = 100;
const MAX_TAGS: usize = 32;

fn check_tags(tags: &[String]) -> ApiResult<()> {
    let good = |tag: &String| {
        !tag.is_empty()
            && tag.chars().count() <= MAX_TAG_CHARS
            && !tag.contains(|c: char| c.is_control() || c == ',')
    };
    if tags.len() > MAX_TAGS || !tags.iter().all(good) {
        return Err(ApiError::invalid(format!(
            "at most {MAX_TAGS} tags of 1 to {MAX_TAG_CHARS} characters, without commas and control characters"
        )));
    }
    Ok(())
}

/// Make a session.
///
/// The same label gives the same session: then the answer is 200 instead of 201.
#[utoipa::path(post, path = "/api/sessions", request_body = NewSession, security(("token" = ["write"])), responses(
    (status = 201, description = "It is new", body = crate::api::Session),
    (status = 200, description = "The session of this label", body = crate::api::Session),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn create(
    State(app): State<AppState>,
    grant: Grant,
    Json(new): Json<NewSession>,
) -> ApiResult<impl IntoResponse> {
    let (session, status) = make(&app, &grant, new).await?;
    Ok((status, axum::Json(app.store.session_row(&session.id).await?)))
}

/// Makes a session, or finds the one of its label.
pub(super) async fn make(
    app: &AppState,
    grant: &Grant,
    new: NewSession,
) -> ApiResult<(Session, StatusCode)> {
    check_tags(&new.tags)?;
    if let Some(label) = &new.label
        && (label.is_empty()
            || label.chars().count() > MAX_LABEL_CHARS
            || label.contains(char::is_control))
    {
        let what = format!(
            "a label has 1 to {MAX_LABEL_CHARS} characters, none of them control characters"
        );
        return Err(ApiError::invalid(what));
    }
    // Whoever sees only some sessions could not see what it makes, or find out about labels.
    if !grant.sight.is_all() {
        let tagged = grant.sight.sees("", &new.tags);
        let known = match &new.label {
            Some(label) => match app.store.session_by_label(label).await {
                Ok(known) => Some(known),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        let seen = known.as_ref().map_or(tagged, |s| {
            let same = new.tags.iter().all(|tag| s.tags.contains(tag));
            grant.sight.sees(&s.id, &s.tags) && same
        });
        if !seen {
            let what = "this token is limited: a new session needs one of its tags, a known one stays as it is";
            return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
        }
    }
    let new = narrows_store::NewSession { label: new.label, tags: new.tags };
    let (session, made) = app.store.create(new).await?;
    app.session_cache.forget(&session.id);
    app.hub.changed();
    Ok((session, if made { StatusCode::CREATED } else { StatusCode::OK }))
}

pub(super) fn list_filter(query: SessionQuery, sight: Sight, limit: usize) -> ListFilter {
    let tags =
        query.tags.iter().flat_map(|t| t.split(',')).map(str::trim).filter(|t| !t.is_empty());
    ListFilter {
        tags: tags.map(str::to_owned).collect(),
        agent: query.agent,
        label: query.label,
        status: query.status,
        project: query.project.filter(|p| !p.is_empty()),
        text: query.text.filter(|t| !t.is_empty()),
        since: query.since,
        until: query.until,
        touched_after: None,
        sight,
        after: query.after,
        limit,
    }
}

#[derive(Serialize)]
struct Page {
    sessions: Vec<SessionRow>,
    next: Option<String>,
}

/// List sessions, those first that changed last.
#[utoipa::path(get, path = "/api/sessions", params(SessionQuery), security(("token" = ["read"])), responses(
    (status = 200, description = "One page", body = SessionPage),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn list(
    State(app): State<AppState>,
    grant: Grant,
    QueryParams(query): QueryParams<SessionQuery>,
) -> ApiResult<impl IntoResponse> {
    let limit = limit(query.limit, 50, app.config.limits.page_sessions)?;
    let page = app.store.list(list_filter(query, grant.sight, limit)).await?;
    Ok(axum::Json(Page { sessions: page.sessions, next: page.next }))
}

/// Show a session.
#[utoipa::path(get, path = "/api/sessions/{id}", operation_id = "show", params(("id" = String, Path, description = "The session")),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The session", body = crate::api::Session),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn get_session(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
) -> ApiResult<impl IntoResponse> {
    let found = session(&app, &grant, &id).await?;
    // Whoever has just been answered counts what was sent.
    app.intake.flush_items(found.key).await;
    Ok(axum::Json(app.store.session_row(&id).await?))
}

/// Change a session's tags.
#[utoipa::path(patch, path = "/api/sessions/{id}", operation_id = "tag", params(("id" = String, Path, description = "The session")),
    request_body = TagChange, security(("token" = ["write"])), responses(
    (status = 200, description = "The session", body = crate::api::Session),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn update_session(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    Json(change): Json<TagChange>,
) -> ApiResult<impl IntoResponse> {
    let found = session(&app, &grant, &id).await?;
    check_tags(&change.add_tags)?;
    check_tags(&change.remove_tags)?;
    if !grant.sight.is_all() {
        let what = "a token that is limited to some sessions cannot change tags";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    if found.tags.len() + change.add_tags.len() > MAX_TAGS {
        return Err(ApiError::invalid(format!("a session has at most {MAX_TAGS} tags")));
    }
    let removed = change.remove_tags.clone();
    app.store.tag(&id, change.add_tags, change.remove_tags).await?;
    // Whoever saw the session by such a tag must ask again.
    app.session_cache.forget(&id);
    app.tokens.revalidate(&removed);
    app.hub.changed();
    Ok(axum::Json(app.store.session_row(&id).await?))
}

/// Delete a session and everything of it. There is no way back.
#[utoipa::path(delete, path = "/api/sessions/{id}", params(("id" = String, Path, description = "The session")),
    security(("token" = ["write"])), responses(
    (status = 204, description = "It is gone"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn remove(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
) -> ApiResult<StatusCode> {
    session(&app, &grant, &id).await?;
    delete(&app, &grant.token, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a session, tells whoever follows it, and remembers who did it.
pub(crate) async fn delete(app: &AppState, token: &str, id: &str) -> Result<(), Error> {
    let found = app.store.session(id).await?;
    app.store.delete(id).await?;
    app.session_cache.forget(id);
    app.hub.on_deleted(&found);
    app.intake.forget(found.key).await;
    let token = token.to_owned();
    let audit =
        NewAudit { token, action: "delete session", session: Some(id.to_owned()), detail: None };
    app.store.audit(audit).await
}

/// Delete sessions by age, size or tag.
#[utoipa::path(post, path = "/api/prune", request_body = Prune, security(("token" = ["admin"])), responses(
    (status = 200, description = "What was deleted, or would be", body = Pruned),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn prune(
    State(app): State<AppState>,
    grant: Grant,
    Json(asked): Json<Prune>,
) -> ApiResult<axum::Json<Pruned>> {
    if !grant.sight.is_all() {
        let what = "a token that is limited to some sessions cannot delete by age or size";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    if asked.max_age_ms.is_none() && asked.max_bytes.is_none() {
        return Err(ApiError::invalid("say what to keep: maxAgeMs, maxBytes"));
    }
    let (max_age, max_bytes) = (asked.max_age_ms, asked.max_bytes);
    let keep = Retention { max_age, max_bytes, tag: asked.tag, keep_tags: asked.keep_tags };
    Ok(axum::Json(clear(&app, &grant.token, keep, asked.dry_run).await?))
}

/// Deletes what is not to be kept, one session after the other.
pub(crate) async fn clear(
    app: &AppState,
    token: &str,
    keep: Retention,
    dry: bool,
) -> Result<Pruned, Error> {
    let cleared = app.store.clear(keep, true).await?;
    if !dry {
        for id in &cleared.sessions {
            match delete(app, token, id).await {
                // Somebody else was faster.
                Err(Error::NotFound(_)) => {}
                done => done?,
            }
        }
    }
    Ok(Pruned { sessions: cleared.sessions, bytes: cleared.bytes })
}
