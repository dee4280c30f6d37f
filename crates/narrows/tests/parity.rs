//! A session watched live against the same session replayed by `session/load`.
//!
//! Equal items after dropping times, durations, ids made from positions and trailing space. A
//! difference is accepted only where one form lacks a fact, and every accepted kind is listed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// An accepted difference: agent (front of the case's name), what, which side has it.
///
/// `Live` and `Load` mean that only that form has the fact; `Both` that each has its own.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Side {
    Live,
    Load,
    Both,
}
use Side::{Both, Live, Load};

const ACCEPTED: &[(&str, &str, Side)] = &[
    // A decision is told by the answer to the agent's request, which is not replayed.
    ("", "permission", Live),
    // The command is carried out, not kept as a prompt.
    ("opencode", "item user_message /compact", Live),
    ("opencode-1.1-", "locations", Live),
    // Without message ids, the texts before and after the missing prompt are one.
    ("opencode-1.1-q-compact", "text", Both),
    // A tool that nobody knows has its name in the first live title only.
    ("opencode-1.1-s-mcp-tool", "agentTitle", Live),
    ("opencode-1.1-s-mcp-tool", "description", Both),
    ("opencode-1.1-s-mcp-tool", "toolName", Both),
    // 1.1 trims each text when it stores it.
    ("opencode-1.1-n-partial", "text", Both),
];

/// Notes what the table does not accept.
fn unlisted(
    name: &str,
    found: Vec<(String, Side)>,
    table: &[(&str, &str, Side)],
    wrong: &mut Vec<String>,
) {
    for (what, side) in found {
        let listed = |(agent, kind, accepted): &(&str, &str, Side)| {
            name.starts_with(agent) && what.starts_with(kind) && side == *accepted
        };
        if !table.iter().any(listed) {
            wrong.push(format!("{name}: {side:?} {what}"));
        }
    }
}

