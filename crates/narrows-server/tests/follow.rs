//! What is followed live, read from the store and made by the core itself is equal; what is cut is
//! resumed without a gap.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{Frame, Post, TestServer, Ws, applied, cutting_proxy, expected, fixture, fixtures};
use serde_json::{Value, json};

const VIEWS: [&str; 4] = ["events", "items", "activity", "packets"];

/// Every n-th recorded session of a format.
fn some_fixtures(format: &str, every: usize) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(fixtures().join(format))
        .expect("fixtures")
        .map(|entry| entry.expect("entry"))
        .filter(|e| e.path().join("input.jsonl").exists() && !e.path().join("input").exists())
        .map(|e| format!("{format}/{}", e.file_name().to_string_lossy()))
        .collect();
    names.sort();
    names.into_iter().step_by(every).collect()
}

async fn follow(server: &TestServer, session: &str, view: &str) -> Vec<Frame> {
    let path = format!("/api/sessions/{session}/events?view={view}");
    server.sse(&path, None).await.until_ready().await
}

fn data(frames: &[Frame]) -> Vec<Value> {
    frames.iter().map(Frame::json).collect()
}

async fn check(server: &TestServer, name: &str) {
    let input = fixture(name);
    let session = server.session().await;
    let truth = expected(server, &input, &session, None);
    // The server takes back what nobody has answered when its input ends; the core does not.
    let asked = |item: &Value| {
        item["type"] == "permission" || item["type"] == "question" && item["answers"].is_null()
    };
    if truth.items.iter().any(asked) {
        return;
    }
    // Live: streams that are open before the first packet comes.
    let mut live = Vec::new();
    for view in VIEWS {
        let path = format!("/api/sessions/{session}/events?view={view}");
        let mut stream = server.sse(&path, None).await;
        assert!(stream.until_ready().await.is_empty());
        live.push(stream);
    }
    let path = format!("/api/sessions/{session}/packets?arrived=none&end=true");
    let mut post = Post::open(server, &path, &[]).await;
    for piece in input.chunks(1 + input.len() / 7) {
        post.push(piece).await;
        tokio::task::yield_now().await;
    }
    let reply = post.finish().await;
    assert_eq!(reply.status, 200, "{name}: {}", reply.text());
    let cursor = reply.json()["cursor"].as_str().expect("cursor").to_owned();

    let views = [&truth.events, &Vec::new(), &truth.activity, &truth.packets];
    for ((view, mut stream), truth_of) in VIEWS.into_iter().zip(live).zip(views) {
        let mut followed = Vec::new();
        while !truth.events.is_empty() && stream.last_id.as_ref() != Some(&cursor) {
            let frame = stream.next().await.expect("the stream goes on");
            followed.extend((frame.data.is_some() && !frame.is_control()).then_some(frame));
        }
        // Whoever follows is told that nothing streams any more, and whoever comes later too.
        if !truth.events.is_empty() {
            let ended = stream.next().await.expect("the stream goes on");
            assert!(ended.is("ended") && ended.id.is_none(), "{name}: {view}: {ended:?}");
        }
        let stored = follow(server, &session, view).await;
        assert_eq!(followed, stored, "{name}: {view} live and stored");
        if view == "items" {
            let made = applied(data(&followed).iter());
            assert_eq!(made, truth.items, "{name}: items of changes");
        } else {
            let mut stored = data(&stored);
            // The end came with the last of a text, or after it: then there was nothing to tell it with.
            if view == "activity" && stored.ends_with(&truth.last_words) {
                stored.truncate(stored.len() - truth.last_words.len());
            }
            for (ours, theirs) in stored.iter().zip(truth_of) {
                assert_eq!(ours, theirs, "{name}: {view} of the core");
            }
            assert_eq!(stored.len(), truth_of.len(), "{name}: {view} of the core");
        }
    }
    assert_eq!(server.items(&session).await, truth.items, "{name}: items of the store");
    let shown = server.get(&format!("/api/sessions/{session}")).await;
    let mut info = truth.info.clone();
    // What is over does not run, whatever its last word was.
    if shown["ended"] == true && info["status"] == "running" {
        info["status"] = "idle".into();
    }
    assert_eq!(shown["info"], info, "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_followed_stored_and_parsed_is_equal() {
    let server = TestServer::start().await;
    let formats = [("acp", 3), ("claude-stream", 2), ("claude-history", 2)];
    let names: Vec<String> = formats.into_iter().flat_map(|(f, n)| some_fixtures(f, n)).collect();
    assert!(names.len() > 100, "{}", names.len());
    for name in names {
        check(&server, &name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_open_at_the_end_is_told_with_it() {
    let server = TestServer::start().await;
    let mut open = 0;
    for name in some_fixtures("acp", 1) {
        let input = fixture(&name);
        let session = stored(&server, &name).await;
        let truth = expected(&server, &input, &session, None);
        // A source that ends takes its open requests back; the core alone does not know that it has.
        let asks = |item: &Value| {
            item["type"] == "permission"
                || item["type"] == "question" && item["requestId"].is_string()
        };
        if truth.items.iter().any(asks) {
            continue;
        }
        open += usize::from(!truth.last_words.is_empty());
        let told = data(&follow(&server, &session, "activity").await);
        let whole: Vec<Value> = truth.activity.into_iter().chain(truth.last_words).collect();
        assert_eq!(told, whole, "{name}");
    }
    assert!(open > 10, "{open}");
}

/// A session of a fixture, and its id.
async fn stored(server: &TestServer, name: &str) -> String {
    let session = server.session().await;
    server.packets(&session, "arrived=none&end=true", &fixture(name)).await;
    session
}

const FILTERS: [(&str, &str); 7] = [
    ("events", ""),
    ("events", "&types=tool_call_start,tool_call_progress"),
    ("items", ""),
    ("items", "&types=text_chunk"),
    ("activity", ""),
    ("activity", "&includeOutput=false&includeProgress=false"),
    ("packets", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_anywhere_goes_on_without_a_gap() {
    let server = TestServer::start().await;
    for name in ["acp/opencode-1.18-c-files", "claude-stream/2.1-n-partial"] {
        let session = stored(&server, name).await;
        for (view, filter) in FILTERS {
            let path = format!("/api/sessions/{session}/events?view={view}{filter}");
            let mut whole = server.sse(&path, None).await;
            let truth = whole.until_ready().await;
            assert!(!truth.is_empty(), "{name} {view}{filter}");
            let length = whole.read;
            for cut in (0..length).step_by(1 + length / 40) {
                let mut first = server.sse(&path, None).await;
                first.cut_at = cut;
                let mut frames = Vec::new();
                while let Some(frame) = first.next().await {
                    // The cut may come after the control frame at the end.
                    frames.extend((frame.data.is_some() && !frame.is_control()).then_some(frame));
                }
                let mut rest = server.sse(&path, first.last_id.as_deref()).await;
                frames.extend(rest.until_ready().await);
                assert_eq!(frames, truth, "{name} {view}{filter} cut at {cut}");
            }
        }
    }
}

async fn ws_frames(ws: &mut Ws, subscribe: &Value) -> (Vec<Value>, bool) {
    ws.send(subscribe).await;
    let mut frames = Vec::new();
    while let Some(message) = ws.next().await {
        match message["type"].as_str() {
            Some("subscription_confirmed") => {}
            Some("ready") => return (frames, true),
            _ => frames.push(message),
        }
    }
    (frames, false)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_cut_anywhere_goes_on_without_a_gap() {
    let server = TestServer::start().await;
    let session = stored(&server, "acp/opencode-1.18-c-files").await;
    let said = |messages: &[Value]| -> Vec<Value> {
        messages.iter().filter(|m| m["type"] != "cursor").cloned().collect()
    };
    let asks = [
        json!({"view": "events"}),
        json!({"view": "events", "types": ["tool_call_progress"]}),
        json!({"view": "items"}),
        json!({}),
        json!({"includeToolCalls": false, "filters": {"includeOutput": false}}),
        json!({"view": "packets"}),
    ];
    for mut ask in asks {
        ask["type"] = "subscribe".into();
        ask["sessionId"] = session.as_str().into();
        let (truth, ready) = ws_frames(&mut server.ws().await, &ask).await;
        assert!(ready && !said(&truth).is_empty(), "{ask}");
        let length: usize = truth.iter().map(|m| m.to_string().len() + 4).sum();
        for cut in (200..length).step_by(1 + length / 25) {
            let proxy = cutting_proxy(server.address, cut).await;
            let mut frames = Vec::new();
            if let Ok(mut ws) = open_through(proxy, &server).await {
                (frames, _) = ws_frames(&mut ws, &ask).await;
            }
            let mut again = ask.clone();
            if let Some(last) = frames.last() {
                again["after"] = last["cursor"].clone();
            }
            let (rest, ready) = ws_frames(&mut server.ws().await, &again).await;
            assert!(ready);
            frames.extend(rest);
            assert_eq!(said(&frames), said(&truth), "{ask} cut at {cut}");
        }
    }
}

/// A socket through a proxy: the server is still called by its own name.
async fn open_through(
    proxy: std::net::SocketAddr,
    server: &TestServer,
) -> Result<Ws, tokio_tungstenite::tungstenite::Error> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut request = format!("ws://{}/api/ws", server.address).into_client_request()?;
    let bearer = format!("Bearer {}", server.token).parse().expect("header");
    request.headers_mut().insert("authorization", bearer);
    let stream = tokio::net::TcpStream::connect(proxy).await?;
    let stream = tokio_tungstenite::MaybeTlsStream::Plain(stream);
    let (socket, _) = tokio_tungstenite::client_async(request, stream).await?;
    Ok(Ws { socket })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_is_not_of_this_log_is_told_so() {
    let server = TestServer::start().await;
    let session = stored(&server, "acp/opencode-1.18-c-files").await;
    let head = server.get(&format!("/api/sessions/{session}")).await;
    let head = head["cursor"].as_str().expect("cursor").to_owned();
    let epoch = head.split('-').next().expect("epoch");
    let cases =
        [("otherone-3", "epoch"), ("nonsense", "garbage"), (&format!("{epoch}-999999"), "future")];
    for (cursor, reason) in cases {
        let path = format!("/api/sessions/{session}/events?view=events");
        let mut stream = server.sse(&path, Some(cursor)).await;
        let reset = stream.next().await.expect("a frame");
        assert!(reset.is("reset") && reset.id.is_none(), "{reset:?}");
        assert_eq!(reset.json()["reason"], reason);
        assert_eq!(reset.json()["cursor"], head.as_str());
        assert!(stream.next().await.expect("a frame").is("ready"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_event_id_beats_the_query() {
    let server = TestServer::start().await;
    let session = stored(&server, "acp/opencode-1.18-c-files").await;
    let all = follow(&server, &session, "events").await;
    let id = |at: usize| all[at].id.clone().expect("id");
    let path = format!("/api/sessions/{session}/events?view=events&after={}", id(2));
    let after = server.sse(&path, None).await.until_ready().await;
    assert_eq!(after, all[3..]);
    let after = server.sse(&path, Some(&id(5))).await.until_ready().await;
    assert_eq!(after, all[6..]);
    let path = format!("/api/sessions/{session}/events?view=events&after=end");
    assert!(server.sse(&path, None).await.until_ready().await.is_empty());
}
