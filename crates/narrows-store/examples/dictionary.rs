//! Trains the compression dictionary on the recorded sessions: `cargo run -p narrows-store --example
//! dictionary FILE`. A dictionary that compressed any data must never change; a better one needs a format
//! tag of its own in `compress`.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a tool of those who work on narrows")]

use narrows::{Config, Items, Packets, Pipeline, Row, Step};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Bytes of the dictionary, and of a sample: long texts compress well without a dictionary.
const DICTIONARY_BYTES: usize = 16 << 10;
const MAX_SAMPLE_BYTES: usize = 8 << 10;
/// Longer texts are removed from samples, so that the dictionary contains the recurring structure.
const MAX_TEXT_BYTES: usize = 24;
/// Samples per session, so that none dominates.
const MAX_SESSION_SAMPLES: usize = 60;

fn main() {
    let to = std::env::args().nth(1).expect("a file to write");
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures");
    let mut samples = Vec::new();
    for case in folders(&cases).iter().flat_map(|format| folders(format)) {
        if let Ok(input) = std::fs::read(case.join("input.jsonl")) {
            samples.extend(
                rows(&input)
                    .into_iter()
                    .filter(|s| s.len() < MAX_SAMPLE_BYTES)
                    .take(MAX_SESSION_SAMPLES),
            );
        }
    }
    let made = zstd::dict::from_samples(&samples, DICTIONARY_BYTES).expect("a dictionary");
    println!("{} bytes of {} samples", made.len(), samples.len());
    std::fs::write(to, made).expect("written");
}

/// The folders of a folder, sorted, so that every run gives the same result.
fn folders(of: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(of).expect("a folder").flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.is_dir());
    all.sort();
    all
}

/// The rows of a session, events and items in turn.
fn rows(input: &[u8]) -> Vec<Vec<u8>> {
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps: Vec<Step> = Vec::new();
    packets.push(input, |framed| pipeline.push(framed, &mut steps));
    packets.finish(|framed| pipeline.push(framed, &mut steps));
    pipeline.finish(&mut steps);
    let (mut events, mut items) = (Vec::new(), Items::new());
    for (seq, step) in (1..).zip(steps) {
        let event = without_texts(&Row::new(seq, "0123456789abcdef", &step.event));
        events.push(format!("{event}{}", without_texts(&step.changes)).into_bytes());
        step.changes.into_iter().for_each(|change| {
            items.apply(change);
        });
    }
    let items = items.iter().map(|item| without_texts(item).to_string().into_bytes());
    let mut both: Vec<Vec<u8>> = Vec::new();
    let (mut events, mut items) = (events.into_iter(), items);
    loop {
        match (events.next(), items.next()) {
            (None, None) => return both,
            (event, item) => both.extend(event.into_iter().chain(item)),
        }
    }
}

/// The JSON of a value without its longer texts.
fn without_texts(value: &impl Serialize) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::String(text) if text.len() > MAX_TEXT_BYTES => text.clear(),
            Value::Array(all) => all.iter_mut().for_each(strip),
            Value::Object(all) => all.values_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(value).expect("JSON");
    strip(&mut value);
    value
}
