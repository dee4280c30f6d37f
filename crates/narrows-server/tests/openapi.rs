//! The OpenAPI document, the table of routes and what really travels are one.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{MARKER, Place, login, ticket};
use common::{TestServer, Ws, fixture};
use futures_util::SinkExt;
use narrows_server::api_ws::{ServerMessage, StreamFrame};
use narrows_server::{ErrorBody, api, api_overview, openapi, route_list, stream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tokio_tungstenite::tungstenite::protocol::Message;

fn document() -> Value {
    serde_json::to_value(openapi()).expect("JSON")
}

fn schema<'a>(document: &'a Value, name: &str) -> &'a Value {
    let found = &document["components"]["schemas"][name];
    assert!(found.is_object(), "{name} is in the document");
    found
}

/// What a reference names.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(link) => {
            document.pointer(&link[1..]).unwrap_or_else(|| panic!("{link} leads nowhere"))
        }
        None => value,
    }
}

/// The properties of a schema and of all that it is made of, and which of them must be there.
fn fields<'a>(
    document: &'a Value,
    of: &'a Value,
) -> (BTreeMap<&'a str, &'a Value>, BTreeSet<&'a str>) {
    let of = resolve(document, of);
    let properties = of["properties"].as_object().into_iter().flatten();
    let mut all: BTreeMap<&str, &Value> =
        properties.map(|(name, value)| (name.as_str(), value)).collect();
    let required = of["required"].as_array().into_iter().flatten();
    let mut needed: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
    for part in of["allOf"].as_array().into_iter().flatten() {
        let (more, also) = fields(document, part);
        all.extend(more);
        needed.extend(also);
    }
    (all, needed)
}

/// The messages that a schema tells apart, by their type.
fn messages<'a>(document: &'a Value, name: &str) -> BTreeMap<&'a str, &'a Value> {
    let variants = schema(document, name)["oneOf"].as_array().expect("variants");
    let named = variants.iter().map(|variant| {
        let (all, needed) = fields(document, variant);
        assert!(needed.contains("type"), "{variant}");
        let kinds = resolve(document, all["type"])["enum"].as_array().expect("one type");
        assert_eq!(kinds.len(), 1, "{variant}");
        (kinds[0].as_str().expect("text"), variant)
    });
    named.collect()
}

#[test]
fn the_document_and_the_table_have_the_same_routes_with_the_same_scopes() {
    let document = document();
    let mut told = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
        for method in methods.into_iter().filter(|m| item.get(m).is_some()) {
            let scopes = match item[method].get("security") {
                None => Value::Null,
                Some(security) => {
                    let [only] = security.as_array().expect("a list").as_slice() else {
                        panic!("{path} has one way in: {security}")
                    };
                    only["token"].clone()
                }
            };
            told.insert((method.to_uppercase(), path.clone(), scopes.to_string()));
        }
    }
    let page = |path: &str| ["/", "/s/{id}", "/page/{file}"].contains(&path);
    let table: BTreeSet<(String, String, String)> = route_list()
        .into_iter()
        .filter(|route| !page(route.path))
        .map(|r| {
            let scopes = r.scope.map_or(Value::Null, |s| json!([s.name()]));
            (r.method.to_string(), r.path.to_owned(), scopes.to_string())
        })
        .collect();
    assert_eq!(told, table);
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert!(document.get("security").is_none(), "each route says what it needs");
}

#[test]
fn every_path_tells_its_names_and_every_reference_leads_somewhere() {
    fn walk(document: &Value, value: &Value, count: &mut usize) {
        if value.get("$ref").is_some_and(Value::is_string) {
            assert!(resolve(document, value).is_object());
            *count += 1;
        }
        match value {
            Value::Object(map) => map.values().for_each(|v| walk(document, v, count)),
            Value::Array(list) => list.iter().for_each(|v| walk(document, v, count)),
            _ => {}
        }
    }
    let document = document();
    let mut count = 0;
    walk(&document, &document, &mut count);
    assert!(count > 30, "{count}");
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("operations").values() {
            let names: BTreeSet<&str> =
                path.split('{').skip(1).filter_map(|p| p.split('}').next()).collect();
            let told = operation["parameters"].as_array().into_iter().flatten();
            let told: BTreeSet<&str> =
                told.filter(|p| p["in"] == "path").filter_map(|p| p["name"].as_str()).collect();
            assert_eq!(told, names, "{path}");
            let id = operation["operationId"].as_str().expect("id");
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            assert!(operation["responses"].as_object().is_some_and(|r| !r.is_empty()), "{path}");
        }
    }
}

