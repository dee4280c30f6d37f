//! Packets of agents, into a session.

use super::extract::{PathParams, QueryParams, session};
use super::request_body::BodyReader;
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

const MAX_KEY_BYTES: usize = 200;
/// Bytes of a body that stays open that are kept at once.
const MAX_APPEND_BYTES: usize = 64 << 10;

/// Send packets of an agent, one a line.
///
/// They are read as they come, so a body may permit open as long as the agent works. The answer comes
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
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<PacketQuery>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Json<IngestReceipt>> {
    let answer =
        ingest_body(&app, &grant, &id, &query, &headers, body).await.map_err(ApiError::closing)?;
    app.metrics.packets.inc_by(answer.packets);
    app.metrics.events.inc_by(answer.events);
    Ok(Json(answer))
}

/// The agent's own file may tell the same session.
async fn dedupe_listing(app: &AppState, session: &Session) {
    if app.store.is_shared() {
        return;
    }
    let row = app.store.session_row(&session.id).await;
    if let Some(native) = row.ok().and_then(|row| row.native_id) {
        discovery::list_once(&app.store, &app.intake, &app.hub, Some(&native)).await;
    }
}

async fn ingest_body(
    app: &AppState,
    grant: &Grant,
    id: &str,
    query: &PacketQuery,
    headers: &HeaderMap,
    body: Body,
) -> ApiResult<IngestReceipt> {
    let mut options = ingest_options(query, headers)?;
    let (mut found, known) = find_session(app, grant, id).await?;
    let idle = Duration::from_secs(app.config.limits.body_idle_seconds);
    let mut body = BodyReader::new(body, headers, grant, idle, &app.hub)?;
    let buffered = body.read_buffered().await?;
    let first_or_last = found.seq == 0 || options.end;
    if !body.is_over() {
        let answer = ingest_stream(app, &found, options, &buffered, body).await?;
        dedupe_listing(app, &found).await;
        return Ok(answer);
    }
    if known && app.store.is_shared() {
        options.trust = true;
        match ingest_buffered(app, &found, options.clone(), &buffered).await {
            // Another node has written it meanwhile, or removed it: nothing of this was kept.
            Err(
                Error::Conflict { .. }
                | Error::Invalid(_)
                | Error::Busy
                | Error::NotFound(_)
                | Error::Resend { .. },
            ) => options.trust = false,
            done => return Ok(done?),
        }
        found = session(app, grant, id).await?;
    }
    let answer = ingest_buffered(app, &found, options, &buffered).await?;
    // What it is called is told first; at its end it is known which of the two tells more.
    if first_or_last {
        dedupe_listing(app, &found).await;
    }
    Ok(answer)
}

/// A request that is all there: one append.
async fn ingest_buffered(
    app: &AppState,
    session: &Session,
    options: Reading,
    bytes: &[u8],
) -> Result<IngestReceipt, Error> {
    let mut request = app.intake.open(session, options).await?;
    request.push_buffered(bytes);
    request.finish().await
}

/// A request that goes on: what has come is kept and told.
async fn ingest_stream(
    app: &AppState,
    session: &Session,
    options: Reading,
    buffered: &[u8],
    mut body: BodyReader<'_>,
) -> ApiResult<IngestReceipt> {
    let mut request = app.intake.open(session, options).await?;
    request.push_buffered(buffered);
    let mut pushed = buffered.len();
    loop {
        // What is here already goes into the same append; nobody waits for more.
        while pushed < MAX_APPEND_BYTES
            && let Some(data) = body.ready()
        {
            pushed += data.len();
            request.push_buffered(&data);
        }
        if body.is_over() {
            return Ok(request.finish().await?);
        }
        // While the store is at work on what came before, more may come.
        let next = if pushed < MAX_APPEND_BYTES && request.is_busy() {
            tokio::select! {
                biased;
                appended = request.wait_oldest() => { appended?; continue }
                next = body.next() => next,
            }
        } else {
            request.flush().await?;
            pushed = 0;
            after_answer(&mut request, &mut body).await
        };
        match next {
            Ok(Some(data)) => {
                pushed += data.len();
                request.push_buffered(&data);
            }
            Ok(None) => return Ok(request.finish().await?),
            // An agent that is cut off has said what it said.
            Err(error) => {
                request.flush().await?;
                return Err(error);
            }
        }
    }
}

/// What comes next. If that is long after the answer to a turn, all of the answer is shown before.
async fn after_answer(request: &mut Take, body: &mut BodyReader<'_>) -> ApiResult<Option<Bytes>> {
    if request.holds_answer() {
        match tokio::time::timeout(ANSWER_HOLD_TIMEOUT, body.next()).await {
            Ok(next) => return next,
            Err(_) => request.flush_answer().await,
        }
    }
    body.next().await
}

/// The session, which is looked up once; and whether it was known.
async fn find_session(app: &AppState, grant: &Grant, id: &str) -> ApiResult<(Session, bool)> {
    let known = app.session_cache.get(id, app.store.is_shared());
    if let Some(known) = known.filter(|s| grant.sight.sees(&s.id, &s.tags)) {
        return Ok((known, true));
    }
    let found = session(app, grant, id).await?;
    app.session_cache.insert(&found);
    Ok((found, false))
}

/// The key by which the same request is known again.
pub(super) fn idempotency_key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|k| !k.is_empty() && k.len() <= MAX_KEY_BYTES);
    let what = format!("Idempotency-Key has 1 to {MAX_KEY_BYTES} plain characters");
    Ok(Some(key.ok_or_else(|| ApiError::invalid(what))?.to_owned()))
}

fn ingest_options(query: &PacketQuery, headers: &HeaderMap) -> ApiResult<Reading> {
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
#[utoipa::path(get, path = "/api/sessions/{id}/packets", operation_id = "state", params(("id" = String, Path, description = "The session")),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The places to go on from", body = PacketState),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn get_packet_state(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<PacketState>> {
    let found = session(&app, &grant, &id).await?;
    let sources = app.store.sources(found.key).await?.into_iter();
    let sources =
        sources.map(|s| SourceState { number: s.number, read: s.read, acknowledged: s.rest });
    Ok(Json(PacketState { sources: sources.collect() }))
}
