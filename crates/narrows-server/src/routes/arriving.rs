//! The body of a request, as it arrives.

use crate::auth::Grant;
use crate::error::{ApiError, ApiResult};
use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::Instant;

/// A body that says it is no longer is read whole before anything is done with it,
const WHOLE: u64 = 256 << 10;
/// unless it comes slower than this.
const SOON: Duration = Duration::from_millis(20);

pub(super) struct Arriving<'a> {
    body: Body,
    grant: &'a Grant,
    /// How long nothing may come.
    idle: Duration,
    /// Whether it is short, as far as is told.
    short: bool,
    over: bool,
    /// It broke off while it was expected to be whole.
    broken: bool,
}

impl<'a> Arriving<'a> {
    pub(super) fn new(body: Body, headers: &HeaderMap, grant: &'a Grant, idle: Duration) -> Self {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let short = length.and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n <= WHOLE);
        Arriving { body, grant, idle, short, over: false, broken: false }
    }

    /// All of it, if it is short and here soon; else what has come.
    pub(super) async fn beginning(&mut self) -> ApiResult<Vec<u8>> {
        let (mut begun, soon) = (Vec::new(), Instant::now() + SOON);
        while self.short && !self.over {
            match tokio::time::timeout_at(soon, self.next()).await {
                Ok(Ok(Some(data))) => begun.extend_from_slice(&data),
                Ok(Ok(None)) => {}
                // What came before is kept: an agent that is cut off has said what it said.
                Ok(Err(_)) if self.broken => break,
                Ok(Err(error)) => return Err(error),
                Err(_) => break,
            }
        }
        Ok(begun)
    }

    /// Whether all of it was taken.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What is here already.
    pub(super) fn ready(&mut self) -> Option<Bytes> {
        if self.over || self.broken || self.grant.is_revoked() {
            return None;
        }
        match self.body.frame().now_or_never()? {
            None => self.over = true,
            Some(Ok(frame)) => return frame.into_data().ok(),
            Some(Err(_)) => self.broken = true,
        }
        None
    }

    /// What comes next; nothing at the end.
    pub(super) async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        loop {
            if self.over {
                return Ok(None);
            }
            if self.broken {
                return Err(ApiError::invalid("the body broke off"));
            }
            let next = tokio::select! {
                biased;
                // Whoever may not write any more does not, also not with a request that has begun.
                () = self.grant.ended() => return Err(ApiError::unauthorized()),
                next = tokio::time::timeout(self.idle, self.body.frame()) => next,
            };
            match next {
                Ok(None) => self.over = true,
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Ok(Some(Err(_))) => self.broken = true,
                Err(_) => {
                    let what = "nothing came for too long; blank lines keep the request alive";
                    return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", what));
                }
            }
        }
    }
}
