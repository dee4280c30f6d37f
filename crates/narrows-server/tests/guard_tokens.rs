//! Tokens and tickets: what they are worth, where they are kept, and who used them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{Call, Place, bearer, browser, login, probe, ticket, token};
use common::{Reply, TestServer, request};
use narrows_server::{HiddenOptions, ServeConfig, Server, route_list};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A request with a token and a JSON body.
async fn send(
    server: &TestServer,
    who: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Reply {
    let who = bearer(who);
    let body = body.map(Value::to_string).unwrap_or_default();
    let headers = [("authorization", who.as_str()), ("content-type", "application/json")];
    probe(server.address, method, path, &headers, body.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_works_once_and_gives_a_token_in_no_cookie() {
    let server = TestServer::start().await;
    let ticket = ticket(&server).await;
    let reply = login(&server, &ticket).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.headers.contains_key("set-cookie"), "{:?}", reply.headers);
    let told = reply.json();
    let secret = told["token"].as_str().expect("a token");
    assert!(secret.starts_with("nrw_") && secret != ticket);
    let month = narrows_store::now() + 30 * 24 * 3600 * 1000;
    assert!(told["expiresAt"].as_i64().is_some_and(|end| (month - 600_000..=month).contains(&end)));
    for used in [ticket.as_str(), "", "nrw_wrong", secret, &server.token] {
        let reply = login(&server, used).await;
        assert_eq!(reply.status, 401, "`{used}`");
    }
    // A ticket is no token, in no place.
    assert_eq!(send(&server, &ticket, "GET", "/api/me", None).await.status, 401);
    let cookie = format!("narrows={ticket}");
    let reply = request(server.address, "GET", "/api/me", &[("cookie", &cookie)], b"").await;
    assert_eq!(reply.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_come_with_one_ticket_one_gets_in() {
    let server = TestServer::start().await;
    let ticket = ticket(&server).await;
    let tries = (0..8).map(|_| login(&server, &ticket));
    let mut statuses: Vec<u16> =
        futures_util::future::join_all(tries).await.iter().map(|r| r.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401, 401, 401, 401, 401, 401]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_has_the_rights_of_whoever_asked_for_it() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let rights = json!({"scopes": ["read", "admin"], "tags": ["home"]});
    let (_, secret) = token(&server, rights).await;
    let made = send(&server, &secret, "POST", "/api/tickets", None).await;
    assert_eq!(made.status, 201);
    let path = made.json()["path"].as_str().expect("path").to_owned();
    let inside = bearer(&browser(&server, path.strip_prefix("/#ticket=").expect("a ticket")).await);
    let call = async |method: &str, path: String, body: &str| {
        let headers = [("authorization", inside.as_str())];
        let headers = [&headers[..], &[("content-type", "application/json")]].concat();
        probe(server.address, method, &path, &headers, body.as_bytes()).await
    };
    let me = call("GET", "/api/me".to_owned(), "").await.json();
    assert_eq!(me["scopes"], json!(["read", "admin"]));
    assert_eq!(call("POST", "/api/sessions".to_owned(), "{}").await.status, 403, "no `write`");
    assert_eq!(call("GET", format!("/api/sessions/{}", home.id), "").await.status, 200);
    assert_eq!(call("GET", format!("/api/sessions/{}", other.id), "").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_gives_no_more_than_it_has() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let rights = json!({"scopes": ["read", "admin"], "sessions": [home.id]});
    let (_, secret) = token(&server, rights).await;
    let make =
        async |about: Value| send(&server, &secret, "POST", "/api/tokens", Some(&about)).await;
    for about in [
        json!({"name": "x", "scopes": ["write"]}),
        json!({"name": "x", "scopes": ["read", "write"]}),
        json!({"name": "x", "scopes": ["read"], "sessions": [other.id]}),
        json!({"name": "x", "scopes": ["read"], "tags": ["other"]}),
    ] {
        assert_eq!(make(about.clone()).await.status, 403, "{about}");
    }
    for about in [
        json!({"name": "x", "scopes": []}),
        json!({"name": "x", "scopes": ["root"]}),
        json!({"name": "", "scopes": ["read"]}),
        json!({"name": "x", "scopes": ["read"], "sessions": []}),
        json!({"name": "x", "scopes": ["read"], "tags": []}),
        json!({"name": "x", "scopes": ["read"], "ttlSeconds": 0}),
        json!({"name": "x", "scopes": ["read"], "ttlSeconds": -1}),
        json!({"name": "x", "scopes": ["read"], "kind": "owner"}),
    ] {
        assert_eq!(make(about.clone()).await.status, 400, "{about}");
    }
    // Without limits of its own it has those of its maker.
    let reply = make(json!({"name": "x", "scopes": ["read"]})).await;
    assert_eq!(reply.status, 201);
    let child = reply.json()["token"].as_str().expect("token").to_owned();
    let see = async |id: &str| {
        send(&server, &child, "GET", &format!("/api/sessions/{id}"), None).await.status
    };
    assert_eq!((see(&home.id).await, see(&other.id).await), (200, 404));
    let prune = json!({"maxAgeMs": 0, "dryRun": true});
    assert_eq!(send(&server, &secret, "POST", "/api/prune", Some(&prune)).await.status, 403);
    assert_eq!(server.send("DELETE", "/api/tokens/owner", b"").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_the_token_that_made_it() {
    let server = TestServer::start().await;
    let ticket_of = async |who: &str| {
        let ticket = send(&server, who, "POST", "/api/tickets", None).await.json();
        ticket["path"].as_str().expect("path").trim_start_matches("/#ticket=").to_owned()
    };
    let (_, short) = token(&server, json!({"scopes": ["admin"], "ttlSeconds": 100})).await;
    for ttl in [json!(null), json!(99), json!(1_000_000)] {
        let about = json!({"name": "x", "scopes": ["admin"], "ttlSeconds": ttl});
        let made = send(&server, &short, "POST", "/api/tokens", Some(&about)).await;
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let reply = login(&server, &ticket_of(&short).await).await;
    let end = reply.json()["expiresAt"].as_i64();
    assert!(end.is_some_and(|end| end <= narrows_store::now() + 100_000), "{end:?}");
    let tokens = server.get("/api/tokens").await;
    let ends = tokens["tokens"].as_array().expect("tokens").iter().map(|t| t["expiresAt"].as_i64());
    let ends: Vec<i64> = ends.flatten().collect();
    // The first is that of their maker; the clock goes on between asking and making.
    assert_eq!(ends.len(), 5);
    assert!(ends.iter().all(|end| *end <= ends[0] + 1000), "{ends:?}");
    // A ticket is void with the token that asked for it.
    let (id, gone) = token(&server, json!({"scopes": ["admin"]})).await;
    let ticket = ticket_of(&gone).await;
    server.send("DELETE", &format!("/api/tokens/{id}"), b"").await;
    assert_eq!(login(&server, &ticket).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_token_knows_of_no_others() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let (own, secret) = token(&server, json!({"scopes": ["admin"], "sessions": [home.id]})).await;
    let (foreign, _) = token(&server, json!({"scopes": ["read"], "sessions": [other.id]})).await;
    let about = json!({"name": "x", "scopes": ["admin"]});
    let made = send(&server, &secret, "POST", "/api/tokens", Some(&about)).await.json();
    let listed = send(&server, &secret, "GET", "/api/tokens", None).await.json();
    let listed: Vec<&Value> =
        listed["tokens"].as_array().expect("tokens").iter().map(|t| &t["id"]).collect();
    assert_eq!(listed.len(), 2);
    assert!(listed.contains(&&json!(own)) && listed.contains(&&made["id"]), "{listed:?}");
    let revoke =
        async |id: &str| send(&server, &secret, "DELETE", &format!("/api/tokens/{id}"), None).await;
    let (theirs, nothing) = (revoke(&foreign).await, revoke("no-such").await);
    assert_eq!((theirs.status, theirs.text()), (404, nothing.text()));
    assert_eq!(revoke(made["id"].as_str().expect("id")).await.status, 204);
    assert!(server.get("/api/tokens").await.to_string().contains(&foreign));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_is_slowed_down_but_the_right_token_always_works() {
    let server = TestServer::start().await;
    let guess = async |n: usize| {
        let from = format!("10.0.0.{n}");
        let wrong = format!("Bearer nrw_{n}");
        // Saying to come from elsewhere does not help.
        let headers = [("authorization", wrong.as_str()), ("x-forwarded-for", from.as_str())];
        probe(server.address, "GET", "/api/me", &headers, b"").await
    };
    for n in 0..60 {
        assert_eq!(guess(n).await.status, 401, "guess {n}");
    }
    for n in 60..65 {
        let reply = guess(n).await;
        assert_eq!(reply.status, 429, "guess {n}");
        assert_eq!(reply.json()["error"]["code"], "THROTTLED");
        assert!(reply.headers["retry-after"].parse::<u64>().is_ok_and(|s| s > 0));
    }
    let by_ticket = "/api/sessions/stream?ticket=nrw_wrong";
    assert_eq!(probe(server.address, "GET", by_ticket, &[], b"").await.status, 429);
    assert_eq!(server.send("GET", "/api/me", b"").await.status, 200);
    let ticket = callers::request_ticket(&server, &server.token).await;
    let path = format!("/api/sessions/stream?ticket={ticket}");
    assert_eq!(probe(server.address, "GET", &path, &[], b"").await.status, 200);
    // Whoever brings nothing does not guess.
    assert_eq!(probe(server.address, "GET", "/api/me", &[], b"").await.status, 401);
}

/// Everything that a response says.
fn said(reply: &Reply) -> String {
    format!("{:?} {}", reply.headers, reply.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_told_only_where_it_is_made() {
    let server = TestServer::start().await;
    let place = Place::make(&server, "home").await;
    let all = ["read", "write", "run", "approve", "admin"];
    let (_, made) = token(&server, json!({ "scopes": all })).await;
    let inside = browser(&server, &ticket(&server).await).await;
    // Even an agent that prints the tokens does not get them into the log.
    let text = format!("the tokens are {} and {made} and {inside}.", server.token);
    let packet = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": text}}}});
    server.packets(&place.id, "format=acp&end=true", format!("{packet}\n").as_bytes()).await;
    let items = server.items(&place.id).await;
    assert!(items.iter().any(|i| i.to_string().contains("the tokens are ")), "{items:?}");
    let secrets = [server.token.as_str(), made.as_str(), inside.as_str()];
    for route in route_list() {
        for who in [
            ("authorization", bearer(&server.token)),
            ("authorization", bearer(&made)),
            ("authorization", "Bearer nrw_garbage".to_owned()),
            ("authorization", bearer(&inside)),
            ("cookie", format!("narrows={inside}")),
        ] {
            let call = Call::new(&server, &route, &place, false).await;
            let reply = call.send(&server, &[(who.0, &who.1)]).await;
            let said = said(&reply);
            for secret in secrets.into_iter().chain(["nrw_garbage"]) {
                assert!(!said.contains(secret), "{} {}: {said}", route.method, route.path);
            }
            let makes = matches!(
                route.path,
                "/api/tokens" | "/api/tickets" | "/api/request-tickets" | "/api/login"
            );
            if !makes {
                let known = said.replace("nrw_…", "");
                assert!(!known.contains("nrw_"), "{} {}: {said}", route.method, route.path);
            }
        }
    }
    // On disk there is the owner's, in its file, and of all others only what cannot be used.
    for path in files(&server.dir.path().join("data")) {
        let bytes = fs::read(&path).expect("read");
        let owners = path.file_name().is_some_and(|n| n == "token");
        for secret in secrets {
            let here = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
            assert_eq!(here, owners && secret == server.token, "{}", path.display());
        }
    }
}

/// Everything in a folder, however deep.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("metadata").permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    // A folder that others can look into is closed to them.
    fs::create_dir(&data).expect("folder");
    fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("mode");
    let server = TestServer::on(dir, |_| {}).await;
    Place::make(&server, "home").await;
    assert_eq!(mode(&data), 0o700);
    let kept = files(&data);
    for name in ["token", "server.json", "narrows.db", "narrows.db-wal"] {
        assert!(kept.iter().any(|p| p.ends_with(name)), "{name} in {kept:?}");
    }
    for path in kept {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_everybody_can_write_is_refused() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    fs::create_dir(&data).expect("folder");
    fs::set_permissions(&data, Permissions::from_mode(0o777)).expect("mode");
    let bind = "127.0.0.1:0".parse().expect("address");
    let config = ServeConfig { data: data.clone(), bind, ..ServeConfig::default() };
    let refused = Server::start(config, HiddenOptions::default()).await;
    let error = refused.expect_err("it is refused").to_string();
    assert!(error.contains("writable by other users"), "{error}");
    assert!(files(&data).is_empty(), "nothing is put there");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_who_deleted_made_and_revoked() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let (admin, secret) = token(&server, json!({"scopes": ["admin", "write"]})).await;
    let about = json!({"name": "x", "scopes": ["write"]});
    let made = send(&server, &secret, "POST", "/api/tokens", Some(&about)).await.json();
    let made = made["id"].as_str().expect("id").to_owned();
    let path = format!("/api/tokens/{made}");
    assert_eq!(send(&server, &secret, "DELETE", &path, None).await.status, 204);
    let path = format!("/api/sessions/{session}");
    assert_eq!(send(&server, &secret, "DELETE", &path, None).await.status, 204);
    // What was not done is not told.
    assert_eq!(send(&server, &secret, "DELETE", &path, None).await.status, 404);
    assert_eq!(send(&server, "nrw_wrong", "DELETE", &path, None).await.status, 401);
    let page = server.get("/api/audit").await;
    let told: Vec<[&Value; 4]> = page["actions"]
        .as_array()
        .expect("actions")
        .iter()
        .map(|a| [&a["token"], &a["action"], &a["session"], &a["detail"]])
        .collect();
    let null = Value::Null;
    let [admin, made, session] = [json!(admin), json!(made), json!(session)];
    let words =
        [json!("delete session"), json!("revoke token"), json!("make token"), json!("owner")];
    let expected = [
        [&admin, &words[0], &session, &null],
        [&admin, &words[1], &null, &made],
        [&admin, &words[2], &null, &made],
        [&words[3], &words[2], &null, &admin],
    ];
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_made_is_revoked_with_it() {
    let server = TestServer::start().await;
    let token_of = async |who: &str| {
        let about = json!({"name": "x", "scopes": ["read", "admin"]});
        let made = send(&server, who, "POST", "/api/tokens", Some(&about)).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let text = |key: &str| made.json()[key].as_str().expect("text").to_owned();
        (text("id"), text("token"))
    };
    let ticket_of = async |who: &str| {
        let ticket = send(&server, who, "POST", "/api/tickets", None).await.json();
        ticket["path"].as_str().expect("path").trim_start_matches("/#ticket=").to_owned()
    };
    let (id, first) = token_of(&server.token).await;
    let (_, beside) = token_of(&server.token).await;
    let (_, second) = token_of(&first).await;
    let (_, third) = token_of(&second).await;
    let inside = bearer(&browser(&server, &ticket_of(&third).await).await);
    let unused = ticket_of(&third).await;
    let by_browser = async || {
        let headers = [("authorization", inside.as_str())];
        probe(server.address, "GET", "/api/me", &headers, b"").await.status
    };
    assert_eq!(by_browser().await, 200);
    let mut ws = common::Ws::open(server.address, &third).await.expect("socket");
    assert_eq!(server.send("DELETE", &format!("/api/tokens/{id}"), b"").await.status, 204);
    let shared = server.server.as_ref().is_some_and(|s| s.app().store.is_shared());
    for gone in [&first, &second, &third] {
        // Another node hears of it.
        while shared && send(&server, gone, "GET", "/api/me", None).await.status == 200 {
            tokio::task::yield_now().await;
        }
        assert_eq!(send(&server, gone, "GET", "/api/me", None).await.status, 401);
    }
    while shared && by_browser().await == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(by_browser().await, 401);
    assert_eq!(login(&server, &unused).await.status, 401);
    assert_eq!(ws.next().await, None, "its streams are closed");
    assert_eq!(send(&server, &beside, "GET", "/api/me", None).await.status, 200);
    // Also for the next start.
    let server = server.restart().await;
    for gone in [&first, &second, &third] {
        assert_eq!(send(&server, gone, "GET", "/api/me", None).await.status, 401);
    }
    assert_eq!(send(&server, &beside, "GET", "/api/me", None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_keeps_what_was_revoked() {
    let mut server = TestServer::start().await;
    if server.server.as_ref().is_some_and(|s| s.app().store.is_shared()) {
        return;
    }
    let data = server.dir.path().join("data");
    let copy = server.dir.path().join("copy.db");
    let (id, revoked) = token(&server, json!({"scopes": ["admin"]})).await;
    let about = json!({"name": "x", "scopes": ["admin"]});
    let child = send(&server, &revoked, "POST", "/api/tokens", Some(&about)).await.json();
    let child = child["token"].as_str().expect("token").to_owned();
    let (_, kept) = token(&server, json!({"scopes": ["admin"]})).await;
    narrows_store::backup(&data, &copy).expect("a copy");
    assert_eq!(server.send("DELETE", &format!("/api/tokens/{id}"), b"").await.status, 204);
    server.stop().await;
    let check = async |server: &TestServer, kept_is: u16| {
        for (secret, status) in [(&revoked, 401), (&child, 401), (&kept, kept_is)] {
            let reply = send(server, secret, "GET", "/api/tokens", None).await;
            assert_eq!(reply.status, status, "{}", reply.text());
        }
        assert_eq!(server.send("GET", "/api/me", b"").await.status, 200);
    };
    narrows_store::restore(&copy, &data).expect("restored");
    let mut server = TestServer::on(server.dir, |_| {}).await;
    check(&server, 200).await;
    server.stop().await;
    // The copy itself in the place of the database, without anybody asking.
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(data.join(format!("narrows.db{end}")));
    }
    fs::copy(&copy, data.join("narrows.db")).expect("copied");
    let mut server = TestServer::on(server.dir, |_| {}).await;
    check(&server, 200).await;
    server.stop().await;
    // In a directory that knows nothing of it, nobody knows what was revoked: no token is valid.
    fs::remove_dir_all(&data).expect("removed");
    narrows_store::restore(&copy, &data).expect("restored");
    let server = TestServer::on(server.dir, |_| {}).await;
    check(&server, 401).await;
}
