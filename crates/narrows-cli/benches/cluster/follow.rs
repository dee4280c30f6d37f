//! Whoever follows a session, over a bare connection.

use crate::nodes::Place;
use std::ops::ControlFlow;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Error, Result};
use tokio::net::TcpStream;

/// What comes.
pub(crate) enum Frame<'a> {
    /// All that was there before has been told.
    Ready,
    /// An event, its number in the log and its JSON.
    Event(u64, &'a [u8]),
}

/// Follows a session from its first event on, until `take` has enough or the node ends it.
pub(crate) async fn follow(
    place: &Place,
    session: &str,
    mut take: impl FnMut(Frame<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let mut stream = TcpStream::connect(&place.address).await?;
    let Place { address, token } = place;
    // In this version a body comes as it is, without lengths in between.
    let head = format!(
        "GET /api/sessions/{session}/events?view=events HTTP/1.0\r\nhost: {address}\r\n\
         authorization: Bearer {token}\r\naccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let (mut line, mut data) = (Vec::new(), Vec::new());
    let (mut number, mut ready) = (None, false);
    stream.read_until(b'\n', &mut line).await?;
    if !line.starts_with(b"HTTP/1.") || !line[8..].starts_with(b" 200") {
        return Err(Error::other(String::from_utf8_lossy(&line).into_owned()));
    }
    while line.len() > 2 {
        line.clear();
        stream.read_until(b'\n', &mut line).await?;
    }
    loop {
        line.clear();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if let Some(json) = line.strip_prefix(b"data: ") {
            data.extend_from_slice(json);
        } else if line.starts_with(b"id: ") {
            let digits = line.trim_ascii_end().rsplit(|b| *b == b'-').next();
            number = digits.and_then(|d| std::str::from_utf8(d).ok()?.parse().ok());
        } else if line.starts_with(b"event: ready") {
            ready = true;
        } else if line == b"\n" {
            let frame = match number.take() {
                _ if std::mem::take(&mut ready) => Some(Frame::Ready),
                Some(number) if !data.is_empty() => Some(Frame::Event(number, &data)),
                _ => None,
            };
            if frame.is_some_and(|frame| take(frame).is_break()) {
                return Ok(());
            }
            data.clear();
        }
    }
}
