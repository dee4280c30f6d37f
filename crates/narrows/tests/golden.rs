//! Golden folders: `fixtures/<format>/<case>/{input.jsonl, events.jsonl, items.json}`.
//!
//! `make bless` rewrites the expected files; the diff is the review.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use std::fs;
use std::path::Path;

#[test]
fn every_case_gives_its_events_and_items() {
    let bless = std::env::var_os("NARROWS_BLESS").is_some();
    let mut wrong = Vec::new();
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cases = common::cases();
    assert!(cases.len() > 100, "the fixtures are missing");
    for case in cases {
        let steps = common::run_case(&case, common::config(&case));
        let events = common::events_text(&steps);
        let mut items = common::items_json(&common::items(&steps));
        // Other crates may have asked for trees that keep their order.
        items.iter_mut().for_each(serde_json::Value::sort_all_objects);
        let items = serde_json::to_string_pretty(&items).unwrap() + "\n";
        // The page's tests apply these: the same changes must make the same items there.
        let name = case.strip_prefix(common::fixtures()).unwrap();
        let views =
            [("changes", common::changes_text(&steps)), ("packets", common::packets_text(&steps))];
        for (view, text) in views {
            let file = made.join(view).join(name).with_added_extension("jsonl");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            // The page's tests may read it at this moment.
            if fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                fs::write(&file, text).unwrap();
            }
        }
        for (name, text) in [("events.jsonl", events), ("items.json", items)] {
            let file = case.join(name);
            if bless {
                fs::write(&file, text).unwrap();
            } else if fs::read_to_string(&file).ok().as_deref() != Some(text.as_str()) {
                wrong.push(file);
            }
        }
    }
    assert!(wrong.is_empty(), "differ from what is expected (see `make bless`): {wrong:#?}");
}
