//! Packets into a session: once, whatever is sent again, and in order, whoever reads meanwhile.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{Frame, Post, TestServer, expected, fixture};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;

const SAMPLE: &str = "acp/opencode-1.18-c-files";

fn events(frames: &[Frame]) -> Vec<u64> {
    frames.iter().map(|f| f.json()["seq"].as_u64().expect("seq")).collect()
}

async fn all_events(server: &TestServer, session: &str) -> Vec<Value> {
    let path = format!("/api/sessions/{session}/events?view=events");
    let frames = server.sse(&path, None).await.until_ready().await;
    frames.iter().map(Frame::json).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_again_changes_nothing() {
    let server = TestServer::start().await;
    let input = fixture(SAMPLE);
    let session = server.session().await;
    let path = format!("/api/sessions/{session}/packets?arrived=none&end=true");
    let token = format!("Bearer {}", server.token);
    let headers = [("authorization", token.as_str()), ("idempotency-key", "one")];
    let first = common::request(server.address, "POST", &path, &headers, &input).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let again = common::request(server.address, "POST", &path, &headers, &input).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    let truth = expected(&server, &input, &session, None);
    assert_eq!(all_events(&server, &session).await, truth.events);
    // After a restart too.
    let server = server.restart().await;
    let token = format!("Bearer {}", server.token);
    let headers = [("authorization", token.as_str()), ("idempotency-key", "one")];
    let again = common::request(server.address, "POST", &path, &headers, &input).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    assert_eq!(all_events(&server, &session).await, truth.events);
}

/// Whoever gives up and asks again may do so while the first request is on its way to the disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_and_sent_again_has_one_effect() {
    const REQUESTS: u64 = 150;
    let server = TestServer::start().await;
    let session = server.session().await;
    let path = format!("/api/sessions/{session}/packets?format=acp");
    let token = format!("Bearer {}", server.token);
    for n in 0..REQUESTS {
        let key = format!("k{n}");
        let headers = [("authorization", token.as_str()), ("idempotency-key", key.as_str())];
        let body = format!(
            "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{n}\",\"title\":\"bash\",\"kind\":\"execute\",\
             \"status\":\"completed\",\"rawInput\":{{\"command\":\"echo {n}\"}}}}\n"
        );
        let ask = || common::request(server.sends_to, "POST", &path, &headers, body.as_bytes());
        let patience = std::time::Duration::from_micros(300 + n * 7919 % 6000);
        let _ = tokio::time::timeout(patience, ask()).await;
        let mut again = ask().await;
        for _ in 0..20 {
            // Across nodes one may be told to try once more.
            if again.status == 200 {
                break;
            }
            again = ask().await;
        }
        assert_eq!(again.status, 200, "{}", again.text());
    }
    let calls: Vec<Value> =
        all_events(&server, &session).await.iter().map(|e| e["toolCallId"].clone()).collect();
    assert_eq!(calls, (0..REQUESTS).map(|n| json!(format!("c{n}"))).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_in_parallel_has_one_effect() {
    let server = Arc::new(TestServer::start().await);
    let input = Arc::new(fixture(SAMPLE));
    let session = server.session().await;
    let mut tasks = Vec::new();
    for _ in 0..50 {
        let (server, input, session) = (Arc::clone(&server), Arc::clone(&input), session.clone());
        tasks.push(tokio::spawn(async move {
            let path = format!("/api/sessions/{session}/packets?arrived=none&end=true");
            let token = format!("Bearer {}", server.token);
            let headers = [("authorization", token.as_str()), ("idempotency-key", "same")];
            common::request(server.address, "POST", &path, &headers, &input).await
        }));
    }
    let mut answers = Vec::new();
    for task in tasks {
        let reply = task.await.expect("task");
        assert_eq!(reply.status, 200, "{}", reply.text());
        answers.push(reply.json());
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:?}");
    let truth = expected(&server, &input, &session, None);
    assert_eq!(all_events(&server, &session).await, truth.events);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_with_places_can_overlap_but_not_be_missing() {
    let server = TestServer::start().await;
    let input = fixture(SAMPLE);
    let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    let session = server.session().await;
    for (from, until) in [(0, 10), (5, 20), (0, 20), (15, lines.len())] {
        let query = format!("arrived=none&first={}", from + 1);
        let answer = server.packets(&session, &query, &lines[from..until].concat()).await;
        assert_eq!(answer["read"], until, "{answer}");
    }
    let path = format!("/api/sessions/{session}/packets?first={}", lines.len() + 2);
    let gap = server.send("POST", &path, lines[0]).await;
    assert_eq!(gap.status, 400);
    let told = gap.json()["error"]["message"].as_str().expect("message").to_owned();
    assert!(told.contains(&format!("resend from packet {}", lines.len() + 1)), "{told}");
    let state = server.get(&format!("/api/sessions/{session}/packets")).await;
    assert_eq!(state["sources"][0]["read"], lines.len());
    server.packets(&session, "end=true", b"").await;
    let truth = expected(&server, &input, &session, None);
    assert_eq!(all_events(&server, &session).await, truth.events);
}

/// A server on what is on the disk of another at this moment, as after a crash of it.
async fn crash_copy(server: &TestServer) -> TestServer {
    let copy = tempfile::tempdir().expect("folder");
    let data = copy.path().join("data");
    std::fs::create_dir(&data).expect("folder");
    let files = || -> Vec<_> {
        let entries = std::fs::read_dir(server.dir.path().join("data")).expect("data");
        let mut files: Vec<_> = entries
            .map(|entry| {
                let entry = entry.expect("entry");
                let about = entry.metadata().expect("file");
                (entry.path(), about.len(), about.modified().expect("time"))
            })
            .collect();
        files.sort();
        files
    };
    // All files as they were at one moment: none was written while they were copied.
    loop {
        let before = files();
        for (path, ..) in &before {
            std::fs::copy(path, data.join(path.file_name().expect("name"))).expect("copy");
        }
        if files() == before {
            break;
        }
        tokio::task::yield_now().await;
    }
    TestServer::on(copy, |_| {}).await
}

/// Sends a session in parts, with a restart in between, from where the server says.
async fn with_restart(name: &str, cut: usize) {
    let mut server = TestServer::start().await;
    let input = fixture(name);
    let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    let session = server.session().await;
    server.packets(&session, "arrived=none", &lines[..cut].concat()).await;
    // As after a crash: what is held back is in memory only.
    let crashed = server.server.take().expect("server");
    crashed.app().hub.close();
    let again = crash_copy(&server).await;
    let state = again.get(&format!("/api/sessions/{session}/packets")).await;
    let known = state["sources"][0]["acknowledged"].as_u64().unwrap_or(0);
    let rest = lines[usize::try_from(known).expect("small")..].concat();
    let query = format!("arrived=none&end=true&first={}", known + 1);
    again.packets(&session, &query, &rest).await;
    let truth = expected(&again, &input, &session, None);
    assert_eq!(again.items(&session).await, truth.items, "{name} cut after {cut}");
    let path = format!("/api/sessions/{session}/events?view=items");
    let frames = again.sse(&path, None).await.until_ready().await;
    let frames: Vec<Value> = frames.iter().map(Frame::json).collect();
    assert_eq!(common::applied(frames.iter()), truth.items, "{name} cut after {cut}, by changes");
    drop(crashed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_a_crash_from_what_was_acknowledged() {
    if common::is_postgres() {
        // It crashes by a copy of the files.
        return;
    }
    for name in [SAMPLE, "acp/claude-acp-g-subagent", "claude-stream/2.1-n-partial"] {
        let lines = fixture(name).split(|b| *b == b'\n').count() - 1;
        for cut in (1..lines).step_by(1 + lines / 8) {
            with_restart(name, cut).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_after_a_crash_brings_back_what_was_held_back() {
    if common::is_postgres() {
        // It crashes by a copy of the files.
        return;
    }
    let mut server = TestServer::start().await;
    let session = server.session().await;
    let say = |text: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "agent_message_chunk", "content": content}).to_string() + "\n"
    };
    let (first, second) = (say("One file: /srv/run-7"), say("/app/src/main.rs."));
    let path = format!("/api/sessions/{session}/packets?arrived=none&root=%2Fsrv%2Frun-7%2Fapp");
    let send = async |server: &TestServer, key: &str, body: &str| {
        let token = format!("Bearer {}", server.token);
        let headers = [("authorization", token.as_str()), ("idempotency-key", key)];
        let reply = common::request(server.address, "POST", &path, &headers, body.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let answer = send(&server, "a", &first).await;
    assert_eq!((&answer["read"], &answer["acknowledged"]), (&json!(1), &json!(0)));
    let crashed = server.server.take().expect("server");
    let again = crash_copy(&server).await;
    assert_eq!(send(&again, "a", &first).await, answer);
    send(&again, "b", &second).await;
    again.packets(&session, "end=true", b"").await;
    let items = again.items(&session).await;
    assert_eq!(items[0]["content"], "One file: src/main.rs.");
    drop(crashed);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_while_packets_come_misses_nothing() {
    let server = Arc::new(TestServer::start().await);
    let input = fixture("acp/claude-acp-c-files");
    let lines: Vec<Vec<u8>> = input.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let session = server.session().await;
    // How many lines were sent, and whether these are all.
    let (sent, _) = watch::channel((0_u64, false));
    let mut readers = Vec::new();
    for n in 0..40_u64 {
        let (server, session, mut sent) = (Arc::clone(&server), session.clone(), sent.subscribe());
        readers.push(tokio::spawn(async move {
            sent.wait_for(|(lines, all)| *lines >= 2 * n || *all).await.expect("a writer");
            // A window of items first, then what comes after it: the two must join exactly.
            let page =
                server.get(&format!("/api/sessions/{session}/items?limit=500&preview=0")).await;
            let cursor = page["cursor"].as_str().expect("cursor").to_owned();
            let path = format!("/api/sessions/{session}/events?view=items&after={cursor}");
            let mut later = server.sse(&path, None).await;
            let path = format!("/api/sessions/{session}/events?view=events");
            let mut whole = server.sse(&path, None).await;
            let mut seqs = Vec::new();
            sent.wait_for(|(_, all)| *all).await.expect("a writer");
            let now = server.get(&format!("/api/sessions/{session}")).await;
            let head = now["cursor"].as_str().expect("cursor").to_owned();
            while whole.last_id.as_ref() != Some(&head) {
                let frame = whole.next().await.expect("goes on");
                if frame.data.is_some() && !frame.is_control() {
                    seqs.push(frame);
                }
            }
            let mut changes =
                vec![json!({"changes": page["items"].as_array().expect("items").iter()
                .map(|item| json!({"change": "put", "item": item})).collect::<Vec<_>>()})];
            while cursor != head && later.last_id.as_ref() != Some(&head) {
                let frame = later.next().await.expect("goes on");
                if frame.data.is_some() && !frame.is_control() {
                    changes.push(frame.json());
                }
            }
            (events(&seqs), common::applied(changes.iter()))
        }));
    }
    let path = format!("/api/sessions/{session}/packets?arrived=none&end=true");
    let mut post = Post::open(&server, &path, &[]).await;
    for line in &lines {
        post.push(line).await;
        sent.send_modify(|(lines, _)| *lines += 1);
        tokio::task::yield_now().await;
    }
    assert_eq!(post.finish().await.status, 200);
    sent.send_modify(|(_, all)| *all = true);
    let truth = expected(&server, &input, &session, None);
    let dense: Vec<u64> = (1..=truth.events.len() as u64).collect();
    for reader in readers {
        let (seqs, items) = reader.await.expect("reader");
        assert_eq!(seqs, dense);
        assert_eq!(items, truth.items);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_packets_are_events_and_a_broken_body_keeps_what_came() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let good = br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi."}}"#;
    let body = [&b"not json at all\n\xff\xfe\n"[..], good, b"\n[[[[\n"].concat();
    let answer = server.packets(&session, "end=true", &body).await;
    assert_eq!(answer["packets"], 4);
    let kinds: Vec<Value> =
        all_events(&server, &session).await.iter().map(|e| e["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|k| **k == "malformed").count(), 3, "{kinds:?}");
    // Cut off in the middle: what is durable stays, and the session goes on.
    let path = format!("/api/sessions/{session}/packets");
    let mut post = Post::open(&server, &path, &[]).await;
    post.push(good).await;
    post.push(b"\n").await;
    common::until("it is read", async || {
        let state = server.get(&path).await;
        state["sources"].as_array().is_some_and(|all| all.iter().any(|s| s["read"] == 5))
    })
    .await;
    drop(post);
    let answer = server.packets(&session, "end=true", b"").await;
    assert_eq!(answer["read"], 5);
}

/// Pieces that come faster than the store keeps them are kept together; none waits for the body's end.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_pieces_are_told_while_the_body_is_open() {
    const CALLS: u64 = 1500;
    let server = TestServer::start().await;
    let session = server.session().await;
    let mut told = server.sse(&format!("/api/sessions/{session}/events?view=events"), None).await;
    told.until_ready().await;
    let lines: String = (1..=CALLS)
        .map(|n| {
            format!(
                "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{n}\",\"title\":\"bash\",\
                 \"kind\":\"execute\",\"status\":\"completed\",\"rawInput\":{{\"command\":\"echo {n}\"}}}}\n"
            )
        })
        .collect();
    let path = format!("/api/sessions/{session}/packets?format=acp");
    let mut post = Post::open(&server, &path, &[]).await;
    for piece in lines.as_bytes().chunks(97) {
        post.push(piece).await;
    }
    let mut calls = Vec::new();
    while calls.len() < usize::try_from(CALLS).expect("a number") {
        let frame = told.next().await.expect("goes on");
        if frame.data.is_some() && !frame.is_control() {
            calls.push(frame.json()["toolCallId"].as_str().expect("a call").to_owned());
        }
    }
    assert_eq!(calls, (1..=CALLS).map(|n| format!("c{n}")).collect::<Vec<_>>());
    drop(post);
    let state = server.get(&path.replace("?format=acp", "")).await;
    assert_eq!(state["sources"][0]["read"], CALLS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_ends_its_streams() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.packets(&session, "end=true", &fixture(SAMPLE)).await;
    let path = format!("/api/sessions/{session}/events");
    let mut stream = server.sse(&path, None).await;
    stream.until_ready().await;
    let mut list = server.sse("/api/sessions/stream", None).await;
    list.until_ready().await;
    let gone = server.send("DELETE", &format!("/api/sessions/{session}"), b"").await;
    assert_eq!(gone.status, 204);
    let mut reset = stream.next().await.expect("a frame");
    if reset.is("ended") {
        reset = stream.next().await.expect("a frame");
    }
    assert!(reset.is("reset"), "{reset:?}");
    assert_eq!(reset.json()["reason"], "deleted");
    assert_eq!(stream.next().await, None);
    let removed = list.next().await.expect("a frame").json();
    assert_eq!(removed, json!({"type": "removed", "sessionId": session}));
    for path in ["", "/items", "/events", "/packets"] {
        let reply = server.send("GET", &format!("/api/sessions/{session}{path}"), b"").await;
        assert_eq!(reply.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_a_later_request_names_is_hidden_too() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let say = |text: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "agent_message_chunk", "content": content}).to_string() + "\n"
    };
    server.packets(&session, "", say("Begun. ").as_bytes()).await;
    let later = say("See /srv/later-4711/app/src/main.rs now.");
    server.packets(&session, "end=true&root=%2Fsrv%2Flater-4711%2Fapp", later.as_bytes()).await;
    let items = server.items(&session).await;
    assert_eq!(items[0]["content"], "Begun. See src/main.rs now.");
}

/// Calls that each changed a file, one a request.
async fn call(server: &TestServer, session: &str, n: usize) {
    let packet = json!({
        "sessionUpdate": "tool_call", "toolCallId": format!("c{n}"), "title": "edit", "kind": "edit",
        "status": "completed", "rawInput": { "path": format!("f{n}.rs") },
        "content": [{ "type": "diff", "path": format!("f{n}.rs"), "oldText": "", "newText": "zebra\n" }],
    });
    server.packets(session, "format=acp", format!("{packet}\n").as_bytes()).await;
}

/// How many hits, calls and changed files of a session are told.
async fn told(server: &TestServer, session: &str) -> [usize; 3] {
    let found = server.get(&format!("/api/search?q=zebra&session={session}&limit=100")).await;
    let shown = server.get(&format!("/api/sessions/{session}")).await;
    let outline = server.get(&format!("/api/sessions/{session}/outline")).await;
    let length = |list: &Value| list.as_array().map_or(0, Vec::len);
    let calls = usize::try_from(shown["calls"].as_u64().unwrap_or(0)).expect("small");
    [length(&found["hits"]), calls, length(&outline["files"])]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_told_though_rows_wait_for_each_other() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let store = server.server.as_ref().expect("server").app().store.clone();
    for n in 1..=140 {
        call(&server, &session, n).await;
        if !common::is_postgres() && n <= 40 && n % 3 == 0 {
            assert_eq!(told(&server, &session).await, [n; 3]);
        }
    }
    // Nobody asks, and nothing comes: they are written nevertheless.
    common::until("the rows are written", async || {
        store.session_row(&session).await.expect("row").calls >= 140
    })
    .await;
    assert_eq!(told(&server, &session).await, [100, 140, 140]);
}

/// What is refused makes the server forget what it knew of the session.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_wait_are_written_though_the_next_request_is_refused() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let store = server.server.as_ref().expect("server").app().store.clone();
    for n in 1..=10 {
        call(&server, &session, usize::try_from(n).expect("small")).await;
        let path = format!("/api/sessions/{session}/packets?wrapped=true");
        let refused = server.send("POST", &path, b"no wrapped line\n").await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        common::until("the row is written", async || {
            store.session_row(&session).await.expect("row").calls >= n
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_waited_when_a_server_crashed_are_written_by_the_next() {
    if common::is_postgres() {
        // It crashes by a copy of the files.
        return;
    }
    let server = TestServer::start().await;
    let session = server.session().await;
    for n in 1..=5 {
        call(&server, &session, n).await;
    }
    let again = crash_copy(&server).await;
    common::until("all are told", async || told(&again, &session).await == [5; 3]).await;
    let items = again.items(&session).await;
    assert_eq!(items, server.items(&session).await);
}
