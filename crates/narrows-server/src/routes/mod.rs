//! Every route, in one table: what is not in it does not exist, and each says what it required.

mod agent_sessions;
mod export;
mod extract;
mod gzip;
mod items;
mod operations;
mod overview;
mod packets;
mod request_body;
mod run;
mod sessions;
mod stream;
mod tokens;
mod web_ui;

pub(crate) use sessions::clear as clear_sessions;

use crate::error::ApiError;
use crate::guard::{RequiredScope, RouteGuard, guard, outer};
use crate::state::AppState;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use narrows_store::Scope;
use operations::Security;
use utoipa::OpenApi;

/// One route, for tests and documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method.
    pub method: Method,
    /// The path, with `{…}` for what varies.
    pub path: &'static str,
    /// The scope it required, if any.
    pub scope: Option<Scope>,
}

type RouteEntry = (Method, &'static str, RequiredScope, MethodRouter<AppState>);

const READ: RequiredScope = RequiredScope::Scope(Scope::Read);
const WRITE: RequiredScope = RequiredScope::Scope(Scope::Write);
const RUN: RequiredScope = RequiredScope::Scope(Scope::Run);
const APPROVE: RequiredScope = RequiredScope::Scope(Scope::Approve);
const READ_ONCE: RequiredScope = RequiredScope::Ticket(Scope::Read);
const ADMIN: RequiredScope = RequiredScope::Scope(Scope::Admin);
const OPEN: RequiredScope = RequiredScope::None;

fn table() -> Vec<RouteEntry> {
    let (g, p, d) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        (g.clone(), "/", OPEN, get(web_ui::index)),
        (g.clone(), "/s/{id}", OPEN, get(web_ui::index)),
        (g.clone(), "/page/{file}", OPEN, get(web_ui::file)),
        (g.clone(), "/healthz", OPEN, get(operations::healthz)),
        (g.clone(), "/livez", OPEN, get(operations::livez)),
        (g.clone(), "/readyz", OPEN, get(operations::readyz)),
        (g.clone(), "/openapi.json", OPEN, get(operations::openapi_document)),
        (g.clone(), "/metrics", READ, get(operations::metrics)),
        (g.clone(), "/api/limits", READ, get(operations::limits)),
        (g.clone(), "/api/v1/limits", READ, get(operations::all_limits)),
        (p.clone(), "/api/prune", ADMIN, post(sessions::prune)),
        (g.clone(), "/api/audit", ADMIN, get(operations::audit)),
        (p.clone(), "/api/login", OPEN, post(tokens::login)),
        (p.clone(), "/api/logout", READ, post(tokens::logout)),
        (g.clone(), "/api/me", READ, get(tokens::me)),
        (p.clone(), "/api/tickets", ADMIN, post(tokens::ticket)),
        (p.clone(), "/api/request-tickets", READ, post(tokens::request_ticket)),
        (g.clone(), "/api/tokens", ADMIN, get(tokens::list)),
        (p.clone(), "/api/tokens", ADMIN, post(tokens::create_token)),
        (d.clone(), "/api/tokens/{token}", ADMIN, delete(tokens::revoke)),
        (g.clone(), "/api/sessions", READ, get(sessions::list)),
        (p.clone(), "/api/sessions", WRITE, post(sessions::create)),
        (g.clone(), "/api/sessions/stream", READ_ONCE, get(stream::sessions)),
        (g.clone(), "/api/sessions/{id}", READ, get(sessions::get_session)),
        (Method::PATCH, "/api/sessions/{id}", WRITE, patch(sessions::update_session)),
        (d.clone(), "/api/sessions/{id}", WRITE, delete(sessions::remove)),
        (p.clone(), "/api/sessions/{id}/packets", WRITE, post(packets::ingest)),
        (g.clone(), "/api/sessions/{id}/packets", READ, get(packets::get_packet_state)),
        (g.clone(), "/api/sessions/{id}/events", READ_ONCE, get(stream::events)),
        (g.clone(), "/api/sessions/{id}/outline", READ, get(overview::outline)),
        (g.clone(), "/api/sessions/{id}/items", READ, get(items::list_items)),
        (g.clone(), "/api/sessions/{id}/items/{item}", READ, get(items::get_item)),
        (g.clone(), "/api/sessions/{id}/blobs/{hash}", READ_ONCE, get(items::blob)),
        (g.clone(), "/api/sessions/{id}/export", READ_ONCE, get(export::export)),
        (g.clone(), "/api/search", READ, get(items::search)),
        (g.clone(), "/api/facets", READ, get(overview::facets)),
        (g.clone(), "/api/sources", READ, get(overview::sources)),
        (g.clone(), "/api/agents", READ, get(run::agents)),
        (g.clone(), "/api/agents/{agent}/sessions", RUN, get(agent_sessions::list)),
        (d.clone(), "/api/agents/{agent}/sessions/{session}", RUN, delete(agent_sessions::remove)),
        (p.clone(), "/api/runs", RUN, post(run::create)),
        (g.clone(), "/api/sessions/{id}/run", READ, get(run::state)),
        (Method::PATCH, "/api/sessions/{id}/run", RUN, patch(run::update_run)),
        (p.clone(), "/api/sessions/{id}/send-message", RUN, post(run::send)),
        (p.clone(), "/api/sessions/{id}/cancel", RUN, post(run::cancel)),
        (p.clone(), "/api/sessions/{id}/stop", RUN, post(run::stop)),
        (d, "/api/sessions/{id}/queue/{message}", RUN, delete(run::delete_queued_message)),
        (p, "/api/sessions/{id}/permissions/{request}", APPROVE, post(run::answer)),
        (g, "/api/ws", READ_ONCE, get(stream::socket)),
    ]
}

