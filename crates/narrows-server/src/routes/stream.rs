//! Streams: server-sent events and sockets.

use super::extract::{PathParams, QueryParams, limit, session};
use super::sessions::list_filter;
use crate::api::{SessionQuery, StreamQuery};
use crate::auth::{Grant, StreamPermit};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use crate::stream::{ActivityFilter, follow, follow_list, serve};
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use narrows_engine::live::{After, Filter, Subscription, View, Wire};

pub(super) fn open_stream(app: &AppState, grant: &Grant) -> ApiResult<StreamPermit> {
    let what = "too many streams are open";
    let refused =
        || ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_STREAMS", what).retry_after(5);
    app.tokens.open_stream(grant).ok_or_else(refused)
}

/// Follow a session by server-sent events.
///
/// Every frame has a cursor as its id. `ready`: everything up to now was told. An id without data:
/// frames were left out up to there. `ended`: the source said that nothing more comes, so nothing
/// streams any more. `reset`: the cursor is of another log; fetch the items anew. `preview`: the source
/// pauses; what is shown beside the items until the next frame.
#[utoipa::path(get, path = "/api/sessions/{id}/events",
    params(
        ("id" = String, Path, description = "The session"),
        StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The cursor to go on from"),
    ),
    security(("token" = ["read"])), responses(
    (status = 200, description = "Frames", body = crate::api::stream::StreamFrame, content_type = "text/event-stream"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn events(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<StreamQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let found = session(&app, &grant, &id).await?;
    let permit = open_stream(&app, &grant)?;
    let view = query.view.unwrap_or(View::Items);
    let mut filter = Filter::default();
    if view == View::Activity {
        let flags = ActivityFilter {
            include_tool_calls: query.include_tool_calls,
            include_tool_results: query.include_tool_results,
            include_output: query.include_output,
            include_file_changes: query.include_file_changes,
            include_progress: query.include_progress,
        };
        flags.add_excluded(&mut filter.without);
    } else if let Some(types) = &query.types {
        filter.types = Some(types.split(',').map(|t| t.trim().to_owned()).collect());
    }
    let last =
        headers.get("last-event-id").map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    let after = match last.or(query.after).as_deref() {
        None | Some("") => After::Start,
        Some("end") => After::End,
        Some(cursor) => After::Given(cursor.to_owned()),
    };
    let subscription = Subscription::new(&app.hub, &found, view, filter, Wire::Sse, &after);
    Ok(follow(&app.hub, subscription, permit))
}

/// Follow the list of sessions by server-sent events.
///
/// First one page, then every session that changes, whole; `removed` for one that was deleted.
#[utoipa::path(get, path = "/api/sessions/stream", params(SessionQuery), security(("token" = ["read"])), responses(
    (status = 200, description = "Frames", body = crate::api::stream::StreamFrame, content_type = "text/event-stream"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn sessions(
    State(app): State<AppState>,
    grant: Grant,
    QueryParams(query): QueryParams<SessionQuery>,
) -> ApiResult<Response> {
    let permit = open_stream(&app, &grant)?;
    let limit = limit(query.limit, 50, app.config.limits.page_sessions)?;
    Ok(follow_list(&app.hub, list_filter(query, grant.sight, limit), permit))
}

/// Follow several sessions over one socket.
///
/// Send `ClientMessage`s, get `ServerMessage`s. A browser, which can set no header here, gives a ticket of
/// `POST /api/request-tickets` as `?ticket=…`, or its token as a protocol:
/// `new WebSocket(url, ["narrows", "bearer." + token])`.
#[utoipa::path(get, path = "/api/ws", security(("token" = ["read"])), responses(
    (status = 101, description = "A socket"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn socket(
    State(app): State<AppState>,
    grant: Grant,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let upgrade = upgrade.map_err(|e| ApiError::invalid(e.body_text()))?;
    let permit = open_stream(&app, &grant)?;
    let size = app.config.limits.message_bytes;
    let upgrade = upgrade
        .protocols(["narrows"])
        .read_buffer_size(4 << 10)
        .write_buffer_size(64 << 10)
        .max_write_buffer_size(32 << 20)
        .max_message_size(size)
        .max_frame_size(size);
    Ok(upgrade.on_upgrade(move |socket| serve(socket, app, grant, permit)))
}
