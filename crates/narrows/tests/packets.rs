//! Packets of texts that are too long for one item.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::{Config, Format};
use serde_json::{Value, json};

/// A message of Claude Code that streams and then comes whole.
fn streamed(text: &str, piece: usize) -> String {
    let event = |event: Value| json!({"type": "stream_event", "session_id": "s", "event": event});
    let mut lines = vec![
        json!({"type": "system", "subtype": "init", "session_id": "s", "cwd": "/srv/app"}),
        event(json!({"type": "message_start", "message": {"id": "m1", "role": "assistant"}})),
        event(json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}})),
    ];
    for piece in text.as_bytes().chunks(piece) {
        let delta = json!({"type": "text_delta", "text": String::from_utf8_lossy(piece)});
        lines.push(event(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    }
    lines.push(json!({"type": "assistant", "session_id": "s", "uuid": "u1", "message":
        {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": text}]}}));
    lines.push(event(json!({"type": "content_block_stop", "index": 0})));
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

#[test]
fn a_long_text_is_told_once() {
    let text = "some words of a text\n".repeat(150_000);
    let config = || Config { format: Format::ClaudeStream, ..Config::default() };
    for (piece, items) in [(5_000, 4), (text.len(), 4), (900_000, 4)] {
        let steps = common::run(config(), streamed(&text, piece).as_bytes());
        let shown = common::items(&steps);
        let shown = shown.iter().filter(|i| matches!(i.body, narrows::item::ItemBody::Text { .. }));
        assert_eq!(shown.count(), items, "pieces of {piece}");
        let packets = common::packets_text(&steps);
        let packets = packets.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let said = packets.filter(|p| p["type"] == "agent_message_chunk");
        let said = said.map(|p| p["content"]["text"].as_str().unwrap().to_owned());
        let said: String = said.collect();
        assert_eq!(said.len(), text.len(), "pieces of {piece}");
        assert!(said == text);
    }
}
