//! Outlines of sessions: turns and their ends, files, todos, questions; and the corresponding
//! columns of lists.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, steps, temp_store};
use narrows_store::{Append, Outline, SessionRow, Store};
use serde_json::{Value, json};

async fn recorded(store: &Store, fixture: &str) -> TestSession {
    let mut book = TestSession::new(store, fixture).await;
    for step in steps(fixture) {
        book.step(step);
    }
    book.keep(store).await;
    book
}

async fn outline(store: &Store, book: &TestSession) -> Outline {
    store.outline(book.key(), None, 1000).await.unwrap()
}

async fn row(store: &Store, book: &TestSession) -> SessionRow {
    store.session_row(&book.session.id).await.unwrap()
}

fn prompt(id: &str, order: u64, text: &str) -> Value {
    json!({
        "type": "user_message", "id": id, "order": order, "timestamp": null,
        "text": text, "images": [], "origin": "client",
    })
}

fn edit(id: &str, order: u64, status: &str, diffs: &Value) -> Value {
    json!({
        "type": "tool_call", "id": id, "order": order, "timestamp": null,
        "toolCall": {
            "id": id, "toolName": "edit", "kind": "edit", "status": status, "isTodo": false,
            "diffs": diffs,
        },
    })
}

fn diff(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "oldText": old, "newText": new, "scope": "hunk" })
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_turns_have_usage_and_stop_reason() {
    let (_dir, store) = temp_store();
    let book = recorded(&store, "claude-stream/2.1-u-bidi").await;
    let all = outline(&store, &book).await;
    assert_eq!((all.seq, &all.epoch, all.more), (book.seq, &book.session.epoch, false));
    let told: Vec<_> = all
        .turns
        .iter()
        .map(|t| (t.text.as_str(), t.stop_reason.as_deref(), t.duration_ms, t.usage.as_ref()))
        .map(|(text, stop, ms, usage)| (text, stop, ms, usage.and_then(|u| u.input_tokens)))
        .collect();
    assert_eq!(
        told,
        [
            ("First message over stdin. [s:b1]", Some("end_turn"), Some(1353), Some(28)),
            ("Second message over stdin. [s:b2]", Some("end_turn"), Some(144), Some(17)),
            ("Third, to be interrupted. [s:b3]", Some("cancelled"), Some(2644), Some(19)),
            ("Fourth, after the interrupt. [s:b4]", Some("end_turn"), Some(122), Some(21)),
        ]
    );
    // The agent reports accumulated costs; a turn costs the difference.
    let cost = |turn: usize| all.turns[turn].cost_usd.unwrap();
    for (turn, expected) in [0.006_699, 0.002_991, 0.003_522, 0.003_168].into_iter().enumerate() {
        assert!((cost(turn) - expected).abs() < 1e-9, "{turn}: {}", cost(turn));
    }
    let orders: Vec<u64> = all.turns.iter().map(|t| t.order).collect();
    for (order, turn) in orders.iter().zip(&all.turns) {
        assert_eq!(book.items.get(&turn.id).unwrap().order, *order);
        assert!(turn.timestamp.is_some());
    }
    // Page by page, each turn equals the one in the full outline.
    for limit in 1..4 {
        let (mut turns, mut after) = (Vec::new(), None);
        loop {
            let page = store.outline(book.key(), after, limit).await.unwrap();
            after = page.turns.last().map(|t| t.order);
            turns.extend(page.turns);
            if !page.more {
                break;
            }
        }
        let json = |turns: &[narrows_store::Turn]| serde_json::to_value(turns).unwrap();
        assert_eq!(json(&turns), json(&all.turns), "by {limit}");
    }
    let none = store.outline(book.key(), orders.last().copied(), 9).await.unwrap();
    assert!(none.turns.is_empty() && !none.more);
}

