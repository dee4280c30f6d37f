//! For whoever operates a server.

use super::extract::{QueryParams, limit};
use crate::api::limits::AllLimits;
use crate::api::{AuditPage, AuditQuery, Checking, Health, Live};
use crate::auth::Grant;
use crate::config::Limits;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

/// Adds the token to the document.
pub(super) struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// Whether the server works.
#[utoipa::path(get, path = "/healthz", tag = "ops", responses(
    (status = 200, description = "It works", body = Health),
    (status = 503, description = "The store cannot be written", body = Health),
))]
pub(super) async fn healthz(State(app): State<AppState>) -> impl IntoResponse {
    let reason = app.store.check_writable().await.err().map(|error| error.to_string());
    let works = reason.is_none();
    let bus = app.hub.bus();
    // Without it nodes find out later what others do, and that is all.
    let damaged = app.store.damaged_places();
    let status = if works && bus.is_connected() && damaged == 0 { "ok" } else { "degraded" };
    let health = Health {
        status: status.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        bus: bus.is_shared().then(|| if bus.is_connected() { "ok" } else { "down" }.to_owned()),
        damaged: (damaged > 0).then_some(damaged as u64),
        checking: app.store.checking().map(|(done, all)| Checking { done, all }),
        reason,
    };
    (if works { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(health))
}

/// Counts, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "ops", security(("token" = ["read"])), responses(
    (status = 200, description = "Counts", body = String, content_type = "application/openmetrics-text"),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn metrics(State(app): State<AppState>, grant: Grant) -> ApiResult<Response> {
    if !grant.sight.is_all() {
        let what = "a token that is limited to some sessions cannot read counts of all";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.metrics.encode(app.gauges())).into_response())
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/livez", tag = "ops", responses((status = 200, description = "It does", body = Live)))]
pub(super) async fn livez() -> Json<Live> {
    Json(Live { status: "ok".to_owned() })
}

/// Whether it can be given work: as `/healthz`.
#[utoipa::path(get, path = "/readyz", tag = "ops", responses(
    (status = 200, description = "It can", body = Health),
    (status = 503, description = "The store cannot be written", body = Health),
))]
pub(super) async fn readyz(state: State<AppState>) -> impl IntoResponse {
    healthz(state).await
}

/// What is allowed at most.
#[utoipa::path(get, path = "/api/limits", tag = "ops", security(("token" = ["read"])), responses(
    (status = 200, description = "The limits", body = Limits),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn limits(State(app): State<AppState>) -> Json<Limits> {
    Json(app.config.limits.clone())
}

/// What is allowed at most, and what is kept in memory at most.
#[utoipa::path(get, path = "/api/v1/limits", tag = "ops", security(("token" = ["read"])), responses(
    (status = 200, description = "The limits", body = AllLimits),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn all_limits(State(app): State<AppState>) -> Json<AllLimits> {
    Json(AllLimits::of(&app.config.limits))
}

/// Who did what that cannot be undone.
#[utoipa::path(get, path = "/api/audit", tag = "ops", params(AuditQuery), security(("token" = ["admin"])), responses(
    (status = 200, description = "The newest first", body = AuditPage),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn audit(
    State(app): State<AppState>,
    grant: Grant,
    QueryParams(query): QueryParams<AuditQuery>,
) -> ApiResult<Response> {
    if !grant.sight.is_all() {
        let what = "a token that is limited to some sessions cannot read the audit log";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    let limit = limit(query.limit, 100, 500)?;
    let actions = app.store.audited(query.before, limit).await?;
    Ok(Json(serde_json::json!({ "actions": actions })).into_response())
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "document", tag = "ops", responses(
    (status = 200, description = "Every route and shape", body = Object),
))]
pub(super) async fn openapi_document() -> Json<utoipa::openapi::OpenApi> {
    Json(super::openapi())
}
