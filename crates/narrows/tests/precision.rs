//! Ordinary text stays: recorded sessions and this project's own sources get no mark.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::sanitize::Mode;
use narrows::{Paths, Redactor, Secrets};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are full of samples.
const SAMPLES: [&str; 19] = [
    "ends.rs",
    "rules.rs",
    "vendors.rs",
    "secrets.txt",
    "clean.rs",
    "canary.rs",
    "cli.rs",
    "generate.rs",
    "args.rs",
    "README.md",
    "sanitize.rs",
    "sample.rs",
    "machine.rs",
    "source.rs",
    "export.mjs",
    "lag.rs",
    "growing.rs",
    "planted.rs",
    "preview.rs",
];

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "fuzz", "fixtures", "node_modules", "sample", "machine"]
                .contains(&name.as_str())
                && !name.starts_with('.')
            {
                files(&path, out);
            }
        } else if !SAMPLES.contains(&name.as_str()) {
            out.push(path);
        }
    }
}

#[test]
fn recorded_sessions_and_own_sources_get_no_mark() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut list = Vec::new();
    files(&root, &mut list);
    // Cases made by hand may hold a secret.
    let made =
        |case: &Path| case.file_name().is_some_and(|n| n.to_string_lossy().starts_with("made-"));
    for case in common::cases().into_iter().filter(|case| !made(case)) {
        list.push(case.join("input.jsonl"));
        list.push(case.join("load.jsonl"));
    }
    let mut cleaner = Redactor::new(Paths::new(), Secrets::default());
    let mut bytes = 0;
    let mut wrong = Vec::new();
    for path in &list {
        let Ok(text) = fs::read_to_string(path) else { continue };
        bytes += text.len();
        let out = cleaner.text(&text, Mode::Text);
        let mut before: Vec<&str> = marks(&text).collect();
        for mark in marks(&out) {
            // What the text itself says about marks stays.
            match before.iter().position(|b| *b == mark) {
                Some(i) => drop(before.remove(i)),
                None => wrong.push(format!("{}: {mark}", path.display())),
            }
        }
    }
    assert!(bytes > 4_000_000, "only {bytes} bytes");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("[redacted:").map(|(at, _)| {
        let end = text[at..].find(']').map_or(text.len(), |i| at + i);
        &text[at..end.min(at + 60)]
    })
}
