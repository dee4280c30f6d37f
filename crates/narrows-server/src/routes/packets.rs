//! Packets of agents, into a session.

use super::extract::{Names, Params, session};
use crate::api::{PacketAnswer, PacketQuery, PacketState, SourceState};
use crate::app::App;
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::intake::{Answer, Reading};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use narrows::Format;
use narrows_store::Session;
use std::time::Duration;

const MAX_KEY: usize = 200;

/// Send packets of an agent, one a line.
///
/// They are read as they come, so a body may stay open as long as the agent works. The answer comes
/// when all of it is durable. With `Idempotency-Key`, the same request again has its effect once.
#[utoipa::path(post, path = "/api/sessions/{id}/packets",
    params(
        ("id" = String, Path, description = "The session"),
        PacketQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "The same key, the same effect once"),
    ),
    request_body(content = String, content_type = "application/x-ndjson"),
    security(("token" = ["write"])), responses(
    (status = 200, description = "All of it is durable", body = PacketAnswer),
    (status = "4XX", description = "Refused", body = ErrorBody),
    (status = 503, description = "The store cannot be written now: try again", body = ErrorBody),
    (status = 507, description = "The store is full: try again later", body = ErrorBody),
))]
pub(super) async fn ingest(
    State(app): State<App>,
    grant: Grant,
    Names(id): Names<String>,
    Params(query): Params<PacketQuery>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Json<Answer>> {
    let answer =
        take(&app, &grant, &id, &query, &headers, body).await.map_err(ApiError::closing)?;
    app.metrics.packets.inc_by(answer.packets);
    app.metrics.events.inc_by(answer.events);
    Ok(Json(answer))
}

async fn take(
    app: &App,
    grant: &Grant,
    id: &str,
    query: &PacketQuery,
    headers: &HeaderMap,
    mut body: Body,
) -> ApiResult<Answer> {
    let found = writable(app, grant, id).await?;
    let mut take = app.intake.open(&found, reading(query, headers)?).await?;
    let idle = Duration::from_secs(app.config.limits.body_idle_seconds);
    let known = take.known().cloned();
    loop {
        let next = tokio::select! {
            biased;
            // Whoever may not write any more does not, also not with a request that has begun.
            () = grant.ended() => return Err(ApiError::unauthorized()),
            next = tokio::time::timeout(idle, body.frame()) => next,
        };
        let frame = match next {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            // What came before is kept: an agent that is cut off has said what it said.
            Ok(Some(Err(_))) => return Err(ApiError::invalid("the body broke off")),
            Err(_) => {
                let what = "nothing came for too long; blank lines keep the request alive";
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", what));
            }
        };
        // A request that was answered before is only read to its end.
        if known.is_none()
            && let Some(data) = frame.data_ref()
        {
            take.push(data).await?;
        }
    }
    match known {
        Some(known) => Ok(known),
        None => Ok(take.finish().await?),
    }
}

/// The session, which is looked up once.
async fn writable(app: &App, grant: &Grant, id: &str) -> ApiResult<Session> {
    if let Some(known) = app.written.find(id).filter(|s| grant.sight.sees(&s.id, &s.tags)) {
        return Ok(known);
    }
    let found = session(app, grant, id).await?;
    app.written.remember(&found);
    Ok(found)
}

/// The key by which the same request is known again.
pub(super) fn idempotency_key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|k| !k.is_empty() && k.len() <= MAX_KEY);
    let what = format!("Idempotency-Key has 1 to {MAX_KEY} plain characters");
    Ok(Some(key.ok_or_else(|| ApiError::invalid(what))?.to_owned()))
}

fn reading(query: &PacketQuery, headers: &HeaderMap) -> ApiResult<Reading> {
    let format = match query.format.as_deref().map(Format::named) {
        None => Format::Auto,
        Some(Some(format)) => format,
        Some(None) => {
            return Err(ApiError::invalid(
                "`format` is auto, acp, claude-stream or claude-history",
            ));
        }
    };
    let key = idempotency_key(headers)?;
    if query.first.is_some() && key.is_some() {
        return Err(ApiError::invalid("give `first` or Idempotency-Key, not both"));
    }
    Ok(Reading {
        format,
        first: query.first,
        key,
        arrival: query.arrived.unwrap_or_default(),
        wrapped: query.wrapped.unwrap_or(false),
        placed: false,
        end: query.end.unwrap_or(false),
        roots: query.root.iter().flat_map(|r| r.lines()).map(str::to_owned).collect(),
    })
}

/// Tell how far a session's packets were read.
#[utoipa::path(get, path = "/api/sessions/{id}/packets", params(("id" = String, Path, description = "The session")),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The places to go on from", body = PacketState),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn state(
    State(app): State<App>,
    grant: Grant,
    Names(id): Names<String>,
) -> ApiResult<Json<PacketState>> {
    let found = session(&app, &grant, &id).await?;
    let sources = app.store.sources(found.key).await?.into_iter();
    let sources =
        sources.map(|s| SourceState { number: s.number, read: s.read, acknowledged: s.rest });
    Ok(Json(PacketState { sources: sources.collect() }))
}
