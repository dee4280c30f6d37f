//! What requests bring, checked, with errors that say what is wrong.

use crate::auth::Grant;
use crate::error::{ApiError, ApiResult};
use crate::state::AppState;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::request::Parts;
use http::{StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use narrows_store::Session;
use serde::de::DeserializeOwned;

/// The query of a request.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(query)| QueryParams(query)).map_err(|e| ApiError::invalid(e.body_text()))
    }
}

/// PathParams in the path.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(path)| PathParams(path)).map_err(|_| ApiError::not_found("path"))
    }
}

/// What the guard found out.
impl<S: Send + Sync> FromRequestParts<S> for Grant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Only a route that needs a token has one.
        parts.extensions.get::<Grant>().cloned().ok_or_else(ApiError::unauthorized)
    }
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        // A form on some page cannot send this type without asking first.
        let plain = |k: &str| {
            let name = k.split(';').next().unwrap_or_default().trim();
            name.eq_ignore_ascii_case("application/json")
        };
        if !kind.is_some_and(plain) {
            let what = "the body must be application/json";
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "UNSUPPORTED_TYPE",
                what,
            ));
        }
        if request.headers().get(header::CONTENT_ENCODING).is_some_and(|v| v != "identity") {
            return Err(ApiError::encoding("a JSON body is sent plain"));
        }
        let bytes = read_to_end(request.into_body(), app.config.limits.body_bytes).await?;
        // An array would be read as the fields of an object, one after the other.
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
            return Err(ApiError::invalid("the body must be a JSON object"));
        }
        let value = serde_json::from_slice(&bytes);
        value
            .map(Json)
            .map_err(|e| ApiError::invalid(format!("the body is not what it should be: {e}")))
    }
}

async fn read_to_end(body: Body, max: usize) -> ApiResult<bytes::Bytes> {
    let read = Limited::new(body, max).collect();
    let idle = std::time::Duration::from_secs(30);
    match tokio::time::timeout(idle, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let what = format!("the body is longer than {max} bytes");
            Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", what))
        }
        Ok(Err(_)) => Err(ApiError::invalid("the body broke off")),
        Err(_) => {
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", "the body came too slowly"))
        }
    }
}

/// A session that the caller may see. To others it is as if it were not there.
pub(crate) async fn session(app: &AppState, grant: &Grant, id: &str) -> ApiResult<Session> {
    let found = app.store.session(id).await?;
    if grant.sight.sees(&found.id, &found.tags) {
        Ok(found)
    } else {
        Err(ApiError::not_found("session"))
    }
}

/// A number of rows within its limits.
pub(crate) fn limit(requested: Option<usize>, default: usize, max: usize) -> ApiResult<usize> {
    match requested {
        None => Ok(default),
        Some(n) if (1..=max).contains(&n) => Ok(n),
        Some(_) => Err(ApiError::invalid(format!("`limit` is a number from 1 to {max}"))),
    }
}
