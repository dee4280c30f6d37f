//! Texts in parts render as one text.

use super::fixture::RecordedSession;
use super::{html_page, json, markdown, options, terminal_text};
use crate::TranscriptPrinter;
use narrows::Item;
use narrows::limits::TEXT_PART;
use serde_json::{Value, json};

fn item(value: &Value) -> Item {
    narrows::stored::item(&value.to_string()).unwrap()
}

/// Returns the items of one text in parts of at most `part` bytes, between two notices.
fn items(kind: &str, text: &str, part: usize) -> Vec<Item> {
    let field = if kind == "user_message" { "text" } else { "content" };
    let note = |order: usize| {
        item(
            &json!({"type": "notice", "id": format!("n{order}"), "order": order, "timestamp": null,
            "kind": "note", "text": "a note"}),
        )
    };
    let mut out = vec![note(0)];
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(part.min(rest.len())));
        let n = out.len();
        let mut value = json!({"type": kind, "id": format!("t{n}"), "order": n, "timestamp": null,
            field: piece, "isStreaming": false});
        if n > 1 {
            value["continues"] = format!("t{}", n - 1).into();
        }
        if kind == "user_message" {
            (value["origin"], value["images"]) = ("client".into(), json!([]));
        }
        out.push(item(&value));
        rest = more;
    }
    out.push(note(9));
    out
}

/// Returns paragraphs, lists and code of more than one part; the first part ends inside the code.
fn long_markdown() -> String {
    let prose =
        "Some words of a text, and **more** of it é 日本語.\n\n1. one\n2. two\n\n".repeat(14_000);
    let code = "let a = vec![1, 2, 3]; // <b>no HTML</b>\n\n".repeat(5_000);
    let after = "After it.\n\n".repeat(1000);
    let text = format!("{prose}```rust\n{code}```\n\n{after}The end.");
    assert!(prose.len() < TEXT_PART && text.len() > TEXT_PART + 10_000, "{}", prose.len());
    assert!(text.len() < 2 * TEXT_PART);
    text
}

fn json_lines(items: &[Item]) -> String {
    let mut out = Vec::new();
    json::write_lines(&mut out, &RecordedSession::of(items.to_vec())).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_in_parts_renders_as_one_text() {
    let text_in = long_markdown();
    let (parts, whole) = (items("text", &text_in, TEXT_PART), items("text", &text_in, usize::MAX));
    assert_eq!((parts.len(), whole.len()), (4, 3));
    let (parts, whole) = (RecordedSession::of(parts), RecordedSession::of(whole));
    for all in [false, true] {
        let same = terminal_text(&parts, options(false, all))
            == terminal_text(&whole, options(false, all));
        assert!(same, "for a terminal");
        assert!(
            markdown(&parts, &options(false, all)) == markdown(&whole, &options(false, all)),
            "Markdown"
        );
    }
    assert!(html_page(&parts) == html_page(&whole), "HTML");
}

#[test]
fn text_in_parts_is_one_json_item() {
    for kind in ["text", "thinking", "user_message"] {
        let text = format!("\"quoted\" \u{202e}{}", long_markdown());
        let (parts, whole) = (items(kind, &text, TEXT_PART), items(kind, &text, usize::MAX));
        assert!(json_lines(&parts) == json_lines(&whole), "{kind}");
        let field = if kind == "user_message" { "text" } else { "content" };
        let printed = json_lines(&parts);
        let second: Value = serde_json::from_str(printed.lines().nth(1).unwrap()).unwrap();
        assert!(second[field] == text.as_str());
    }
}

#[test]
fn user_message_in_parts_has_one_heading() {
    let parts = RecordedSession::of(items("user_message", &"asked\n".repeat(300_000), TEXT_PART));
    assert_eq!(markdown(&parts, &options(false, false)).matches("## You").count(), 1);
    assert_eq!(html_page(&parts).matches("<h2>You").count(), 1);
    assert_eq!(terminal_text(&parts, options(false, false)).matches("▌ You").count(), 1);
    let parts = RecordedSession::of(items("thinking", &"thought\n".repeat(300_000), TEXT_PART));
    assert_eq!(markdown(&parts, &options(false, false)).matches("*thought").count(), 1);
    assert_eq!(html_page(&parts).matches("✻ thought").count(), 1);
    assert_eq!(terminal_text(&parts, options(false, false)).matches("✻ thought").count(), 1);
}

/// Code without an end is cut, and each part stays code.
#[test]
fn endless_code_stays_code_in_every_part() {
    let text = format!("```rust\n{}", "let a = 1; // <b>\n".repeat(6 * TEXT_PART / 18));
    let parts = RecordedSession::of(items("text", &text, TEXT_PART));
    let html = html_page(&parts);
    assert!(!html.contains("<b>") && !html.contains("<p>let"));
    assert_eq!(html.matches("<pre>").count(), html.matches("</pre>").count());
    let markdown = markdown(&parts, &options(false, false));
    assert!(!markdown.contains("&lt;b>"), "code stays as it is");
    assert_eq!(markdown.matches("```rust").count() * 2, markdown.matches("```").count());
}

#[test]
fn growing_text_in_parts_is_printed_as_one() {
    let text = long_markdown();
    let whole = items("text", &text, usize::MAX);
    let mut printer = TranscriptPrinter::new(Vec::new(), options(false, false));
    whole.iter().for_each(|item| printer.item(item).unwrap());
    let whole = printer.finish().unwrap();
    let mut printer = TranscriptPrinter::new(Vec::new(), options(false, false));
    for item in items("text", &text, TEXT_PART) {
        let mut begun = serde_json::to_value(&item).unwrap();
        if begun["type"] == "text" {
            let content = begun["content"].as_str().unwrap().to_owned();
            begun["isStreaming"] = true.into();
            begun["content"] = content[..content.floor_char_boundary(300_001)].into();
            printer.update(&self::item(&begun)).unwrap();
        }
        printer.update(&item).unwrap();
    }
    assert!(printer.finish().unwrap() == whole);
}
