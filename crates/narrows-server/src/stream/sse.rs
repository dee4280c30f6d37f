//! Server-sent events.

use super::lifetime::{Quiet, over};
use crate::auth::Stay;
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
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What can be told as server-sent events.
pub(super) trait Frames: Send + 'static {
    /// The next bytes; waits for them. Nothing when there will be no more.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>>> + Send;
}

impl Frames for Subscription {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        self.next_bytes().await
    }
}

impl Frames for TurnFrames {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        TurnFrames::next(self).await
    }
}

/// The response that tells one turn.
pub(crate) fn follow_turn(hub: &Hub, turn: TurnFrames, stay: Stay) -> Response {
    tell(hub, turn, stay)
}

/// The response that follows a session.
pub(crate) fn follow(hub: &Hub, subscription: Subscription, stay: Stay) -> Response {
    tell(hub, subscription, stay)
}

/// The response that tells frames as they come. The client's reading sets the pace: nothing is made
/// before it can be sent.
pub(super) fn tell(hub: &Hub, frames: impl Frames, stay: Stay) -> Response {
    let state = (frames, PollOnWake::new(over(hub, stay)), Quiet::new(KEEP_ALIVE), false);
    let stream = unfold(state, |(mut frames, mut end, mut quiet, over)| async move {
        if over {
            return None;
        }
        // Not counted while the client does not read.
        quiet.broken();
        let (bytes, over) = tokio::select! {
            biased;
            over = &mut end => (closed(over.reason()), true),
            next = frames.next() => match next {
                Ok(Some(bytes)) => (bytes, false),
                Ok(None) => return None,
                Err(_) => (closed("store"), true),
            },
            () = quiet.passed() => (Bytes::from_static(b": keep-alive\n\n"), false),
        };
        Some((Ok::<_, Infallible>(bytes), (frames, end, quiet, over)))
    });
    response(Body::from_stream(stream))
}

/// Why a stream ends; the client comes back with its last id.
fn closed(reason: &str) -> Bytes {
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
