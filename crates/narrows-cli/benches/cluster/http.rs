//! A plain client that costs little.

use crate::nodes::Place;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Error, Result};
use tokio::net::TcpStream;

/// A connection that is used again and again.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    place: Place,
}

impl Http {
    pub(crate) async fn open(place: &Place) -> Result<Http> {
        let stream = TcpStream::connect(&place.address).await?;
        stream.set_nodelay(true)?;
        Ok(Http { stream: BufReader::new(stream), place: place.clone() })
    }

    /// One request; returns the status and the body.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<(u16, String)> {
        let Place { address, token } = &self.place;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await?;
        self.answer().await
    }

    /// One request whose body comes piece by piece.
    pub(crate) async fn stream(
        &mut self,
        method: &str,
        path: &str,
        pieces: impl Iterator<Item = String>,
    ) -> Result<(u16, String)> {
        let Place { address, token } = &self.place;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes()).await?;
        for piece in pieces {
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            self.stream.write_all(chunk.as_bytes()).await?;
        }
        self.stream.write_all(b"0\r\n\r\n").await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<(u16, String)> {
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(Error::other("closed"));
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if line.starts_with("http/") {
                status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
            } else if let Some(told) = line.strip_prefix("content-length:") {
                length = told.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// A new session.
    pub(crate) async fn session(&mut self) -> Result<String> {
        let (_, body) = self.send("POST", "/api/sessions", b"{}").await?;
        let id = body.split_once("\"id\":\"").and_then(|(_, rest)| rest.split('"').next());
        id.map(str::to_owned).ok_or_else(|| Error::other(body.clone()))
    }

    /// How many commits the node has made that belong to sessions, so far.
    pub(crate) async fn commits(&mut self) -> Result<u64> {
        let (_, text) = self.send("GET", "/metrics", b"").await?;
        let line = text.lines().find_map(|l| l.strip_prefix("narrows_store_commits "));
        Ok(line.and_then(|n| n.trim().parse().ok()).unwrap_or(0))
    }
}
