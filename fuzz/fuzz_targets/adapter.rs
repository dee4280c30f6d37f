//! Any bytes, in any pieces: no panic, the same events, and JSON out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows::{Config, Items, Packets, Pipeline, Row};

fn run(bytes: &[u8], piece: usize) -> String {
    let mut config = Config::default();
    config.paths.add_root("/srv/run/x1");
    let (mut packets, mut pipeline, mut steps) = (Packets::default(), Pipeline::new(config), Vec::new());
    for chunk in bytes.chunks(piece) {
        packets.push(chunk, |given| pipeline.push(given, &mut steps));
    }
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let mut items = Items::new();
    let mut out = String::new();
    for step in steps {
        out += &serde_json::to_string(&Row::new(1, "s", &step.event)).unwrap();
        step.changes.into_iter().for_each(|change| items.apply(change));
    }
    for item in items.ordered() {
        out += &serde_json::to_string(item).unwrap();
    }
    out
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, bytes)) = data.split_first() else { return };
    assert_eq!(run(bytes, usize::MAX), run(bytes, usize::from(*piece) + 1));
});
