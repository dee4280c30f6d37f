//! Items, changes and headers are what the OpenAPI document says, to the last field.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod common;
#[allow(clippy::unwrap_used, reason = "as in the tests of the core")]
#[path = "../../narrows/tests/common/mod.rs"]
mod core;
mod schema;

use common::{TestServer, fixture, fixtures};
use narrows::{Items, Step};
use schema::{Document, Seen};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn document() -> Document {
    Document::new(serde_json::to_value(narrows_server::openapi()).expect("JSON"))
}

/// As it travels: printed by the core.
fn printed(value: &impl Serialize) -> Value {
    let mut bytes = Vec::new();
    narrows::json::print(&mut bytes, value).expect("print");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn cases() -> Vec<PathBuf> {
    let folders = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path());
        let mut list: Vec<PathBuf> = entries.filter(|p| p.is_dir()).collect();
        list.sort();
        list
    };
    folders(&fixtures()).iter().flat_map(|format| folders(format)).collect()
}

/// Checks every change of a session, the items after each put, and the items at the end.
fn check_steps(document: &mut Document, steps: &[Step]) {
    let mut items = Items::new();
    for change in steps.iter().flat_map(|s| &s.changes) {
        document.check("Change", &printed(change));
        items.apply(change.clone());
    }
    items.iter().for_each(|item| document.check("Item", &printed(item)));
    document.check("SessionInfo", &printed(items.info()));
}

/// What no recorded session holds, read and printed again by the core: it prints such fields.
fn rare() -> Vec<Value> {
    let item = |kind: &str, more: Value| {
        let mut item = json!({"type": kind, "id": "a", "order": 1, "timestamp": null,
            "parentToolCallId": "t"});
        item.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        json!({"change": "put", "item": item})
    };
    let image = json!({"blob": "00", "mimeType": "image/png", "size": 1});
    let todo = json!({"content": "a", "status": "pending", "activeForm": "b", "id": "7"});
    let diff = json!({"path": "a", "oldText": null, "newText": null, "scope": "hunk",
        "patch": "@@"});
    let artifact =
        json!({"id": "a", "type": "file", "name": "a", "path": "a", "preview_url": null});
    let changes = json!([
        item("artifact", json!({ "artifact": artifact })),
        item("background_task", json!({"taskId": "a", "status": "pending"})),
        item("permission", json!({"requestId": "a", "toolCallId": "t", "title": null,
            "options": []})),
        item("plan", json!({"toolCallId": "t", "content": "a"})),
        item("question", json!({"toolCallId": "t", "questions": [{"question": "a",
            "options": [{"label": "b"}], "multiSelect": false, "name": "n", "format": "integer",
            "default": "1", "optional": true}]})),
        item("compaction", json!({"text": "a"})),
        item("text", json!({"content": "a", "isStreaming": true, "images": [image]})),
        item("text", json!({"content": "a", "isStreaming": false, "continues": "z"})),
        item("tool_call", json!({"toolCall": {"id": "t", "toolName": "todowrite", "kind": "other",
            "isTodo": true, "status": "failed", "title": "a", "description": "b", "command": "",
            "filePath": "", "todos": [todo], "diffs": [diff]}})),
        {"change": "set", "id": "t", "toolCall": {"toolName": "mcp", "kind": "other",
            "isTodo": false, "name": "a", "rawKind": "b", "diagnostics": {}, "todos": [todo]}},
        {"change": "set", "id": "a", "content": "b"},
    ]);
    let read = narrows::stored::changes(&changes.to_string()).expect("changes");
    let again: Vec<Value> = read.iter().map(printed).collect();
    assert_eq!(json!(again), changes);
    again
}

#[test]
fn every_recorded_item_and_change_is_as_the_document_tells() {
    let mut document = document();
    let cases = cases();
    assert!(cases.len() > 100, "{}", cases.len());
    for case in &cases {
        let golden = fs::read(case.join("items.json")).expect("items");
        let golden: Vec<Value> = serde_json::from_slice(&golden).expect("JSON");
        golden.iter().for_each(|item| document.check("Item", item));
        check_steps(&mut document, &core::run_case(case, core::config(case)));
    }
    for change in rare() {
        document.check("Change", &change);
    }
    let (mut never, always) = unlike(&document, &["Item", "Change", "SessionInfo"], 150);
    // The server adds it; the test below sees it.
    never.retain(|field| !field.ends_with(".clipped"));
    // Every kind has it by its type, long texts in parts alone by what they are.
    never.retain(|field| !field.ends_with(".continues") || field.starts_with("TextItem"));
    assert_eq!(never, BTreeSet::new(), "never seen");
    assert_eq!(always, BTreeSet::new(), "never missing");
}

/// What the document tells is really there, and what may be missing is missing at times: the fields
/// of which the one or the other was not seen.
fn unlike(
    document: &Document,
    names: &[&str],
    least: usize,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let was = |field: &str, there| {
        let field = field.to_owned();
        document.seen.contains(&Seen { field, there })
    };
    let fields = document.fields(names);
    assert!(fields.len() > least, "{}", fields.len());
    let (mut never, mut always) = (BTreeSet::new(), BTreeSet::new());
    for (field, optional) in fields {
        if !was(&field, true) {
            never.insert(field);
        } else if optional && !was(&field, false) {
            always.insert(field);
        }
    }
    (never, always)
}

