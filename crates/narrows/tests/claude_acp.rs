//! The same scenarios of Claude Code, kept by itself and recorded over the Agent Client Protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::Items;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What the same scenarios, recorded through the adapter of the Agent Client Protocol, lack or have
/// otherwise: scenario, what, why.
const OVER_ACP: &[(&str, &str, &str)] = &[
    ("d-bash", "rawOutput", "output that is too long is in a file of the history"),
    ("e-search", "rawOutput", "a listing of files tells the time of the run"),
    ("g-subagent", "user_message", "what a subagent is asked is not carried"),
    ("h-permission-reject", "error", "the client refused, where the other run had nobody to ask"),
    ("i-error-400", "text", "an error of the model is said as if the agent had said it"),
    ("i-error-500-final", "text", "an error of the model is said as if the agent had said it"),
    ("i-error", "notice", "retries are not carried"),
    ("i-max-tokens", "notice", "that an answer was cut off is not carried"),
    ("i-refusal", "notice", "why an answer ended before the turn did is not carried"),
    ("j-interrupt-tool", "status", "a call that was stopped is told as failed"),
    ("j-interrupt-tool", "error", "and its reason as the text for the model"),
    ("j-interrupt-tool", "notice", "the interruption itself is not carried"),
    ("o-plan-mode", "", "only the other run was offered the tool that presents a plan"),
    ("q-compact", "calls", "a compaction is told as a call"),
    ("q-compact", "compaction", "its summary is not carried"),
    ("q-compact", "notice", "of a command only the prompt is carried"),
    ("q-compact", "user_message", "of a command only the prompt is carried"),
];

/// The session's own items of a kind.
fn own<'a>(items: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    items.iter().filter(move |i| i["type"] == kind && i["parentToolCallId"].is_null())
}

#[test]
fn the_same_scenarios_over_acp_agree() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    let mut used = BTreeSet::new();
    for case in common::cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let Some(scenario) = name.strip_prefix("claude-acp-") else { continue };
        let kept = common::fixtures().join(format!("claude-history/2.1-{scenario}"));
        if !kept.exists() {
            continue;
        }
        compared += 1;
        let acp = common::items_json(&items(&case));
        let own_form = common::items_json(&items(&kept));
        for (what, shown) in over_acp(&acp, &own_form) {
            let row = OVER_ACP
                .iter()
                .position(|(s, w, _)| scenario.starts_with(s) && (w.is_empty() || *w == what));
            match row {
                Some(row) => drop(used.insert(row)),
                None => wrong.push(format!("{scenario}: {what}: {shown}")),
            }
        }
    }
    assert!(compared > 20, "only {compared}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let idle: Vec<_> = (0..OVER_ACP.len()).filter(|i| !used.contains(i)).collect();
    assert!(idle.is_empty(), "nothing needs the rows {idle:?}");
}

/// What differs: words, calls and their ends, results, diffs, and how many there are of the rest.
fn over_acp(acp: &[Value], own_form: &[Value]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let words = |items: &[Value]| -> String {
        let texts = own(items, "text").filter_map(|i| i["content"].as_str());
        texts.flat_map(str::split_whitespace).collect()
    };
    if words(acp) != words(own_form) {
        found.push(("text".to_owned(), format!("{} / {}", words(acp), words(own_form))));
    }
    for kind in ["user_message", "notice", "error", "compaction", "todo_list", "plan", "thinking"] {
        let (a, b) = (own(acp, kind).count(), own(own_form, kind).count());
        let inside = |items: &[Value]| items.iter().filter(|i| i["type"] == kind).count();
        let all = kind == "user_message" && inside(acp) != inside(own_form);
        if a != b || all {
            found.push((kind.to_owned(), format!("{a} / {b}")));
        }
    }
    let calls = |items: &[Value]| -> Vec<Value> {
        let calls = items.iter().filter(|i| i["type"] == "tool_call");
        calls.map(|i| i["toolCall"].clone()).collect()
    };
    let (a, b) = (calls(acp), calls(own_form));
    let names = |list: &[Value]| list.iter().map(|c| c["toolName"].clone()).collect::<Vec<_>>();
    if names(&a) != names(&b) {
        found.push(("calls".to_owned(), format!("{:?} / {:?}", names(&a), names(&b))));
        return found;
    }
    for (x, y) in a.iter().zip(&b) {
        let text = |c: &Value, key: &str| c[key].as_str().unwrap_or_default().trim().to_owned();
        // An edit's output is its new text, of which this wire carries a part.
        let diffs = !x["diffs"].is_null();
        let keys = [
            "status",
            "kind",
            "exitCode",
            "filePath",
            "command",
            "isNewFile",
            "taskOutput",
            "error",
            "rawOutput",
            "images",
        ];
        for key in keys.iter().filter(|k| !(diffs && **k == "rawOutput")) {
            let same =
                x[key] == y[key] || (!text(x, key).is_empty() && text(x, key) == text(y, key));
            let empty = |v: &Value| v.is_null() || v == "";
            let nothing = empty(&x[key]) && empty(&y[key]);
            if !(same || nothing) {
                found.push(((*key).to_owned(), format!("{} / {}", x[key], y[key])));
            }
        }
        for (p, q) in x["diffs"]
            .as_array()
            .unwrap_or(&vec![])
            .iter()
            .zip(y["diffs"].as_array().unwrap_or(&vec![]))
        {
            let part = |key: &str| text(q, key).contains(&text(p, key));
            if p["path"] != q["path"] || !part("oldText") || !part("newText") {
                found.push(("diffs".to_owned(), format!("{p} / {q}")));
            }
        }
    }
    found
}

fn items(case: &Path) -> Items {
    let mut items = common::items(&common::run_case(case, common::config(case)));
    items.settle();
    items
}