#[test]
fn live_and_load_of_opencode_are_equal() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in common::cases() {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("opencode-") || !case.join("load.jsonl").exists() {
            continue;
        }
        compared += 1;
        let (live, load) = (items(&case, "input.jsonl"), items(&case, "load.jsonl"));
        unlisted(&name, differences(&live, &load), ACCEPTED, &mut wrong);
    }
    assert!(compared > 40, "the replays are missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the other agents' replays lack calls or words, by case; (what, side) as above.
const OTHERS: &[(&str, &str, Side)] = &[
    // A subagent's own calls are in its own file, which is not replayed.
    ("claude-acp-g-subagent", "call \"read\"", Live),
    ("claude-acp-g-subagent", "call \"bash\"", Live),
    // After a compaction the replay begins at the summary.
    ("claude-acp-q-compact", "call", Live),
    ("claude-acp-q-compact", "words", Both),
    // A command that still runs, or was cut off, is replayed as failed.
    ("codex-acp-d-bash", "status \"in_progress\" / \"failed\"", Both),
    ("codex-acp-j-interrupt-tool", "status \"cancelled\" / \"failed\"", Both),
    // A refused call is not kept; a warning of the new process is added.
    ("codex-acp-h-permission-reject", "call \"bash\"", Live),
    ("codex-acp-h-permission-reject", "words", Both),
    // Reviews are not kept, and the start of a server has a new id in each process.
    ("codex-acp-s-mcp-tool", "call \"unknown\"", Live),
    ("codex-acp-s-mcp-tool", "call \"unknown\"", Load),
    // Zero-width characters are not kept.
    ("gemini-acp-a-plain-text", "words", Both),
    // A refused call has no tool call, only the question.
    ("gemini-acp-h-permission-reject", "call", Live),
];

#[test]
fn calls_and_words_of_the_other_agents_agree() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in common::cases() {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let other =
            ["claude-acp-", "codex-acp-", "gemini-acp-"].iter().any(|a| name.starts_with(a));
        if !other || !case.join("load.jsonl").exists() {
            continue;
        }
        compared += 1;
        let (live, load) = (items(&case, "input.jsonl"), items(&case, "load.jsonl"));
        let mut found = Vec::new();
        calls(&live, &load, &mut found);
        let (a, b) = (joined(&live), joined(&load));
        if a != b {
            found.push((format!("words {a:?} / {b:?}"), Both));
        }
        unlisted(&name, found, OTHERS, &mut wrong);
    }
    assert!(compared > 60, "the replays are missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls that only one side has, or whose end differs.
fn calls(live: &[Value], load: &[Value], found: &mut Vec<(String, Side)>) {
    let find = |items: &[Value], id: &Value| items.iter().find(|i| i["id"] == *id).cloned();
    for item in live.iter().filter(|i| i["type"] == "tool_call") {
        let call = &item["toolCall"];
        match find(load, &item["id"]) {
            None => found.push((format!("call {} {}", call["toolName"], call["title"]), Live)),
            Some(other) => {
                for key in ["status", "kind", "toolName"] {
                    if call[key] != other["toolCall"][key] {
                        let both = format!("{key} {} / {}", call[key], other["toolCall"][key]);
                        found.push((both, Both));
                    }
                }
            }
        }
    }
    for item in load.iter().filter(|i| i["type"] == "tool_call") {
        if find(live, &item["id"]).is_none() {
            let call = &item["toolCall"];
            found.push((format!("call {} {}", call["toolName"], call["title"]), Load));
        }
    }
}

/// Everything the agent said, without white space.
fn joined(items: &[Value]) -> String {
    let texts = items.iter().filter(|i| i["type"] == "text");
    let all: String = texts.filter_map(|i| i["content"].as_str()).collect();
    all.split_whitespace().collect()
}

fn items(case: &Path, file: &str) -> Vec<Value> {
    let steps = common::run(common::config(case), &fs::read(case.join(file)).unwrap());
    let mut items = common::items(&steps);
    items.settle();
    common::items_json(&items).into_iter().map(normal).collect()
}

/// An item without what may differ.
fn normal(mut item: Value) -> Value {
    let map = item.as_object_mut().unwrap();
    for key in ["order", "timestamp", "blockId", "origin"] {
        map.remove(key);
    }
    if map["type"] != "tool_call" {
        map.remove("id");
    }
    for key in ["content", "text"] {
        if let Some(Value::String(text)) = map.get_mut(key) {
            *text = text.trim_end().to_owned();
        }
    }
    if let Some(list) = map.get_mut("todoList").and_then(Value::as_object_mut) {
        list.remove("id");
    }
    if let Some(call) = map.get_mut("toolCall").and_then(Value::as_object_mut) {
        call.remove("durationMs");
        if let Some(permission) = call.get_mut("permission").and_then(Value::as_object_mut) {
            permission.remove("waitedMs");
        }
    }
    item
}

/// What differs, and which side has it.
fn differences(live: &[Value], load: &[Value]) -> Vec<(String, Side)> {
    let mut found = Vec::new();
    let tools = |items: &[Value]| -> BTreeMap<String, Value> {
        let calls = items.iter().filter(|i| i["type"] == "tool_call");
        calls.map(|i| (i["id"].as_str().unwrap().to_owned(), i["toolCall"].clone())).collect()
    };
    let (a, b) = (tools(live), tools(load));
    for id in a.keys().chain(b.keys()) {
        match (a.get(id), b.get(id)) {
            (Some(x), Some(y)) => fields(x, y, &mut found),
            (Some(x), None) => found.push((format!("item tool_call {}", x["title"]), Live)),
            (None, Some(y)) => found.push((format!("item tool_call {}", y["title"]), Load)),
            (None, None) => {}
        }
    }
    // The order of everything, with calls by id and texts by their words.
    let words = |items: &[Value]| -> Vec<String> {
        let word = |i: &Value| match i["type"].as_str().unwrap() {
            "tool_call" => format!("tool_call {}", i["id"].as_str().unwrap()),
            "user_message" => format!("user_message {}", i["text"].as_str().unwrap()),
            "text" => format!("text {}", i["content"].as_str().unwrap()),
            kind => format!("{kind} {}", json!(i)),
        };
        items.iter().map(word).collect()
    };
    let (mut a, mut b) = (words(live), words(load));
    let only_live: Vec<String> = a.iter().filter(|w| !b.contains(w)).cloned().collect();
    let only_load: Vec<String> = b.iter().filter(|w| !a.contains(w)).cloned().collect();
    for word in &only_live {
        let replaced = only_load.iter().any(|other| kind(other) == kind(word));
        found.push(if replaced { (word.clone(), Both) } else { (format!("item {word}"), Live) });
    }
    for word in &only_load {
        let replaced = only_live.iter().any(|other| kind(other) == kind(word));
        found.push(if replaced { (word.clone(), Both) } else { (format!("item {word}"), Load) });
    }
    a.retain(|w| !only_live.contains(w));
    b.retain(|w| !only_load.contains(w));
    if a != b {
        found.push(("order".to_owned(), Both));
    }
    found.sort_by(|x, y| x.0.cmp(&y.0));
    found.dedup();
    found
}

fn kind(word: &str) -> &str {
    word.split(' ').next().unwrap_or_default()
}

fn fields(live: &Value, load: &Value, found: &mut Vec<(String, Side)>) {
    let empty = Map::new();
    let (x, y) = (live.as_object().unwrap_or(&empty), load.as_object().unwrap_or(&empty));
    for key in x.keys().chain(y.keys()) {
        let side = match (x.get(key), y.get(key)) {
            (Some(p), Some(q)) if p == q => continue,
            (Some(_), Some(_)) => Both,
            (Some(_), None) => Live,
            (None, _) => Load,
        };
        let value =
            |v: Option<&Value>| v.map(|v| v.to_string().chars().take(60).collect::<String>());
        let shown = format!("{key} {:?} / {:?}", value(x.get(key)), value(y.get(key)));
        found.push((shown, side));
    }
}

/// The messages of a recorded session without the recorder's wrapping.
fn bare(case: &Path, keep: fn(&Value) -> bool) -> Vec<u8> {
    let text = fs::read_to_string(case.join("input.jsonl")).unwrap();
    let mut out = String::new();
    for line in text.lines() {
        let whole: Value = serde_json::from_str(line).unwrap();
        if keep(&whole["dir"]) {
            let (_, msg) = line.split_once("\"msg\":").unwrap();
            out.push_str(msg.strip_suffix('}').unwrap());
            out.push('\n');
        }
    }
    out.into_bytes()
}

fn captures() -> Vec<std::path::PathBuf> {
    let agents = ["opencode-", "claude-acp-", "codex-acp-", "gemini-acp-"];
    let named = |p: &std::path::PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        agents.iter().any(|a| name.starts_with(a))
    };
    common::cases().into_iter().filter(named).collect()
}

#[test]
fn bare_lines_of_both_directions_give_the_same_items() {
    for case in captures() {
        let recorded = items(&case, "input.jsonl");
        let steps = common::run(common::config(&case), &bare(&case, |_| true));
        let mut bare = common::items(&steps);
        bare.settle();
        let bare: Vec<Value> = common::items_json(&bare).into_iter().map(normal).collect();
        assert_eq!(recorded, bare, "{}", case.display());
    }
}

#[test]
fn the_agent_alone_gives_the_same_calls_and_words() {
    for case in captures() {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let recorded = items(&case, "input.jsonl");
        let config = common::config(&case);
        let steps = common::run(config, &bare(&case, |dir| *dir == "agent->client"));
        let mut alone = common::items(&steps);
        alone.settle();
        let alone: Vec<Value> = common::items_json(&alone).into_iter().map(normal).collect();
        let mut found = Vec::new();
        calls(&recorded, &alone, &mut found);
        // Who refused a call is in the client's answer.
        found.retain(|(what, _)| what != "status \"cancelled\" / \"pending\"");
        assert!(found.is_empty(), "{name}: {found:?}");
        assert_eq!(joined(&recorded), joined(&alone), "{name}");
    }
}
