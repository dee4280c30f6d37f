//! Recorded sessions in every form, against files that were looked at.
//!
//! `NARROWS_BLESS=1 cargo test -p narrows-show` writes them anew.

mod fixture;
mod made;
mod parts;

use super::order::ordered;
use super::style::Style;
use super::text::Printer;
use super::*;
use fixture::Recorded;
use std::fs;
use std::path::PathBuf;

/// Cases, and what they have.
const CASES: &[&str] = &[
    "made",
    "claude-history/2.1-c-files",
    "claude-history/2.1-g-subagent",
    "claude-history/2.1-f-todos",
    "claude-history/2.1-v-ask-user",
    "claude-history/2.1-q-compact",
    "claude-history/2.1-a-ansi-bash",
    "claude-history/2.1-u-bidi",
    "claude-history/2.1-u-user-image",
    "claude-history/2.1-h-permission-reject",
    "claude-history/2.1-d-bash-background",
    "claude-history/2.1-i-error-500-final",
    "claude-history/2.0-o-plan-mode",
    "acp/odd-permission-unanswered",
    "acp/odd-several-diffs",
    "acp/doc-reference-artifact-web-app",
    "claude-stream/made-subagents-at-once",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/render")
}

fn style(colour: bool, all: bool) -> Style {
    Style {
        width: 80,
        colour,
        tools: all,
        thinking: all,
        lines: Some(24),
        zone: jiff::tz::TimeZone::UTC,
    }
}

fn text(case: &Recorded, style: Style) -> String {
    let mut printer = Printer::new(Vec::new(), style);
    printer.header(&case.header()).unwrap();
    ordered(case, |item| printer.item(item)).unwrap();
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

fn md(case: &Recorded, style: &Style) -> String {
    let mut out = Vec::new();
    markdown::write(&mut out, &case.header(), case, style).unwrap();
    String::from_utf8(out).unwrap()
}

fn page(case: &Recorded) -> String {
    let mut out = Vec::new();
    html::write(&mut out, &case.header(), case, case, &style(false, true)).unwrap();
    String::from_utf8(out).unwrap()
}

/// The style sheet is the same in all pages.
fn without_style(html: &str) -> String {
    let (head, rest) = html.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    format!("{head}<style>…</style>{rest}")
}

#[test]
fn every_form_is_as_it_was_looked_at() {
    let bless = std::env::var_os("NARROWS_BLESS").is_some();
    let mut wrong = Vec::new();
    for name in CASES {
        let case = Recorded::read(name);
        let forms = [
            ("txt", text(&case, style(false, false))),
            ("all.txt", text(&case, style(false, true))),
            ("all.ansi", text(&case, style(true, true))),
            ("md", md(&case, &style(false, false))),
            ("all.md", md(&case, &style(false, true))),
            ("html", without_style(&page(&case))),
        ];
        for (ending, found) in forms {
            let file = folder().join(format!("{}.{ending}", name.replace('/', "-")));
            if bless {
                fs::write(&file, found).unwrap();
            } else if fs::read_to_string(&file).ok().as_deref() != Some(found.as_str()) {
                wrong.push(file);
            }
        }
    }
    assert!(wrong.is_empty(), "differ from what is expected: {wrong:#?}");
}
