//! Makes a dictionary for packing of what the recorded sessions give: `cargo run -p narrows-store
//! --example dictionary FILE`. One that has packed something must stay as it is; a better one gets a
//! form of its own in `pack.rs`.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a tool of those who work on narrows")]

use narrows::{Config, Items, Packets, Pipeline, Row, Step};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Its size, and how long a sample may be: long texts are packed well without it.
const SIZE: usize = 16 << 10;
const LONGEST: usize = 8 << 10;
/// What is said is different everywhere: longer texts are left out, so that what is always the same is in.
const SAID: usize = 24;
/// Of one session, so that none tells too much.
const MOST: usize = 60;

fn main() {
    let to = std::env::args().nth(1).expect("a file to write");
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures");
    let mut samples = Vec::new();
    for case in folders(&cases).iter().flat_map(|format| folders(format)) {
        if let Ok(input) = std::fs::read(case.join("input.jsonl")) {
            samples.extend(rows(&input).into_iter().filter(|s| s.len() < LONGEST).take(MOST));
        }
    }
    let made = zstd::dict::from_samples(&samples, SIZE).expect("a dictionary");
    println!("{} bytes of {} samples", made.len(), samples.len());
    std::fs::write(to, made).expect("written");
}

/// In the order of their names, so that it is the same every time.
fn folders(of: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(of).expect("a folder").flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.is_dir());
    all.sort();
    all
}

/// The rows that a session makes, events and items in turn.
fn rows(input: &[u8]) -> Vec<Vec<u8>> {
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps: Vec<Step> = Vec::new();
    packets.push(input, |given| pipeline.push(given, &mut steps));
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let (mut events, mut items) = (Vec::new(), Items::new());
    for (seq, step) in (1..).zip(steps) {
        let event = bones(&Row::new(seq, "0123456789abcdef", &step.event));
        events.push(format!("{event}{}", bones(&step.changes)).into_bytes());
        step.changes.into_iter().for_each(|change| {
            items.apply(change);
        });
    }
    let items = items.iter().map(|item| bones(item).to_string().into_bytes());
    let mut both: Vec<Vec<u8>> = Vec::new();
    let (mut events, mut items) = (events.into_iter(), items);
    loop {
        match (events.next(), items.next()) {
            (None, None) => return both,
            (event, item) => both.extend(event.into_iter().chain(item)),
        }
    }
}

/// What is printed, without what is said.
fn bones(value: &impl Serialize) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::String(text) if text.len() > SAID => text.clear(),
            Value::Array(all) => all.iter_mut().for_each(strip),
            Value::Object(all) => all.values_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(value).expect("JSON");
    strip(&mut value);
    value
}
