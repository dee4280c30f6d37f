//! Packets of agents, into a session.

use super::extract::{Names, Params, session};
use super::request_body::Arriving;
use crate::api::{PacketAnswer, PacketQuery, PacketState, SourceState};
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use http::HeaderMap;
use narrows::Format;
use narrows_engine::discovery;
use narrows_engine::ingest::{ANSWER_HOLD_TIMEOUT, IngestReceipt, Reading, Take};
use narrows_store::{Error, Session};
use std::time::Duration;

const MAX_KEY: usize = 200;
/// Bytes of a body that stays open that are kept at once.
const AT_ONCE: usize = 64 << 10;

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
    (status = 422, description = "The key came before, with another body", body = ErrorBody),
    (status = "4XX", description = "Refused", body = ErrorBody),
    (status = 503, description = "The store cannot be written now: try again", body = ErrorBody),
    (status = 507, description = "The store is full: try again later", body = ErrorBody),
))]
pub(super) async fn ingest(
    State(app): State<AppState>,
    grant: Grant,
    Names(id): Names<String>,
    Params(query): Params<PacketQuery>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Json<IngestReceipt>> {
    let answer =
        take(&app, &grant, &id, &query, &headers, body).await.map_err(ApiError::closing)?;
    app.metrics.packets.inc_by(answer.packets);
    app.metrics.events.inc_by(answer.events);
    Ok(Json(answer))
}

/// The agent's own file may tell the same session.
async fn list_once(app: &AppState, session: &Session) {
    if app.store.is_shared() {
        return;
    }
    let row = app.store.session_row(&session.id).await;
    if let Some(native) = row.ok().and_then(|row| row.native_id) {
        discovery::list_once(&app.store, &app.intake, &app.hub, Some(&native)).await;
    }
}

async fn take(
    app: &AppState,
    grant: &Grant,
    id: &str,
    query: &PacketQuery,
    headers: &HeaderMap,
    body: Body,
) -> ApiResult<IngestReceipt> {
    let mut reading = reading(query, headers)?;
    let (mut found, known) = writable(app, grant, id).await?;
    let idle = Duration::from_secs(app.config.limits.body_idle_seconds);
    let mut body = Arriving::new(body, headers, grant, idle, &app.hub)?;
    let begun = body.beginning().await?;
    let edge = found.seq == 0 || reading.end;
    if !body.is_over() {
        let answer = stream(app, &found, reading, &begun, body).await?;
        list_once(app, &found).await;
        return Ok(answer);
    }
    if known && app.store.is_shared() {
        reading.trust = true;
        match give(app, &found, reading.clone(), &begun).await {
            // Another node has written it meanwhile, or removed it: nothing of this was kept.
            Err(
                Error::Conflict { .. }
                | Error::Invalid(_)
                | Error::Busy
                | Error::NotFound(_)
                | Error::Resend { .. },
            ) => reading.trust = false,
            done => return Ok(done?),
        }
        found = session(app, grant, id).await?;
    }
    let answer = give(app, &found, reading, &begun).await?;
    // What it is called is told first; at its end it is known which of the two tells more.
    if edge {
        list_once(app, &found).await;
    }
    Ok(answer)
}

/// A request that is all there: one append.
async fn give(
    app: &AppState,
    session: &Session,
    reading: Reading,
    bytes: &[u8],
) -> Result<IngestReceipt, Error> {
    let mut take = app.intake.open(session, reading).await?;
    take.push_buffered(bytes);
    take.finish().await
}

/// A request that goes on: what has come is kept and told.
async fn stream(
    app: &AppState,
    session: &Session,
    reading: Reading,
    begun: &[u8],
    mut body: Arriving<'_>,
) -> ApiResult<IngestReceipt> {
    let mut take = app.intake.open(session, reading).await?;
    take.push_buffered(begun);
    let mut fed = begun.len();
    loop {
        // What is here already goes into the same append; nobody waits for more.
        while fed < AT_ONCE
            && let Some(data) = body.ready()
        {
            fed += data.len();
            take.push_buffered(&data);
        }
        if body.is_over() {
            return Ok(take.finish().await?);
        }
        // While the store is at work on what came before, more may come.
        let next = if fed < AT_ONCE && take.is_busy() {
            tokio::select! {
                biased;
                landed = take.wait_oldest() => { landed?; continue }
                next = body.next() => next,
            }
        } else {
            take.flush().await?;
            fed = 0;
            after_answer(&mut take, &mut body).await
        };
        match next {
            Ok(Some(data)) => {
                fed += data.len();
                take.push_buffered(&data);
            }
            Ok(None) => return Ok(take.finish().await?),
            // An agent that is cut off has said what it said.
            Err(error) => {
                take.flush().await?;
                return Err(error);
            }
        }
    }
}

/// What comes next. If that is long after the answer to a turn, all of the answer is shown before.
async fn after_answer(take: &mut Take, body: &mut Arriving<'_>) -> ApiResult<Option<Bytes>> {
    if take.holds_answer() {
        match tokio::time::timeout(ANSWER_HOLD_TIMEOUT, body.next()).await {
            Ok(next) => return next,
            Err(_) => take.flush_answer().await,
        }
    }
    body.next().await
}

/// The session, which is looked up once; and whether it was known.
async fn writable(app: &AppState, grant: &Grant, id: &str) -> ApiResult<(Session, bool)> {
    let known = app.written.find(id, app.store.is_shared());
    if let Some(known) = known.filter(|s| grant.sight.sees(&s.id, &s.tags)) {
        return Ok((known, true));
    }
    let found = session(app, grant, id).await?;
    app.written.remember(&found);
    Ok((found, false))
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
        heard: None,
        end: query.end.unwrap_or(false),
        gone: false,
        exited: query.exited.unwrap_or(false),
        roots: query.root.iter().flat_map(|r| r.lines()).map(str::to_owned).collect(),
        fence: None,
        trust: false,
        lost: false,
    })
}

/// Tell how far a session's packets were read.
#[utoipa::path(get, path = "/api/sessions/{id}/packets", params(("id" = String, Path, description = "The session")),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The places to go on from", body = PacketState),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn state(
    State(app): State<AppState>,
    grant: Grant,
    Names(id): Names<String>,
) -> ApiResult<Json<PacketState>> {
    let found = session(&app, &grant, &id).await?;
    let sources = app.store.sources(found.key).await?.into_iter();
    let sources =
        sources.map(|s| SourceState { number: s.number, read: s.read, acknowledged: s.rest });
    Ok(Json(PacketState { sources: sources.collect() }))
}
