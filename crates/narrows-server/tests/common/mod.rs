//! A real server on a real socket, and plain clients of it.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use narrows_engine::run::RunOptions;
use narrows_server::{HiddenOptions, Page, ServeConfig, Server};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Nothing in a test takes longer, whatever the machine does.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Asks until the answer is yes.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !holds().await {
        assert!(std::time::Instant::now() < end, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[path = "../../../narrows-store/tests/common/postgres.rs"]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
mod postgres;

/// A server; where `NARROWS_TEST_STORE` says so, two nodes that share a PostgreSQL: what is sent goes
/// to the other one.
pub struct TestServer {
    pub server: Option<Server>,
    other: Option<Server>,
    pub dir: TempDir,
    pub address: SocketAddr,
    pub sends_to: SocketAddr,
    pub token: String,
}

/// Whether the tests run on PostgreSQL and NATS.
pub fn is_postgres() -> bool {
    std::env::var("NARROWS_TEST_STORE").is_ok_and(|store| store == "postgres")
}

impl TestServer {
    pub async fn start() -> Self {
        TestServer::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut ServeConfig)) -> Self {
        let dir = tempfile::tempdir().expect("folder");
        TestServer::on(dir, change).await
    }

    pub async fn on(dir: TempDir, change: impl FnOnce(&mut ServeConfig)) -> Self {
        let mut config = ServeConfig {
            data: dir.path().join("data"),
            bind: "127.0.0.1:0".parse().expect("address"),
            page: page(),
            // There is no agent to run, so that nothing is.
            run: RunOptions { allow: true, ..RunOptions::default() },
            ..ServeConfig::default()
        };
        config.limits.streams_per_token = 10_000;
        if is_postgres() {
            config.store = Some(postgres::url(dir.path()));
            config.bus = Some(postgres::env("NARROWS_TEST_NATS"));
        }
        change(&mut config);
        let data = config.data.clone();
        let mut other = None;
        if is_postgres() {
            let config = ServeConfig { data: dir.path().join("other"), ..config.clone() };
            other = Some(Server::start(config, HiddenOptions::default()).await.expect("start"));
        }
        let server = Server::start(config, HiddenOptions::default()).await.expect("start");
        let address = server.address();
        let sends_to = other.as_ref().map_or(address, Server::address);
        let token = std::fs::read_to_string(data.join("token")).expect("token");
        TestServer { server: Some(server), other, dir, address, sends_to, token }
    }

    pub async fn restart(mut self) -> Self {
        self.stop().await;
        TestServer::on(self.dir, |_| {}).await
    }

    pub async fn stop(&mut self) {
        for server in [self.server.take(), self.other.take()].into_iter().flatten() {
            server.stop().await;
        }
    }

    /// A request with the owner's token.
    pub async fn send(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        let token = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", token.as_str())];
        if !path.contains("/packets") && !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        let to = if method == "GET" { self.address } else { self.sends_to };
        request(to, method, path, &headers, body).await
    }

    pub async fn get(&self, path: &str) -> Value {
        let reply = self.send("GET", path, b"").await;
        assert_eq!(reply.status, 200, "GET {path}: {}", reply.text());
        reply.json()
    }

    /// A new session; returns its id.
    pub async fn session(&self) -> String {
        let reply = self.send("POST", "/api/sessions", b"{}").await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["id"].as_str().expect("id").to_owned()
    }

    /// Sends packets; returns the answer.
    pub async fn packets(&self, session: &str, query: &str, body: &[u8]) -> Value {
        let path = format!("/api/sessions/{session}/packets?{query}");
        let reply = self.send("POST", &path, body).await;
        assert_eq!(reply.status, 200, "POST {path}: {}", reply.text());
        reply.json()
    }

    /// All items of a session, whole.
    pub async fn items(&self, session: &str) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let from = all.last().map_or(0, |i| i["order"].as_u64().expect("order") + 1);
            let page = self
                .get(&format!("/api/sessions/{session}/items?from={from}&limit=500&preview=0"))
                .await;
            all.extend(page["items"].as_array().expect("items").iter().cloned());
            if !page["after"].as_bool().expect("after") {
                return all;
            }
        }
    }

    pub async fn sse(&self, path: &str, last: Option<&str>) -> Sse {
        let token = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", token.as_str()), ("accept", "text/event-stream")];
        headers.extend(last.map(|l| ("last-event-id", l)));
        Sse::open(self.address, path, &headers).await
    }

    pub async fn ws(&self) -> Ws {
        Ws::open(self.address, &self.token).await.expect("socket")
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }
}

