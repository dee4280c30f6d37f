//! A client that sends and reads, and keeps nothing.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::TcpStream;

/// A connection that is used again and again.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Wire {
    pub(crate) fn open(url: &str, token: &str) -> Result<Wire> {
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        let head = format!("host: {address}\r\nauthorization: Bearer {token}\r\n");
        Ok(Wire { stream: BufReader::new(stream), head })
    }

    /// One request; returns the body of the answer.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
    ) -> Result<String> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{}content-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            self.head,
            body.len()
        );
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.stream.get_mut().write_all(body)?;
        self.answer()
    }

    /// Begins a request whose body comes piece by piece.
    pub(crate) fn begin(&mut self, path: &str) -> Result<()> {
        let head = format!(
            "POST {path} HTTP/1.1\r\n{}content-type: application/x-ndjson\r\n\
             transfer-encoding: chunked\r\n\r\n",
            self.head
        );
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// The next piece of it.
    pub(crate) fn piece(&mut self, piece: &[u8]) -> Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        stream.write_all(piece)?;
        stream.write_all(b"\r\n")
    }

    /// Its end; returns the body of the answer.
    pub(crate) fn end(&mut self) -> Result<String> {
        self.stream.get_mut().write_all(b"0\r\n\r\n")?;
        self.answer()
    }

    /// How long the answer to a request is; what it says is not kept.
    pub(crate) fn length(&mut self, path: &str) -> Result<u64> {
        let head = format!("GET {path} HTTP/1.1\r\n{}\r\n", self.head);
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.read(&mut std::io::sink())
    }

    fn answer(&mut self) -> Result<String> {
        let mut body = Vec::new();
        self.read(&mut body)?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn read(&mut self, body: &mut dyn Write) -> Result<u64> {
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(told) = line.strip_prefix("content-length:") {
                length = told.trim().parse().unwrap_or(0);
            }
            chunked |= line.starts_with("transfer-encoding:");
        }
        let mut read = 0;
        if !chunked {
            read += std::io::copy(&mut (&mut self.stream).take(length), body)?;
        }
        while chunked {
            let size = u64::from_str_radix(&self.line()?, 16).unwrap_or(0);
            read += std::io::copy(&mut (&mut self.stream).take(size), body)?;
            self.line()?;
            chunked = size > 0;
        }
        Ok(read)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// A new session.
    pub(crate) fn session(&mut self) -> Result<String> {
        let body = self.send("POST", "/api/sessions", "application/json", b"{}")?;
        let id = body.split_once("\"id\":\"").and_then(|(_, rest)| rest.split('"').next());
        Ok(id.unwrap_or_else(|| panic!("{body}")).to_owned())
    }
}
