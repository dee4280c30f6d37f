//! Requests made from the OpenAPI document, sensible and not: no answer is the server's own fault.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{TestServer, fixture, request};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Random enough, and the same again by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % most.max(1)
    }
}

const TEXTS: [&str; 22] = [
    "",
    "a",
    "0",
    "-1",
    "1.5",
    "true",
    "null",
    "end",
    "now",
    "日本語",
    "🦀",
    "..",
    "../../etc/passwd",
    "%",
    "*",
    "\"",
    "' OR 1=1 --",
    "\u{0}",
    "\r\nx: y",
    "AND OR NOT NEAR(",
    "99999999999999999999",
    "{\"a\":1}",
];

/// A text, now and then a very long one.
fn text(dice: &mut Dice) -> String {
    match dice.roll(12) {
        0 => "x".repeat(1 + dice.roll(5000)),
        _ => TEXTS[dice.roll(TEXTS.len())].to_owned(),
    }
}

/// A value of a schema, or anything.
fn value(dice: &mut Dice, document: &Value, schema: &Value, depth: usize) -> Value {
    if depth > 6 || dice.roll(15) == 0 {
        return match dice.roll(6) {
            0 => Value::Null,
            1 => json!(-1),
            2 => json!([[[]]]),
            3 => json!({"unknown": true}),
            4 => json!(1e300),
            _ => json!(text(dice)),
        };
    }
    if let Some(name) = schema["$ref"].as_str() {
        let inner = document.pointer(name.trim_start_matches('#')).cloned().unwrap_or_default();
        return value(dice, document, &inner, depth + 1);
    }
    for of in ["oneOf", "anyOf", "allOf"] {
        if let Some(list) = schema[of].as_array() {
            let chosen = list[dice.roll(list.len())].clone();
            return value(dice, document, &chosen, depth + 1);
        }
    }
    if let Some(list) = schema["enum"].as_array() {
        return list[dice.roll(list.len())].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[dice.roll(kinds.len())].as_str().unwrap_or("null").to_owned(),
        kind => kind.as_str().unwrap_or("string").to_owned(),
    };
    match kind.as_str() {
        "object" => {
            let mut object = Map::new();
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                if dice.roll(4) > 0 {
                    object.insert(name.clone(), value(dice, document, inner, depth + 1));
                }
            }
            Value::Object(object)
        }
        "array" => {
            (0..dice.roll(4)).map(|_| value(dice, document, &schema["items"], depth + 1)).collect()
        }
        "integer" => [json!(0), json!(1), json!(50), json!(-1), json!(u64::MAX), json!(i64::MIN)]
            [dice.roll(6)]
        .clone(),
        "number" => json!(0.5),
        "boolean" => json!(dice.roll(2) == 0),
        "null" => Value::Null,
        _ => json!(text(dice)),
    }
}

/// Every byte that is not plain is escaped; now and then none is, as far as a request allows.
fn escaped(dice: &mut Dice, text: &str) -> String {
    let raw = dice.roll(20) == 0;
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"-_.~".contains(&byte)
            || (raw && byte.is_ascii_graphic())
        {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

async fn one(
    server: &TestServer,
    dice: &mut Dice,
    document: &Value,
    session: &str,
) -> (String, u16) {
    let paths: Vec<(&String, &Value)> =
        document["paths"].as_object().expect("paths").iter().collect();
    let (path, operations) = paths[dice.roll(paths.len())];
    let operations: Vec<(&String, &Value)> =
        operations.as_object().expect("operations").iter().collect();
    let (method, operation) = operations[dice.roll(operations.len())];
    let (mut target, mut query) = (path.clone(), Vec::new());
    let token = format!("Bearer {}", server.token);
    let mut headers = vec![("authorization", token)];
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().expect("name");
        let chosen = match value(dice, document, &parameter["schema"], 0) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match parameter["in"].as_str() {
            Some("path") => {
                let known = name == "id" && dice.roll(3) > 0;
                let chosen = if known { session.to_owned() } else { escaped(dice, &chosen) };
                let chosen = if chosen.is_empty() { "x".to_owned() } else { chosen };
                target = target.replace(&format!("{{{name}}}"), &chosen);
            }
            Some("query") if dice.roll(3) == 0 => {
                query.push(format!("{name}={}", escaped(dice, &chosen)));
            }
            Some("header") if dice.roll(3) == 0 => {
                let plain: String = chosen.chars().filter(|c| !c.is_control()).collect();
                headers.push(("x-any", plain.clone()));
                headers.push((
                    if name == "Idempotency-Key" { "idempotency-key" } else { "last-event-id" },
                    plain,
                ));
            }
            _ => {}
        }
    }
    if !query.is_empty() {
        target = format!("{target}?{}", query.join("&"));
    }
    let mut body = Vec::new();
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        let (kind, of) = content.iter().next().expect("content");
        let kind = if dice.roll(20) == 0 { "text/plain".to_owned() } else { kind.clone() };
        headers.push(("content-type", kind));
        body = match dice.roll(8) {
            0 => text(dice).into_bytes(),
            1 => b"{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}\n".to_vec(),
            _ => value(dice, document, &of["schema"], 0).to_string().into_bytes(),
        };
    }
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let told = format!("{} {target} {}", method.to_uppercase(), String::from_utf8_lossy(&body));
    // Streams do not end: their head is enough.
    let streams = operation["responses"]["200"]["content"].as_object();
    if streams.is_some_and(|c| c.contains_key("text/event-stream")) {
        let stream = common::Sse::open(server.address, &target, &headers).await;
        return (told, stream.status);
    }
    let reply = request(server.address, &method.to_uppercase(), &target, &headers, &body).await;
    if reply.status >= 400 && reply.headers.get("content-type").is_some_and(|k| k.contains("json"))
    {
        let error = reply.json();
        assert!(
            error["error"]["code"].is_string() || error["status"].is_string(),
            "{told}: {error}"
        );
    }
    (told, reply.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_answered_with_a_fault_of_the_server() {
    let server = TestServer::start().await;
    let document = server.get("/openapi.json").await;
    let seed = std::env::var("NARROWS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let requests =
        std::env::var("NARROWS_REQUESTS").ok().and_then(|s| s.parse().ok()).unwrap_or(1500);
    let mut dice = Dice(seed);
    let mut session = String::new();
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for n in 0..requests {
        // Some of the requests delete it.
        if n % 50 == 0 {
            session = server.session().await;
            server.packets(&session, "end=true", &fixture("acp/opencode-1.18-c-files")).await;
        }
        let (told, status) = one(&server, &mut dice, &document, &session).await;
        assert!(status < 500, "{status} after {n}: {}", told.chars().take(600).collect::<String>());
        *statuses.entry(status).or_default() += 1;
    }
    // It did reach what works, and what is refused.
    assert!([200, 400, 404].iter().all(|s| statuses.contains_key(s)), "{statuses:?}");
    let works = server.get("/healthz").await;
    assert_eq!(works["status"], "ok", "{works}");
}
