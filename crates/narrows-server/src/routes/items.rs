//! What a person sees of a session: items, pictures, search.

use super::extract::{PathParams, QueryParams, limit, session};
use crate::api::{ItemPage, ItemQuery, SearchQuery};
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use narrows::Item;
use narrows::change::{Change, Set};
use narrows_store::{Query, Which, Window, clip};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// No text is cut shorter: words that are one of few, as the name of a tool, permit whole.
const MIN_PREVIEW_CHARS: usize = 32;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Box<RawValue>>,
    cursor: String,
    before: bool,
    after: bool,
    info: Box<RawValue>,
    ended: bool,
    total: u64,
    next_order: u64,
}

/// An item as JSON, its long texts cut.
fn printed(mut item: Item, ended: bool, preview: usize) -> ApiResult<Box<RawValue>> {
    let failed =
        |e: &dyn std::fmt::Display| ApiError::busy(format!("an item cannot be printed: {e}"));
    if ended {
        // The source is over: nothing streams any more.
        let id = item.id.clone();
        item.apply(Change::Set { id, set: Set::IsStreaming(false) });
    }
    let mut json = Vec::with_capacity(512);
    narrows::json::print(&mut json, &item).map_err(|e| failed(&e))?;
    let mut json = String::from_utf8(json).map_err(|e| failed(&e))?;
    if preview > 0 && json.len() > preview {
        let mut value: Value = serde_json::from_str(&json).map_err(|e| failed(&e))?;
        let mut cut = Vec::new();
        clip(&mut value, preview, &mut cut);
        if !cut.is_empty() {
            value["clipped"] =
                cut.into_iter().map(|(path, length)| (path, Value::from(length))).collect();
            json = value.to_string();
        }
    }
    RawValue::from_string(json).map_err(|e| failed(&e))
}

/// A window of a session's items.
///
/// Without `before`, `from` and `around`: the last ones. Texts that are longer than `preview` are
/// cut and named in the item's `clipped`; the item itself has them whole.
#[utoipa::path(get, path = "/api/sessions/{id}/items", operation_id = "window",
    params(("id" = String, Path, description = "The session"), ItemQuery),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The items", body = ItemPage),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn list_items(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ItemQuery>,
) -> ApiResult<Response> {
    let found = session(&app, &grant, &id).await?;
    let limit = limit(query.limit, 100, app.config.limits.page_items)?;
    let window = match (query.before, query.from, query.around) {
        (None, None, None) => Window::End,
        (Some(order), None, None) => Window::Before(order),
        (None, Some(order), None) => Window::From(order),
        (None, None, Some(order)) => Window::Around(order),
        _ => return Err(ApiError::invalid("give one of `before`, `from` and `around`")),
    };
    let preview = match query.preview.unwrap_or(app.config.limits.preview_characters) {
        0 => 0,
        preview => preview.max(MIN_PREVIEW_CHARS),
    };
    let which = match (query.top.unwrap_or(false), query.parent) {
        (false, None) => Which::All,
        (true, None) => Which::Top,
        (false, Some(call)) => Which::Of(call),
        (true, Some(_)) => return Err(ApiError::invalid("give one of `top` and `parent`")),
    };
    let page = app.store.items_of(found.key, which, window, limit).await?;
    let ended = page.ended;
    let items = page.items.into_iter().map(|row| printed(row.item, ended, preview));
    let page = Page {
        items: items.collect::<ApiResult<_>>()?,
        cursor: format!("{}-{}", page.epoch, page.seq),
        before: page.before,
        after: page.after,
        info: RawValue::from_string(page.info).unwrap_or_default(),
        ended,
        total: page.total,
        next_order: page.next_order,
    };
    Ok(Json(page).into_response())
}

/// One item, whole.
#[utoipa::path(get, path = "/api/sessions/{id}/items/{item}", operation_id = "one",
    params(("id" = String, Path, description = "The session"), ("item" = String, Path, description = "The item")),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The item", body = crate::api::item::Item),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn get_item(
    State(app): State<AppState>,
    grant: Grant,
    PathParams((id, item)): PathParams<(String, String)>,
) -> ApiResult<Response> {
    let found = session(&app, &grant, &id).await?;
    let (item, ended) = app.store.item(found.key, &item).await?;
    Ok(Json(printed(item, ended, 0)?).into_response())
}

/// A picture of a session.
#[utoipa::path(get, path = "/api/sessions/{id}/blobs/{hash}",
    params(("id" = String, Path, description = "The session"), ("hash" = String, Path, description = "Its SHA-256")),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The picture", body = Vec<u8>, content_type = "image/*"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn blob(
    State(app): State<AppState>,
    grant: Grant,
    PathParams((id, hash)): PathParams<(String, String)>,
) -> ApiResult<Response> {
    let found = session(&app, &grant, &id).await?;
    let blob = app.store.blob(found.key, &hash).await?;
    // Only pictures are shown; whatever else is named as one is a file to be saved.
    let shown = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];
    let mut response = blob.bytes.into_response();
    let headers = response.headers_mut();
    let kind = shown.into_iter().find(|k| *k == blob.mime);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(kind.unwrap_or("application/octet-stream")),
    );
    if kind.is_none() {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, max-age=31536000, immutable"),
    );
    Ok(response)
}

#[derive(Serialize)]
struct Found {
    hits: Vec<narrows_store::Hit>,
    next: Option<String>,
}

/// Search all sessions, or one.
#[utoipa::path(get, path = "/api/search", params(SearchQuery), security(("token" = ["read"])), responses(
    (status = 200, description = "One page of hits", body = crate::api::SearchPage),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn search(
    State(app): State<AppState>,
    grant: Grant,
    QueryParams(query): QueryParams<SearchQuery>,
) -> ApiResult<Response> {
    let limit = limit(query.limit, 20, app.config.limits.page_hits)?;
    let session = match &query.session {
        Some(id) => Some(session(&app, &grant, id).await?.key),
        None => None,
    };
    let query = Query {
        text: query.q,
        session,
        agent: query.agent,
        project: query.project,
        since: query.since,
        until: query.until,
        one_each: false,
        sight: grant.sight,
        after: query.after,
        limit,
    };
    app.intake.flush_all_items().await;
    let page = app.store.search(query).await?;
    Ok(Json(Found { hits: page.hits, next: page.next }).into_response())
}
