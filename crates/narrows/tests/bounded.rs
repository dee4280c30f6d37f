//! What a session keeps in memory is bounded, and long texts go on in parts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use narrows::item::ItemBody;
use narrows::limits::{
    MAX_ENDED_CALLS, MAX_ITEM_OUTPUT_BYTES, MAX_ITEM_TEXT_BYTES, MAX_TRACKED_CALLS,
};
use narrows::{Config, Item, Items, Packets, Pipeline};
use serde_json::{Value, json};

/// A session that is read line by line.
struct Session {
    pipeline: Pipeline,
    packets: Packets,
    items: Items,
}

impl Session {
    fn new() -> Session {
        Session {
            pipeline: Pipeline::new(Config::default()),
            packets: Packets::default(),
            items: Items::new(),
        }
    }

    fn line(&mut self, line: &Value) {
        let mut steps = Vec::new();
        let Session { pipeline, packets, items } = self;
        packets.push(format!("{line}\n").as_bytes(), |given| pipeline.push(given, &mut steps));
        steps.into_iter().flat_map(|s| s.changes).for_each(|change| items.apply(change));
    }

    fn finish(mut self) -> Items {
        let mut steps = Vec::new();
        self.pipeline.finish(&mut steps);
        steps.into_iter().flat_map(|s| s.changes).for_each(|change| self.items.apply(change));
        self.items
    }

    /// Goes on with a new pipeline, which knows only the items.
    fn cut(&mut self, lines: u64) {
        let last = narrows::id::EventId { source: 0, packet: lines, index: u32::MAX };
        let config = Config { format: self.pipeline.format(), ..Config::default() };
        assert!(self.pipeline.is_at_rest(), "something is held back");
        self.pipeline = Pipeline::resume(config, &self.items, [last]);
    }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// Lines of letters of one to four bytes, more than two items have room for.
fn long() -> String {
    let line = "a text of the agent, é ü, 日本語のテキスト, 😀 and so on and on\n";
    line.repeat(2 * MAX_ITEM_TEXT_BYTES / line.len() + 2000)
}

/// The pieces of a text, about so many bytes each.
fn pieces(text: &str, size: usize) -> Vec<&str> {
    let (mut rest, mut out) = (text, Vec::new());
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        out.push(piece);
        rest = more;
    }
    out
}

fn text_of(item: &Item) -> &str {
    match &item.body {
        ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. } => content,
        ItemBody::UserMessage { text, .. } => text,
        other => panic!("{}", other.kind()),
    }
}

/// Checks that items are the parts of one text, as long as they may be.
fn is_one(items: &[&Item], text: &str) {
    let joined: String = items.iter().map(|item| text_of(item)).collect();
    assert!(joined == text, "{} bytes instead of {}", joined.len(), text.len());
    for (before, item) in items.iter().zip(&items[1..]) {
        assert_eq!(item.continues.as_ref(), Some(&before.id));
        let length = text_of(before).len();
        assert!(length <= MAX_ITEM_TEXT_BYTES && length > MAX_ITEM_TEXT_BYTES - 4, "{length}");
        assert!(!before.is_open());
    }
    assert_eq!(items[0].continues, None);
    assert!(text_of(items.last().unwrap()).len() <= MAX_ITEM_TEXT_BYTES);
}

#[test]
fn a_long_text_goes_on_in_parts_whatever_pieces_it_came_in() {
    let text = long();
    let whole = |size: usize, kind: &str| {
        let mut session = Session::new();
        pieces(&text, size).into_iter().for_each(|piece| session.line(&chunk(kind, piece)));
        session.line(&chunk("agent_message_chunk", "other"));
        session.finish()
    };
    let of = |items: &Items| {
        let items = items.ordered();
        items.into_iter().map(|item| text_of(item).to_owned()).collect::<Vec<_>>()
    };
    for kind in ["agent_thought_chunk", "user_message_chunk"] {
        let at_once = whole(text.len(), kind);
        let items = at_once.ordered();
        let (last, parts) = items.split_last().unwrap();
        assert_eq!((parts.len(), text_of(last)), (3, "other"));
        is_one(parts, &text);
        for size in [1000, 100_001, MAX_ITEM_TEXT_BYTES] {
            assert!(of(&whole(size, kind)) == of(&at_once), "pieces of {size} bytes");
        }
    }
}

#[test]
fn a_text_in_parts_goes_on_after_a_cut() {
    let text = long();
    let mut session = Session::new();
    let mut lines = 0;
    for (at, piece) in pieces(&text, 40_000).into_iter().enumerate() {
        // Ends of lines hold nothing back.
        session.line(&chunk("agent_message_chunk", piece));
        lines += 1;
        if piece.ends_with('\n') && session.pipeline.is_at_rest() && at % 3 == 0 {
            session.cut(lines);
        }
    }
    is_one(&session.finish().ordered(), &text);
}

