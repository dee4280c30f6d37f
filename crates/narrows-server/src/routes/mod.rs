//! Every route, in one table: what is not in it does not exist, and each says what it needs.

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
use crate::guard::{Gate, Need, front, guard};
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
    /// The scope it needs, if any.
    pub scope: Option<Scope>,
}

type Line = (Method, &'static str, Need, MethodRouter<AppState>);

const READ: Need = Need::Scope(Scope::Read);
const WRITE: Need = Need::Scope(Scope::Write);
const RUN: Need = Need::Scope(Scope::Run);
const APPROVE: Need = Need::Scope(Scope::Approve);
const READ_ONCE: Need = Need::Ticket(Scope::Read);
const ADMIN: Need = Need::Scope(Scope::Admin);
const OPEN: Need = Need::Nothing;

fn table() -> Vec<Line> {
    let (g, p, d) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        (g.clone(), "/", OPEN, get(web_ui::index)),
        (g.clone(), "/s/{id}", OPEN, get(web_ui::index)),
        (g.clone(), "/page/{file}", OPEN, get(web_ui::file)),
        (g.clone(), "/healthz", OPEN, get(operations::healthz)),
        (g.clone(), "/livez", OPEN, get(operations::livez)),
        (g.clone(), "/readyz", OPEN, get(operations::readyz)),
        (g.clone(), "/openapi.json", OPEN, get(operations::document)),
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
        (p.clone(), "/api/tokens", ADMIN, post(tokens::make)),
        (d.clone(), "/api/tokens/{token}", ADMIN, delete(tokens::revoke)),
        (g.clone(), "/api/sessions", READ, get(sessions::list)),
        (p.clone(), "/api/sessions", WRITE, post(sessions::create)),
        (g.clone(), "/api/sessions/stream", READ_ONCE, get(stream::sessions)),
        (g.clone(), "/api/sessions/{id}", READ, get(sessions::show)),
        (Method::PATCH, "/api/sessions/{id}", WRITE, patch(sessions::tag)),
        (d.clone(), "/api/sessions/{id}", WRITE, delete(sessions::remove)),
        (p.clone(), "/api/sessions/{id}/packets", WRITE, post(packets::ingest)),
        (g.clone(), "/api/sessions/{id}/packets", READ, get(packets::state)),
        (g.clone(), "/api/sessions/{id}/events", READ_ONCE, get(stream::events)),
        (g.clone(), "/api/sessions/{id}/outline", READ, get(overview::outline)),
        (g.clone(), "/api/sessions/{id}/items", READ, get(items::window)),
        (g.clone(), "/api/sessions/{id}/items/{item}", READ, get(items::one)),
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
        (Method::PATCH, "/api/sessions/{id}/run", RUN, patch(run::choose)),
        (p.clone(), "/api/sessions/{id}/send-message", RUN, post(run::send)),
        (p.clone(), "/api/sessions/{id}/cancel", RUN, post(run::cancel)),
        (p.clone(), "/api/sessions/{id}/stop", RUN, post(run::stop)),
        (d, "/api/sessions/{id}/queue/{message}", RUN, delete(run::take_back)),
        (p, "/api/sessions/{id}/permissions/{request}", APPROVE, post(run::answer)),
        (g, "/api/ws", READ_ONCE, get(stream::socket)),
    ]
}

/// Every route and what it needs.
pub fn route_list() -> Vec<RouteInfo> {
    let scope = |need| match need {
        Need::Nothing => None,
        Need::Scope(scope) | Need::Ticket(scope) => Some(scope),
    };
    let lines = table().into_iter();
    lines.map(|(method, path, need, _)| RouteInfo { method, path, scope: scope(need) }).collect()
}

pub(crate) fn router(app: &AppState) -> Router {
    let mut router = Router::new();
    let mut lines = table().into_iter().peekable();
    while let Some((method, path, need, mut routes)) = lines.next() {
        let mut needs = vec![(method, need)];
        while let Some((method, _, need, more)) = lines.next_if(|line| line.1 == path) {
            routes = routes.merge(more);
            needs.push((method, need));
        }
        let gate = Gate { app: app.clone(), needs: needs.into() };
        router = router.route(path, routes.layer(from_fn_with_state(gate, guard)));
    }
    router.fallback(nothing).layer(from_fn_with_state(app.clone(), front)).with_state(app.clone())
}

/// An address that leads nowhere: people get the page, which says so, programs an error.
async fn nothing(
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
        operations::healthz, operations::livez, operations::readyz, operations::metrics, operations::limits, operations::all_limits, operations::audit, operations::document,
        tokens::login, tokens::logout, tokens::me, tokens::ticket, tokens::request_ticket, tokens::list, tokens::make, tokens::revoke,
        sessions::list, sessions::create, sessions::show, sessions::tag, sessions::remove, sessions::prune,
        packets::ingest, packets::state, items::window, items::one, items::blob, items::search,
        overview::outline, overview::facets, overview::sources,
        run::agents,
        agent_sessions::list,
        agent_sessions::remove, run::create, run::state, run::choose, run::send, run::cancel, run::stop, run::take_back,
        run::answer, export::export, stream::events, stream::sessions, stream::socket,
    ),
    components(schemas(
        crate::error::ErrorBody, crate::stream::ClientMessage, crate::api::stream::ServerMessage,
        crate::api::stream::StreamFrame, crate::api::item::Packet,
    )),
    modifiers(&Security)
)]
struct Document;

/// The document that tells every route and shape.
pub fn openapi() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
