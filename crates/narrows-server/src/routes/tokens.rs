//! Tokens, tickets and logins of browsers.

use super::extract::{Json, PathParams};
use crate::api::{
    LoggedIn, Login, MadeToken, Me, NewTokenBody, RequestTicket, Ticket, TokenInfo, TokenList,
};
use crate::auth::{Grant, NewToken};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use narrows_store::{Error, NewAudit, Scope, Scopes, Sight, Token, TokenKind, now};

/// A browser stays in for so long.
const BROWSER_TOKEN_TTL_MS: i64 = 30 * 24 * 3600 * 1000;
const MAX_NAMES: usize = 1000;

/// Trade a ticket for a token of the browser's own.
///
/// The page keeps it in the storage of its origin, which no other port of the host can read, and sends it in
/// a header. There is no cookie: browsers send cookies to every port of a host.
#[utoipa::path(post, path = "/api/login", request_body = Login, responses(
    (status = 200, description = "The browser's token", body = LoggedIn),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn login(
    State(app): State<AppState>,
    Json(login): Json<Login>,
) -> ApiResult<axum::Json<LoggedIn>> {
    let void = || {
        let what = "this ticket was used or is too old: `narrows login-url` prints a new one";
        ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", what)
    };
    let Some(grant_of_ticket) = app.tickets.redeem(&login.ticket, &app.tokens).await? else {
        return Err(void());
    };
    let name = "browser".to_owned();
    let creator =
        grant_of_ticket.creator.as_ref().map(|m| m.token.clone()).or_else(|| app.tokens.owner());
    let life = grant_of_ticket
        .creator
        .and_then(|m| m.clamp_ttl(Some(BROWSER_TOKEN_TTL_MS)))
        .unwrap_or(BROWSER_TOKEN_TTL_MS);
    let new = NewToken {
        name,
        scopes: grant_of_ticket.scopes,
        sight: grant_of_ticket.sight,
        ttl: Some(life),
    };
    let made = app.tokens.make(TokenKind::Browser, new, creator.as_deref()).await;
    let (_, token) = made.map_err(|error| match error {
        // Whoever asked for the ticket was revoked meanwhile.
        Error::NotFound(_) => void(),
        error => error.into(),
    })?;
    Ok(axum::Json(LoggedIn { token, expires_at: now().saturating_add(life) }))
}