#[test]
fn every_recorded_packet_is_as_the_document_tells() {
    let mut document = document();
    let mut known = BTreeSet::new();
    for case in &cases() {
        let steps = core::run_case(case, core::config(case));
        for line in core::packets_text(&steps).lines() {
            let packet: Value = serde_json::from_str(line).expect("JSON");
            document.check("Packet", &packet);
            known.insert(packet["type"].as_str().expect("a type").to_owned());
            assert!(packet["timestamp"].is_string(), "{packet}");
            if packet["type"] == "tool_call_progress" {
                check_end(&packet);
            }
        }
    }
    assert_eq!(known.len(), 11, "{known:?}");
    let (mut never, always) = unlike(&document, &["Packet"], 150);
    // Any of them may be a subagent's, and any call may fail or have an exit code.
    let rare = [
        ".parentToolCallId",
        "Output.error",
        "Notes.exit",
        "OtherOutput.content",
        "OtherNotes.preview",
    ];
    never.retain(|field| !rare.iter().any(|end| field.ends_with(end)));
    assert_eq!(never, BTreeSet::new(), "never seen");
    assert_eq!(always, BTreeSet::new(), "never missing");
}

/// What a call gave is there when it has ended, and why it failed when it has failed.
fn check_end(packet: &Value) {
    let output = &packet["rawOutput"];
    match packet["status"].as_str().expect("a status") {
        "completed" => {
            assert!(output["error"].is_null() && output["output"].is_string(), "{packet}");
            let needs = packet["kind"] != "execute" || output["metadata"]["exit"].is_i64();
            assert!(needs, "no exit code: {packet}");
        }
        "failed" | "cancelled" => {
            assert!(output["error"].as_str().is_some_and(|e| !e.is_empty()), "{packet}");
        }
        _ => assert!(output.is_null(), "{packet}"),
    }
}

#[test]
fn what_is_not_told_is_refused() {
    let good = json!({"type": "text", "id": "a", "order": 1, "timestamp": null, "content": "x",
        "isStreaming": false});
    let with = |field: &str, value: Value| {
        let mut item = good.clone();
        item[field] = value;
        item
    };
    let mut document = document();
    document.check("Item", &good);
    document.check("Item", &with("clipped", json!({"content": 7})));
    for bad in [
        with("other", json!(1)),
        with("content", json!(null)),
        with("order", json!(-1)),
        with("order", json!(1.5)),
        with("isStreaming", json!("no")),
        with("type", json!("texts")),
        with("clipped", json!({"content": "7"})),
        with("images", json!([{"blob": "a", "mimeType": "b"}])),
    ] {
        assert!(document.takes("Item", &bad).is_err(), "{bad}");
    }
    for field in ["type", "id", "order", "timestamp", "content", "isStreaming"] {
        let mut bad = good.clone();
        bad.as_object_mut().expect("object").remove(field);
        assert!(document.takes("Item", &bad).is_err(), "without {field}");
    }
    let put = json!({"change": "put", "item": good});
    document.check("Change", &put);
    for bad in [json!({"change": "put"}), json!({"change": "other", "id": "a"}), json!({})] {
        assert!(document.takes("Change", &bad).is_err(), "{bad}");
    }
}

/// The words of an enum of the core: what it says when it is asked for another.
fn words<T: DeserializeOwned>() -> BTreeSet<String> {
    let asked = serde_json::from_str::<T>("\"?\"").err().expect("refused").to_string();
    let (_, expected) = asked.split_once("expected").expect("words");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn words_are_those_of_the_core() {
    use narrows::{event, session, tool};
    let document = document();
    let told = |name: &str| -> BTreeSet<String> {
        let words = document.schema(name)["enum"].as_array().expect("words");
        words.iter().map(|w| w.as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(told("ToolName"), words::<tool::ToolName>());
    assert_eq!(told("ToolKind"), words::<tool::ToolKind>());
    assert_eq!(told("ToolStatus"), words::<tool::ToolStatus>());
    assert_eq!(told("DiffScope"), words::<tool::Scope>());
    assert_eq!(told("DiffAction"), words::<tool::DiffAction>());
    assert_eq!(told("MessageOrigin"), words::<event::Origin>());
    assert_eq!(told("PermissionDecision"), words::<event::Decision>());
    assert_eq!(told("SessionStatus"), words::<session::Status>());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_tells_is_as_the_document_tells() {
    let mut document = document();
    let server = TestServer::start().await;
    let empty = server.session().await;
    document.check("SessionInfo", &server.get(&format!("/api/sessions/{empty}")).await["info"]);
    let mut clipped = 0;
    for name in [
        "acp/opencode-1.18-c-files",
        "acp/claude-acp-g-subagent",
        "claude-stream/2.1-c-files",
        "claude-history/2.1-k-parallel-tools",
    ] {
        let id = server.session().await;
        let format = name.split_once('/').expect("format").0;
        server.packets(&id, &format!("format={format}&end=true"), &fixture(name)).await;
        document.check("SessionInfo", &server.get(&format!("/api/sessions/{id}")).await["info"]);
        // Words stay whole, however little is asked for.
        for preview in [0, 1, 40] {
            let path = format!("/api/sessions/{id}/items?limit=500&preview={preview}");
            let page = server.get(&path).await;
            document.check("SessionInfo", &page["info"]);
            for item in page["items"].as_array().expect("items") {
                document.check("Item", item);
                clipped += usize::from(item.get("clipped").is_some());
            }
        }
        let first = &server.items(&id).await[0]["id"];
        let first = first.as_str().expect("id");
        let one = server.get(&format!("/api/sessions/{id}/items/{first}")).await;
        document.check("Item", &one);
        let path = format!("/api/sessions/{id}/events?view=items");
        for frame in server.sse(&path, None).await.until_ready().await {
            let changes = &frame.json()["changes"];
            changes.as_array().expect("changes").iter().for_each(|c| document.check("Change", c));
        }
    }
    assert!(clipped > 20, "{clipped}");
    let kinds = document.seen.iter().filter(|s| s.there && s.field.ends_with("Item.clipped"));
    assert!(kinds.count() >= 3);
}
