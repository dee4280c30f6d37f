//! Everything in the recorded sessions is known; `make bless` teaches the table what is new.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::drift::Drift;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every file of packets that an agent wrote.
fn recorded() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![common::fixtures()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let made = ["odd-", "doc-", "sse-", "made-"].iter().any(|m| name.starts_with(m));
            if path.is_dir() && !made {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "jsonl") && name != "events.jsonl" {
                files.push(path);
            }
        }
    }
    files
}

fn look(drift: &mut Drift) {
    for file in recorded() {
        drift.file();
        for line in fs::read(file).unwrap().split(|c| *c == b'\n').filter(|l| !l.is_empty()) {
            drift.push(line);
        }
    }
}

#[test]
fn nothing_in_the_recorded_sessions_is_unknown() {
    if std::env::var_os("NARROWS_BLESS").is_some() {
        return teach();
    }
    let mut drift = Drift::new();
    look(&mut drift);
    assert!(drift.counts().0 > 5000, "the fixtures are missing");
    let unknown: BTreeSet<&str> = drift.unknown().map(|u| u.name).collect();
    assert!(unknown.is_empty(), "not known (see `make bless`): {unknown:#?}");
}

/// Adds what the recorded sessions hold to the table.
fn teach() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/check/known_fields.txt");
    let mut table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let old = fs::read_to_string(&file).unwrap();
    for line in old.lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split_whitespace().map(str::to_owned);
        if let Some(kind) = words.next() {
            table.entry(kind).or_default().extend(words);
        }
    }
    let mut drift = Drift::new();
    look(&mut drift);
    let everywhere: BTreeSet<String> = table.get("*").cloned().unwrap_or_default();
    for unknown in drift.unknown() {
        let (kind, field) = unknown.name.split_once('.').unwrap_or((unknown.name, ""));
        let fields = table.entry(kind.to_owned()).or_default();
        if !field.is_empty() && !everywhere.contains(field) {
            fields.insert(field.to_owned());
        }
    }
    let mut text =
        old.lines().filter(|l| l.starts_with('#')).map(|l| format!("{l}\n")).collect::<String>();
    for (kind, fields) in table {
        let fields: Vec<String> = fields.into_iter().collect();
        text.push_str(format!("{kind} {}", fields.join(" ")).trim_end());
        text.push('\n');
    }
    fs::write(file, text).unwrap();
}

#[test]
fn what_is_new_is_told_by_version_and_never_shown() {
    let mut drift = Drift::new();
    let record = r#"{"type":"user","version":"9.9.9","uuid":"1","secretThing":"hush-hush",
        "message":{"role":"user","content":[{"type":"text","text":"Hi.","mood":"good"},{"type":"hologram"}]}}"#;
    drift.push(record.replace('\n', "").as_bytes());
    drift.push(br#"{"type":"teleport","version":"9.9.9","where":"hush-hush"}"#);
    drift.push(b"no JSON");
    let told: Vec<String> =
        drift.unknown().map(|u| format!("{} {} {}", u.version, u.name, u.count)).collect();
    assert_eq!(
        told,
        [
            "9.9.9 teleport 1",
            "9.9.9 user.message.content.hologram.type 1",
            "9.9.9 user.message.content.text.mood 1",
            "9.9.9 user.secretThing 1",
        ]
    );
    assert_eq!(drift.counts(), (2, 1));
}
