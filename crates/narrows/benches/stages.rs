//! Where the time of the pipeline goes: each line adds one stage to the one above.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use narrows::adapter::{Adapter, AdapterOutput};
use narrows::json::Index;
use narrows::sanitize::RedactionStage;
use narrows::tool_calls::ToolCallTracker;
use narrows::{Fold, Format, Framed, Items, Packets, Paths};
use std::sync::Arc;
use support::generate::{ROOT, Session};
use support::timed;

const ROUNDS: usize = 5;

fn main() {
    for (name, big) in [("acp stream", 1), ("big tool results", 60)] {
        let bytes = Session::new(1, big).make(48 << 20);
        println!("{name}");
        let only = std::env::var("STAGE").ok().and_then(|s| s.parse().ok());
        for depth in (0..=6).filter(|d| only.is_none_or(|o: usize| o == *d)) {
            let best = (0..ROUNDS).map(|_| timed(|| run(&bytes, depth)).0).min().unwrap_or(1);
            let stage = ["split", "index", "adapter", "sanitizer", "calls", "fold", "items"][depth];
            println!("  {stage:<10} {:>8.0} MB/s", bytes.len() as f64 * 1e3 / best as f64);
        }
    }
}

/// Runs the first `depth` stages.
fn run(bytes: &[u8], depth: usize) -> usize {
    let mut packets = Packets::default();
    let (mut index, mut adapter) = (Index::default(), Adapter::new(Format::Acp, None));
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    let (mut sanitizer, mut calls, mut fold) =
        (RedactionStage::new(paths, Arc::default()), ToolCallTracker::default(), Fold::new());
    let (mut yielded, mut clean, mut complete) = (AdapterOutput::default(), Vec::new(), Vec::new());
    let (mut changes, mut items, mut n) = (Vec::new(), Items::new(), 0);
    packets.push(bytes, |given| {
        let Framed::Packet(packet) = given else { return };
        n += packet.bytes.len();
        if depth == 1 {
            let text = std::str::from_utf8(packet.bytes).unwrap_or_default();
            n += usize::from(index.read(text).is_ok());
        }
        if depth >= 2 {
            adapter.push(&packet, &mut yielded);
            yielded.blobs.clear();
        }
        for event in yielded.events.drain(..).filter(|_| depth >= 3) {
            sanitizer.push(event, &mut clean);
        }
        for event in clean.drain(..).filter(|_| depth >= 4) {
            calls.merge(event, &mut complete);
        }
        for mut event in complete.drain(..).filter(|_| depth >= 5) {
            event.id.packet = packet.position.line;
            fold.push(&event, &mut changes);
        }
        for change in changes.drain(..).filter(|_| depth >= 6) {
            items.apply(change);
        }
    });
    n + items.ordered().len()
}
