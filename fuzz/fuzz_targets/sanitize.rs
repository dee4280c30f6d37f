//! Any text: cleaned twice is cleaned once, any pieces join to the whole, and what is planted
//! between two halves of it does not survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows::sanitize::{Mode, TextStream};
use narrows::{Paths, Secrets, TextCleaner};

const ROOT: &str = "/srv/qzvx/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/wörk dir";
const TOKEN: &str = concat!("ghp_", "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0JsAbCd");

fn paths() -> Paths {
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    paths
}

/// Whether the text ends within an escape sequence, which would swallow what follows.
fn is_open(text: &str) -> bool {
    let escape = |c: char| c == '\u{1b}' || ('\u{80}'..'\u{a0}').contains(&c);
    text.rfind(escape).is_some_and(|at| text[at..].chars().skip(1).all(|c| (' '..='?').contains(&c) || "[]PX^_".contains(c)))
}

fuzz_target!(|input: (&str, &str, Vec<u8>)| {
    let (before, after, cuts) = input;
    let mut cleaner = TextCleaner::new(paths(), Secrets::default());
    let text = format!("{before}{ROOT} {after}\n{before} {TOKEN}\n{after}");
    for mode in [Mode::Text, Mode::Body] {
        let once = cleaner.text(&text, mode);
        let bare: String = once.chars().filter(|c| *c != '\u{ad}').collect();
        if !is_open(before) && !before.contains("qzvx") && !after.contains("qzvx") {
            assert!(!bare.contains("qzvx"), "the root shows: {text:?} gives {once:?}");
        }
        if !is_open(before) && !before.contains("Xc4Vb8") && !after.contains("Xc4Vb8") {
            assert!(!bare.contains("Xc4Vb8"), "the token shows: {text:?} gives {once:?}");
        }
        let twice = cleaner.text(&once, mode);
        assert_eq!(once, twice, "cleaned twice: {text:?}");
    }
    let whole = cleaner.text(&text, Mode::Text);
    let mut stream = TextStream::new(paths(), Secrets::default());
    let (mut rest, mut out) = (text.as_bytes(), String::new());
    for cut in cuts.iter().take(64) {
        let (piece, more) = rest.split_at(usize::from(*cut).min(rest.len()));
        out.push_str(&stream.push(piece));
        rest = more;
    }
    out.push_str(&stream.push(rest));
    out.push_str(&stream.finish());
    assert_eq!(whole.as_str(), out, "in pieces: {text:?} {cuts:?}");
    let _ = cleaner.field(before);
});