/// Every route and what it required.
pub fn route_list() -> Vec<RouteInfo> {
    let scope = |need| match need {
        RequiredScope::None => None,
        RequiredScope::Scope(scope) | RequiredScope::Ticket(scope) => Some(scope),
    };
    let lines = table().into_iter();
    lines.map(|(method, path, need, _)| RouteInfo { method, path, scope: scope(need) }).collect()
}

pub(crate) fn router(app: &AppState) -> Router {
    let mut router = Router::new();
    let mut lines = table().into_iter().peekable();
    while let Some((method, path, need, mut routes)) = lines.next() {
        let mut required = vec![(method, need)];
        while let Some((method, _, need, more)) = lines.next_if(|line| line.1 == path) {
            routes = routes.merge(more);
            required.push((method, need));
        }
        let gate = RouteGuard { app: app.clone(), required: required.into() };
        router = router.route(path, routes.layer(from_fn_with_state(gate, guard)));
    }
    router.fallback(fallback).layer(from_fn_with_state(app.clone(), outer)).with_state(app.clone())
}

/// An address that leads nowhere: people get the page, which says so, programs an error.
async fn fallback(
    State(app): State<AppState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if web_ui::is_wanted(&method, &uri, &headers) {
        return web_ui::not_found(&app, &headers);
    }
    let mut answer =
        ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "no such path").into_response();
    answer.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    answer
}

/// The document that tells every route and shape.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "narrows",
        description = "Sessions of coding agents: cleaned, stored, followed live and resumed without a gap."
    ),
    paths(
        operations::healthz, operations::livez, operations::readyz, operations::metrics, operations::limits, operations::all_limits, operations::audit, operations::openapi_document,
        tokens::login, tokens::logout, tokens::me, tokens::ticket, tokens::request_ticket, tokens::list, tokens::create_token, tokens::revoke,
        sessions::list, sessions::create, sessions::get_session, sessions::update_session, sessions::remove, sessions::prune,
        packets::ingest, packets::get_packet_state, items::list_items, items::get_item, items::blob, items::search,
        overview::outline, overview::facets, overview::sources,
        run::agents,
        agent_sessions::list,
        agent_sessions::remove, run::create, run::state, run::update_run, run::send, run::cancel, run::stop, run::delete_queued_message,
        run::answer, export::export, stream::events, stream::sessions, stream::socket,
    ),
    components(schemas(
        crate::error::ErrorBody, crate::stream::ClientMessage, crate::api::stream::ServerMessage,
        crate::api::stream::StreamFrame, crate::api::item::Packet,
    )),
    modifiers(&Security)
)]
struct ApiDocument;

/// The document that tells every route and shape.
pub fn openapi() -> utoipa::openapi::OpenApi {
    ApiDocument::openapi()
}
