//! Every route, called by everybody: who gets in, who does not, and who cannot even tell that
//! there is something.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{Call, MARKER, Place, bearer, browser, probe, ticket, token};
use common::{Reply, Sse, TestServer, Ws, request};
use narrows_server::{RouteInfo, route_list};
use serde_json::{Value, json};

const SCOPES: [&str; 5] = ["read", "write", "run", "approve", "admin"];

fn name(route: &RouteInfo) -> String {
    format!("{} {}", route.method, route.path)
}

fn code(reply: &Reply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    body["error"]["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_takes_the_scope_of_the_table_and_no_other() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let mut callers = Vec::new();
    for scope in SCOPES {
        callers.push((scope, bearer(&token(&server, json!({ "scopes": [scope] })).await.1)));
    }
    for route in route_list() {
        let call = Call::new(&server, &route, &place, false).await;
        let reply = call.send(&server, &[]).await;
        let (status, what) = match route.scope {
            None => (call.good, ""),
            Some(_) => (401, "UNAUTHORIZED"),
        };
        let about = format!("{} without a token: {}", name(&route), reply.text());
        assert_eq!(reply.status, status, "{about}");
        if route.scope.is_some() {
            assert_eq!(code(&reply), what, "{about}");
            assert_eq!(reply.headers["www-authenticate"], "Bearer", "{about}");
        }
        for (scope, bearer) in &callers {
            let call = Call::new(&server, &route, &place, false).await;
            let reply = call.send(&server, &[("authorization", bearer)]).await;
            let may = route.scope.is_none_or(|needed| needed.name() == *scope);
            let about = format!("{} with the scope {scope}: {}", name(&route), reply.text());
            assert_eq!(reply.status, if may { call.good } else { 403 }, "{about}");
            assert_eq!(code(&reply) == "FORBIDDEN", !may, "{about}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_opens_nothing_whatever_is_in_it() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let token = browser(&server, &ticket(&server).await).await;
    let logout = |route: &RouteInfo| route.path == "/api/logout";
    for route in route_list() {
        for secret in [&token, &server.token] {
            let call = Call::new(&server, &route, &place, false).await;
            let cookie = format!("narrows={secret}; token={secret}; authorization=Bearer {secret}");
            let own = format!("http://{}", server.address);
            let headers = [("cookie", cookie.as_str()), ("x-narrows", "1"), ("origin", &own)];
            let reply = call.send(&server, &headers).await;
            let status = if route.scope.is_some() { 401 } else { call.good };
            let about = format!("{} with a cookie: {}", name(&route), reply.text());
            assert_eq!(reply.status, status, "{about}");
            assert!(!reply.headers.contains_key("set-cookie"), "{about}");
        }
        // Whoever logs out is out: that needs a browser of its own.
        let out = logout(&route);
        let token =
            if out { browser(&server, &ticket(&server).await).await } else { token.clone() };
        let call = Call::new(&server, &route, &place, false).await;
        let reply = call.send(&server, &[("authorization", &bearer(&token))]).await;
        let good = if out { 204 } else { call.good };
        assert_eq!(reply.status, good, "{} in a header: {}", name(&route), reply.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_wrong_over_or_revoked_opens_nothing() {
    for kind in ["garbage", "expired", "revoked", "cookie"] {
        // Each on a server of its own, or there are so many wrong tokens that they are throttled.
        let server = TestServer::start().await;
        let place = Place::make(&server, "home").await;
        let all = json!({ "scopes": SCOPES, "ttlSeconds": if kind == "expired" { 1 } else { 99 } });
        let (id, secret) = token(&server, all).await;
        let value = match kind {
            "garbage" => format!("{}x", bearer(&secret)),
            "cookie" => format!("narrows={secret}x"),
            _ => bearer(&secret),
        };
        match kind {
            "expired" => {
                let who = [("authorization", value.as_str())];
                common::until("it is over", async || {
                    probe(server.address, "GET", "/api/me", &who, b"").await.status == 401
                })
                .await;
            }
            "revoked" => {
                let gone = server.send("DELETE", &format!("/api/tokens/{id}"), b"").await;
                assert_eq!(gone.status, 204);
            }
            _ => {}
        }
        let header = if kind == "cookie" { "cookie" } else { "authorization" };
        for route in route_list() {
            let call = Call::new(&server, &route, &place, false).await;
            let reply = call.send(&server, &[(header, &value), ("x-narrows", "1")]).await;
            let status = if route.scope.is_some() { 401 } else { call.good };
            let about = format!("{} with a token that is {kind}: {}", name(&route), reply.text());
            assert_eq!(reply.status, status, "{about}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_table_exists_and_head_is_guarded_as_get() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let owner = bearer(&server.token);
    for path in ["/api", "/api/", "/api/sessions/", "//api/sessions", "/token", "/page/", "/.env"] {
        let reply = probe(server.address, "GET", path, &[("authorization", &owner)], b"").await;
        assert_eq!(reply.status, 404, "{path}");
    }
    for path in ["/page/..%2ftoken", "/page/%2e%2e", "/page/token", "/page/app.js%00"] {
        let reply = probe(server.address, "GET", path, &[("authorization", &owner)], b"").await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(!reply.text().contains(&server.token));
    }
    for route in route_list() {
        let mut call = Call::new(&server, &route, &place, false).await;
        let methods = ["GET", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "TRACE", "FOO"];
        let known =
            |m: &str| route_list().iter().any(|r| r.path == route.path && r.method.as_str() == m);
        for method in methods.into_iter().filter(|m| !known(m)) {
            call.method = method.to_owned();
            let reply = call.send(&server, &[("authorization", &owner)]).await;
            assert_eq!(reply.status, 405, "{method} {}", route.path);
        }
        if route.method == http::Method::GET && route.scope.is_some() {
            let reply = request(server.address, "HEAD", &call.path, &[], b"").await;
            assert_eq!(reply.status, 401, "HEAD {}", route.path);
        }
    }
}

/// A token with every scope that sees only some sessions.
async fn limited(server: &TestServer, to: Value) -> String {
    let mut about = to;
    about["scopes"] = json!(SCOPES);
    token(server, about).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_session_is_as_if_it_were_not_there() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let before = server.get(&format!("/api/sessions/{}", home.id)).await;
    let tokens = [
        limited(&server, json!({ "sessions": [other.id] })).await,
        limited(&server, json!({ "tags": ["other"] })).await,
        limited(&server, json!({ "tags": ["hom", "home2", "HOME"] })).await,
    ];
    let routes: Vec<RouteInfo> =
        route_list().into_iter().filter(|r| r.path.starts_with("/api/sessions/{id}")).collect();
    assert!(routes.len() >= 9);
    for route in &routes {
        let call = Call::new(&server, route, &home, true).await;
        let mut missing = Call::new(&server, route, &home, true).await;
        missing.path = missing.path.replace(&home.id, "01arz3ndektsv4rrffq69g5fav");
        for secret in &tokens {
            let bearer = bearer(secret);
            let reply = call.send(&server, &[("authorization", &bearer)]).await;
            let nothing = missing.send(&server, &[("authorization", &bearer)]).await;
            assert_eq!(reply.status, 404, "{}: {}", name(route), reply.text());
            // Neither status nor words tell a foreign session from none.
            assert_eq!((reply.status, reply.text()), (nothing.status, nothing.text()));
            assert!(!reply.text().contains(MARKER) && !reply.text().contains(&home.id));
        }
    }
    assert_eq!(server.get(&format!("/api/sessions/{}", home.id)).await, before);
    // The same calls work with a token that is limited to this very session.
    let own = bearer(&limited(&server, json!({ "tags": ["none"], "sessions": [home.id] })).await);
    for route in routes.iter().filter(|r| r.method != http::Method::DELETE) {
        let call = Call::new(&server, route, &home, true).await;
        let reply = call.send(&server, &[("authorization", &own)]).await;
        // Or it would give itself away to whoever sees another tag.
        let tags = (&route.method, route.path) == (&http::Method::PATCH, "/api/sessions/{id}");
        let good = if tags { 403 } else { call.good };
        assert_eq!(reply.status, good, "{}: {}", name(route), reply.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_searches_and_streams_never_tell_of_foreign_sessions() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    for to in [json!({ "sessions": [other.id] }), json!({ "tags": ["other"] })] {
        let secret = limited(&server, to).await;
        let bearer = bearer(&secret);
        let get = async |path: &str| {
            let headers = [("authorization", bearer.as_str())];
            probe(server.address, "GET", path, &headers, b"").await
        };
        let filters = ["", "tags=home", "label=home", "text=home", "since=0", "limit=200"];
        for query in filters {
            let reply = get(&format!("/api/sessions?{query}")).await;
            assert_eq!(reply.status, 200);
            assert!(!reply.text().contains(&home.id), "{query}: {}", reply.text());
        }
        assert!(get("/api/sessions").await.text().contains(&other.id));
        let hits = get(&format!("/api/search?q={MARKER}")).await.json();
        let hits: Vec<&Value> = hits["hits"].as_array().expect("hits").iter().collect();
        assert!(!hits.is_empty() && hits.iter().all(|h| h["sessionId"] == other.id.as_str()));
        let path = format!("/api/search?q={MARKER}&session={}", home.id);
        assert_eq!(get(&path).await.status, 404);

        let mut list =
            Sse::open(server.address, "/api/sessions/stream", &[("authorization", &bearer)]).await;
        let mut socket = Ws::open(server.address, &secret).await.expect("socket");
        socket.send(&json!({"type": "subscribe", "view": "sessions", "subscription": "all"})).await;
        let mut told: Vec<String> =
            list.until_ready().await.into_iter().filter_map(|f| f.data).collect();
        told.extend(socket.until("ready").await.iter().map(Value::to_string));
        // Live: one of each is made, changed and deleted, the foreign one first.
        let foreign = Place::make(&server, "far").await;
        let new = Place::make(&server, "near").await;
        for place in [&foreign, &new] {
            let tag = if place.id == new.id { "other" } else { "home" };
            let change = json!({ "addTags": [tag] }).to_string();
            let path = format!("/api/sessions/{}", place.id);
            server.send("PATCH", &path, change.as_bytes()).await;
        }
        server.send("DELETE", &format!("/api/sessions/{}", foreign.id), b"").await;
        // Twice: what is told of a deletion comes after the changes of the same moment.
        for fence in ["z1", "z2"] {
            let change = json!({ "addTags": [fence] }).to_string();
            let path = format!("/api/sessions/{}", other.id);
            server.send("PATCH", &path, change.as_bytes()).await;
            let done = |text: &str| text.contains(&other.id) && text.contains(fence);
            while !told.last().is_some_and(|t| done(t)) {
                told.push(list.next().await.expect("a frame").data.unwrap_or_default());
            }
            told.push(String::new());
            while !told.last().is_some_and(|t| done(t)) {
                told.push(socket.next().await.expect("a message").to_string());
            }
        }
        for text in &told {
            assert!(!text.contains(&home.id) && !text.contains(&foreign.id), "{text}");
        }
        server.send("DELETE", &format!("/api/sessions/{}", new.id), b"").await;
        let untag = json!({ "removeTags": ["z1", "z2"] }).to_string();
        server.send("PATCH", &format!("/api/sessions/{}", other.id), untag.as_bytes()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_subscribes_to_no_foreign_session() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let secret = limited(&server, json!({ "sessions": [other.id] })).await;
    let mut socket = Ws::open(server.address, &secret).await.expect("socket");
    let missing = json!({"type": "subscribe", "sessionId": "no-such", "subscription": "a"});
    socket.send(&missing).await;
    let nothing = socket.next().await.expect("an error");
    assert_eq!(nothing["code"], "NOT_FOUND");
    for (key, value) in
        [("sessionId", &home.id), ("workOrderId", &home.id), ("workOrderId", &home.label)]
    {
        for view in ["events", "items", "activity", "packets"] {
            socket
                .send(&json!({"type": "subscribe", key: value, "view": view, "subscription": "a"}))
                .await;
            assert_eq!(socket.next().await.expect("an error"), nothing, "{key} {view}");
        }
    }
    socket.send(&json!({"type": "subscribe", "workOrderId": "other", "view": "items"})).await;
    let told = socket.until("ready").await;
    assert!(told.iter().any(|m| m.to_string().contains(MARKER)));
}
