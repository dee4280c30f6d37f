//! A session as a file.

use super::extract::{PathParams, QueryParams, session};
use super::stream::open_stream;
use crate::auth::{Grant, StreamPermit};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::export::StoredSession as Session;
use crate::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderValue, StatusCode, header};
use narrows_engine::live::{self, Hub};
use narrows_render::{Form, Style};
use serde::Deserialize;
use std::io::{self, Write};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use utoipa::{IntoParams, ToSchema};

/// Bytes that are sent at once, and how many such pieces wait for the client at most.
const CHUNK_BYTES: usize = 64 << 10;
const MAX_QUEUED_CHUNKS: usize = 4;
/// Letters of a file's name.
const MAX_FILE_NAME_CHARS: usize = 60;

/// What a session is written as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ExportFormat {
    /// For a terminal.
    Text,
    /// Markdown.
    #[default]
    Md,
    /// One file for a browser.
    Html,
    /// One JSON document: the session and its items.
    Json,
    /// One item a line.
    Jsonl,
}

/// As what it is exported.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// The form; Markdown, if nothing is said.
    #[param(inline)]
    format: Option<ExportFormat>,
}

impl ExportFormat {
    /// The form, the ending of its files and their type.
    fn parts(self) -> (Form, &'static str, &'static str) {
        match self {
            ExportFormat::Text => (Form::Text, "txt", "text/plain; charset=utf-8"),
            ExportFormat::Md => (Form::Md, "md", "text/markdown; charset=utf-8"),
            ExportFormat::Html => (Form::Html, "html", "text/html; charset=utf-8"),
            ExportFormat::Json => (Form::Json, "json", "application/json"),
            ExportFormat::Jsonl => (Form::Jsonl, "jsonl", "application/x-ndjson"),
        }
    }
}

/// A whole session as a file: what `narrows export` writes.
#[utoipa::path(get, path = "/api/sessions/{id}/export",
    params(("id" = String, Path, description = "The session"), ExportQuery),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The file, with a name for it", content(
        (String = "text/markdown"), (String = "text/html"), (String = "text/plain"),
        (Object = "application/json"), (String = "application/x-ndjson"),
    )),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn export(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ExportQuery>,
) -> ApiResult<Response> {
    let found = session(&app, &grant, &id).await?;
    app.intake.flush_items(found.key).await;
    let row = app.store.session_row(&id).await?;
    let busy = |_| {
        let what = "other sessions are being exported";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_EXPORTS", what).retry_after(2)
    };
    let permit = Arc::clone(&app.exports).try_acquire_owned().map_err(busy)?;
    let stream_permit = open_stream(&app, &grant)?;
    let (form, ending, kind) = query.format.unwrap_or_default().parts();
    let shown = Session::new(app.store.clone(), Handle::current(), row, found.key);
    let titled = tokio::task::spawn_blocking(move || {
        let title = shown.header().map(|header| header.title());
        (shown, title)
    });
    let failed = |e: &dyn std::fmt::Display| ApiError::busy(format!("it cannot be read: {e}"));
    let (shown, title) = titled.await.map_err(|e| failed(&e))?;
    let name = format!("{}.{ending}", file_name(&title.map_err(|e| failed(&e))?, &id));
    let (sender, pieces) = channel(MAX_QUEUED_CHUNKS);
    // Reading and writing wait for each other: the client's pace is that of the store.
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut out = ChunkWriter { sender, piece: Vec::with_capacity(CHUNK_BYTES) };
        let done = shown.write(&mut out, form, &Style::of_file()).and_then(|()| out.flush());
        if let Err(error) = done {
            let _ = out.sender.blocking_send(Err(error));
        }
    });
    let mut response = Response::new(body(&app.hub, pieces, stream_permit));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let named = named.unwrap_or(HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_DISPOSITION, named);
    Ok(response)
}

/// What was session_cache, as it comes. It breaks off where it fails, where the token is revoked and
/// where the server ends: half a file must not look like a whole one.
fn body(hub: &Hub, pieces: Receiver<io::Result<Bytes>>, permit: StreamPermit) -> Body {
    let state = Some((pieces, permit, hub.closing()));
    Body::from_stream(unfold(state, |state| async move {
        let (mut pieces, mut permit, mut closing) = state?;
        let piece = tokio::select! {
            biased;
            () = permit.revoked() => Err(io::Error::other("revoked")),
            () = live::closed(&mut closing) => Err(io::Error::other("closing")),
            piece = pieces.recv() => piece?,
        };
        let rest = piece.is_ok().then_some((pieces, permit, closing));
        Some((piece, rest))
    }))
}

/// Sends what is written in pieces of about one size; waits while too many are on their way.
struct ChunkWriter {
    sender: Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(CHUNK_BYTES));
        let gone = |_| io::ErrorKind::BrokenPipe.into();
        self.sender.blocking_send(Ok(piece.into())).map_err(gone)
    }
}

/// A title as the name of a file, everywhere: plain letters, digits and single lines between.
fn file_name(title: &str, id: &str) -> String {
    let mut name = String::new();
    for c in title.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
        if name.len() == MAX_FILE_NAME_CHARS {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    let plain = id.chars().filter(char::is_ascii_alphanumeric);
    if name.is_empty() { format!("session-{}", plain.collect::<String>()) } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_of_files_are_plain() {
        let name = |title: &str| file_name(title, "7f3k");
        assert_eq!(name("Fix the *build*, please!"), "fix-the-build-please");
        assert_eq!(name("../../etc/passwd"), "etc-passwd");
        assert_eq!(name("a\"; filename=\"b\r\nx: y"), "a-filename-b-x-y");
        assert_eq!(name("日本語"), "session-7f3k");
        assert_eq!(name("C:\\con"), "c-con");
        assert_eq!(name(&"long ".repeat(50)).len(), 59);
        assert_eq!(name("  "), "session-7f3k");
    }
}