fn head(method: &str, path: &str, address: SocketAddr, headers: &[(&str, &str)]) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head = format!("{head}host: {address}\r\n");
    }
    for (name, value) in headers {
        head = format!("{head}{name}: {value}\r\n");
    }
    head
}

/// One request over a connection of its own.
pub async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    let mut head = head(method, path, address, headers);
    head = format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.expect("send");
    // A server may answer before it has read everything.
    let _ = stream.write_all(body).await;
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.unwrap_or_else(|_| panic!("no answer to {method} {path}"));
    parse_reply(&bytes)
}

pub fn parse_reply(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("the head of a response");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse().ok());
    let headers: HashMap<String, String> = lines
        .filter_map(|l| l.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let mut body = bytes[end + 4..].to_vec();
    if headers.get("transfer-encoding").is_some_and(|t| t == "chunked") {
        let mut chunked = Chunked::default();
        let mut plain = Vec::new();
        chunked.push(&body, &mut plain);
        body = plain;
    }
    Reply { status: status.expect("status"), headers, body }
}

/// Undoes chunked transfer, however it is cut.
#[derive(Default)]
pub struct Chunked {
    held: Vec<u8>,
    left: usize,
    pub ended: bool,
}

impl Chunked {
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        loop {
            if self.left > 0 {
                let n = self.left.min(self.held.len());
                let data = n.min(self.left.saturating_sub(2));
                out.extend_from_slice(&self.held[..data]);
                // The line end after a chunk is taken only whole.
                if n == self.left {
                    self.held.drain(..n);
                    self.left = 0;
                } else {
                    self.held.drain(..data);
                    self.left -= data;
                    return;
                }
            }
            let Some(end) = self.held.windows(2).position(|w| w == b"\r\n") else { return };
            let size = String::from_utf8_lossy(&self.held[..end]).trim().to_owned();
            let size = usize::from_str_radix(&size, 16).unwrap_or(0);
            self.held.drain(..end + 2);
            if size == 0 {
                self.ended = true;
                return;
            }
            self.left = size + 2;
        }
    }
}

/// One frame of server-sent events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    pub id: Option<String>,
    pub event: Option<String>,
    pub data: Option<String>,
}

impl Frame {
    pub fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().expect("data")).expect("JSON")
    }

    /// Whether it says something of the stream rather than of the session.
    pub fn is_control(&self) -> bool {
        self.event.as_deref().is_some_and(|e| e != "message")
    }

    pub fn is(&self, event: &str) -> bool {
        self.event.as_deref() == Some(event)
    }
}

/// A stream of server-sent events.
pub struct Sse {
    stream: TcpStream,
    chunked: Chunked,
    plain: Vec<u8>,
    /// The last id of a whole frame, as a browser keeps it.
    pub last_id: Option<String>,
    /// Bytes of the body that were read, and how many are read at most.
    pub read: usize,
    pub cut_at: usize,
    pub status: u16,
}

