//! Items that no recorded session has: odd orders, hostile texts, texts that grow.

use super::fixture::RecordedSession;
use super::{CASES, html_page, markdown, options, terminal_text};
use crate::TranscriptPrinter;
use crate::json;
use crate::nesting::for_each_item;
use narrows::Item;
use serde_json::{Value, json};

/// Parses an item as the store does.
fn item(value: &Value) -> Item {
    narrows::stored::item(&value.to_string()).unwrap()
}

fn text_item(order: u64, parent: Option<&str>, content: &str) -> Item {
    let mut value = json!({"type": "text", "id": format!("t{order}"), "order": order,
        "timestamp": null, "content": content, "isStreaming": false});
    if let Some(parent) = parent {
        value["parentToolCallId"] = parent.into();
    }
    item(&value)
}

fn call_item(order: u64, parent: Option<&str>, id: &str, status: &str) -> Item {
    let mut value = json!({"type": "tool_call", "id": id, "order": order, "timestamp": null,
        "toolCall": {"id": id, "toolName": "task", "kind": "task", "isTodo": false,
            "status": status, "title": "Running task", "description": format!("Work {id}")}});
    if let Some(parent) = parent {
        value["parentToolCallId"] = parent.into();
    }
    item(&value)
}

fn print_all(items: &[Item]) -> String {
    let mut printer = TranscriptPrinter::new(Vec::new(), options(false, false));
    items.iter().for_each(|item| printer.item(item).unwrap());
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

fn interleaved_items() -> Vec<Item> {
    vec![
        call_item(0, None, "a", "completed"),
        call_item(1, None, "b", "completed"),
        text_item(2, Some("a"), "a one"),
        text_item(3, Some("b"), "b one"),
        call_item(4, Some("a"), "c", "completed"),
        text_item(5, None, "main"),
        text_item(6, Some("c"), "c one"),
        text_item(7, Some("b"), "b two"),
        text_item(8, Some("a"), "a two"),
        text_item(9, Some("lost"), "nobody's"),
        text_item(10, None, "end"),
    ]
}

#[test]
fn children_follow_their_call() {
    let case = RecordedSession::of(interleaved_items());
    let mut orders = Vec::new();
    for_each_item(&case, |item| {
        orders.push(item.order);
        Ok::<(), std::io::Error>(())
    })
    .unwrap();
    assert_eq!(orders, [0, 2, 4, 6, 8, 1, 3, 7, 5, 9, 10]);
}

#[test]
fn interleaved_subagents_get_headings() {
    let expected = "  ✓ Task Work a\n  ✓ Task Work b\n\n  │ ⤷ Work a\n  │\n  │ a one\n\n  │ ⤷ Work b\n  │\n  │ b one\n\n  │ ⤷ Work a\n  │   ✓ Task Work c\n\nmain\n\n  │   │ ⤷ Work c\n  │   │\n  │   │ c one\n\n  │ ⤷ Work b\n  │\n  │ b two\n\n  │ ⤷ Work a\n  │\n  │ a two\n\n  │ ⤷ subagent\n  │\n  │ nobody's\n\nend\n";
    assert_eq!(print_all(&interleaved_items()), expected);
}

/// Updates an item repeatedly while its text grows.
#[test]
fn growing_text_is_printed_once() {
    let content = "# Title\n\nSome **bold** words.\n\n- one\n- two\n\n```\ncode\n```\nEnd";
    let at = |n: usize, streams: bool| {
        let content: String = content.chars().take(n).collect();
        item(&json!({"type": "text", "id": "t", "order": 1, "timestamp": null,
            "content": content, "isStreaming": streams}))
    };
    let length = content.chars().count();
    let whole = print_all(&[
        call_item(0, None, "a", "completed"),
        at(length, false),
        text_item(2, None, "x"),
    ]);
    for step in 1..9 {
        let mut printer = TranscriptPrinter::new(Vec::new(), options(false, false));
        printer.update(&call_item(0, None, "a", "in_progress")).unwrap();
        printer.update(&call_item(0, None, "a", "completed")).unwrap();
        printer.update(&call_item(0, None, "a", "completed")).unwrap();
        for n in (0..length).step_by(step) {
            printer.update(&at(n, true)).unwrap();
        }
        printer.update(&at(length, false)).unwrap();
        printer.update(&at(length, false)).unwrap();
        printer.update(&text_item(2, None, "x")).unwrap();
        printer.update(&at(length, false)).unwrap();
        let out = String::from_utf8(printer.finish().unwrap()).unwrap();
        assert_eq!(out, whole, "{step}");
    }
}

#[test]
fn interrupted_text_continues_after_its_printed_part() {
    let grown = |content: &str, streams: bool| {
        item(&json!({"type": "text", "id": "t", "order": 1, "timestamp": null,
            "content": content, "isStreaming": streams}))
    };
    let mut printer = TranscriptPrinter::new(Vec::new(), options(false, false));
    printer.update(&grown("One.\n\nTwo", true)).unwrap();
    printer.update(&text_item(2, None, "Between.")).unwrap();
    printer.update(&grown("One.\n\nTwo.\n\nThree.", false)).unwrap();
    printer.update(&grown("Another.", false)).unwrap();
    let out = String::from_utf8(printer.finish().unwrap()).unwrap();
    assert_eq!(out, "One.\n\nTwo\n\nBetween.\n\n.\n\nThree.\n\nAnother.\n");
}

/// Surrounds a text with sequences that must not reach a terminal or a browser.
fn hostile(content: &str) -> String {
    format!(
        "{content}\u{1b}]0;pwn\u{7}\u{1b}[2J\u{9b}5m\u{9d}8;;x\u{9c}\r\u{8}\u{202e}\u{1b}[8mgone\u{1b}P\u{7f}<script>x</script>\" onload=x '`~~~|*\u{1b}["
    )
}

fn poison(value: &mut Value, key: &str) {
    // Enumerated values and ids.
    const UNCHANGED_FIELDS: &[&str] = &[
        "type",
        "status",
        "toolName",
        "kind",
        "id",
        "timestamp",
        "origin",
        "scope",
        "action",
        "blob",
        "parentToolCallId",
        "toolCallId",
    ];
    match value {
        Value::String(text) if !UNCHANGED_FIELDS.contains(&key) => *text = hostile(text),
        Value::Array(list) => list.iter_mut().for_each(|v| poison(v, key)),
        Value::Object(map) => {
            // The kind of a notice and of an option is the agent's own word.
            let keys = if map.contains_key("optionId") { "name" } else { "" };
            for (name, v) in map.iter_mut() {
                poison(v, if keys.is_empty() { name } else { keys });
            }
        }
        _ => {}
    }
}

fn poisoned(name: &str) -> RecordedSession {
    let mut case = RecordedSession::read(name);
    for item in &mut case.items {
        let mut value = serde_json::to_value(&*item).unwrap();
        poison(&mut value, "");
        *item = self::item(&value);
    }
    let mut info: Value = serde_json::from_str(&case.info).unwrap();
    poison(&mut info, "");
    case.info = info.to_string();
    case
}

/// Removes our own colors: numbers between `ESC [` and `m`.
fn without_own_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (params, rest) = part.split_once('m').unwrap();
        assert!(params.bytes().all(|c| c.is_ascii_digit() || c == b';'), "{params:?}");
        assert!(!params.split(';').any(|p| p == "8" || p == "5"), "{params:?}");
        out.push_str(rest);
    }
    out
}

