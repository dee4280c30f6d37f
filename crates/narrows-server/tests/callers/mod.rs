//! Callers with all kinds of rights, and every route as they would call it.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use crate::common::{PATIENCE, Reply, TestServer, fixture, parse_reply};
use narrows_server::RouteInfo;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a browser sends to open a socket.
pub const UPGRADE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// Stands in the text of a session, and nowhere else.
pub const MARKER: &str = "xylophone";

/// Sends bytes as they are. Reads the head of the answer, and its body where the length is told:
/// a stream has no end to wait for.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    // A server may answer before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut got = Vec::new();
    loop {
        if let Some(end) = got.windows(4).position(|w| w == b"\r\n\r\n") {
            let reply = parse_reply(&got);
            let told = reply.headers.get("content-length").and_then(|l| l.parse::<usize>().ok());
            let due = if reply.status == 204 { 0 } else { told.unwrap_or(0) };
            if got.len() - end - 4 >= due {
                return reply;
            }
        }
        let mut piece = [0; 8192];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await.expect("in time");
        let n = read.expect("read");
        assert!(n > 0, "closed early: {}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&piece[..n]);
    }
}

/// One request whose answer may be a stream.
pub async fn probe(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        let _ = write!(text, "host: {address}\r\n");
    }
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    let _ = write!(text, "content-length: {}\r\n\r\n", body.len());
    raw(address, &[text.as_bytes(), body].concat()).await
}

pub fn bearer(secret: &str) -> String {
    format!("Bearer {secret}")
}

/// Makes a token as its owner asks for it: its id and its secret.
pub async fn token(server: &TestServer, mut about: Value) -> (String, String) {
    about["name"] = "made".into();
    let reply = server.send("POST", "/api/tokens", about.to_string().as_bytes()).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let text = |key: &str| reply.json()[key].as_str().expect("text").to_owned();
    (text("id"), text("token"))
}

/// A ticket with the owner's rights.
pub async fn ticket(server: &TestServer) -> String {
    let url = server.server.as_ref().expect("running").ticket_url().await.expect("ticket");
    url.split_once("#ticket=").expect("ticket").1.to_owned()
}

/// Trades a ticket.
pub async fn login(server: &TestServer, ticket: &str) -> Reply {
    let body = json!({ "ticket": ticket }).to_string();
    let headers = [("content-type", "application/json")];
    probe(server.address, "POST", "/api/login", &headers, body.as_bytes()).await
}

/// The token of a browser that came in by a ticket.
pub async fn browser(server: &TestServer, ticket: &str) -> String {
    let reply = login(server, ticket).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(!reply.headers.contains_key("set-cookie"), "{:?}", reply.headers);
    reply.json()["token"].as_str().expect("token").to_owned()
}

/// A ticket for one request, with the rights of a token.
pub async fn request_ticket(server: &TestServer, who: &str) -> String {
    let headers = [("authorization", bearer(who))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let made = probe(server.address, "POST", "/api/request-tickets", &headers, b"").await;
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["ticket"].as_str().expect("ticket").to_owned()
}

/// The hash of a picture that an item names somewhere.
fn picture(value: &Value) -> Option<String> {
    let named = value.get("blob").and_then(Value::as_str).map(str::to_owned);
    named.or_else(|| match value {
        Value::Object(map) => map.values().find_map(picture),
        Value::Array(list) => list.iter().find_map(picture),
        _ => None,
    })
}

/// A session with everything in it that a path can name.
pub struct Place {
    pub id: String,
    pub label: String,
    pub item: String,
    pub hash: String,
}

impl Place {
    /// Makes one with this tag, which is its label too.
    pub async fn make(server: &TestServer, tag: &str) -> Place {
        let new = json!({ "label": tag, "tags": [tag] }).to_string();
        let made = server.send("POST", "/api/sessions", new.as_bytes()).await.json();
        let id = made["id"].as_str().expect("id").to_owned();
        let said = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "ses_1", "update": {"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": format!("{MARKER} of {tag}")}}}});
        let mut packets = fixture("acp/odd-image-output");
        packets.extend_from_slice(format!("{said}\n").as_bytes());
        server.packets(&id, "format=acp&end=true", &packets).await;
        let items = server.items(&id).await;
        let hash = items.iter().find_map(picture).expect("a picture");
        let item = items[0]["id"].as_str().expect("id").to_owned();
        Place { id, label: tag.to_owned(), item, hash }
    }
}

