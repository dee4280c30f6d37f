//! Compares the transcripts of two forms of one session: the live stream and the session file.
//!
//! Times, durations, ids derived from positions and trailing white space are ignored. A difference
//! is accepted only when one form lacks a fact; each format lists these facts.

pub use crate::adapter::Side;

use crate::model::change::Items;
use crate::model::item::Item;
use crate::model::session::{SessionInfo, SessionStatus};
use serde_json::{Map, Value};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The longest value in the text of a difference, in characters.
const MAX_VALUE_CHARS: usize = 160;

/// The subject of what came before a stream that begins in the middle of a session.
const EARLIER: &str = "earlier";

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The kind of item, or the field, that differs.
    pub what: String,
    /// The side that has it.
    pub side: Side,
    /// The item, or the values of both sides.
    pub shown: String,
    /// The reason why the difference is accepted; none for a real one.
    pub reason: Option<&'static str>,
}

/// The facts that one form lacks: the subject, the side that has it, the reason.
pub const ACCEPTED: &[(&str, Side, &str)] = crate::adapter::FORM_DIFFERENCES;

/// Compares the two forms.
pub fn compare(live: &Items, history: &Items) -> Vec<Difference> {
    let (a, b) = (group_items(live), group_items(history));
    let mut out = Vec::new();
    let mut parents: Vec<&String> = a.keys().chain(b.keys()).collect();
    parents.sort_unstable();
    parents.dedup();
    let empty = Vec::new();
    for parent in parents {
        let (x, y) = (a.get(parent).unwrap_or(&empty), b.get(parent).unwrap_or(&empty));
        compare_group(x, y, !parent.is_empty(), &mut out);
    }
    let is_partial = out.iter().any(|difference| difference.what == EARLIER);
    out.extend(compare_answers(live.info(), history.info(), is_partial));
    for difference in &mut out {
        let is_listed = |(subject, side, _): &&(&str, Side, &str)| {
            *subject == difference.what && *side == difference.side
        };
        difference.reason = ACCEPTED.iter().find(is_listed).map(|row| row.2);
    }
    out
}

/// Compares the numbers of answers. If the only turn of a session failed, it has one answer in either form; a
/// partial stream lacks the answers before it.
fn compare_answers(
    live: &SessionInfo,
    history: &SessionInfo,
    is_partial: bool,
) -> Option<Difference> {
    let side = match live.answers.cmp(&history.answers) {
        Ordering::Equal => return None,
        Ordering::Greater => Side::Live,
        Ordering::Less => Side::History,
    };
    let has_failed = |info: &SessionInfo| info.status == SessionStatus::Failed;
    let is_only_turn = has_failed(live) && has_failed(history) && history.turns <= 1;
    let subject = match side {
        Side::History if is_partial => EARLIER,
        _ if is_only_turn => "session.answers of a failed turn",
        _ => "session.answers",
    };
    let shown = format!("{} / {}", live.answers, history.answers);
    Some(Difference { what: subject.to_owned(), side, shown, reason: None })
}

/// Groups items by their parent, in order; the session's own items have an empty parent.
fn group_items(items: &Items) -> BTreeMap<String, Vec<Value>> {
    let mut out: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for item in items.ordered() {
        let parent = item.parent.as_deref().unwrap_or_default();
        out.entry(parent.to_owned()).or_default().push(normalize(item));
    }
    out
}

/// Removes the fields of an item that may differ.
fn normalize(item: &Item) -> Value {
    let mut value = serde_json::to_value(item).unwrap_or_default();
    let Some(map) = value.as_object_mut() else { return value };
    for key in ["order", "timestamp", "blockId", "origin", "isStreaming", "parentToolCallId"] {
        map.remove(key);
    }
    // The id of another item, derived from a position.
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
        // The session file records the decision, not the label of the option.
        if let Some(permission) = call.get_mut("permission").and_then(Value::as_object_mut) {
            permission.remove("option");
            permission.remove("waitedMs");
        }
    }
    value
}

/// The key that identifies an item on both sides.
fn identity(item: &Value) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "tool_call" => format!("tool_call {}", text("id")),
        kind @ ("question" | "plan") => format!("{kind} {}", text("toolCallId")),
        "background_task" => format!("background_task {}", text("taskId")),
        _ => item.to_string(),
    }
}

/// The kind of an item, as the table of accepted differences names it.
fn item_kind(item: &Value, in_subagent: bool) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut kind = text("type").to_owned();
    if kind == "notice" {
        kind = format!("notice {}", text("kind"));
    }
    if in_subagent { format!("{kind} of a subagent") } else { kind }
}

fn compare_group(live: &[Value], history: &[Value], in_subagent: bool, out: &mut Vec<Difference>) {
    let identities = |items: &[Value]| items.iter().map(identity).collect::<Vec<_>>();
    let (a, b) = (identities(live), identities(history));
    let mut any_equal = false;
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            any_equal = true;
            for (x, y) in live[old].iter().zip(&history[new]) {
                compare_fields(x, y, in_subagent, out);
            }
            continue;
        }
        // A stream that starts in the middle of a session lacks these items.
        let is_earlier = !any_equal && !in_subagent && old.is_empty();
        for item in &live[old] {
            out.push(missing_item(item_kind(item, in_subagent), Side::Live, item));
        }
        for item in &history[new] {
            let kind = item_kind(item, in_subagent);
            let is_prompt = kind == "user_message" || kind.starts_with("notice command");
            let subject = if is_earlier && !is_prompt { EARLIER.to_owned() } else { kind };
            out.push(missing_item(subject, Side::History, item));
        }
    }
}

fn missing_item(subject: String, side: Side, item: &Value) -> Difference {
    Difference { what: subject, side, shown: ellipsize(&item.to_string()), reason: None }
}

/// Compares the fields of two versions of an item.
fn compare_fields(live: &Value, history: &Value, in_subagent: bool, out: &mut Vec<Difference>) {
    let kind = live.get("type").and_then(Value::as_str).unwrap_or_default();
    let fields = |item: &Value| -> Map<String, Value> {
        let map = item.get("toolCall").unwrap_or(item).as_object();
        map.cloned().unwrap_or_default()
    };
    let (x, y) = (fields(live), fields(history));
    let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let text = |map: &Map<String, Value>, key: &str| {
        map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_offloaded = text(&y, "rawOutput").len() > text(&x, "rawOutput").len()
        && x.get("truncated") == Some(&Value::Bool(true))
        && y.get("truncated") == Some(&Value::Bool(false));
    for key in keys {
        let side = match (x.get(key), y.get(key)) {
            (Some(p), Some(q)) if p == q => continue,
            (Some(_), Some(_)) => Side::Both,
            (Some(_), None) => Side::Live,
            (None, _) => Side::History,
        };
        let is_output = is_offloaded && (key == "rawOutput" || key == "truncated");
        let field = if is_output { "offloaded" } else { key };
        let suffix = if in_subagent { " of a subagent" } else { "" };
        let value = |map: &Map<String, Value>| {
            map.get(key).map_or("(nothing)".to_owned(), |v| ellipsize(&v.to_string()))
        };
        let shown = format!("{} / {}", value(&x), value(&y));
        out.push(Difference { what: format!("{kind}.{field}{suffix}"), side, shown, reason: None });
    }
}

/// Shortens a text to the length of a line.
fn ellipsize(text: &str) -> String {
    let short: String = text.chars().take(MAX_VALUE_CHARS).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