#[test]
fn a_dashboard_finds_its_messages_and_their_fields() {
    let document = document();
    let server = messages(&document, "ServerMessage");
    let origin = ["workOrderId", "runId", "timestamp"];
    let wanted: [(&str, &str, &[&str]); 5] = [
        ("agent_tool_call", "AgentToolCallEvent", &["toolUseId", "tool", "input"]),
        (
            "agent_tool_result",
            "AgentToolResultEvent",
            &["toolUseId", "success", "contentPreview", "contentLength", "durationMs"],
        ),
        ("agent_output", "AgentOutputEvent", &["content"]),
        ("file_changed", "FileChangedEvent", &["path", "action", "sizeBytes"]),
        (
            "progress_update",
            "ProgressUpdateEvent",
            &[
                "percentage",
                "currentPhase",
                "toolCallCount",
                "elapsedSeconds",
                "estimatedRemainingSeconds",
            ],
        ),
    ];
    for (kind, name, own) in wanted {
        let (mut has, _) = fields(&document, schema(&document, name));
        let (message, _) = fields(&document, server[kind]);
        for field in own.iter().chain(&origin) {
            assert!(has.remove(field).is_some(), "{name} has {field}");
            assert!(message.contains_key(field), "{kind} has {field}");
        }
        assert!(server[kind].to_string().contains(&format!("/{name}\"")), "{kind} is {name}");
    }
    let words = |of: &str, field: &str| {
        let (all, _) = fields(&document, schema(&document, of));
        resolve(&document, all[field])["enum"].clone()
    };
    let tools =
        json!(["Read", "Write", "Edit", "Bash", "Grep", "Glob", "WebFetch", "WebSearch", "Other"]);
    assert_eq!(words("AgentToolCallEvent", "tool"), tools);
    assert_eq!(words("FileChangedEvent", "action"), json!(["created", "modified", "deleted"]));

    let client = messages(&document, "ClientMessage");
    assert_eq!(
        client.keys().copied().collect::<Vec<_>>(),
        ["answer", "ping", "subscribe", "unsubscribe"]
    );
    let (subscribe, needed) = fields(&document, client["subscribe"]);
    let flags = [
        "includeToolCalls",
        "includeToolResults",
        "includeOutput",
        "includeFileChanges",
        "includeProgress",
    ];
    let (own, _) = fields(&document, schema(&document, "Subscribe"));
    for field in flags.into_iter().chain(["workOrderId", "sessionId", "view", "after", "filters"]) {
        assert!(subscribe.contains_key(field) && own.contains_key(field), "{field}");
        assert!(!needed.contains(field), "{field} may be left out");
    }
    // What a client is told to send is taken.
    for flag in flags {
        let message = json!({"type": "subscribe", "workOrderId": "a", flag: false});
        let read: stream::ClientMessage = serde_json::from_value(message).expect(flag);
        assert_eq!(serde_json::to_value(&read).expect("JSON")[flag], false);
    }
}

/// A message as the document tells it: nothing is missing, nothing is more, words are known.
fn check(document: &Value, message: &Value) {
    let read: ServerMessage =
        serde_json::from_value(message.clone()).unwrap_or_else(|e| panic!("{e}: {message}"));
    assert_eq!(&serde_json::to_value(&read).expect("JSON"), message);
    let kinds = messages(document, "ServerMessage");
    let kind = message["type"].as_str().expect("type");
    let (all, needed) = fields(document, kinds[kind]);
    let has: BTreeSet<&str> =
        message.as_object().expect("object").keys().map(String::as_str).collect();
    assert!(needed.is_subset(&has), "{kind}: {needed:?} in {message}");
    for field in has {
        let told = all.get(field).unwrap_or_else(|| panic!("{kind} tells of {field}"));
        if let Some(words) = resolve(document, told)["enum"].as_array() {
            assert!(words.contains(&message[field]), "{kind}: {field} in {message}");
        }
    }
}

/// Everything that a subscription tells up to now.
async fn follow(socket: &mut Ws, more: Value) -> Vec<Value> {
    let mut subscribe = more;
    subscribe["type"] = "subscribe".into();
    socket.send(&subscribe).await;
    let mut all = Vec::new();
    loop {
        let message = socket.next().await.expect("a message");
        let last = message["type"] == "ready" || message["type"] == "error";
        all.push(message);
        if last {
            return all;
        }
    }
}

