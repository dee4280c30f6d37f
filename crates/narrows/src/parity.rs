//! Whether two forms of one session, what was printed and what was kept, give the same transcript.
//!
//! Times, durations, ids made from positions and trailing space do not count. A difference is
//! accepted only where one form lacks a fact; every such fact is listed here, once.

use crate::change::Items;
use crate::item::Item;
use crate::session::{SessionInfo, Status};
use serde_json::{Map, Value};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Which form has something that the other lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Only what was printed.
    Live,
    /// Only what was kept.
    History,
    /// Both, but not the same.
    Both,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs: a kind of item, or a field of one.
    pub what: String,
    /// Which side has it.
    pub side: Side,
    /// Where, and how it looks on either side.
    pub shown: String,
    /// Why it is accepted; none when it is a real one.
    pub reason: Option<&'static str>,
}

/// What came before a stream that begins in the middle.
const EARLIER: &str = "earlier";

/// A fact that one form lacks: what, who has it, why.
pub const ACCEPTED: &[(&str, Side, &str)] = &[
    (EARLIER, Side::History, "a resumed or forked session prints only what is new"),
    ("user_message", Side::History, "prompts are printed only with --replay-user-messages"),
    ("notice command", Side::History, "of a slash command only the effect is printed"),
    ("notice refusal", Side::History, "why an answer ended is printed only piece by piece"),
    ("notice max_turns", Side::Live, "2.0 does not keep that the limit of turns was reached"),
    ("text of a subagent", Side::History, "what a subagent says is in its own file"),
    ("thinking of a subagent", Side::History, "what a subagent thinks is in its own file"),
    (
        "tool_call of a subagent",
        Side::History,
        "2.0 prints no calls of subagents in the background",
    ),
    (
        "user_message of a subagent",
        Side::History,
        "2.0 prints no prompt of a subagent in the background",
    ),
    ("tool_call.permission", Side::Live, "2.0 does not keep who allowed a call"),
    ("tool_call.offloaded", Side::Both, "output that is too long is kept in a file of its own"),
    ("question.requestId", Side::Live, "the control channel is not kept"),
    (
        "session.answers",
        Side::Live,
        "2.0 keeps no end of most turns, and no version that of a command that the program answers",
    ),
];

/// Compares the two forms.
pub fn compare(live: &Items, history: &Items) -> Vec<Difference> {
    let (a, b) = (groups(live), groups(history));
    let mut found = Vec::new();
    let mut parents: Vec<&String> = a.keys().chain(b.keys()).collect();
    parents.sort_unstable();
    parents.dedup();
    let none = Vec::new();
    for parent in parents {
        let (x, y) = (a.get(parent).unwrap_or(&none), b.get(parent).unwrap_or(&none));
        group(x, y, !parent.is_empty(), &mut found);
    }
    let is_part = found.iter().any(|difference| difference.what == EARLIER);
    found.extend(answers(live.info(), history.info(), is_part));
    for difference in &mut found {
        let listed = |(what, side, _): &&(&str, Side, &str)| {
            *what == difference.what && *side == difference.side
        };
        difference.reason = ACCEPTED.iter().find(listed).map(|row| row.2);
    }
    found
}

/// Whether both count the same answers. The only turn of a session, if it failed, has one in either form;
/// what is printed of a part of a session lacks those before.
fn answers(live: &SessionInfo, history: &SessionInfo, is_part: bool) -> Option<Difference> {
    let side = match live.answers.cmp(&history.answers) {
        Ordering::Equal => return None,
        Ordering::Greater => Side::Live,
        Ordering::Less => Side::History,
    };
    let has_failed = |info: &SessionInfo| info.status == Status::Failed;
    let is_alone = has_failed(live) && has_failed(history) && history.turns <= 1;
    let what = match side {
        Side::History if is_part => EARLIER,
        _ if is_alone => "session.answers of a failed turn",
        _ => "session.answers",
    };
    let shown = format!("{} / {}", live.answers, history.answers);
    Some(Difference { what: what.to_owned(), side, shown, reason: None })
}

/// The items of each parent, in their order; the session's own under an empty name.
fn groups(items: &Items) -> BTreeMap<String, Vec<Value>> {
    let mut out: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for item in items.ordered() {
        let parent = item.parent.as_deref().unwrap_or_default();
        out.entry(parent.to_owned()).or_default().push(normal(item));
    }
    out
}

