//! How much of a text is shown while it streams, in many scripts, beside the stream itself.
//!
//! A made-up agent says a text in pieces of a few characters, one every 20 ms, and pauses for a second
//! after each fifth part of it. Shown is what the sanitizer has let go, and after 200 ms of silence what
//! it shows of the rest. The time is counted, not waited for. Only the ratios are meant to be kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[allow(unreachable_pub, reason = "tests share it")]
#[path = "../tests/common/scripts.rs"]
mod scripts;

use narrows::sanitize::TextStream;
use narrows::{Paths, Secrets};
use scripts::{SCRIPTS, words};

/// The scripts that are shown, in this order.
const NAMES: [&str; 12] = [
    "English", "Chinese", "Japanese", "Korean", "Thai", "Arabic", "Hebrew", "Hindi", "Russian",
    "emoji", "code", "URLs",
];
/// Characters of a piece.
const PIECE: usize = 4;
/// Milliseconds between two pieces, until a pause shows what it can, and of a pause.
const STEP: u64 = 20;
const SHOWN_AFTER: u64 = 200;
const PAUSE: u64 = 1000;
/// Pauses in each text.
const PAUSES: usize = 5;

/// Characters that were said and shown, over all milliseconds, and the most that was held back.
#[derive(Default)]
struct Sums {
    said: u64,
    shown: u64,
    paused_said: u64,
    paused_shown: u64,
    most_words: usize,
    most_chars: usize,
}

fn main() {
    println!(
        "{:<10} {:>6} {:>14} {:>14} {:>12} {:>12}",
        "text", "chars", "shown/said", "in pauses", "most words", "most chars"
    );
    for name in NAMES {
        let (_, text) = SCRIPTS.iter().find(|(known, _)| *known == name).expect("a text");
        let sums = run(text);
        println!(
            "{name:<10} {:>6} {:>13.1}% {:>13.1}% {:>12} {:>12}",
            text.chars().count(),
            100.0 * sums.shown as f64 / sums.said as f64,
            100.0 * sums.paused_shown as f64 / sums.paused_said as f64,
            sums.most_words,
            sums.most_chars,
        );
    }
}

fn run(text: &str) -> Sums {
    let mut paths = Paths::new();
    paths.add_root("/srv/run-7/app");
    let mut stream = TextStream::new(paths, Secrets::default());
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = chars.chunks(PIECE).map(|piece| piece.iter().collect()).collect();
    let part = pieces.len().div_ceil(PAUSES).max(1);
    let mut sums = Sums::default();
    let (mut said, mut shown) = (String::new(), String::new());
    for (at, piece) in pieces.iter().enumerate() {
        said.push_str(piece);
        shown.push_str(&stream.push(piece.as_bytes()));
        let (all, here) = (count(&said), count(&shown));
        sums.said += STEP * all;
        sums.shown += STEP * here;
        // Nothing here is to be hidden: what is shown is the beginning of what was said.
        let held = said.strip_prefix(shown.as_str()).expect("a beginning");
        sums.most_words = sums.most_words.max(words(held));
        sums.most_chars = sums.most_chars.max(held.chars().count());
        if (at + 1) % part == 0 {
            let after = here + count(&stream.preview());
            let shown = SHOWN_AFTER * here + (PAUSE - SHOWN_AFTER) * after;
            sums.said += PAUSE * all;
            sums.shown += shown;
            sums.paused_said += (PAUSE - SHOWN_AFTER) * all;
            sums.paused_shown += (PAUSE - SHOWN_AFTER) * after;
        }
    }
    shown.push_str(&stream.finish());
    assert_eq!(shown, text);
    sums
}

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}
