//! The list of sessions as server-sent events.

use super::sse::{FrameSource, sse_response};
use crate::auth::StreamPermit;
use axum::response::Response;
use bytes::Bytes;
use narrows_engine::live::{Hub, SessionListFollower};
use narrows_store::{ListFilter, Result};

impl FrameSource for SessionListFollower {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        Ok(Some(sse(&SessionListFollower::next(self).await?)))
    }
}

/// The response that follows the list.
pub(crate) fn follow_list(hub: &Hub, filter: ListFilter, permit: StreamPermit) -> Response {
    sse_response(hub, SessionListFollower::new(hub, filter), permit)
}

fn sse(frames: &[String]) -> Bytes {
    let one = |data: &String| match data.as_str() {
        r#"{"type":"ready"}"# => format!("event: ready\ndata: {data}\n\n"),
        _ => format!("data: {data}\n\n"),
    };
    frames.iter().map(one).collect::<String>().into()
}
