//! A plain client that costs little.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is used again and again.
pub(crate) struct Http {
    stream: TcpStream,
    address: SocketAddr,
    token: String,
}

impl Http {
    pub(crate) async fn open(address: SocketAddr, token: &str) -> Http {
        let stream = TcpStream::connect(address).await.expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        Http { stream, address, token: token.to_owned() }
    }

    /// One request; returns the status and the body.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await.expect("send");
        self.answer().await
    }

    /// One request whose body comes piece by piece, without waiting; returns the status.
    pub(crate) async fn stream(
        &mut self,
        method: &str,
        path: &str,
        pieces: impl Iterator<Item = String>,
    ) -> u16 {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n",
            self.address, self.token,
        );
        self.stream.write_all(head.as_bytes()).await.expect("send");
        for piece in pieces {
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            self.stream.write_all(chunk.as_bytes()).await.expect("send");
        }
        self.stream.write_all(b"0\r\n\r\n").await.expect("send");
        self.answer().await.0
    }

    async fn answer(&mut self) -> (u16, String) {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 16 << 10];
        loop {
            let n = self.stream.read(&mut piece).await.expect("read");
            assert!(n > 0, "closed: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&piece[..n]);
            if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                let length = head
                    .lines()
                    .find_map(|l| l.strip_prefix("content-length: "))
                    .and_then(|l| l.trim().parse::<usize>().ok())
                    .unwrap_or(0);
                if bytes.len() >= end + 4 + length {
                    let status =
                        head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("status");
                    return (status, String::from_utf8_lossy(&bytes[end + 4..]).into_owned());
                }
            }
        }
    }

    /// A new session.
    pub(crate) async fn session(&mut self) -> String {
        let (status, body) = self.send("POST", "/api/sessions", b"{}").await;
        assert_eq!(status, 201, "{body}");
        field(&body, "id").expect("id")
    }
}

/// The text of a field, where it stands first.
pub(crate) fn field(json: &str, name: &str) -> Option<String> {
    let rest = json.split_once(&format!("\"{name}\":\""))?.1;
    Some(rest.split('"').next()?.to_owned())
}

/// Nanoseconds that mean the same in every process of this machine.
pub(crate) fn clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(0)
}
