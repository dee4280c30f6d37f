//! Inputs that make careless code slow: 18 shapes, each of any size.

use super::generate::{ROOT, Session};
use serde_json::{Value, json};

fn chunk(text: &str) -> String {
    json!({"type": "agent_message_chunk", "content": {"type": "text", "text": text}}).to_string()
}

fn start(id: &str, title: &str) -> String {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "execute", "rawInput": {}})
        .to_string()
}

fn progress(id: &str, title: &str, input: &Value, output: &str) -> String {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "title": title, "status": "completed",
        "rawInput": input, "rawOutput": {"output": output}})
    .to_string()
}

fn lines(list: impl Iterator<Item = String>) -> Vec<u8> {
    let mut out = Vec::new();
    for line in list {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out
}

/// A command whose output is `text`.
fn output(text: &str) -> Vec<u8> {
    let ls = json!({"command": "ls"});
    lines([start("t", "bash"), progress("t", "bash", &ls, text)].into_iter())
}

/// What makes the shape of a given size.
pub(crate) type Make = fn(usize) -> Vec<u8>;

/// Every shape by name.
pub(crate) const SHAPES: &[(&str, Make)] = &[
    ("events", |n| {
        let mut all = Session::new(7, 0).make(n * 260);
        let end = all.iter().enumerate().filter(|(_, c)| **c == b'\n').nth(n.max(1) - 1);
        let end = end.map_or(all.len(), |(i, _)| i + 1);
        all.truncate(end);
        all
    }),
    ("chunks", |n| lines((0..n).map(|i| chunk(&format!("word {i}"))))),
    ("chunks-nospace", |n| lines((0..n).map(|_| chunk("abc/")))),
    ("open-tools", |n| {
        let opened = (0..n).map(|i| start(&format!("t{i}"), "bash"));
        let ls = json!({"command": "ls"});
        lines(opened.chain((0..n).map(|i| progress(&format!("t{i}"), "bash", &ls, "x"))))
    }),
    ("same-tool", |n| {
        let ls = json!({"command": "ls"});
        let rest = (0..n).map(|i| progress("t", "bash", &ls, &format!("x{i}")));
        lines(std::iter::once(start("t", "bash")).chain(rest))
    }),
    ("orphans", |n| lines((0..n).map(|i| progress(&format!("o{i}"), "bash", &json!({}), "x")))),
    ("todos", |n| {
        lines((0..n).map(|i| {
            let todos = json!({"todos": [{"content": format!("c{i}"), "status": "pending"}]});
            progress(&format!("d{}", i % 50), "todowrite", &todos, "")
        }))
    }),
    ("slashes", |n| output(&"/a".repeat(n))),
    ("anchors", |n| output(&format!("{ROOT}/x ").repeat(n))),
    ("near-anchors", |n| output(&"/sessions/".repeat(n))),
    ("anchor-run", |n| output(&"/sessions/a-".repeat(n))),
    // Texts that are nothing but beginnings of something to hide.
    ("jwt-run", |n| output(&"eyJ".repeat(n))),
    ("token-run", |n| output(&"sk-ant-ghp_AKIA".repeat(n))),
    ("assignments", |n| output(&"token=a1".repeat(n))),
    ("keys-in-vain", |n| output(&"password: x1 y ".repeat(n))),
    ("logins", |n| output(&"://a:b@".repeat(n))),
    ("at-signs", |n| output(&"@".repeat(n))),
    ("key-headers", |n| output(&"-----BEGIN PRIVATE KEY-----\n".repeat(n))),
    ("colours", |n| output(&"\u{1b}[1mx\u{1b}[0m".repeat(n))),
    ("open-escapes", |n| output(&"\u{1b}]0;".repeat(n))),
    ("percents", |n| output(&"%25".repeat(n))),
    ("backslashes", |n| output(&"\\".repeat(n))),
    ("blanks", |n| output(&" ".repeat(n))),
    ("invisible", |n| output(&"\u{200b}/".repeat(n))),
    ("roots-inside", |n| output(&format!("/x{ROOT}").repeat(n / 8))),
    ("words", |n| output(&"a/b ".repeat(n))),
    ("text-in-bits", |n| {
        let piece = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "/a"}});
        lines((0..n).map(|_| piece.to_string()))
    }),
    ("file-open", |n| {
        let text = "<file>\n".repeat(n);
        let read = json!({"sessionUpdate": "tool_call_update", "toolCallId": "r", "title": "read", "kind": "read",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}]});
        lines([start("r", "read"), read.to_string()].into_iter())
    }),
    ("task-open", |n| {
        let task = json!({"subagent_type": "x"});
        let text = "<task_metadata>".repeat(n);
        lines([start("k", "task"), progress("k", "task", &task, &text)].into_iter())
    }),
    ("escapes", |n| output(&"\\\"\n".repeat(n))),
    ("deep", |n| {
        let nested = format!("{}{}", "[".repeat(n), "]".repeat(n));
        lines(std::iter::once(format!("{{\"type\":\"agent_message_chunk\",\"content\":{nested}}}")))
    }),
    ("many-keys", |n| {
        let keys: Vec<String> = (0..n).map(|i| format!("\"k{i}\":1")).collect();
        let line = format!("{{{},\"type\":\"error\",\"message\":\"m\"}}", keys.join(","));
        lines(std::iter::once(line))
    }),
    ("long-garbage", |n| lines(std::iter::once("x".repeat(n * 100)))),
    ("unclosed-string", |n| {
        lines(std::iter::once(format!("{{\"type\":\"error\",\"message\":\"{}", "y\\\"".repeat(n))))
    }),
];
