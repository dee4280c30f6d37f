//! Server-sent events.

use super::subscription::{Output, Subscription};
use crate::auth::Stay;
use crate::hub::{self, Hub};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::header;
use std::convert::Infallible;
use std::time::Duration;

/// A sign of life when there is nothing else to send.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The response that follows a subscription. The client's reading sets the pace: nothing is made
/// before it can be sent.
pub(crate) fn follow(hub: &Hub, subscription: Subscription, stay: Stay) -> Response {
    let closing = hub.closing();
    let state = (subscription, stay, closing, false);
    let stream = unfold(state, |(mut subscription, mut stay, mut closing, over)| async move {
        if over {
            return None;
        }
        let (bytes, over) = tokio::select! {
            biased;
            () = stay.revoked() => (closed("revoked"), true),
            () = hub::closed(&mut closing) => (closed("closing"), true),
            next = tokio::time::timeout(KEEP_ALIVE, subscription.next()) => match next {
                Err(_) => (Bytes::from_static(b": keep-alive\n\n"), false),
                Ok(Ok(Some(Output::Bytes(bytes)))) => (bytes, false),
                Ok(Ok(_)) => return None,
                Ok(Err(_)) => (closed("store"), true),
            },
        };
        Some((Ok::<_, Infallible>(bytes), (subscription, stay, closing, over)))
    });
    response(Body::from_stream(stream))
}

/// Why a stream ends; the client comes back with its last id.
pub(super) fn closed(reason: &str) -> Bytes {
    format!("event: closed\ndata: {{\"type\":\"closed\",\"reason\":\"{reason}\"}}\n\n").into()
}

/// A response that is not kept or buffered by anybody in between.
pub(super) fn response(body: Body) -> Response {
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
