//! Claude Code: what it prints and what it keeps give one transcript.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::parity::{ACCEPTED, compare};
use narrows::{Config, Items};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The cases that are there in both forms.
fn pairs() -> Vec<(String, PathBuf, PathBuf)> {
    let folder = |form: &str| common::fixtures().join(form);
    let mut names: Vec<String> = fs::read_dir(folder("claude-history"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| folder("claude-stream").join(name).exists())
        .collect();
    names.sort();
    let both = |n: &String| (folder("claude-stream").join(n), folder("claude-history").join(n));
    names.iter().map(|n| (n.clone(), both(n).0, both(n).1)).collect()
}

/// The session that a kept file is of.
fn session(case: &Path) -> String {
    let text = fs::read_to_string(case.join("input.jsonl")).unwrap();
    let mut ids = text.lines().filter_map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        record["uuid"].as_str()?;
        record["sessionId"].as_str().map(str::to_owned)
    });
    ids.next_back().unwrap()
}

fn items(case: &Path, only: Option<String>) -> Items {
    let config = Config { only, ..common::config(case) };
    let mut items = common::items(&common::run_case(case, config));
    items.settle();
    items
}

#[test]
fn what_is_printed_and_what_is_kept_agree() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let pairs = pairs();
    assert!(pairs.len() > 70, "the fixtures are missing");
    for (name, live, history) in pairs {
        let only = session(&history);
        let found = compare(&items(&live, Some(only)), &items(&history, None));
        for d in found {
            match d.reason {
                Some(_) => {
                    used.insert((d.what.clone(), format!("{:?}", d.side)));
                }
                None => wrong.push(format!("{name}: {:?} {}: {}", d.side, d.what, d.shown)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A row that nothing needs is a hole.
    let row = |what: &str, side| (what.to_owned(), format!("{side:?}"));
    let idle = ACCEPTED.iter().map(|(what, side, _)| row(what, side));
    let idle: Vec<_> = idle.filter(|row| !used.contains(row)).collect();
    assert!(idle.is_empty(), "nothing needs {idle:?}");
}
