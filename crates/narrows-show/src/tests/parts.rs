//! Texts in parts are shown as one.

use super::fixture::Recorded;
use super::{json, md, page, style, text};
use crate::text::Printer;
use narrows::Item;
use narrows::limits::TEXT_PART;
use serde_json::{Value, json};

fn item(value: &Value) -> Item {
    narrows::stored::item(&value.to_string()).unwrap()
}

/// Items of one text, in parts as long as they may be, with something before and after it.
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

/// Paragraphs, lists and code, more than a part has room for; the first part ends within the code.
fn long() -> String {
    let prose =
        "Some words of a text, and **more** of it é 日本語.\n\n1. one\n2. two\n\n".repeat(14_000);
    let code = "let a = vec![1, 2, 3]; // <b>no HTML</b>\n\n".repeat(5_000);
    let after = "After it.\n\n".repeat(1000);
    let text = format!("{prose}```rust\n{code}```\n\n{after}The end.");
    assert!(prose.len() < TEXT_PART && text.len() > TEXT_PART + 10_000, "{}", prose.len());
    assert!(text.len() < 2 * TEXT_PART);
    text
}

fn lines(items: &[Item]) -> String {
    let mut out = Vec::new();
    json::lines(&mut out, &Recorded::of(items.to_vec())).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_text_in_parts_is_written_as_if_it_were_one() {
    let text_in = long();
    let (parts, whole) = (items("text", &text_in, TEXT_PART), items("text", &text_in, usize::MAX));
    assert_eq!((parts.len(), whole.len()), (4, 3));
    let (parts, whole) = (Recorded::of(parts), Recorded::of(whole));
    for all in [false, true] {
        let same = text(&parts, style(false, all)) == text(&whole, style(false, all));
        assert!(same, "for a terminal");
        assert!(md(&parts, &style(false, all)) == md(&whole, &style(false, all)), "Markdown");
    }
    assert!(page(&parts) == page(&whole), "HTML");
}

#[test]
fn a_text_in_parts_is_one_item_of_json() {
    for kind in ["text", "thinking", "user_message"] {
        let text = format!("\"quoted\" \u{202e}{}", long());
        let (parts, whole) = (items(kind, &text, TEXT_PART), items(kind, &text, usize::MAX));
        assert!(lines(&parts) == lines(&whole), "{kind}");
        let field = if kind == "user_message" { "text" } else { "content" };
        let printed = lines(&parts);
        let second: Value = serde_json::from_str(printed.lines().nth(1).unwrap()).unwrap();
        assert!(second[field] == text.as_str());
    }
}

#[test]
fn words_of_a_person_in_parts_have_one_heading() {
    let parts = Recorded::of(items("user_message", &"asked\n".repeat(300_000), TEXT_PART));
    assert_eq!(md(&parts, &style(false, false)).matches("## You").count(), 1);
    assert_eq!(page(&parts).matches("<h2>You").count(), 1);
    assert_eq!(text(&parts, style(false, false)).matches("▌ You").count(), 1);
    let parts = Recorded::of(items("thinking", &"thought\n".repeat(300_000), TEXT_PART));
    assert_eq!(md(&parts, &style(false, false)).matches("*thought").count(), 1);
    assert_eq!(page(&parts).matches("✻ thought").count(), 1);
    assert_eq!(text(&parts, style(false, false)).matches("✻ thought").count(), 1);
}

/// A code without end is cut, and is code in each of its pieces.
#[test]
fn a_code_that_never_ends_stays_code() {
    let text = format!("```rust\n{}", "let a = 1; // <b>\n".repeat(6 * TEXT_PART / 18));
    let parts = Recorded::of(items("text", &text, TEXT_PART));
    let html = page(&parts);
    assert!(!html.contains("<b>") && !html.contains("<p>let"));
    assert_eq!(html.matches("<pre>").count(), html.matches("</pre>").count());
    let markdown = md(&parts, &style(false, false));
    assert!(!markdown.contains("&lt;b>"), "code stays as it is");
    assert_eq!(markdown.matches("```rust").count() * 2, markdown.matches("```").count());
}

#[test]
fn a_text_that_grows_over_parts_is_printed_as_one() {
    let text = long();
    let whole = items("text", &text, usize::MAX);
    let mut printer = Printer::new(Vec::new(), style(false, false));
    whole.iter().for_each(|item| printer.item(item).unwrap());
    let whole = printer.finish().unwrap();
    let mut printer = Printer::new(Vec::new(), style(false, false));
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