impl Sse {
    pub async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Sse {
        let mut stream = TcpStream::connect(address).await.expect("connect");
        let head = head("GET", path, address, headers) + "\r\n";
        stream.write_all(head.as_bytes()).await.expect("send");
        let mut bytes = Vec::new();
        let end = loop {
            let mut piece = [0; 4096];
            let read =
                tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await.expect("in time");
            let n = read.expect("read");
            assert!(n > 0, "closed early: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&piece[..n]);
            if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                break end;
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("status");
        let mut sse = Sse {
            stream,
            chunked: Chunked::default(),
            plain: Vec::new(),
            last_id: None,
            read: 0,
            cut_at: usize::MAX,
            status,
        };
        sse.chunked.push(&bytes[end + 4..], &mut sse.plain);
        sse.read = sse.plain.len();
        sse
    }

    /// The next frame; nothing when the stream ends or is to be cut.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if self.read >= self.cut_at {
                // What came after the cut was never seen.
                let over = self.read - self.cut_at;
                let keep = self.plain.len().saturating_sub(over);
                self.plain.truncate(keep);
            }
            if let Some(end) = self.plain.windows(2).position(|w| w == b"\n\n") {
                let block: Vec<u8> = self.plain.drain(..end + 2).collect();
                let block = String::from_utf8(block).expect("text");
                let mut frame = Frame::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => frame.id = Some(id.to_owned()),
                        Some(("event", event)) => frame.event = Some(event.to_owned()),
                        Some(("data", data)) => frame.data = Some(data.to_owned()),
                        _ => {}
                    }
                }
                if frame.id.is_some() {
                    self.last_id.clone_from(&frame.id);
                }
                if frame == Frame::default() {
                    continue;
                }
                return Some(frame);
            }
            if self.read >= self.cut_at || self.chunked.ended {
                return None;
            }
            let mut piece = vec![0; 64 << 10];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut piece))
                .await
                .expect("in time");
            let n = read.unwrap_or(0);
            if n == 0 {
                return None;
            }
            let before = self.plain.len();
            self.chunked.push(&piece[..n], &mut self.plain);
            self.read += self.plain.len() - before;
        }
    }

    /// Frames with data until `ready`, which is left out.
    pub async fn until_ready(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            if frame.is("ready") {
                return frames;
            }
            if frame.data.is_some() && !frame.is_control() {
                frames.push(frame);
            }
        }
        panic!("the stream ended before it was ready");
    }
}

/// A socket.
pub struct Ws {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Ws {
    pub async fn open(
        address: SocketAddr,
        token: &str,
    ) -> Result<Ws, tokio_tungstenite::tungstenite::Error> {
        let mut request = format!("ws://{address}/api/ws").into_client_request()?;
        let bearer = format!("Bearer {token}").parse().expect("header");
        request.headers_mut().insert("authorization", bearer);
        Ok(Ws { socket: connect_async(request).await?.0 })
    }

    pub async fn send(&mut self, value: &Value) {
        use futures_util::SinkExt;
        self.socket.send(Message::Text(value.to_string().into())).await.expect("send");
    }

    /// The next message; nothing when the socket is closed.
    pub async fn next(&mut self) -> Option<Value> {
        use futures_util::StreamExt;
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("in time");
            match next {
                Some(Ok(Message::Text(text))) => {
                    return Some(serde_json::from_str(&text).expect("JSON"));
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Messages until one of this type, which is left out.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            if message["type"] == kind {
                return messages;
            }
            messages.push(message);
        }
        panic!("the socket was closed before {kind}");
    }
}

/// A recorded session of the core's fixtures.
/// A small page, so that tests see the same whether the real one was built or not.
pub fn page() -> Page {
    let dir = tempfile::tempdir().expect("folder");
    std::fs::create_dir(dir.path().join("page")).expect("folder");
    for (name, text) in PAGE {
        std::fs::write(dir.path().join(name), text).expect("file");
    }
    Page::read(dir.path()).expect("page")
}

pub const PAGE: [(&str, &str); 4] = [
    ("index.html", "<!doctype html><script type=module src=/page/app-Bx3k_9aZ.js></script>"),
    ("page/app.js", "export {};"),
    ("page/app-Bx3k_9aZ.js", include_str!("mod.rs")),
    ("page/icon.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
];

pub fn fixture(name: &str) -> Vec<u8> {
    let path = fixtures().join(name).join("input.jsonl");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures")
}

/// A request whose body comes in pieces.
pub struct Post {
    stream: TcpStream,
}

impl Post {
    pub async fn open(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Post {
        let mut stream = TcpStream::connect(server.sends_to).await.expect("connect");
        let token = format!("Bearer {}", server.token);
        let mut all = vec![("authorization", token.as_str()), ("transfer-encoding", "chunked")];
        all.extend_from_slice(headers);
        all.push(("connection", "close"));
        let head = head("POST", path, server.sends_to, &all) + "\r\n";
        stream.write_all(head.as_bytes()).await.expect("send");
        Post { stream }
    }

    pub async fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk).await.expect("send");
    }

    pub async fn finish(mut self) -> Reply {
        self.stream.write_all(b"0\r\n\r\n").await.expect("send");
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut bytes)).await;
        read.expect("in time").expect("read");
        parse_reply(&bytes)
    }
}

