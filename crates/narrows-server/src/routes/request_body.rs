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
const WHOLE: u64 = 256 << 10;
/// unless it comes slower than this.
const SOON: Duration = Duration::from_millis(20);
/// When the server ends, a body has so long to come to its end.
const GRACE: Duration = Duration::from_millis(500);

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
    gzip: Option<Gunzip>,
    /// What is wrong with it, found while nobody waited.
    wrong: Option<ApiError>,
    closing: watch::Receiver<bool>,
    /// Until when it must be over, once the server ends.
    until: Option<Instant>,
}

impl<'a> Arriving<'a> {
    pub(super) fn new(
        body: Body,
        headers: &HeaderMap,
        grant: &'a Grant,
        idle: Duration,
        hub: &Hub,
    ) -> ApiResult<Self> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let short = length.and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n <= WHOLE);
        let gzip = Gunzip::of(headers)?;
        Ok(Arriving {
            body,
            grant,
            idle,
            short,
            over: false,
            broken: false,
            gzip,
            wrong: None,
            closing: hub.closing(),
            until: None,
        })
    }

    /// All of it, if it is short and here soon; else what has come.
    pub(super) async fn beginning(&mut self) -> ApiResult<Vec<u8>> {
        let (mut begun, soon) = (Vec::new(), Instant::now() + SOON);
        // What was packed may be longer than it looked.
        while self.short && !self.is_over() && begun.len() as u64 <= WHOLE {
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
        self.over && self.wrong.is_none() && self.gzip.as_ref().is_none_or(Gunzip::is_empty)
    }

    /// The next part of what arrived packed.
    fn unpacked(&mut self) -> ApiResult<Option<Bytes>> {
        if let Some(error) = self.wrong.take() {
            return Err(error);
        }
        self.gzip.as_mut().map_or(Ok(None), Gunzip::next)
    }

    /// Notes the end of what arrives.
    fn end(&mut self) -> ApiResult<()> {
        self.over = true;
        self.gzip.as_mut().map_or(Ok(()), Gunzip::end)
    }

    /// Waits until the server has ended for long enough.
    async fn closed(closing: &mut watch::Receiver<bool>, until: &mut Option<Instant>) {
        live::closed(closing).await;
        let until = *until.get_or_insert_with(|| Instant::now() + GRACE);
        tokio::time::sleep_until(until).await;
    }

    /// What is here already.
    pub(super) fn ready(&mut self) -> Option<Bytes> {
        if self.broken || self.wrong.is_some() || self.grant.is_revoked() {
            return None;
        }
        loop {
            match self.unpacked() {
                Ok(None) => {}
                Ok(some) => return some,
                Err(error) => {
                    self.wrong = Some(error);
                    return None;
                }
            }
            if self.over {
                return None;
            }
            match self.body.frame().now_or_never()? {
                None => self.wrong = self.end().err(),
                Some(Ok(frame)) => match (frame.into_data().ok()?, &mut self.gzip) {
                    (data, None) => return Some(data),
                    (data, Some(gzip)) => gzip.hold(data),
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
                () = Self::closed(&mut self.closing, &mut self.until) => {
                    return Err(ApiError::busy("the server is closing: what came is kept, send the rest again"));
                }
                next = tokio::time::timeout(self.idle, self.body.frame()) => next,
            };
            match next {
                Ok(None) => self.end()?,
                Ok(Some(Ok(frame))) => match (frame.into_data(), &mut self.gzip) {
                    (Ok(data), None) => return Ok(Some(data)),
                    (Ok(data), Some(gzip)) => gzip.hold(data),
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
