//! Recorded sessions in every format, compared with golden files.
//!
//! `NARROWS_BLESS=1 cargo test -p narrows-render` rewrites them.

mod fixture;
mod synthetic_items;
mod text_parts;

use super::nesting::for_each_item;
use super::options::RenderOptions;
use super::*;
use fixture::RecordedSession;
use std::fs;
use std::path::PathBuf;

/// The rendered fixtures.
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

fn golden_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/render")
}

fn options(colour: bool, all: bool) -> RenderOptions {
    RenderOptions {
        width: 80,
        colour,
        tools: all,
        thinking: all,
        lines: Some(24),
        zone: jiff::tz::TimeZone::UTC,
    }
}

fn terminal_text(case: &RecordedSession, options: RenderOptions) -> String {
    let mut printer = TranscriptPrinter::new(Vec::new(), options);
    printer.header(&case.header()).unwrap();
    for_each_item(case, |item| printer.item(item)).unwrap();
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

fn markdown(case: &RecordedSession, options: &RenderOptions) -> String {
    let mut out = Vec::new();
    markdown::write(&mut out, &case.header(), case, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn html_page(case: &RecordedSession) -> String {
    let mut out = Vec::new();
    html::write(&mut out, &case.header(), case, case, &options(false, true)).unwrap();
    String::from_utf8(out).unwrap()
}

/// Removes the style sheet, which is the same in all pages.
fn without_style(html: &str) -> String {
    let (head, rest) = html.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    format!("{head}<style>…</style>{rest}")
}

#[test]
fn every_format_matches_its_golden_file() {
    let bless = std::env::var_os("NARROWS_BLESS").is_some();
    let mut wrong = Vec::new();
    for name in CASES {
        let case = RecordedSession::read(name);
        let outputs = [
            ("txt", terminal_text(&case, options(false, false))),
            ("all.txt", terminal_text(&case, options(false, true))),
            ("all.ansi", terminal_text(&case, options(true, true))),
            ("md", markdown(&case, &options(false, false))),
            ("all.md", markdown(&case, &options(false, true))),
            ("html", without_style(&html_page(&case))),
        ];
        for (ending, actual) in outputs {
            let file = golden_dir().join(format!("{}.{ending}", name.replace('/', "-")));
            if bless {
                fs::write(&file, actual).unwrap();
            } else if fs::read_to_string(&file).ok().as_deref() != Some(actual.as_str()) {
                wrong.push(file);
            }
        }
    }
    assert!(wrong.is_empty(), "differ from what is expected: {wrong:#?}");
}
