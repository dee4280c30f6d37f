//! What is told at a glance: windows at top level, outlines, facets, where sessions come from.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod callers;
mod common;

use callers::{Place, bearer, probe, token};
use common::{Reply, TestServer, fixture};
use narrows_engine::discovery::SourceOptions;
use serde_json::{Value, json};
use std::path::Path;

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

async fn as_token(server: &TestServer, path: &str, secret: &str) -> Reply {
    let bearer = bearer(secret);
    probe(server.address, "GET", path, &[("authorization", &bearer)], b"").await
}

/// All items of a window's kind, page by page from the end.
async fn paged(server: &TestServer, session: &str, which: &str, limit: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut before = String::new();
    loop {
        let query = format!("limit={limit}&preview=0&{which}{before}");
        let page = server.get(&format!("/api/sessions/{session}/items?{query}")).await;
        assert_eq!(page["after"], json!(!all.is_empty()), "{query}");
        let items = list(&page, "items").clone();
        let Some(first) = items.first() else { return all };
        before = format!("&before={}", first["order"]);
        all.splice(0..0, items);
        if page["before"] == json!(false) {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_at_top_level_and_below_a_call_while_a_subagent_works() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let packets = fixture("claude-stream/2.1-g-subagent");
    let mut most_below = 0;
    for line in packets.split_inclusive(|b| *b == b'\n') {
        server.packets(&session, "format=claude-stream", line).await;
        let all = paged(&server, &session, "", 500).await;
        let parent = |item: &Value| item["parentToolCallId"].as_str().map(str::to_owned);
        let is_there = |id: &String| all.iter().any(|item| item["id"] == id.as_str());
        let below = |item: &Value| parent(item).filter(is_there);
        let top: Vec<Value> = all.iter().filter(|i| below(i).is_none()).cloned().collect();
        assert_eq!(paged(&server, &session, "top=true", 2).await, top);
        let mut calls: Vec<String> = all.iter().filter_map(parent).collect();
        calls.dedup();
        for call in calls {
            let children: Vec<Value> =
                all.iter().filter(|i| i["parentToolCallId"] == call.as_str()).cloned().collect();
            most_below = most_below.max(children.len());
            let asked = format!("parent={call}");
            assert_eq!(paged(&server, &session, &asked, 2).await, children);
        }
        let page = server.get(&format!("/api/sessions/{session}/items?limit=1&top=true")).await;
        assert_eq!(page["total"], json!(all.len()));
        let next = all.last().map_or(0, |item| item["order"].as_u64().expect("order") + 1);
        assert!(page["nextOrder"].as_u64().expect("order") >= next);
    }
    assert!(most_below > 2, "the fixture has a subagent");
    let path = format!("/api/sessions/{session}/items");
    let all = server.get(&format!("{path}?limit=500")).await;
    let same = server.get(&format!("{path}?limit=500&top=false")).await;
    assert_eq!(all["items"], same["items"]);
    assert_eq!(server.get(&format!("{path}?parent=nobody")).await["items"], json!([]));
    for query in ["top=true&parent=x", "top=maybe", "top=1"] {
        let refused = server.send("GET", &format!("{path}?{query}"), b"").await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outline_pairs_prompts_with_how_they_ended() {
    let server = TestServer::start().await;
    for (name, stops, costs) in [
        ("claude-stream/2.1-u-bidi", vec!["end_turn", "end_turn", "cancelled", "end_turn"], true),
        ("acp/opencode-1.18-l-resume", vec!["end_turn"; 3], false),
    ] {
        let session = server.session().await;
        let input = fixture(name);
        let format = name.split_once('/').expect("format").0;
        server.packets(&session, &format!("format={format}&end=true"), &input).await;
        let outline = server.get(&format!("/api/sessions/{session}/outline")).await;
        let turns = list(&outline, "turns");
        let told: Vec<&str> = turns.iter().filter_map(|t| t["stopReason"].as_str()).collect();
        assert_eq!(told, stops, "{name}");
        // They are the prompts among the items, and the ends among the events.
        let truth = common::expected(&server, &input, &session, None);
        let of = |kind: &'static str, from: &'static [&'static str]| {
            move |all: &Vec<Value>| -> Vec<Value> {
                let only = all.iter().filter(|v| v["type"] == kind);
                only.map(|v| from.iter().map(|f| v[f].clone()).collect()).collect()
            }
        };
        let fields = |names: &[&str]| -> Vec<Value> {
            turns.iter().map(|t| names.iter().map(|f| t[f].clone()).collect()).collect()
        };
        let prompts = of("user_message", &["id", "order", "text", "timestamp"])(&truth.items);
        assert_eq!(fields(&["id", "order", "text", "timestamp"]), prompts, "{name}");
        let ends = of("prompt_response", &["stopReason", "durationMs"])(&truth.events);
        assert_eq!(fields(&["stopReason", "durationMs"]), ends, "{name}");
        let tokens: Vec<&Value> = turns.iter().map(|t| &t["usage"]["outputTokens"]).collect();
        let ends = truth.events.iter().filter(|e| e["type"] == "prompt_response");
        let ends: Vec<&Value> = ends.map(|e| &e["usage"]["outputTokens"]).collect();
        assert_eq!(tokens, ends, "{name}");
        assert!(turns.iter().all(|t| t.get("costUsd").is_some() == costs), "{name}");
        if costs {
            let sum: f64 = turns.iter().filter_map(|t| t["costUsd"].as_f64()).sum();
            assert!((sum - truth.info["costUsd"].as_f64().expect("cost")).abs() < 1e-9);
        }
        let cursor = server.get(&format!("/api/sessions/{session}")).await["cursor"].clone();
        assert_eq!((&outline["cursor"], &outline["more"]), (&cursor, &json!(false)));
        let after = turns[0]["order"].as_u64().expect("order");
        let path = format!("/api/sessions/{session}/outline?limit=1&after={after}");
        let page = server.get(&path).await;
        assert_eq!(
            (list(&page, "turns")[0].clone(), &page["more"]),
            (turns[1].clone(), &json!(true))
        );
        for query in ["limit=0", "limit=5001", "after=x", "before=1"] {
            let path = format!("/api/sessions/{session}/outline?{query}");
            assert_eq!(server.send("GET", &path, b"").await.status, 400, "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outline_has_files_todos_and_questions() {
    let server = TestServer::start().await;
    let made = async |name: &str, query: &str| {
        let session = server.session().await;
        server.packets(&session, query, &fixture(name)).await;
        let outline = server.get(&format!("/api/sessions/{session}/outline")).await;
        (session, outline)
    };
    let (session, outline) = made("acp/opencode-1.18-c-files", "format=acp&end=true").await;
    let files = list(&outline, "files");
    assert!(!files.is_empty() && outline["filesCut"] == json!(false));
    let items = server.items(&session).await;
    for file in files {
        let item = items.iter().find(|i| i["order"] == file["order"]).expect("its item");
        let diffs = item["toolCall"]["diffs"].to_string();
        assert!(diffs.contains(file["path"].as_str().expect("path")), "{file} in {diffs}");
        assert!(file["edits"].as_u64() > Some(0), "{file}");
    }
    let shown = server.get(&format!("/api/sessions/{session}")).await;
    let calls: Vec<&Value> = items.iter().filter(|i| i["type"] == "tool_call").collect();
    let failed = calls.iter().filter(|c| c["toolCall"]["status"] == "failed").count();
    assert_eq!((&shown["calls"], &shown["failed"]), (&json!(calls.len()), &json!(failed)));
    let prompt = items.iter().find(|i| i["type"] == "user_message").expect("a prompt");
    let begin: String = prompt["text"].as_str().expect("text").chars().take(20).collect();
    assert!(shown["prompt"].as_str().expect("prompt").starts_with(&begin), "{shown}");

    let (session, outline) = made("acp/opencode-1.18-f-todos", "format=acp&end=true").await;
    let items = server.items(&session).await;
    let last = items.iter().rev().find(|i| i["type"] == "todo_list").expect("a list");
    assert_eq!(outline["todos"], last["todoList"]);

    // Cut off before the answer: somebody waits for it, as long as the source goes on.
    let packets = String::from_utf8(fixture("acp/claude-acp-h-permission-reject")).expect("text");
    let asks = packets.lines().position(|l| l.contains("session/request_permission"));
    let cut: Vec<&str> = packets.lines().take(asks.expect("a question") + 1).collect();
    let session = server.session().await;
    server.packets(&session, "format=acp", (cut.join("\n") + "\n").as_bytes()).await;
    let path = format!("/api/sessions/{session}/outline");
    let waiting = server.get(&path).await["waiting"].clone();
    let items = server.items(&session).await;
    let ask = items.iter().find(|i| i["type"] == "permission").expect("a question");
    assert_eq!(waiting, json!([ask["id"]]));
    assert_eq!(server.get(&path).await["todos"], Value::Null);
    server.packets(&session, "format=acp&end=true", b"").await;
    assert_eq!(server.get(&path).await["waiting"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn facets_tell_nothing_of_foreign_sessions() {
    let server = TestServer::start().await;
    let (home, other) = (Place::make(&server, "home").await, Place::make(&server, "other").await);
    let claude = server.session().await;
    server.packets(&claude, "end=true", &fixture("claude-stream/2.1-c-files")).await;
    let all = server.get("/api/facets").await;
    assert_eq!((&all["total"], &all["live"]), (&json!(3), &json!(0)));
    let agents: Vec<&Value> = list(&all, "agents").iter().map(|f| &f["name"]).collect();
    assert!(agents.contains(&&json!("Claude Code")), "{all}");
    // A session that runs is one more.
    let live = server.session().await;
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash",
        "kind": "execute", "status": "pending", "rawInput": {"command": "x"}});
    server.packets(&live, "format=acp", format!("{begun}\n").as_bytes()).await;
    let now = server.get("/api/facets").await;
    assert_eq!((&now["total"], &now["live"]), (&json!(4), &json!(1)));
    for (to, count) in [
        (json!({ "sessions": [other.id] }), 1),
        (json!({ "tags": ["home", "other"] }), 2),
        (json!({ "tags": ["none"] }), 0),
    ] {
        let mut about = to.clone();
        about["scopes"] = json!(["read"]);
        let secret = token(&server, about).await.1;
        let told = as_token(&server, "/api/facets", &secret).await.json();
        assert_eq!((&told["total"], &told["live"]), (&json!(count), &json!(0)), "{to}");
        assert!(!told.to_string().contains("Claude Code"), "{told}");
        let path = format!("/api/sessions/{claude}/outline");
        assert_eq!(as_token(&server, &path, &secret).await.status, 404);
        let path = format!("/api/sessions/{}/outline", home.id);
        let seen = if count == 2 { 200 } else { 404 };
        assert_eq!(as_token(&server, &path, &secret).await.status, seen);
    }
}

/// A server that follows the folders of a made-up home and of another place.
async fn following(home: &Path, folders: &[&Path]) -> TestServer {
    let sources = SourceOptions {
        home: Some(home.to_owned()),
        claude_dirs: folders.iter().map(|f| (*f).to_owned()).collect(),
        ..SourceOptions::default()
    };
    TestServer::with(|config| config.sources = Some(sources)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_told_without_where_they_lie_and_to_whom_all_is_shown() {
    if common::is_postgres() {
        // A store that nodes share has no sources on one machine.
        return;
    }
    let server = TestServer::start().await;
    let none = json!({ "following": false, "folders": [], "indexing": null });
    assert_eq!(server.get("/api/sources").await, none);

    let machine = tempfile::tempdir().expect("folder");
    let home = machine.path().join("ada-lovelace");
    let elsewhere = machine.path().join("secret-mount/team-disk/claude-two");
    std::fs::create_dir_all(home.join(".claude/projects/a")).expect("folder");
    let input = fixture("claude-history/2.1-c-files");
    let name = "11111111-2222-4333-8444-555555555555.jsonl";
    std::fs::write(home.join(".claude/projects/a").join(name), input).expect("file");
    let server = following(&home, &[&home.join(".claude"), &elsewhere]).await;
    let folder =
        |path: &str, exists: bool| json!({ "agent": "claude", "path": path, "exists": exists });
    let mut told = server.send("GET", "/api/sources", b"").await;
    common::until("everything is read", async || {
        told = server.send("GET", "/api/sources", b"").await;
        told.json()["indexing"].is_null() && server.get("/api/facets").await["total"] == 1
    })
    .await;
    let expected = json!({
        "following": true,
        "folders": [folder("~/.claude/projects", true), folder("…/claude-two/projects", false)],
        "indexing": null,
    });
    assert_eq!(told.json(), expected);
    let text = told.text();
    for canary in
        [machine.path().to_str().expect("text"), "ada-lovelace", "secret-mount", "team-disk"]
    {
        assert!(!text.contains(canary), "{canary} in {text}");
    }
    for to in [json!({ "sessions": ["x"] }), json!({ "tags": ["x"] })] {
        let mut about = to;
        about["scopes"] = json!(["read"]);
        let secret = token(&server, about).await.1;
        let limited = as_token(&server, "/api/sources", &secret).await.json();
        assert_eq!(limited, json!({ "following": true, "folders": [], "indexing": null }));
    }
}

/// A prompt and its answer of an agent by whose clock it is some year.
fn turn_in(year: u32) -> Vec<u8> {
    let at = |second: u32| format!("{year}-03-04T05:06:{second:02}.000Z");
    let prompt = json!({"ts": at(1), "dir": "client->agent", "msg": {"jsonrpc": "2.0", "id": 1,
        "method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "Go on."}]}}});
    let content = json!({"type": "text", "text": "Done. "});
    let said = json!({"ts": at(2), "dir": "agent->client", "msg": {"jsonrpc": "2.0",
        "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "agent_message_chunk", "content": content}}}});
    format!("{prompt}\n{said}\n").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_now_is_new_and_what_was_kept_has_its_own_dates() {
    let server = TestServer::start().await;
    let order = async || -> Vec<String> {
        let page = server.get("/api/sessions").await;
        let id = |s: &Value| s["id"].as_str().expect("id").to_owned();
        list(&page, "sessions").iter().map(id).collect()
    };
    let (right, kept, behind) =
        (server.session().await, server.session().await, server.session().await);
    server.packets(&right, "", &turn_in(2026)).await;
    server.packets(&kept, "arrived=none&end=true", &turn_in(2002)).await;
    server.packets(&behind, "", &turn_in(2001)).await;
    assert_eq!(order().await, [behind.clone(), right, kept.clone()]);
    // It is as old as it is known, and is not said to have gone on for 25 years.
    let row = server.get(&format!("/api/sessions/{behind}")).await;
    assert!(row["createdAt"].as_i64() > Some(1_700_000_000_000), "{row}");
    assert!(row["updatedAt"].as_i64() >= row["createdAt"].as_i64(), "{row}");
    let row = server.get(&format!("/api/sessions/{kept}")).await;
    let year_2002 = 1_000_000_000_000..1_050_000_000_000;
    assert!(year_2002.contains(&row["createdAt"].as_i64().expect("time")), "{row}");
    assert!(year_2002.contains(&row["updatedAt"].as_i64().expect("time")), "{row}");
    // So does a session that Claude Code kept, however it comes.
    let history = server.session().await;
    server.packets(&history, "", &fixture("claude-history/2.1-v-ask-user")).await;
    let row = server.get(&format!("/api/sessions/{history}")).await;
    // The last of its records has no date.
    let [created, updated] = ["createdAt", "updatedAt"].map(|key| row[key].as_i64().expect("time"));
    assert!((0..60_000).contains(&(updated - created)), "{row}");
}

/// Some packets of a recording tell their time, others get that of their arrival.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_measured_by_one_clock() {
    const MOST: u64 = 3600;
    let mut server = TestServer::start().await;
    let mut told = 0;
    for name in ["2.1-v-ask-user", "2.0-v-ask-user", "2.1-g-subagent"] {
        let input = fixture(&format!("claude-stream/{name}"));
        let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
        for cut in [0, lines.len() / 3, lines.len() * 2 / 3] {
            let session = server.session().await;
            server.packets(&session, "first=1", &lines[..cut].concat()).await;
            if cut > 0 {
                server = server.restart().await;
            }
            server.packets(&session, "first=1&end=true", &input).await;
            let path = format!("/api/sessions/{session}/events?view=activity");
            for frame in server.sse(&path, None).await.until_ready().await {
                let message = frame.json();
                let Some(seconds) = message["elapsedSeconds"].as_u64() else { continue };
                assert!(seconds < MOST, "{name} cut at {cut}: {message}");
                told += 1;
            }
        }
    }
    assert!(told >= 9, "{told}");
}

/// In the header, in lists and in the outline alike.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_makes_the_agent_work_is_a_turn_wherever_turns_are_counted() {
    let server = TestServer::start().await;
    for (case, prompts) in
        [("2.1-q-slash-custom", vec!["/greet World"]), ("2.1-q-slash-builtin", vec![])]
    {
        let session = server.session().await;
        let packets = fixture(&format!("claude-history/{case}"));
        server.packets(&session, "format=claude-history&arrived=none", &packets).await;
        let outline = server.get(&format!("/api/sessions/{session}/outline")).await;
        let told: Vec<&str> =
            list(&outline, "turns").iter().filter_map(|turn| turn["text"].as_str()).collect();
        assert_eq!(told, prompts, "{case}");
        let row = server.get(&format!("/api/sessions/{session}")).await;
        assert_eq!(row["info"]["turns"], json!(prompts.len()), "{case}");
        assert_eq!(row["prompt"], json!(prompts.first()), "{case}");
    }
}
