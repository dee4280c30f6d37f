//! Server-sent events.

use super::lifetime::{KeepAlive, closed};
use crate::auth::StreamPermit;
use crate::poll_on_wake::PollOnWake;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::header;
use narrows_engine::live::{Hub, Subscription};
use narrows_engine::run::TurnFrames;
use narrows_store::Result;
use std::convert::Infallible;
use std::time::Duration;

/// A sign of life when there is nothing else to send.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// What can be told as server-sent events.
pub(super) trait FrameSource: Send + 'static {
    /// The next bytes; waits for them. Nothing when there will be no more.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>>> + Send;
}

impl FrameSource for Subscription {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        self.next_bytes().await
    }
}

impl FrameSource for TurnFrames {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        TurnFrames::next(self).await
    }
}

/// The response that tells one turn.
pub(crate) fn follow_turn(hub: &Hub, turn: TurnFrames, permit: StreamPermit) -> Response {
    sse_response(hub, turn, permit)
}

/// The response that follows a session.
pub(crate) fn follow(hub: &Hub, subscription: Subscription, permit: StreamPermit) -> Response {
    sse_response(hub, subscription, permit)
}

/// The response that tells frames as they come. The client's reading sets the pace: nothing is made
/// before it can be sent.
pub(super) fn sse_response(hub: &Hub, frames: impl FrameSource, permit: StreamPermit) -> Response {
    let state =
        (frames, PollOnWake::new(closed(hub, permit)), KeepAlive::new(KEEP_ALIVE_INTERVAL), false);
    let stream = unfold(state, |(mut frames, mut end, mut keep_alive, over)| async move {
        if over {
            return None;
        }
        // Not counted while the client does not read.
        keep_alive.reset();
        let (bytes, over) = tokio::select! {
            biased;
            over = &mut end => (close_frame(over.reason()), true),
            next = frames.next() => match next {
                Ok(Some(bytes)) => (bytes, false),
                Ok(None) => return None,
                Err(_) => (close_frame("store"), true),
            },
            () = keep_alive.expired() => (Bytes::from_static(b": keep-alive\n\n"), false),
        };
        Some((Ok::<_, Infallible>(bytes), (frames, end, keep_alive, over)))
    });
    response(Body::from_stream(stream))
}

/// Why a stream ends; the client comes back with its last id.
fn close_frame(reason: &str) -> Bytes {
    format!("event: closed\ndata: {{\"type\":\"closed\",\"reason\":\"{reason}\"}}\n\n").into()
}

/// A response that is not kept or buffered by anybody in between.
fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let set = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store, no-transform"),
        (http::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in set {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    response
}
