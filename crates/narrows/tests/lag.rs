//! Text is shown as it streams, in every script: at most one word is held back, unless something to
//! hide may have begun.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use common::scripts::{SCRIPTS, words};
use narrows::sanitize::TextStream;
use narrows::{Paths, Secrets};

fn stream() -> TextStream {
    let mut paths = Paths::new();
    paths.add_root("/srv/run-7/app");
    TextStream::new(paths, Secrets::default())
}

/// The most words, and bytes, that are held back behind any of the pieces.
fn lag(text: &str, size: usize) -> (usize, String) {
    lag_by(text, size, words)
}

/// The same by another count.
fn lag_by(text: &str, size: usize, words: impl Fn(&str) -> usize) -> (usize, String) {
    let mut stream = stream();
    let (mut shown, mut sent) = (String::new(), 0);
    let mut most = (0, String::new());
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    for piece in chars.chunks(size) {
        let end = piece.last().map_or(0, |(at, c)| at + c.len_utf8());
        shown.push_str(&stream.push(&text.as_bytes()[sent..end]));
        sent = end;
        assert!(text.starts_with(shown.as_str()), "{shown:?} is no beginning of {text:?}");
        let held = &text[shown.len()..sent];
        if words(held) > most.0 {
            most = (words(held), held.to_owned());
        }
    }
    shown.push_str(&stream.finish());
    assert_eq!(shown, text);
    most
}

