//! Where a request comes from: names of the server, pages of other origins, forged forms, and what
//! every response says to a browser.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{Place, UPGRADE, bearer, browser, login, probe, raw, ticket};
use common::{Reply, TestServer};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};

/// One path of each transport: REST, both streams, the socket, the page, and what is public.
fn transports(place: &Place) -> Vec<(String, u16)> {
    vec![
        ("/api/sessions".to_owned(), 200),
        (format!("/api/sessions/{}/events", place.id), 200),
        ("/api/sessions/stream".to_owned(), 200),
        ("/api/ws".to_owned(), 101),
        ("/".to_owned(), 200),
        (format!("/s/{}", place.id), 200),
        ("/page/app.js".to_owned(), 200),
        ("/healthz".to_owned(), 200),
        ("/openapi.json".to_owned(), 200),
        ("/no-such-path".to_owned(), 404),
    ]
}

/// A GET with the owner's token and these headers.
async fn get(server: &TestServer, path: &str, more: &[(&str, &str)]) -> Reply {
    let owner = bearer(&server.token);
    let mut headers = vec![("authorization", owner.as_str())];
    if path == "/api/ws" {
        headers.extend(UPGRADE);
    }
    headers.extend(more);
    probe(server.address, "GET", path, &headers, b"").await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_names_of_the_server_are_answered_on_every_transport() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let port = server.address.port();
    for (path, good) in transports(&place) {
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            let reply = get(&server, &path, &[("host", &format!("{host}:{port}"))]).await;
            assert_eq!(reply.status, good, "{host} {path}");
        }
        for host in [
            "evil.com".to_owned(),
            format!("evil.com:{port}"),
            format!("10.0.0.1:{port}"),
            format!("0.0.0.0:{port}"),
            format!("127.0.0.2:{port}"),
            format!("[::2]:{port}"),
            format!("localhost.:{port}"),
            format!("127.0.0.1.:{port}"),
            format!("localhost.evil.com:{port}"),
            format!("127.0.0.1.nip.io:{port}"),
            format!("user@localhost:{port}"),
            format!("localhost:{port}@evil.com"),
            format!("localhost:{port}:{port}"),
            format!("localhost:+{port}"),
            format!("localhost:0{port}"),
            format!("localhost:{port}, evil.com"),
            "localhost:1".to_owned(),
            "localhost".to_owned(),
            "localhost:".to_owned(),
            "127.0.0.1".to_owned(),
            String::new(),
        ] {
            let reply = get(&server, &path, &[("host", &host)]).await;
            // A probe knows no name.
            let name = host.trim_start_matches('[').split([']', ':']).next().unwrap_or_default();
            let address = host.parse::<SocketAddr>().is_ok() || name.parse::<IpAddr>().is_ok();
            if path == "/healthz" && address && !host.ends_with(".nip.io") {
                assert_eq!(reply.status, 200, "`{host}` {path}");
                continue;
            }
            assert_eq!(reply.status, 421, "`{host}` {path}");
            assert_eq!(reply.json()["error"]["code"], "WRONG_HOST");
        }
        let own = format!("127.0.0.1:{port}");
        for hosts in [[own.as_str(), "evil.com"], ["evil.com", own.as_str()], [&own, &own]] {
            let reply = get(&server, &path, &hosts.map(|h| ("host", h))).await;
            assert_eq!(reply.status, 421, "{hosts:?} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_host_and_a_foreign_absolute_target_are_refused() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let own = server.address.to_string();
    let token = bearer(&server.token);
    for (path, good) in transports(&place) {
        let more = if path == "/api/ws" {
            UPGRADE.map(|(name, value)| format!("{name}: {value}\r\n")).concat()
        } else {
            String::new()
        };
        let rest = format!("authorization: {token}\r\n{more}\r\n");
        let send = async |head: String| raw(server.address, (head + &rest).as_bytes()).await.status;
        // The server itself may refuse such a head before anybody sees it.
        let refused = |status: u16| status == 421 || status == 400;
        assert!(refused(send(format!("GET {path} HTTP/1.1\r\n")).await), "{path} without a host");
        assert!(refused(send(format!("GET {path} HTTP/1.0\r\n")).await), "{path} of old");
        for target in ["http://evil.com", "http://localhost:1", &format!("http://a@{own}")] {
            let head = format!("GET {target}{path} HTTP/1.1\r\nhost: {own}\r\n");
            assert!(refused(send(head).await), "{target}{path}");
        }
        let head = format!("GET http://{own}{path} HTTP/1.1\r\nhost: evil.com\r\n");
        assert!(refused(send(head).await), "the target cannot stand for the host");
        let head = format!("GET http://{own}{path} HTTP/1.1\r\nhost: {own}\r\n");
        assert_eq!(send(head).await, good, "{path} with its own absolute target");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_origin_is_refused_even_with_the_right_token() {
    let app = "https://app.example".to_owned();
    let server = TestServer::with(|c| c.origins = vec![app.clone()]).await;
    let place = Place::make(&server, "home").await;
    let own = server.address.to_string();
    let port = server.address.port();
    let foreign = [
        "http://evil.com".to_owned(),
        "null".to_owned(),
        String::new(),
        "*".to_owned(),
        "file://".to_owned(),
        format!("https://{own}"),
        format!("HTTP://{own}"),
        format!("http://{own}/"),
        format!("http://{own}0"),
        format!("http://{own}.evil.com"),
        format!("http://evil.com/{own}"),
        format!("http://evil.com#{own}"),
        format!("http://{own}@evil.com"),
        format!("http://{own} http://evil.com"),
        "http://127.0.0.1".to_owned(),
        "http://localhost:3000".to_owned(),
        // Another name of the server is another origin.
        format!("http://localhost:{port}"),
        "http://app.example".to_owned(),
        "https://app.example.".to_owned(),
        "https://app.example:8443".to_owned(),
        "https://app.example.evil.com".to_owned(),
        "https://evil-app.example".to_owned(),
        "https://x.app.example".to_owned(),
        "https://app.exampl".to_owned(),
    ];
    for (path, good) in transports(&place) {
        for origin in &foreign {
            let reply = get(&server, &path, &[("origin", origin)]).await;
            assert_eq!(reply.status, 403, "`{origin}` {path}");
            assert_eq!(reply.json()["error"]["code"], "FORBIDDEN_ORIGIN");
            assert!(!reply.headers.contains_key("access-control-allow-origin"), "`{origin}`");
        }
        let reply = get(&server, &path, &[("origin", &format!("http://{own}"))]).await;
        assert_eq!(reply.status, good, "own origin {path}");
        assert!(!reply.headers.contains_key("access-control-allow-origin"));
        let reply = get(&server, &path, &[("origin", &app)]).await;
        assert_eq!(reply.status, good, "allowed origin {path}");
        assert_eq!(reply.headers["access-control-allow-origin"], app);
        assert_eq!(reply.headers["vary"], "Origin");
        // Pages of other origins use tokens: a cookie is never theirs.
        assert!(!reply.headers.contains_key("access-control-allow-credentials"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_is_refused_where_a_browser_tells_no_origin() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let cookie = format!("narrows={}", browser(&server, &ticket(&server).await).await);
    for (path, good) in transports(&place) {
        for site in ["cross-site", "same-site", "", "Same-Origin", "anything"] {
            for more in [vec![], vec![("cookie", cookie.as_str())]] {
                let headers = [vec![("sec-fetch-site", site)], more].concat();
                let reply = get(&server, &path, &headers).await;
                assert_eq!(reply.status, 403, "`{site}` {path}");
                assert_eq!(reply.json()["error"]["code"], "FORBIDDEN_ORIGIN");
            }
        }
        for site in ["same-origin", "none"] {
            assert_eq!(get(&server, &path, &[("sec-fetch-site", site)]).await.status, good);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_is_answered_to_allowed_origins_only() {
    let app = "https://app.example";
    let server = TestServer::with(|c| c.origins = vec![app.to_owned()]).await;
    let ask = async |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "DELETE"),
            ("access-control-request-headers", "authorization,x-narrows"),
        ];
        probe(server.address, "OPTIONS", "/api/sessions/1", &headers, b"").await
    };
    let reply = ask(app).await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.headers["access-control-allow-origin"], app);
    assert!(reply.headers["access-control-allow-methods"].contains("DELETE"));
    let allowed = &reply.headers["access-control-allow-headers"];
    for name in ["authorization", "content-type", "last-event-id", "x-narrows", "idempotency-key"] {
        assert!(allowed.split(", ").any(|n| n == name), "{name}");
    }
    for origin in ["https://evil.com", "null", "https://app.example.evil.com"] {
        let reply = ask(origin).await;
        assert_eq!(reply.status, 403, "{origin}");
        assert!(!reply.headers.keys().any(|k| k.starts_with("access-control")), "{origin}");
    }
    // A page of its own origin never asks; whoever does learns nothing.
    let reply = ask(&format!("http://{}", server.address)).await;
    assert_eq!(reply.status, 405);
    assert!(!reply.headers.keys().any(|k| k.starts_with("access-control")));
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_other_pages_change_nothing() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let cookie = format!("narrows={}", browser(&server, &ticket(&server).await).await);
    let before = server.get("/api/sessions").await;
    let tokens = server.get("/api/tokens").await;
    let posts = [
        ("/api/sessions".to_owned(), "{}".to_owned()),
        ("/api/tokens".to_owned(), json!({"name": "x", "scopes": ["admin"]}).to_string()),
        ("/api/prune".to_owned(), json!({"maxAgeMs": 0}).to_string()),
        ("/api/tickets".to_owned(), String::new()),
        ("/api/logout".to_owned(), String::new()),
        (format!("/api/sessions/{}/packets", place.id), String::new()),
    ];
    let kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""];
    for (path, body) in &posts {
        for kind in kinds.into_iter().chain(["application/json"]) {
            // An old browser says nothing about where the form stands.
            for from in [None, Some(("origin", "http://evil.com")), Some(("origin", "null"))] {
                let mut headers = vec![("cookie", cookie.as_str()), ("content-type", kind)];
                headers.extend(from);
                let reply = probe(server.address, "POST", path, &headers, body.as_bytes()).await;
                let status = if from.is_some() { 403 } else { 401 };
                assert_eq!(reply.status, status, "{path} {kind} {from:?}: {}", reply.text());
            }
        }
    }
    // Where a body is JSON, no other type is taken, whoever sends it.
    let owner = bearer(&server.token);
    for (path, body) in posts.iter().filter(|(_, body)| !body.is_empty()) {
        for kind in kinds.into_iter().chain(["application/json-patch", "text/json"]) {
            let headers = [("authorization", owner.as_str()), ("content-type", kind)];
            let reply = probe(server.address, "POST", path, &headers, body.as_bytes()).await;
            assert_eq!(reply.status, 415, "{path} `{kind}`: {}", reply.text());
        }
    }
    let kind = ("content-type", "Application/JSON; charset=utf-8");
    let headers = [("authorization", owner.as_str()), kind];
    let dry = json!({"maxAgeMs": 0, "dryRun": true}).to_string();
    let reply = probe(server.address, "POST", "/api/prune", &headers, dry.as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = json!({ "ticket": ticket(&server).await }).to_string();
    let headers = [("content-type", "text/plain")];
    let reply = probe(server.address, "POST", "/api/login", &headers, body.as_bytes()).await;
    assert_eq!(reply.status, 415);
    let headers = [("content-type", "application/json"), ("origin", "http://evil.com")];
    let reply = probe(server.address, "POST", "/api/login", &headers, body.as_bytes()).await;
    assert_eq!(reply.status, 403);
    assert_eq!(server.get("/api/sessions").await, before);
    assert_eq!(server.get("/api/tokens").await, tokens);
    assert_eq!(get(&server, "/api/me", &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_proxy_would_say_changes_nothing() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let own = server.address.to_string();
    let said = [
        ("x-forwarded-host", own.as_str()),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "host=localhost;proto=https"),
        ("x-original-url", "/healthz"),
        ("x-rewrite-url", "/healthz"),
        ("x-http-method-override", "DELETE"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&said[..], more].concat();
    assert_eq!(get(&server, "/api/me", &with(&[("host", "evil.com")])).await.status, 421);
    let reply = get(&server, "/api/me", &with(&[("origin", "http://evil.com")])).await;
    assert_eq!(reply.status, 403);
    let path = format!("/api/sessions/{}", place.id);
    assert_eq!(probe(server.address, "GET", &path, &said, b"").await.status, 401);
    assert_eq!(get(&server, &path, &said).await.status, 200);
    // Foreign words do not make the own origin foreign, or another one the own.
    let http = format!("http://{own}");
    let https = format!("https://{own}");
    let from = |origin| [&said[..], &[("origin", origin)]].concat();
    assert_eq!(get(&server, &path, &from(&http)).await.status, 200);
    assert_eq!(get(&server, &path, &from(&https)).await.status, 403);
    let evil = [("x-forwarded-host", "evil.com"), ("forwarded", "host=evil.com")];
    assert_eq!(get(&server, &path, &evil).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_with_tls_the_own_origin_is_secure() {
    let server = TestServer::with(|c| {
        c.behind_proxy = true;
        c.hosts = vec!["narrows.example".to_owned()];
    })
    .await;
    let from = |origin| [("host", "narrows.example"), ("origin", origin)];
    assert_eq!(get(&server, "/api/me", &from("https://narrows.example")).await.status, 200);
    assert_eq!(get(&server, "/api/me", &from("http://narrows.example")).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_tells_browsers_to_be_careful() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let mut replies = vec![
        ("401", probe(server.address, "GET", "/api/sessions", &[], b"").await),
        ("404", get(&server, "/api/sessions/no-such", &[]).await),
        ("403", get(&server, "/", &[("origin", "null")]).await),
        ("421", get(&server, "/", &[("host", "evil.com")]).await),
        ("405", server.send("DELETE", "/api/sessions", b"").await),
        ("400", get(&server, "/api/search", &[]).await),
        ("login", login(&server, &ticket(&server).await).await),
        ("no such file", get(&server, "/page/no-such", &[]).await),
        ("items", get(&server, &format!("/api/sessions/{}/items", place.id), &[]).await),
    ];
    for (path, _) in transports(&place) {
        replies.push(("transport", get(&server, &path, &[]).await));
    }
    for (what, reply) in &replies {
        let header = |name: &str| reply.headers.get(name).map(String::as_str).unwrap_or_default();
        let csp = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(csp.split("; ").any(|p| p.trim() == part), "{what}: {part} in {csp}");
        }
        assert!(!csp.contains("unsafe") && !csp.contains('*'), "{what}: {csp}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{what}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{what}");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{what}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin", "{what}");
        // The page tells nothing of anybody: a browser may keep it, and asks whether it is current.
        let cache = header("cache-control");
        let page = !header("etag").is_empty() && cache == "no-cache";
        assert!(page || cache.contains("no-store"), "{what}");
        assert!(!reply.headers.contains_key("server"), "{what}");
    }
    // A picture never changes, but only the browser that may see it keeps it.
    let path = format!("/api/sessions/{}/blobs/{}", place.id, place.hash);
    let reply = get(&server, &path, &[]).await;
    assert!(reply.headers["cache-control"].starts_with("private"));
    assert_eq!(reply.headers["content-type"], "image/png");
    assert_eq!(reply.headers["x-content-type-options"], "nosniff");
}