/// A route as it can be called: with real names in its path and a body that it takes.
pub struct Call {
    pub method: String,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// The answer to somebody who may do it.
    pub good: u16,
}

impl Call {
    /// What is deleted or traded is made anew for each call; the session is `place` if `here`.
    pub async fn new(server: &TestServer, route: &RouteInfo, place: &Place, here: bool) -> Call {
        let method = route.method.as_str();
        let mut id = place.id.clone();
        if (method, route.path) == ("DELETE", "/api/sessions/{id}") && !here {
            id = server.session().await;
        }
        let mut path = route.path.replace("{id}", &id).replace("{item}", &place.item);
        path = path.replace("{hash}", &place.hash).replace("{file}", "app.js");
        path = path.replace("{request}", "r1.0").replace("{message}", "1");
        path = path.replace("{agent}", "claude").replace("{session}", "ses_1");
        if path.contains("{token}") {
            path = path.replace("{token}", &token(server, json!({"scopes": ["read"]})).await.0);
        }
        assert!(!path.contains('{'), "a test must know what {path} needs");
        if route.path == "/api/search" {
            path = format!("{path}?q={MARKER}");
        }
        let (body, good) = match (method, route.path) {
            ("POST", "/api/prune") => (json!({"maxAgeMs": 1_u64 << 50, "dryRun": true}), 200),
            ("POST", "/api/login") => (json!({"ticket": ticket(server).await}), 200),
            // Only a browser can log out.
            ("POST", "/api/logout") => (Value::Null, 400),
            ("POST", "/api/tickets" | "/api/request-tickets") => (Value::Null, 201),
            ("POST", "/api/tokens") => (json!({"name": "more", "scopes": ["admin"]}), 201),
            ("POST", "/api/sessions") => (json!({}), 201),
            // Nothing is run here, and that is told to whoever might.
            ("POST", "/api/runs") => (json!({"agent": "none"}), 422),
            ("POST", "/api/sessions/{id}/send-message") => (json!({"content": "x"}), 409),
            ("POST", "/api/sessions/{id}/cancel" | "/api/sessions/{id}/stop") => (Value::Null, 409),
            ("POST", "/api/sessions/{id}/permissions/{request}") => (json!({"optionId": "x"}), 409),
            ("PATCH", "/api/sessions/{id}/run") => (json!({"mode": "x"}), 409),
            // There is no agent here.
            (_, "/api/agents/{agent}/sessions" | "/api/agents/{agent}/sessions/{session}") => {
                (Value::Null, 422)
            }
            ("DELETE", "/api/sessions/{id}/queue/{message}") => (Value::Null, 409),
            ("PATCH", _) => (json!({"addTags": ["more"]}), 200),
            ("DELETE", _) => (Value::Null, 204),
            ("GET", "/api/ws") => (Value::Null, 101),
            ("POST", "/api/sessions/{id}/packets") | ("GET", _) => (Value::Null, 200),
            (method, path) => panic!("a test must know what {method} {path} needs"),
        };
        let mut headers = Vec::new();
        if route.path == "/api/ws" {
            headers.extend(UPGRADE.map(|(name, value)| (name, value.to_owned())));
        }
        let body = if body.is_null() {
            String::new()
        } else {
            headers.push(("content-type", "application/json".to_owned()));
            body.to_string()
        };
        Call { method: method.to_owned(), path, headers, body, good }
    }

    pub async fn send(&self, server: &TestServer, more: &[(&str, &str)]) -> Reply {
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        probe(server.address, &self.method, &self.path, &headers, self.body.as_bytes()).await
    }
}
