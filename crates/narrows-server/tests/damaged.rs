//! A store of which something cannot be read: streams say where and go on, other sessions are as ever,
//! and the server's health tells it.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{TestServer, fixture, is_postgres};
use rusqlite::Connection;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn events_that_cannot_be_read_have_a_place_and_the_stream_goes_on() {
    if is_postgres() {
        return;
    }
    let mut server = TestServer::start().await;
    assert_eq!(server.get("/healthz").await["status"], "ok");
    let input = fixture("acp/opencode-1.18-c-files");
    let (bad, good) = (server.session().await, server.session().await);
    for session in [&bad, &good] {
        // One append for each line: several rows.
        for line in input.split_inclusive(|b| *b == b'\n') {
            server.packets(session, "", line).await;
        }
    }
    let path = |session: &str| format!("/api/sessions/{session}/events?view=events");
    let before = server.sse(&path(&bad), None).await.until_ready().await;
    let other = server.sse(&path(&good), None).await.until_ready().await;
    let database = server.dir.path().join("data").join("narrows.db");
    server.stop().await;
    let db = Connection::open(&database).expect("a database");
    let sql = "UPDATE event SET event = replace(event, '\"seq\"', '\"sEq') WHERE key IN
         (SELECT key FROM event WHERE key >> 32 = (SELECT key FROM session WHERE id = ?1)
          AND typeof(event) = 'text' AND kind <> 'user_message' ORDER BY key LIMIT 1 OFFSET 2)";
    assert_eq!(db.execute(sql, [&bad]).expect("damaged"), 1);
    drop(db);
    let server = server.restart().await;
    let after = server.sse(&path(&bad), None).await.until_ready().await;
    assert_eq!(after.len(), before.len(), "nothing else is missing");
    let changed: Vec<(Value, Value)> = before
        .iter()
        .zip(&after)
        .filter(|(b, a)| !b.is_control() && b.json() != a.json())
        .map(|(b, a)| (b.json(), a.json()))
        .collect();
    let [(was, is)] = &changed[..] else { panic!("{changed:?}") };
    assert_eq!((&is["type"], &is["kind"]), (&json!("notice"), &json!("damaged")), "{is}");
    assert_eq!(is["seq"], was["seq"]);
    assert!(is["text"].as_str().is_some_and(|text| text.contains("cannot be read")), "{is}");
    // Whoever wants only some events is told, too.
    let some = server.sse(&format!("{}&types=usage", path(&bad)), None).await.until_ready().await;
    assert!(some.iter().any(|f| !f.is_control() && f.json()["kind"] == "damaged"));
    let again = server.sse(&path(&good), None).await.until_ready().await;
    let frames = |all: &[common::Frame]| -> Vec<Value> {
        all.iter().filter(|f| !f.is_control()).map(common::Frame::json).collect()
    };
    assert_eq!(frames(&again), frames(&other));
    let health = server.send("GET", "/healthz", b"").await;
    assert_eq!(health.status, 200, "it works");
    assert_eq!(health.json()["status"], "degraded");
    assert_eq!(health.json()["damaged"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_look_at_the_whole_store_is_said_until_it_is_over() {
    let mut server = TestServer::start().await;
    let session = server.session().await;
    server.packets(&session, "", &fixture("acp/opencode-1.18-c-files")).await;
    server.stop().await;
    let server = server.restart().await;
    loop {
        let health = server.get("/healthz").await;
        assert_eq!(health["status"], "ok", "{health}");
        let Some(checking) = health.get("checking") else { break };
        let of = |name: &str| checking[name].as_u64().expect("a number");
        assert!(of("done") <= of("all") || of("all") == 0, "{health}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_of_the_owner_is_written_again_and_what_it_made_stays_valid() {
    if is_postgres() {
        return;
    }
    let mut server = TestServer::start().await;
    let made = server.send("POST", "/api/tokens", br#"{"name":"a","scopes":["read"]}"#).await;
    let made = made.json()["token"].as_str().expect("a secret").to_owned();
    let database = server.dir.path().join("data").join("narrows.db");
    server.stop().await;
    let db = Connection::open(&database).expect("a database");
    let sql = "UPDATE token SET created = created + 1024 WHERE kind = 'owner'";
    assert_eq!(db.execute(sql, []).expect("damaged"), 1);
    drop(db);
    let server = server.restart().await;
    let reply = common::request(
        server.address,
        "GET",
        "/api/sessions",
        &[("authorization", &format!("Bearer {made}"))],
        b"",
    )
    .await;
    assert_eq!(reply.status, 200, "it was revoked with its maker");
    let health = server.get("/healthz").await;
    assert_eq!((&health["status"], health.get("damaged")), (&json!("ok"), None), "{health}");
}
