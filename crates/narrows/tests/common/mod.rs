//! What the tests share: running a fixture through the pipeline.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use narrows::{Config, Event, Items, Packets, Pipeline, Row, Step};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of all cases of a format.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every case: format folders, then case folders.
pub fn cases() -> Vec<PathBuf> {
    let folders = |dir: &Path| -> Vec<PathBuf> {
        let mut list: Vec<PathBuf> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
        list.sort();
        list
    };
    folders(&fixtures()).iter().flat_map(|f| folders(f)).collect()
}

/// The config that a case asks for.
pub fn config(case: &Path) -> Config {
    let mut config = Config::default();
    if let Ok(text) = fs::read_to_string(case.join("options.json")) {
        let options: serde_json::Value = serde_json::from_str(&text).unwrap();
        if let Some(root) = options["root"].as_str() {
            config.paths.add_root(root);
        }
    }
    config
}

/// The steps that bytes give, cut into pieces of `piece` bytes.
pub fn steps(config: Config, bytes: &[u8], piece: usize) -> Vec<Step> {
    let mut packets = Packets::default();
    let mut pipeline = Pipeline::new(config);
    let mut steps = Vec::new();
    for chunk in bytes.chunks(piece.max(1)) {
        packets.push(chunk, |given| pipeline.push(given, &mut steps));
    }
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    steps
}

pub fn run(config: Config, bytes: &[u8]) -> Vec<Step> {
    steps(config, bytes, usize::MAX)
}

/// The items that steps make.
pub fn items(steps: &[Step]) -> Items {
    let mut items = Items::new();
    for change in steps.iter().flat_map(|s| &s.changes) {
        items.apply(change.clone());
    }
    items
}

pub fn items_json(items: &Items) -> Vec<serde_json::Value> {
    items.ordered().into_iter().map(|item| serde_json::to_value(item).unwrap()).collect()
}

/// One event a line, as a view prints it.
pub fn events_text(steps: &[Step]) -> String {
    let mut text = String::new();
    for (i, step) in steps.iter().enumerate() {
        let row = Row::new(i as u64 + 1, "s", &step.event);
        text.push_str(&serde_json::to_string(&row).unwrap());
        text.push('\n');
    }
    text
}

pub fn events(steps: &[Step]) -> Vec<Event> {
    steps.iter().map(|s| s.event.clone()).collect()
}