/// What the core itself makes of packets, under a session's id: the truth to compare with.
pub struct Expected {
    pub events: Vec<Value>,
    pub activity: Vec<Value>,
    /// What the activity view tells when the session is over: the text that was open.
    pub last_words: Vec<Value>,
    pub packets: Vec<Value>,
    pub items: Vec<Value>,
    pub info: Value,
}

pub fn expected(server: &TestServer, input: &[u8], session: &str, label: Option<&str>) -> Expected {
    use narrows::view::{self, Activity, ActivityConfig};
    use narrows::{Items, Packets, Pipeline, Row};
    fn json(value: &impl serde::Serialize) -> Value {
        let mut text = Vec::new();
        narrows::json::print(&mut text, value).expect("print");
        serde_json::from_slice(&text).expect("JSON")
    }
    // The marks of secrets are made with the installation's own key.
    let mut secrets = narrows::Secrets::default();
    secrets.set_key(server.server.as_ref().expect("running").app().store.mark_key());
    let config =
        narrows::Config { secrets: std::sync::Arc::new(secrets), ..narrows::Config::default() };
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(config));
    let mut steps = Vec::new();
    packets.push(input, |given| pipeline.push(given, &mut steps));
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let mut activity = Activity::new(ActivityConfig {
        work_order_id: label.unwrap_or(session).to_owned(),
        run_id: session.to_owned(),
        interval_ms: 5000,
    });
    let (mut items, mut messages) = (Items::new(), Vec::new());
    let mut all = Expected {
        events: Vec::new(),
        activity: Vec::new(),
        last_words: Vec::new(),
        packets: Vec::new(),
        items: Vec::new(),
        info: Value::Null,
    };
    let last = steps.len() as u64;
    for (seq, step) in (1..).zip(steps) {
        all.events.push(json(&Row::new(seq, session, &step.event)));
        let changes = || step.changes.clone();
        all.packets.extend(view::packets(&step.event, changes).iter().map(json));
        activity.push(seq, &step.event, &mut messages);
        step.changes.into_iter().for_each(|change| items.apply(change));
    }
    all.activity = messages.iter().map(json).collect();
    messages.clear();
    activity.finish(last, &mut messages);
    all.last_words = messages.iter().map(json).collect();
    items.settle();
    let mut sorted: Vec<&narrows::Item> = items.iter().collect();
    sorted.sort_by_key(|item| item.order);
    all.items = sorted.into_iter().map(json).collect();
    all.info = json(items.info());
    all
}

/// The items that changes make, as a browser applies them.
pub fn applied<'a>(frames: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    use narrows::{Items, stored};
    let mut items = Items::new();
    for frame in frames {
        let changes = stored::changes(&frame["changes"].to_string()).expect("changes");
        changes.into_iter().for_each(|change| items.apply(change));
    }
    items.settle();
    let mut sorted: Vec<&narrows::Item> = items.iter().collect();
    sorted.sort_by_key(|item| item.order);
    sorted.into_iter().map(|item| serde_json::to_value(item).expect("JSON")).collect()
}

/// Passes bytes on to a server, and cuts the connection after so many from it.
pub async fn cutting_proxy(to: SocketAddr, after: usize) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move {
        let Ok((client, _)) = listener.accept().await else { return };
        let Ok(server) = TcpStream::connect(to).await else { return };
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let up =
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let mut left = after;
        let mut piece = vec![0; 4096];
        while left > 0 {
            let most = left.min(piece.len());
            let Ok(n @ 1..) = from_server.read(&mut piece[..most]).await else { break };
            if to_client.write_all(&piece[..n]).await.is_err() {
                break;
            }
            left -= n;
        }
        up.abort();
    });
    address
}