fn is_harmless(text: &str) -> bool {
    let is_unsafe =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| is_unsafe(c) && c != '\n' && c != '\t')
}

#[test]
fn hostile_text_is_neutralized_in_every_format() {
    for name in CASES {
        let case = poisoned(name);
        for all in [false, true] {
            assert!(is_harmless(&terminal_text(&case, options(false, all))), "{name}");
            assert!(
                is_harmless(&without_own_colors(&terminal_text(&case, options(true, all)))),
                "{name}"
            );
            let md = markdown(&case, &options(false, all));
            assert!(is_harmless(&md), "{name}");
        }
        let mut lines = Vec::new();
        json::write_lines(&mut lines, &case).unwrap();
        assert!(is_harmless(&String::from_utf8(lines).unwrap()), "{name}");
        let html = html_page(&case);
        assert!(is_harmless(&html), "{name}");
        assert_only_known_tags(&html);
    }
}

fn assert_only_known_tags(html: &str) {
    const TAGS: &[&str] = &[
        "!doctype",
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "section",
        "div",
        "details",
        "summary",
        "span",
        "b",
        "code",
        "pre",
        "time",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "ins",
        "del",
        "img",
        "strong",
        "em",
        "br",
        "hr",
        "a",
        "blockquote",
        "table",
        "tr",
        "th",
        "td",
    ];
    const ATTRIBUTES: &[&str] = &[
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "alt",
        "src",
        "start",
        "href",
        "rel",
    ];
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        assert!(TAGS.contains(&name), "{tag}");
        // Attribute names stand outside the quotes.
        let outside: String = tag.split('"').step_by(2).collect();
        for word in outside.split_whitespace().skip(1).filter(|w| *w != "html") {
            assert!(ATTRIBUTES.contains(&word.trim_end_matches('=')), "{tag}");
        }
    }
}