/// An item without what may differ.
fn normal(item: &Item) -> Value {
    let mut value = serde_json::to_value(item).unwrap_or_default();
    let Some(map) = value.as_object_mut() else { return value };
    for key in ["order", "timestamp", "blockId", "origin", "isStreaming", "parentToolCallId"] {
        map.remove(key);
    }
    // The id of another item, made from a position.
    map.remove("continues");
    if map.get("type").and_then(Value::as_str) != Some("tool_call") {
        map.remove("id");
    }
    for key in ["content", "text"] {
        if let Some(Value::String(text)) = map.get_mut(key) {
            text.truncate(text.trim_end().len());
        }
    }
    if let Some(list) = map.get_mut("todoList").and_then(Value::as_object_mut) {
        list.remove("id");
    }
    if let Some(call) = map.get_mut("toolCall").and_then(Value::as_object_mut) {
        call.remove("durationMs");
        // What is kept of an answer is the decision, not the words in which it was offered.
        if let Some(permission) = call.get_mut("permission").and_then(Value::as_object_mut) {
            permission.remove("option");
            permission.remove("waitedMs");
        }
    }
    value
}

/// What an item is found again by on the other side.
fn key(item: &Value) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "tool_call" => format!("tool_call {}", text("id")),
        kind @ ("question" | "plan") => format!("{kind} {}", text("toolCallId")),
        "background_task" => format!("background_task {}", text("taskId")),
        _ => item.to_string(),
    }
}

/// The kind of an item, as the table names it.
fn kind(item: &Value, sub: bool) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut kind = text("type").to_owned();
    if kind == "notice" {
        kind = format!("notice {}", text("kind"));
    }
    if sub { format!("{kind} of a subagent") } else { kind }
}

fn group(live: &[Value], history: &[Value], sub: bool, found: &mut Vec<Difference>) {
    let keys = |items: &[Value]| items.iter().map(key).collect::<Vec<_>>();
    let (a, b) = (keys(live), keys(history));
    let mut met = false;
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            met = true;
            for (x, y) in live[old].iter().zip(&history[new]) {
                fields(x, y, sub, found);
            }
            continue;
        }
        // What a stream that begins in the middle cannot have.
        let earlier = !met && !sub && old.is_empty();
        for item in &live[old] {
            found.push(difference(kind(item, sub), Side::Live, item));
        }
        for item in &history[new] {
            let name = kind(item, sub);
            let prompt = name == "user_message" || name.starts_with("notice command");
            let name = if earlier && !prompt { EARLIER.to_owned() } else { name };
            found.push(difference(name, Side::History, item));
        }
    }
}

fn difference(what: String, side: Side, item: &Value) -> Difference {
    Difference { what, side, shown: cut(&item.to_string()), reason: None }
}

/// The fields in which two versions of an item differ.
fn fields(live: &Value, history: &Value, sub: bool, found: &mut Vec<Difference>) {
    let name = live.get("type").and_then(Value::as_str).unwrap_or_default();
    let inner = |item: &Value| -> Map<String, Value> {
        let map = item.get("toolCall").unwrap_or(item).as_object();
        map.cloned().unwrap_or_default()
    };
    let (x, y) = (inner(live), inner(history));
    let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let text = |map: &Map<String, Value>, key: &str| {
        map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let offloaded = text(&y, "rawOutput").len() > text(&x, "rawOutput").len()
        && x.get("truncated") == Some(&Value::Bool(true))
        && y.get("truncated") == Some(&Value::Bool(false));
    for key in keys {
        let side = match (x.get(key), y.get(key)) {
            (Some(p), Some(q)) if p == q => continue,
            (Some(_), Some(_)) => Side::Both,
            (Some(_), None) => Side::Live,
            (None, _) => Side::History,
        };
        let part = offloaded && (key == "rawOutput" || key == "truncated");
        let key_shown = if part { "offloaded" } else { key };
        let of = if sub { " of a subagent" } else { "" };
        let value = |map: &Map<String, Value>| {
            map.get(key).map_or("(nothing)".to_owned(), |v| cut(&v.to_string()))
        };
        let shown = format!("{} / {}", value(&x), value(&y));
        let what = format!("{name}.{key_shown}{of}");
        found.push(Difference { what, side, shown, reason: None });
    }
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(160).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