/// A block of Claude Code's stream, in pieces, and as it is at its end.
fn block(session: &mut Session, streamed: &str, last: &str) {
    let event = |event: Value| {
        json!({"type": "stream_event", "event": event, "session_id": "s",
               "parent_tool_use_id": null, "uuid": "u"})
    };
    session
        .line(&event(json!({"type": "message_start", "message": {"id": "m1", "role": "assistant",
        "model": "x", "content": [], "usage": {}}})));
    session.line(&event(json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": ""}})));
    for piece in pieces(streamed, 50_000) {
        session.line(&event(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": piece}})));
    }
    let content = json!([{"type": "text", "text": last}]);
    session.line(&json!({"type": "assistant", "session_id": "s", "uuid": "a", "parent_tool_use_id": null,
        "message": {"id": "m1", "role": "assistant", "type": "message", "model": "x", "content": content}}));
}

#[test]
fn the_final_text_has_as_many_parts_as_it_needs() {
    let text = long();
    let short = "short at its end.";
    for (streamed, last) in [(&*text, &*text), (&text, short), (short, &text)] {
        let mut session = Session::new();
        session.line(&json!({"type": "system", "subtype": "init", "session_id": "s", "model": "x",
            "cwd": "/srv/run-7/app", "tools": []}));
        block(&mut session, streamed, last);
        let items = session.finish();
        let items = items.ordered();
        is_one(&items, last);
        assert!(items.iter().all(|item| !item.is_open()));
    }
}

fn call(id: &str, status: &str) -> Value {
    json!({"sessionUpdate": if status == "pending" { "tool_call" } else { "tool_call_update" },
           "toolCallId": id, "title": "bash", "kind": "execute", "status": status,
           "rawInput": {"command": format!("run {id}")}})
}

#[test]
fn calls_that_are_over_are_not_kept() {
    let mut session = Session::new();
    for n in 0..3 * MAX_ENDED_CALLS {
        let id = format!("c{n}");
        session.line(&call(&id, "pending"));
        session.line(&call(&id, "completed"));
        assert!(session.pipeline.tracked_calls() <= MAX_ENDED_CALLS + 1);
    }
    assert_eq!(session.items.ordered().len(), 3 * MAX_ENDED_CALLS);
    // News of one that ended long ago complete its item.
    session.line(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c0", "status": "completed",
        "rawOutput": {"output": "late", "metadata": {"exit": 0}}}),
    );
    // And of those that are over, nothing begins anew.
    session.line(&call("c1", "in_progress"));
    let items = session.finish();
    assert_eq!(items.ordered().len(), 3 * MAX_ENDED_CALLS);
    let first = serde_json::to_value(items.get("c0").unwrap()).unwrap();
    assert_eq!(first["toolCall"]["rawOutput"], "late");
    assert_eq!(first["toolCall"]["command"], "run c0");
    assert_eq!(first["toolCall"]["title"], "Running command");
    assert_eq!(first["toolCall"]["status"], "completed");
    let second = serde_json::to_value(items.get("c1").unwrap()).unwrap();
    assert_eq!(second["toolCall"]["status"], "completed");
}

#[test]
fn calls_that_do_not_end_are_bounded_and_can_still_end() {
    let mut session = Session::new();
    for n in 0..MAX_TRACKED_CALLS + 100 {
        session.line(&call(&format!("c{n}"), "pending"));
    }
    assert!(session.pipeline.tracked_calls() <= MAX_TRACKED_CALLS);
    session.line(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c0", "status": "completed",
        "rawOutput": {"output": "done", "metadata": {"exit": 0}}}),
    );
    let items = session.finish();
    assert_eq!(items.ordered().len(), MAX_TRACKED_CALLS + 100);
    let first = serde_json::to_value(items.get("c0").unwrap()).unwrap();
    assert_eq!(first["toolCall"]["status"], "completed");
    assert_eq!(first["toolCall"]["command"], "run c0");
    assert_eq!(first["toolCall"]["rawOutput"], "done");
}

#[test]
fn output_that_grows_without_end_is_cut_and_says_so() {
    let mut session = Session::new();
    session.line(&call("c", "pending"));
    let piece = "0123456789abcde\n".repeat(1 << 16);
    for _ in 0..MAX_ITEM_OUTPUT_BYTES / piece.len() + 2 {
        session.line(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress",
            "_meta": {"terminal_output_delta": {"data": piece, "terminal_id": "c"}}}),
        );
    }
    session.line(&call("c", "completed"));
    let items = session.finish();
    let item = serde_json::to_value(items.get("c").unwrap()).unwrap();
    assert_eq!(item["toolCall"]["rawOutput"].as_str().unwrap().len(), MAX_ITEM_OUTPUT_BYTES);
    assert_eq!(item["toolCall"]["truncated"], true);
    assert_eq!(item["toolCall"]["status"], "completed");
}