#[test]
fn at_most_one_word_is_held_back_in_every_script() {
    let mut wrong = Vec::new();
    for (name, text) in SCRIPTS {
        for size in [1, 2, 3, 5, 7, 11, 40] {
            let (words, held) = lag(text, size);
            if words > 1 {
                wrong.push(format!("{name} in pieces of {size}: {words} words: {held:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words that something else than a blank keeps apart, which is part of no token.
#[test]
fn a_word_ends_at_every_sign_that_nothing_to_hide_goes_over() {
    let mut wrong = Vec::new();
    for joint in
        ["\u{a0}", "\u{202f}", "\u{2003}", "\u{3000}", "—", "…", "·", "»", "|", "||", "|\u{a0}"]
    {
        let words = ["The", "parser", "reads", "every", "line", "at", "once", "keyless", "tokens"];
        let text = words.join(joint);
        for size in [1, 2, 3, 7] {
            let (_, held) = lag_by(&text, size, str::len);
            // One word with its joint, and what came with the last piece.
            if held.chars().count() > 10 + joint.chars().count() + size {
                wrong.push(format!("{joint:?} in pieces of {size}: {held:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is hidden stays so beside such signs, and where they are part of it.
#[test]
fn nothing_to_hide_is_cut_by_what_ends_a_word() {
    let token = concat!("ghp_", "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0JsAbCd");
    let value = "Zq7Wd2Lm9Xc4Vb8Nn3Kp6";
    let id = "9c7662c1-785f-4f1c-b9e0-9021ddbf2893";
    let known = "qwop\u{a0}hip|po\u{2014}42";
    for joint in ["\u{a0}", "\u{2003}", "—", "…", "|", "·"] {
        let root = format!("/srv/my{joint}run/wörk{joint}qzvx");
        let mut paths = Paths::new();
        paths.add_root(&root);
        for text in [
            format!("see{joint}{token}{joint}now"),
            format!("a{joint}password={value}{joint}b"),
            format!("a{joint}password:{joint}{value}"),
            format!("--token {value}{joint}x"),
            format!("https://bob:pa{joint}{value}@db.example/x{joint}y"),
            format!("https://bob:{value}{joint}a{joint}b@db.example/x"),
            format!("{{\"api_key\":\"{value}\"}}{joint}x"),
            format!("at{joint}{root}/src/a.rs{joint}and"),
            format!("at {root}{joint}and"),
            format!("in{joint}/Users/Jo{joint}Doe/x{joint}y"),
            format!("is{joint}{known}{joint}so"),
            format!("in /Zq7Wd2/a{joint}b/sandboxes/{id}/sessions/{id}/x{joint}y")
                .replace("a|b", "ab"),
        ] {
            let mut secrets = Secrets::default();
            assert!(secrets.add_known(known));
            let mut stream = TextStream::new(paths.clone(), secrets.clone());
            let mut shown = shown_of(&mut stream, &text);
            shown.push_str(&stream.finish());
            let whole = narrows::Redactor::new(paths.clone(), secrets)
                .text(&text, narrows::sanitize::Mode::Text);
            assert_eq!(shown, whole.as_str(), "of {text:?}");
            for part in [&token[4..], "qzvx", "my", "hip", "Zq7Wd2"] {
                // A name whose value stands beyond such a sign has none.
                let beside = text.contains(&format!("password:{joint}"));
                assert!(beside || !shown.contains(part), "{shown:?} of {text:?}");
            }
        }
    }
}

/// Feeds a text character by character; what was shown before its end.
fn shown_of(stream: &mut TextStream, text: &str) -> String {
    text.chars().map(|c| stream.push(c.to_string().as_bytes()).to_string()).collect()
}

#[test]
fn what_may_have_begun_is_held_back_and_nothing_behind_it() {
    for (text, shown) in [
        // A value that is beside its name is one with it.
        ("password: hunter2hun", ""),
        ("so the password: hunter2hun", "so the "),
        ("so the password is thi", "so the password is "),
        ("api_key = \"Zq7Wd2Lm9Xc4V", ""),
        ("Authorization: Bearer Zq7Wd2Lm9Xc4V", "Authorization: "),
        ("Authorization: token Zq7Wd2Lm9Xc4V", ""),
        ("the basic authenti", "the "),
        ("use --token Zq7Wd2Lm", "use "),
        ("use --verbose Zq7Wd2Lm", "use --verbose "),
        ("Cookie: theme=dark; sid=Zq7W", ""),
        ("the key: of it al", "the key: of it "),
        ("密码在这里：ghp_16C7e42F29", "密码在这里："),
        ("看见/srv/run-7/ap", "看"),
        ("-----BEGIN RSA PRIV", ""),
    ] {
        let mut stream = stream();
        assert_eq!(shown_of(&mut stream, text), shown, "of {text:?}");
    }
}

#[test]
fn a_root_in_any_script_is_held_back_while_it_comes() {
    for root in
        ["/home/用户/项目", "/Users/Jo Doe/ทดสอบ", "/プロジェクト/私の", "/srv/내 폴더/작업"]
    {
        for before in ["看", "see ", "これは", "\"", "ดู"] {
            for after in ["/a.txt 看", "/源/文件.rs，然后", " is it", "。", "\" x", "/ก ข"]
            {
                let mut paths = Paths::new();
                paths.add_root(root);
                let text = format!("{before}{root}{after}");
                let mut stream = TextStream::new(paths.clone(), Secrets::default());
                let mut shown = shown_of(&mut stream, &text);
                shown.push_str(&stream.finish());
                let whole = narrows::Redactor::new(paths, Secrets::default())
                    .text(&text, narrows::sanitize::Mode::Text);
                assert_eq!(shown, whole.as_str(), "of {text:?}");
                let name = root.rsplit('/').next().unwrap();
                assert!(!shown.contains(name), "{shown:?} of {text:?}");
            }
        }
    }
}

#[test]
fn pieces_that_end_within_a_character_as_people_see_it_break_nothing() {
    let family = "👩‍👩‍👧 🏳️‍🌈 é\u{301}\u{308} กำ์ ส้ม नमस्ते 각 🇩🇪🇫🇷 e\u{301}";
    let mut text = family.repeat(3);
    text.push_str("👩‍");
    for size in [1, 2, 3, 5] {
        let mut stream = stream();
        let mut shown = String::new();
        for piece in text.as_bytes().chunks(size) {
            shown.push_str(&stream.push(piece));
        }
        shown.push_str(&stream.finish());
        assert_eq!(shown, text);
    }
}
