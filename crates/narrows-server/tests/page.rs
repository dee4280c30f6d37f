//! The page as a browser gets it: its form, how long it is kept, and what is there without it.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{PAGE, Reply, TestServer, request};
use flate2::read::GzDecoder;
use narrows_server::Page;
use std::io::Read;

async fn get(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Reply {
    request(server.address, "GET", path, headers, b"").await
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_packed_tagged_and_kept() {
    let server = TestServer::start().await;
    let kinds = ["text/html; charset=utf-8", "text/javascript; charset=utf-8"];
    let kinds = [kinds[0], kinds[1], kinds[1], "image/svg+xml"];
    for ((name, text), kind) in PAGE.into_iter().zip(kinds) {
        let path = if name == "index.html" { "/".to_owned() } else { format!("/{name}") };
        let plain = get(&server, &path, &[]).await;
        let packed = get(&server, &path, &[("accept-encoding", "br, gzip")]).await;
        for reply in [&plain, &packed] {
            assert_eq!(reply.status, 200, "{path}");
            assert_eq!(reply.headers["content-type"], kind);
            let cache =
                if name.contains('-') { "public, max-age=31536000, immutable" } else { "no-cache" };
            assert_eq!(reply.headers["cache-control"], cache);
            assert!(reply.headers["etag"].starts_with('"'), "{:?}", reply.headers);
        }
        assert_eq!(plain.text(), text);
        assert!(!plain.headers.contains_key("content-encoding"));
        // What is too short to become shorter stays as it is.
        if text.len() > 1000 {
            assert_eq!(packed.headers["content-encoding"], "gzip");
            assert_eq!(unpacked(&packed.body), text);
            assert_ne!(plain.headers["etag"], packed.headers["etag"], "other bytes, another tag");
            assert_eq!(plain.headers["vary"], "Accept-Encoding");
            assert_eq!(packed.headers["vary"], "Accept-Encoding");
        } else {
            assert_eq!(packed.body, plain.body);
        }
        for (reply, encoding) in [(&plain, "identity"), (&packed, "gzip")] {
            let tag = reply.headers["etag"].as_str();
            for known in [tag.to_owned(), format!("\"x\", W/{tag}"), "*".to_owned()] {
                let headers = [("if-none-match", known.as_str()), ("accept-encoding", encoding)];
                let again = get(&server, &path, &headers).await;
                assert_eq!((again.status, again.body.len()), (304, 0), "{path} {known}");
                assert_eq!(again.headers["etag"], tag);
                assert_eq!(again.headers["cache-control"], reply.headers["cache-control"]);
            }
            let headers = [("if-none-match", "\"other\""), ("accept-encoding", encoding)];
            assert_eq!(get(&server, &path, &headers).await.status, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_of_the_page_is_the_page_and_nothing_else_is() {
    let server = TestServer::start().await;
    for path in ["/", "/s/any", "/s/01arz3ndektsv4rrffq69g5fav", "/?x=1", "/s/a%2Fb"] {
        let reply = get(&server, path, &[]).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, PAGE[0].1), "{path}");
    }
    for path in ["/s", "/s/", "/s/a/b", "/page", "/page/", "/page/no.js", "/page/index.html"] {
        assert_eq!(get(&server, path, &[]).await.status, 404, "{path}");
    }
    for path in ["/index.html", "/page/..%2findex.html", "/page/page%2fapp.js", "/app.js"] {
        assert_eq!(get(&server, path, &[]).await.status, 404, "{path}");
    }
    let head = request(server.address, "HEAD", "/page/app.js", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_nowhere_is_a_page_for_people_and_an_error_for_programs() {
    let server = TestServer::start().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/nonsense", "/s", "/s/a/b", "/index.html", "/apis", "/nonsense?x=1"] {
        for more in [("if-none-match", "*"), ("accept-encoding", "gzip")] {
            let reply = get(&server, path, &[("accept", browser), more]).await;
            assert_eq!(reply.status, 404, "{path}");
            assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8", "{path}");
            assert_eq!(reply.headers["cache-control"], "no-store");
            assert!(reply.headers["vary"].contains("Accept"));
            assert!(!reply.headers.contains_key("etag"));
            let packed = reply.headers.contains_key("content-encoding");
            let text = if packed { unpacked(&reply.body) } else { reply.text() };
            assert_eq!(text, PAGE[0].1, "{path}");
        }
        for accept in ["*/*", "application/json", "text/htmlx", ""] {
            let reply = get(&server, path, &[("accept", accept)]).await;
            assert_eq!(reply.status, 404, "{path}");
            assert!(reply.text().contains("\"code\":\"NOT_FOUND\""), "{accept}: {}", reply.text());
        }
    }
    // What looks like the API is the API's, whoever asks.
    for path in ["/api", "/api/nonsense", "/api/sessions/a/b/c/d"] {
        let reply = get(&server, path, &[("accept", browser)]).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.text().contains("NOT_FOUND"), "{path}");
    }
    let reply = request(server.address, "POST", "/nonsense", &[("accept", browser)], b"").await;
    assert!(reply.status == 404 && reply.text().contains("NOT_FOUND"));
    let head = request(server.address, "HEAD", "/nonsense", &[("accept", browser)], b"").await;
    assert_eq!((head.status, head.body.len()), (404, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_without_the_page_says_so() {
    let dir = tempfile::tempdir().expect("folder");
    // Files without an entry are no page.
    std::fs::create_dir(dir.path().join("page")).expect("folder");
    std::fs::write(dir.path().join("page/app.js"), "").expect("file");
    let none = Page::read(dir.path()).expect("page");
    assert_eq!(none.names().count(), 0);
    let server = TestServer::with(|c| c.page = none).await;
    for path in ["/", "/s/any"] {
        let reply = get(&server, path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
        assert!(reply.text().contains("<code>make build</code>"), "{}", reply.text());
        assert!(!reply.text().contains("<script"));
    }
    assert_eq!(get(&server, "/page/app.js", &[]).await.status, 404);
}

/// The page of this build, where there is one: all that its entry names is in it.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_page_is_whole() {
    let page = Page::embedded();
    if page.names().count() == 0 {
        return;
    }
    let names: Vec<String> = page.names().map(str::to_owned).collect();
    let server = TestServer::with(|c| c.page = page).await;
    let index = get(&server, "/", &[]).await.text();
    let links: Vec<&str> = index.split('"').filter(|part| part.starts_with("/page/")).collect();
    assert!(!links.is_empty(), "{index}");
    for link in links {
        assert_eq!(get(&server, link, &[]).await.status, 200, "{link}");
    }
    for name in names.iter().filter(|n| *n != "index.html") {
        let reply = get(&server, &format!("/page/{name}"), &[("accept-encoding", "gzip")]).await;
        assert_eq!(reply.status, 200, "{name}");
        let packed = reply.headers.contains_key("content-encoding");
        assert!(packed || reply.body.len() < 100_000 || !name.ends_with("js"), "{name} is packed");
    }
}