/// Reads up to an answer. That a session has ended may be told before it, whenever that is.
async fn answered(socket: &mut common::Ws, answer: &str, all: &mut Vec<Value>) {
    loop {
        let message = socket.next().await.expect("a message");
        let kind = message["type"].clone();
        all.push(message);
        if kind == answer {
            return;
        }
        assert_eq!(kind, "ended", "before {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn real_messages_of_every_type_are_as_the_document_tells() {
    let document = document();
    let server = TestServer::start().await;
    let mut socket = server.ws().await;
    let mut all = Vec::new();
    let mut last = String::new();
    for name in [
        "acp/opencode-1.18-c-files",
        "acp/claude-acp-g-subagent",
        "acp/codex-acp-e-search",
        "acp/gemini-acp-d-bash",
        "claude-stream/2.1-c-files",
        "claude-history/2.1-k-parallel-tools",
    ] {
        last = server.session().await;
        let format = name.split_once('/').expect("format").0;
        let query = format!("format={format}&end=true");
        server.packets(&last, &query, &fixture(name)).await;
        let before = all.len();
        all.extend(follow(&mut socket, json!({ "sessionId": last })).await);
        assert!(all.len() > before + 3, "{name} tells something");
    }
    let quiet = json!({"sessionId": last, "filters": {"includeToolCalls": false,
        "includeToolResults": false, "includeOutput": false, "includeFileChanges": false,
        "includeProgress": false}});
    all.extend(follow(&mut socket, quiet).await);
    all.extend(follow(&mut socket, json!({"workOrderId": last, "view": "items"})).await);
    all.extend(follow(&mut socket, json!({"sessionId": last, "after": "garbage"})).await);
    all.extend(follow(&mut socket, json!({"view": "sessions", "subscription": "list"})).await);
    all.extend(follow(&mut socket, json!({"sessionId": "no-such"})).await);
    all.extend(follow(&mut socket, json!({})).await);
    // An agent that pauses within a word.
    let pausing = server.session().await;
    let chunk = json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "Hello wor"}});
    server.packets(&pausing, "format=acp", format!("{chunk}\n").as_bytes()).await;
    let mut other = server.ws().await;
    all.extend(follow(&mut other, json!({"sessionId": pausing, "view": "items"})).await);
    while !all.iter().any(|m| m["type"] == "preview") {
        all.push(other.next().await.expect("a message"));
    }
    for (text, answer) in [
        (json!({"type": "ping"}), "pong"),
        (json!({"type": "no-such"}), "error"),
        (json!({"type": "unsubscribe", "subscription": "1"}), "unsubscribed"),
        (json!({"type": "unsubscribe", "subscription": "1"}), "error"),
    ] {
        socket.send(&text).await;
        answered(&mut socket, answer, &mut all).await;
    }
    for broken in [Message::text("{"), Message::binary(vec![1])] {
        socket.socket.send(broken).await.expect("send");
        answered(&mut socket, "error", &mut all).await;
    }
    server.send("DELETE", &format!("/api/sessions/{last}"), b"").await;
    while !all.iter().any(|m| m["type"] == "removed") {
        all.push(socket.next().await.expect("a message"));
    }
    for message in &all {
        check(&document, message);
    }
    let came: BTreeSet<&str> = all.iter().filter_map(|m| m["type"].as_str()).collect();
    let mut told: BTreeSet<&str> = messages(&document, "ServerMessage").into_keys().collect();
    // A socket is closed with a code; only server-sent events have a frame for it.
    assert!(told.remove("closed"));
    // That needs an agent: the tests of runs have it.
    assert!(told.remove("answered"));
    assert_eq!(came, told);
    let codes: BTreeSet<&str> = all.iter().filter_map(|m| m["code"].as_str()).collect();
    assert_eq!(codes, BTreeSet::from(["INVALID_MESSAGE", "NOT_FOUND", "PARSE_ERROR"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_server_sent_events_are_as_the_document_tells() {
    let document = document();
    let mut server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let mut kinds = BTreeSet::new();
    for path in [
        format!("/api/sessions/{}/events?view=activity", place.id),
        format!("/api/sessions/{}/events?view=items", place.id),
        "/api/sessions/stream".to_owned(),
    ] {
        let frames = server.sse(&path, None).await.until_ready().await;
        assert!(!frames.is_empty(), "{path}");
        for frame in frames {
            check(&document, &frame.json());
            let read = serde_json::from_value(frame.json()).expect("a frame");
            assert!(matches!(read, StreamFrame::Message(_)), "{frame:?}");
            kinds.insert(frame.json()["type"].as_str().expect("type").to_owned());
        }
    }
    assert!(kinds.contains("changes") && kinds.contains("session"), "{kinds:?}");
    let mut stream = server.sse("/api/sessions/stream", None).await;
    stream.until_ready().await;
    server.stop().await;
    let closed = stream.next().await.expect("a frame").json();
    assert_eq!(closed["type"], "closed");
    check(&document, &closed);
}

/// Reads an answer as what the document says that it is; nothing is lost.
fn reads<T: DeserializeOwned + Serialize>(document: &Value, name: &str, answer: &Value) {
    let read: T =
        serde_json::from_value(answer.clone()).unwrap_or_else(|e| panic!("{e}: {answer}"));
    assert_eq!(&serde_json::to_value(&read).expect("JSON"), answer, "{name}");
    let (all, needed) = fields(document, schema(document, name));
    let has: BTreeSet<&str> =
        answer.as_object().expect("object").keys().map(String::as_str).collect();
    assert!(needed.is_subset(&has) && has.iter().all(|f| all.contains_key(f)), "{name}: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn real_answers_are_as_the_document_tells() {
    let document = &document();
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let id = &place.id;
    let send = async |method: &str, path: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.send(method, path, body.as_bytes()).await.json()
    };
    let get = async |path: String| server.get(&path).await;
    reads::<api::Session>(document, "Session", &get(format!("/api/sessions/{id}")).await);
    let tagged = send("PATCH", &format!("/api/sessions/{id}"), json!({"addTags": ["x"]})).await;
    reads::<api::Session>(document, "Session", &tagged);
    reads::<api::Session>(document, "Session", &send("POST", "/api/sessions", json!({})).await);
    let page = get("/api/sessions?limit=1".to_owned()).await;
    assert!(page["next"].is_string());
    reads::<api::SessionPage>(document, "SessionPage", &page);
    let items = get(format!("/api/sessions/{id}/items")).await;
    reads::<api::ItemPage>(document, "ItemPage", &items);
    let outline = get(format!("/api/sessions/{id}/outline")).await;
    reads::<api_overview::Outline>(document, "Outline", &outline);
    let facets = get("/api/facets".to_owned()).await;
    reads::<api_overview::Facets>(document, "Facets", &facets);
    let sources = get("/api/sources".to_owned()).await;
    reads::<api_overview::Sources>(document, "Sources", &sources);
    let found = get(format!("/api/search?q={MARKER}")).await;
    assert!(found["hits"].as_array().is_some_and(|h| !h.is_empty()));
    reads::<api::SearchPage>(document, "SearchPage", &found);
    let answer = server.packets(id, "format=acp", &fixture("acp/odd-image-output")).await;
    reads::<api::PacketAnswer>(document, "PacketAnswer", &answer);
    let state = get(format!("/api/sessions/{id}/packets")).await;
    reads::<api::PacketState>(document, "PacketState", &state);
    let new = json!({"name": "x", "scopes": ["read"], "tags": ["home"], "ttlSeconds": 9});
    reads::<api::MadeToken>(document, "MadeToken", &send("POST", "/api/tokens", new).await);
    let tokens = get("/api/tokens".to_owned()).await;
    assert_eq!(tokens["tokens"].as_array().map(Vec::len), Some(2));
    reads::<api::TokenList>(document, "TokenList", &tokens);
    reads::<api::Me>(document, "Me", &get("/api/me".to_owned()).await);
    reads::<api::Ticket>(document, "Ticket", &send("POST", "/api/tickets", Value::Null).await);
    reads::<api::Health>(document, "Health", &get("/healthz".to_owned()).await);
    let pruned = send("POST", "/api/prune", json!({"maxBytes": 0, "dryRun": true})).await;
    assert!(pruned["sessions"].as_array().is_some_and(|s| !s.is_empty()));
    reads::<api::Pruned>(document, "Pruned", &pruned);
    let audit = get("/api/audit".to_owned()).await;
    assert!(audit["actions"].as_array().is_some_and(|a| !a.is_empty()));
    reads::<api::AuditPage>(document, "AuditPage", &audit);
    let error = send("GET", "/api/sessions/no-such", Value::Null).await;
    reads::<ErrorBody>(document, "ErrorBody", &error);
    let limits = get("/api/limits".to_owned()).await;
    let (all, _) = fields(document, schema(document, "Limits"));
    let has: Vec<&str> = limits.as_object().expect("object").keys().map(String::as_str).collect();
    assert_eq!(all.keys().copied().collect::<BTreeSet<_>>(), has.into_iter().collect());
    let login = login(&server, &ticket(&server).await).await;
    reads::<api::LoggedIn>(document, "LoggedIn", &login.json());
    let ticket = send("POST", "/api/request-tickets", Value::Null).await;
    reads::<api::RequestTicket>(document, "RequestTicket", &ticket);
    assert_eq!(get("/openapi.json".to_owned()).await, *document);
}
