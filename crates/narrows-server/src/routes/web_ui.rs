//! Routes of the web UI: its files, and the answer where no route matches.

use crate::state::AppState;
use crate::web_ui::header_list;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

/// The page; it finds out by itself what its address asks for.
pub(crate) async fn index(State(app): State<AppState>, headers: HeaderMap) -> Response {
    app.config.page.respond("index.html", &headers)
}

/// Whether a person asks with a browser, and for nothing of the API.
pub(crate) fn is_wanted(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let path = uri.path();
    matches!(*method, Method::GET | Method::HEAD)
        && path != "/api"
        && !path.starts_with("/api/")
        && header_list(headers, header::ACCEPT)
            .any(|kind| kind.split(';').next().is_some_and(|k| k.trim() == "text/html"))
}

/// The page where nothing else is: it says so.
pub(crate) fn not_found(app: &AppState, headers: &HeaderMap) -> Response {
    // Whether it is known does not matter: its status is another one.
    let mut asked = headers.clone();
    asked.remove(header::IF_NONE_MATCH);
    let mut response = app.config.page.respond("index.html", &asked);
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.remove(header::ETAG);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.append(header::VARY, HeaderValue::from_static("Accept"));
    response
}

pub(crate) async fn file(
    State(app): State<AppState>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    if name == "index.html" {
        return StatusCode::NOT_FOUND.into_response();
    }
    app.config.page.respond(&name, &headers)
}