#[tokio::test(flavor = "multi_thread")]
async fn acp_turns_have_usage_and_stop_reason() {
    let (_dir, store) = temp_store();
    let book = recorded(&store, "acp/opencode-1.18-l-resume").await;
    let all = outline(&store, &book).await;
    let told: Vec<_> =
        all.turns.iter().map(|t| (t.text.as_str(), t.duration_ms, t.cost_usd)).collect();
    assert_eq!(
        told,
        [
            ("First turn. [s:r1]", Some(2054), None),
            ("Second turn, resumed. [s:r2]", Some(299), None),
            ("Third turn, continued. [s:r3]", Some(395), None),
        ]
    );
    let usage = all.turns[1].usage.as_ref().unwrap();
    assert_eq!((usage.total_tokens, usage.output_tokens), (Some(4881), Some(64)));
    let row = row(&store, &book).await;
    assert_eq!(row.prompt.as_deref(), Some("First turn. [s:r1]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn outline_files_todos_and_calls_match_items() {
    for fixture in
        ["acp/opencode-1.18-c-files", "claude-history/2.1-c-files", "acp/codex-acp-c-files"]
    {
        let (_dir, store) = temp_store();
        let book = recorded(&store, fixture).await;
        let mut expected = std::collections::BTreeMap::<String, (u64, u64, u64, u64)>::new();
        let (mut calls, mut failed) = (0, 0);
        for item in book.items.iter() {
            let narrows::item::ItemBody::ToolCall { tool_call } = &item.body else { continue };
            calls += 1;
            failed += u64::from(tool_call.call.status == Some(narrows::tool::ToolStatus::Failed));
            for file in tool_call.call.changed_files() {
                let sum = expected.entry(file.path).or_default();
                *sum = (sum.0 + file.added, sum.1 + file.removed, sum.2 + 1, item.order);
            }
        }
        assert!(!expected.is_empty(), "{fixture}");
        let all = outline(&store, &book).await;
        assert!(all.files.is_sorted_by(|a, b| a.order >= b.order));
        let told = all
            .files
            .into_iter()
            .map(|f| (f.path, (f.additions, f.deletions, f.edits, f.order)))
            .collect();
        assert_eq!(expected, told, "{fixture}");
        let row = row(&store, &book).await;
        assert_eq!((row.calls, row.failed), (calls, failed), "{fixture}");
    }
    let (_dir, store) = temp_store();
    let book = recorded(&store, "acp/opencode-1.18-f-todos").await;
    let last = book.items.iter().filter_map(|item| match &item.body {
        narrows::item::ItemBody::TodoList { todo_list } => Some(todo_list.clone()),
        _ => None,
    });
    assert_eq!(outline(&store, &book).await.todos, last.last());
    let book = recorded(&store, "acp/claude-acp-a-plain-text").await;
    assert_eq!(outline(&store, &book).await.todos, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn outline_sums_edits_of_current_calls() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "files").await;
    let is = async |book: &mut TestSession, expected: &[(&str, u64, u64, u64, u64)]| {
        book.keep(&store).await;
        let all = outline(&store, book).await;
        let told: Vec<_> = all
            .files
            .iter()
            .map(|f| (f.path.as_str(), f.additions, f.deletions, f.edits, f.order))
            .collect();
        assert_eq!(told, expected);
        assert!(!all.files_cut);
    };
    book.put(&edit("a", 0, "completed", &json!([diff("x", "1\n2\n", "1\nb\nc\n")])));
    book.put(&edit("b", 1, "in_progress", &json!([diff("y", "1\n", "2\n")])));
    book.put(&edit("c", 2, "failed", &json!([diff("z", "1\n", "2\n")])));
    is(&mut book, &[("x", 2, 1, 1, 0)]).await;
    // Several edits in a call, one file twice; the running call has finished.
    let three = json!([diff("x", "", "1\n"), diff("y", "1\n", ""), diff("x", "", "2\n")]);
    book.put(&edit("d", 3, "completed", &three));
    book.put(&edit("b", 1, "completed", &json!([diff("y", "1\n", "2\n")])));
    is(&mut book, &[("x", 4, 1, 2, 3), ("y", 1, 2, 2, 3)]).await;
    // A repeated edit replaces the earlier one.
    book.put(&edit("d", 3, "completed", &json!([diff("y", "1\n", "")])));
    is(&mut book, &[("y", 1, 2, 2, 3), ("x", 2, 1, 1, 0)]).await;
    assert_eq!((row(&store, &book).await.calls, row(&store, &book).await.failed), (4, 1));
    book.change(&json!([{ "change": "remove", "id": "d" }, { "change": "remove", "id": "c" }]));
    is(&mut book, &[("y", 1, 1, 1, 1), ("x", 2, 1, 1, 0)]).await;
    assert_eq!((row(&store, &book).await.calls, row(&store, &book).await.failed), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn outline_keeps_last_files_above_limit() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "many").await;
    for n in 0..600 {
        let id = format!("e{n}");
        book.put(&edit(&id, n, "completed", &json!([diff(&format!("f{n}"), "", "1\n")])));
    }
    book.keep(&store).await;
    let all = outline(&store, &book).await;
    assert!(all.files_cut && all.files.len() == 500);
    assert_eq!((all.files[0].path.as_str(), all.files[499].path.as_str()), ("f599", "f100"));
}

#[tokio::test(flavor = "multi_thread")]
async fn open_requests_are_pending_until_answered_or_withdrawn() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "asks").await;
    let ask = json!({
        "type": "permission", "id": "p", "order": 0, "timestamp": null, "requestId": "1",
        "toolCallId": "c", "title": null, "options": [],
    });
    let question = json!({
        "type": "question", "id": "q", "order": 1, "timestamp": null, "toolCallId": "d",
        "questions": [],
    });
    book.put(&ask);
    book.put(&question);
    book.put(&common::text_item("open", 2, "no question", true));
    // First only in the log, then in rows too.
    book.keep(&store).await;
    assert_eq!(outline(&store, &book).await.waiting, ["p", "q"]);
    book.rest(&store).await;
    assert_eq!(outline(&store, &book).await.waiting, ["p", "q"]);
    let mut answered = question.clone();
    answered["answers"] = json!([]);
    book.put(&answered);
    book.keep(&store).await;
    assert_eq!(outline(&store, &book).await.waiting, ["p"]);
    book.change(&json!([{ "change": "remove", "id": "p" }]));
    book.keep(&store).await;
    assert!(outline(&store, &book).await.waiting.is_empty());
    book.put(&ask);
    let last = Append { ended: Some(true), ..book.next(false) };
    common::append(&store, last).await.unwrap();
    // Independent of other state.
    assert_eq!(outline(&store, &book).await.waiting, ["p"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_without_title_has_first_prompt() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "prompts").await;
    let called = async |book: &TestSession| row(&store, book).await.prompt;
    book.say("hello", "said by the agent");
    let mut sub = prompt("sub", 1, "asked by the agent");
    sub["parentToolCallId"] = "c".into();
    book.put(&sub);
    book.put(&prompt("blank", 2, " \n "));
    book.keep(&store).await;
    assert_eq!(called(&book).await, None);
    let long = format!("Mend\n\tthe {}", "parser ".repeat(60));
    book.put(&prompt("first", 3, "Mend"));
    book.put(&prompt("second", 4, "And the tests"));
    book.keep(&store).await;
    assert_eq!(called(&book).await.as_deref(), Some("Mend"));
    // It continues after the second was read.
    book.change(
        &json!([{ "change": "append", "id": "first", "field": "text", "text": &long[4..] }]),
    );
    book.keep(&store).await;
    let told = called(&book).await.unwrap();
    assert!(told.starts_with("Mend the parser parser") && !told.contains('\n'), "{told}");
    assert!((190..=200).contains(&told.chars().count()), "{told}");
    // The list finds it by its prompt.
    let filter = narrows_store::ListFilter {
        text: Some("THE PARSER".to_owned()),
        limit: 9,
        ..narrows_store::ListFilter::default()
    };
    assert_eq!(store.list(filter).await.unwrap().sessions.len(), 1);
    book.change(&json!([{ "change": "remove", "id": "first" }]));
    book.keep(&store).await;
    assert_eq!(called(&book).await.as_deref(), Some("And the tests"));
    let turns = outline(&store, &book).await.turns;
    let ids: Vec<&str> = turns.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(ids, ["blank", "second"]);
}
