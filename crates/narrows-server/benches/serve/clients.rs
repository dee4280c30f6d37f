//! Many clients that check what they get: no gap, nothing twice.

use crate::http::clock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What all clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) delivered: AtomicU64,
    pub(crate) wrong: AtomicU64,
    pub(crate) ready: AtomicU64,
    pub(crate) latencies: std::sync::Mutex<Vec<u64>>,
}

/// How a client talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Sse,
    Ws,
}

/// Follows `path` until the event `last` came.
pub(crate) async fn follow(
    address: SocketAddr,
    head: Vec<u8>,
    wire: Wire,
    last: u64,
    seen: Arc<Seen>,
    start: u64,
) -> u64 {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    stream.write_all(&head).await.expect("send");
    let mut waiting: Vec<u8> = Vec::with_capacity(64 << 10);
    let mut piece = vec![0; 64 << 10];
    let (mut next, mut told, mut head_done) = (start, false, false);
    let mut latencies = Vec::new();
    while next <= last {
        let Ok(n @ 1..) = stream.read(&mut piece).await else { break };
        waiting.extend_from_slice(&piece[..n]);
        if !head_done {
            let Some(end) = memchr::memmem::find(&waiting, b"\r\n\r\n") else { continue };
            waiting.drain(..end + 4);
            head_done = true;
        }
        let mut used = 0;
        let now = clock();
        while let Some((frame, length)) = cut(&waiting[used..], wire) {
            used += length;
            if !told && (memchr::memmem::find(frame, b"ready").is_some()) {
                told = true;
                seen.ready.fetch_add(1, Ordering::Relaxed);
            }
            let Some(number) = number(frame, wire) else { continue };
            if number != next {
                seen.wrong.fetch_add(number.abs_diff(next).max(1), Ordering::Relaxed);
            }
            next = number + 1;
            seen.delivered.fetch_add(1, Ordering::Relaxed);
            if number % 16 == 0
                && let Some(sent) = sent_at(frame)
            {
                latencies.push(now.saturating_sub(sent) / 1000);
            }
        }
        waiting.drain(..used);
    }
    seen.latencies.lock().expect("latencies").extend(latencies);
    next
}

/// The first whole frame, and the bytes it takes.
fn cut(bytes: &[u8], wire: Wire) -> Option<(&[u8], usize)> {
    match wire {
        Wire::Sse => {
            let end = memchr::memmem::find(bytes, b"\n\n")?;
            Some((&bytes[..end], end + 2))
        }
        Wire::Ws => {
            let short = usize::from(*bytes.get(1)? & 0x7f);
            let (from, length) = match short {
                126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
                127 => (
                    10,
                    usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?,
                ),
                n => (2, n),
            };
            Some((bytes.get(from..from + length)?, from + length))
        }
    }
}

/// The number of an event's frame.
fn number(frame: &[u8], wire: Wire) -> Option<u64> {
    let at = match wire {
        Wire::Sse => {
            memchr::memmem::find(frame, b"data: ")?;
            memchr::memmem::find(frame, b"id: ")? + 4
        }
        Wire::Ws => {
            memchr::memmem::find(frame, b"\"seq\":")?;
            memchr::memmem::rfind(frame, b"\"cursor\":\"")? + 10
        }
    };
    let rest = &frame[at..];
    let rest = &rest[memchr::memchr(b'-', rest)? + 1..];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// When the event was sent, as its text says.
fn sent_at(frame: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(frame, b"sent ")? + 5;
    let digits = frame[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&frame[at..at + digits]).ok()?.parse().ok()
}
