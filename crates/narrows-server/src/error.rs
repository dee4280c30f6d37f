//! Errors as clients see them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use narrows_store::Error;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorInfo,
}

/// A code for programs and words for people.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErrorInfo {
    /// `NOT_FOUND`, `UNAUTHORIZED` and the like.
    pub code: Cow<'static, str>,
    /// What happened and what to do.
    pub message: Cow<'static, str>,
    /// Whether the same request may work later; after `RESEND`, once what is missing is sent again.
    pub retryable: bool,
    /// With `RESEND`: the place of the last packet none of whose text is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<u64>,
    /// With `RESEND`: the place from which to send again, up to and with the packets that were refused.
    /// It is the `first` of that one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// With `RESEND`: the `Idempotency-Key` of the request that this packet came with, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// An error with its status.
#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    info: Box<ErrorInfo>,
    retry_after: Option<u64>,
    close: bool,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let info = ErrorInfo {
            code: code.into(),
            message: message.into(),
            retryable: false,
            acknowledged: None,
            first: None,
            key: None,
        };
        ApiError { status, info: Box::new(info), retry_after: None, close: false }
    }

    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", format!("{what} not found"))
    }

    pub(crate) fn misdirected() -> Self {
        let what = "this server does not answer to that name: start it with --host";
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, "WRONG_HOST", what)
    }

    pub(crate) fn unauthorized() -> Self {
        let what = "a token is needed: Authorization: Bearer nrw_…";
        ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", what)
    }

    /// A body in an encoding that is not read here.
    pub(crate) fn encoding(what: impl Into<Cow<'static, str>>) -> Self {
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_ENCODING", what)
    }

    pub(crate) fn busy(what: impl Into<Cow<'static, str>>) -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "BUSY", what).retry_after(1)
    }

    /// Its code, and its words.
    pub(crate) fn code_and_message(&self) -> (&str, &str) {
        (&self.info.code, &self.info.message)
    }

    /// The request's body was not read to its end: the connection cannot be used again.
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.info.retryable = true;
        self.retry_after = Some(seconds);
        self
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match &error {
            Error::NotFound(what) => ApiError::not_found(what),
            Error::Busy => ApiError::new(StatusCode::CONFLICT, "SESSION_BUSY", error.to_string())
                .retry_after(1),
            Error::Invalid(what) => ApiError::invalid(what.clone()),
            Error::KeyReused => ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "IDEMPOTENCY_KEY_REUSED",
                error.to_string(),
            ),
            Error::Conflict { .. } => {
                ApiError::new(StatusCode::CONFLICT, "CONFLICT", error.to_string()).retry_after(1)
            }
            Error::Full => {
                ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "STORE_FULL", error.to_string())
                    .retry_after(10)
            }
            Error::ReadOnly => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_READ_ONLY", error.to_string())
                    .retry_after(10)
            }
            Error::Resend { acknowledged, key } => {
                let mut refused =
                    ApiError::new(StatusCode::CONFLICT, "RESEND", error.to_string()).retry_after(0);
                refused.info.acknowledged = Some(*acknowledged);
                refused.info.first = Some(acknowledged + 1);
                refused.info.key.clone_from(key);
                refused
            }
            Error::Unavailable(_) => ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "STORE_UNAVAILABLE",
                error.to_string(),
            )
            .retry_after(1),
            Error::Closed => {
                ApiError::busy("the server is closing, or the session was written anew: try again")
            }
            // The store has said so once.
            Error::Damaged(_) => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_DAMAGED", error.to_string())
            }
            _ => {
                tracing::error!(%error, "the store failed");
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_FAILED", error.to_string())
                    .retry_after(5)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = axum::Json(ErrorBody { error: *self.info });
        let mut response = (self.status, body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.close {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
