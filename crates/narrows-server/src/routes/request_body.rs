//! The body of a request, as it arrives.

use super::gzip::Gunzip;
use crate::auth::Grant;
use crate::error::{ApiError, ApiResult};
use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use narrows_engine::live::{self, Hub};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A body that says it is no longer is read whole before anything is done with it,
const MAX_BUFFERED_BODY: u64 = 256 << 10;
/// unless it comes slower than this.
const BODY_WAIT: Duration = Duration::from_millis(20);
/// When the server ends, a body has so long to come to its end.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

pub(super) struct BodyReader<'a> {
    body: Body,
    grant: &'a Grant,
    /// How long nothing may come.
    idle: Duration,
    /// Whether it is is_short, as far as is told.
    is_short: bool,
    ended: bool,
    /// It broke off while it was expected to be whole.
    broken: bool,
    gzip: Option<Gunzip>,
    /// What is wrong with it, found while nobody waited.
    pending_error: Option<ApiError>,
    closing: watch::Receiver<bool>,
    /// Until when it must be over, once the server ends.
    deadline: Option<Instant>,
}

impl<'a> BodyReader<'a> {
    pub(super) fn new(
        body: Body,
        headers: &HeaderMap,
        grant: &'a Grant,
        idle: Duration,
        hub: &Hub,
    ) -> ApiResult<Self> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let is_short =
            length.and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n <= MAX_BUFFERED_BODY);
        let gzip = Gunzip::from_headers(headers)?;
        Ok(BodyReader {
            body,
            grant,
            idle,
            is_short,
            ended: false,
            broken: false,
            gzip,
            pending_error: None,
            closing: hub.closing(),
            deadline: None,
        })
    }

    /// All of it, if it is short and here soon; else what has come.
    pub(super) async fn read_buffered(&mut self) -> ApiResult<Vec<u8>> {
        let (mut buffered, deadline) = (Vec::new(), Instant::now() + BODY_WAIT);
        // What was packed may be longer than it looked.
        while self.is_short && !self.is_over() && buffered.len() as u64 <= MAX_BUFFERED_BODY {
            match tokio::time::timeout_at(deadline, self.next()).await {
                Ok(Ok(Some(data))) => buffered.extend_from_slice(&data),
                Ok(Ok(None)) => {}
                // What came before is kept: an agent that is cut off has said what it said.
                Ok(Err(_)) if self.broken => break,
                Ok(Err(error)) => return Err(error),
                Err(_) => break,
            }
        }
        Ok(buffered)
    }

    /// Whether all of it was taken.
    pub(super) fn is_over(&self) -> bool {
        self.ended
            && self.pending_error.is_none()
            && self.gzip.as_ref().is_none_or(Gunzip::is_empty)
    }

    /// The next part of what arrived packed.
    fn unpacked(&mut self) -> ApiResult<Option<Bytes>> {
        if let Some(error) = self.pending_error.take() {
            return Err(error);
        }
        self.gzip.as_mut().map_or(Ok(None), Gunzip::next)
    }

    /// Notes the end of what arrives.
    fn end(&mut self) -> ApiResult<()> {
        self.ended = true;
        self.gzip.as_mut().map_or(Ok(()), Gunzip::end)
    }

    /// Waits until the server has ended for long enough.
    async fn closed(closing: &mut watch::Receiver<bool>, until: &mut Option<Instant>) {
        live::closed(closing).await;
        let until = *until.get_or_insert_with(|| Instant::now() + SHUTDOWN_GRACE);
        tokio::time::sleep_until(until).await;
    }

    /// What is here already.
    pub(super) fn ready(&mut self) -> Option<Bytes> {
        if self.broken || self.pending_error.is_some() || self.grant.is_revoked() {
            return None;
        }
        loop {
            match self.unpacked() {
                Ok(None) => {}
                Ok(some) => return some,
                Err(error) => {
                    self.pending_error = Some(error);
                    return None;
                }
            }
            if self.ended {
                return None;
            }
            match self.body.frame().now_or_never()? {
                None => self.pending_error = self.end().err(),
                Some(Ok(frame)) => match (frame.into_data().ok()?, &mut self.gzip) {
                    (data, None) => return Some(data),
                    (data, Some(gzip)) => gzip.push(data),
                },
                Some(Err(_)) => {
                    self.broken = true;
                    return None;
                }
            }
        }
    }

    /// What comes next; nothing at the end.
    pub(super) async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        loop {
            if let Some(unpacked) = self.unpacked()? {
                return Ok(Some(unpacked));
            }
            if self.ended {
                return Ok(None);
            }
            if self.broken {
                return Err(ApiError::invalid("the body broke off"));
            }
            let next = tokio::select! {
                biased;
                // Whoever may not write any more does not, also not with a request that has buffered.
                () = self.grant.ended() => return Err(ApiError::unauthorized()),
                () = Self::closed(&mut self.closing, &mut self.deadline) => {
                    return Err(ApiError::busy("the server is closing: what came is kept, send the rest again"));
                }
                next = tokio::time::timeout(self.idle, self.body.frame()) => next,
            };
            match next {
                Ok(None) => self.end()?,
                Ok(Some(Ok(frame))) => match (frame.into_data(), &mut self.gzip) {
                    (Ok(data), None) => return Ok(Some(data)),
                    (Ok(data), Some(gzip)) => gzip.push(data),
                    (Err(_), _) => {}
                },
                Ok(Some(Err(_))) => self.broken = true,
                Err(_) => {
                    let what = "nothing came for too long; blank lines keep the request alive";
                    return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", what));
                }
            }
        }
    }
}