/// Revoke the browser's own token.
#[utoipa::path(post, path = "/api/logout", security(("token" = ["read"])), responses(
    (status = 204, description = "It is revoked"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn logout(State(app): State<AppState>, grant: Grant) -> ApiResult<StatusCode> {
    let browser = app
        .tokens
        .list()
        .await?
        .iter()
        .any(|t| t.id == grant.token && t.kind == TokenKind::Browser);
    if !browser {
        return Err(ApiError::invalid("only a browser can log out: revoke the token instead"));
    }
    app.tokens.revoke(&grant.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tell what the caller may do.
#[utoipa::path(get, path = "/api/me", security(("token" = ["read"])), responses(
    (status = 200, description = "The token's scopes", body = Me),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn me(grant: Grant) -> axum::Json<Me> {
    let scopes = grant.scopes.iter().map(|s| s.name().to_owned()).collect();
    axum::Json(Me { token: grant.token, scopes })
}

/// Make a ticket that lets a browser in once, with the caller's own rights.
#[utoipa::path(post, path = "/api/tickets", security(("token" = ["admin"])), responses(
    (status = 201, description = "The ticket", body = Ticket),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn ticket(
    State(app): State<AppState>,
    grant: Grant,
) -> ApiResult<impl IntoResponse> {
    let ticket = app.tickets.create_for(grant).await?;
    Ok((StatusCode::CREATED, axum::Json(Ticket { path: format!("/#ticket={ticket}") })))
}

/// Make a ticket for one request that can have no header.
///
/// It is given as `?ticket=…` to a socket, a stream, a picture or an export, works once and for 30 seconds, and
/// allows what the caller may do.
#[utoipa::path(post, path = "/api/request-tickets", security(("token" = ["read"])), responses(
    (status = 201, description = "The ticket", body = RequestTicket),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn request_ticket(
    State(app): State<AppState>,
    grant: Grant,
) -> ApiResult<impl IntoResponse> {
    let (ticket, expires_at) = app.tickets.create_for_request(grant).await?;
    Ok((StatusCode::CREATED, axum::Json(RequestTicket { ticket, expires_at })))
}

/// List the tokens.
#[utoipa::path(get, path = "/api/tokens", operation_id = "list_tokens", security(("token" = ["admin"])), responses(
    (status = 200, description = "Every valid token that the caller may know of", body = TokenList),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn list(
    State(app): State<AppState>,
    grant: Grant,
) -> ApiResult<axum::Json<TokenList>> {
    let tokens = app.tokens.list().await?.into_iter().filter(|t| grant.may_list(t));
    let tokens = tokens.map(TokenInfo::from);
    Ok(axum::Json(TokenList { tokens: tokens.collect() }))
}

/// Make a token. Its secret is told this once.
#[utoipa::path(post, path = "/api/tokens", operation_id = "make", request_body = NewTokenBody, security(("token" = ["admin"])), responses(
    (status = 201, description = "The token", body = MadeToken),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn create_token(
    State(app): State<AppState>,
    grant: Grant,
    Json(new): Json<NewTokenBody>,
) -> ApiResult<impl IntoResponse> {
    let length = new.name.chars().count();
    if length == 0 || length > 100 || new.name.contains(char::is_control) {
        return Err(ApiError::invalid(
            "a token's name has 1 to 100 characters, none of them control characters",
        ));
    }
    let scopes = new.scopes.iter().map(|s| s.parse::<Scope>()).collect::<Result<Scopes, _>>()?;
    if new.scopes.is_empty() {
        return Err(ApiError::invalid("a token needs a scope"));
    }
    if !grant.scopes.covers(scopes) {
        let what = "a token cannot give what it has not";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    let plain = |list: &Option<Vec<String>>| {
        list.iter().flatten().all(|n| !n.is_empty() && n.len() <= 400 && !n.contains('\n'))
            && list.as_ref().is_none_or(|l| !l.is_empty() && l.len() <= MAX_NAMES)
    };
    if !plain(&new.sessions) || !plain(&new.tags) {
        return Err(ApiError::invalid(format!(
            "`sessions` and `tags` hold 1 to {MAX_NAMES} names"
        )));
    }
    let mut sight = Sight { sessions: new.sessions, tags: new.tags };
    if sight.is_all() {
        sight = grant.sight.clone();
    } else if !grant.sight.is_all() {
        let what = "a token that is limited to some sessions cannot choose others";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    let ttl = new.ttl_seconds.map(|s| i64::try_from(s.saturating_mul(1000)).unwrap_or(i64::MAX));
    if ttl == Some(0) {
        return Err(ApiError::invalid("`ttlSeconds` is at least 1"));
    }
    let new = NewToken { name: new.name, scopes, sight, ttl: grant.clamp_ttl(ttl) };
    let (id, token) = app.tokens.make(TokenKind::Made, new, Some(&grant.token)).await?;
    audit(&app, &grant, "make token", &id).await?;
    Ok((StatusCode::CREATED, axum::Json(MadeToken { id, token })))
}

/// Revoke a token and all that it made. Their streams are closed.
#[utoipa::path(delete, path = "/api/tokens/{token}", params(("token" = String, Path, description = "The token's id")),
    security(("token" = ["admin"])), responses(
    (status = 204, description = "It is revoked"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn revoke(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
) -> ApiResult<StatusCode> {
    if id == "owner" {
        return Err(ApiError::invalid(
            "the owner's token is the file `token`: remove it and start the server anew",
        ));
    }
    let unknown = |t: &Token| t.id == id && !grant.may_list(t);
    if app.tokens.list().await?.iter().any(unknown) {
        return Err(ApiError::not_found("token"));
    }
    app.tokens.revoke(&id).await?;
    audit(&app, &grant, "revoke token", &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn audit(app: &AppState, grant: &Grant, action: &'static str, id: &str) -> ApiResult<()> {
    let token = grant.token.clone();
    let audit = NewAudit { token, action, session: None, detail: Some(id.to_owned()) };
    Ok(app.store.audit(audit).await?)
}
