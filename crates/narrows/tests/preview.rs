//! What is shown while a text pauses: the rest of a word, and never a part of something to hide.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::scripts::SCRIPTS;
use narrows::sanitize::TextStream;
use narrows::{Change, Items, Packets, Paths, Pipeline, Secrets};

const ID: &str = "9c7662c1-785f-4f1c-b9e0-9021ddbf2893";
const ROOT: &str = "/srv/qzvx run/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/wörk";
const OTHER: &str = "/用户/秘项 目/工作";
const KNOWN: &str = "qwop hippo 42";

fn stream() -> TextStream {
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    paths.add_root(OTHER);
    let mut secrets = Secrets::default();
    assert!(secrets.add_known(KNOWN));
    TextStream::new(paths, secrets)
}

/// Texts to hide, and parts of them that must never be on a screen.
fn planted() -> Vec<(String, Vec<String>)> {
    let core = "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0Js";
    let hex = "9f8e7d6c5b4a39281706f5e4d3c2b1a0";
    // Any six characters of it in a row.
    let parts = |core: &str| (0..core.len() - 6).map(|i| core[i..i + 6].to_owned()).collect();
    let secret = |text: String, core: &str| (text, parts(core));
    let root = |text: &str| (text.to_owned(), vec!["qzv".to_owned(), "9c7662".to_owned()]);
    let other = |text: &str| (text.to_owned(), vec!["秘".to_owned()]);
    vec![
        secret(format!("{}{core}", "sk-ant-api03-"), core),
        secret(format!("{}{core}AbCd", "ghp_"), core),
        secret(format!("{}11{core}", "github_pat_"), core),
        secret(format!("{}{core}", "glpat-"), core),
        secret(format!("{}{}", "AKIA", "Q7ZW3LMX5CVB2NKP"), "Q7ZW3LMX5CVB2NKP"),
        secret(format!("{}{core}xyz", "AIza"), core),
        secret(format!("{}{core}", "xoxb-1234567890-"), core),
        secret(format!("{}{core}", "sk_live_"), core),
        secret(format!("{}{hex}{hex}", "dop_v1_"), hex),
        secret(format!("{}{core}", "hvs."), core),
        secret(format!("postgres://bob:{core}@db:5432/x"), core),
        secret(format!("https://bob:{core}@example.com/x"), core),
        secret(format!("password={core}"), core),
        secret(format!("password: {core}"), core),
        secret(format!("\"api_key\": \"{core}\""), core),
        secret(format!("Authorization: Bearer {core}"), core),
        secret(format!("Authorization: token {core}"), core),
        secret(format!("--token {core}"), core),
        secret(format!("AWS_SECRET_ACCESS_KEY={core}12345678"), core),
        secret(format!("Cookie: theme=dark; sid={core}"), core),
        secret(format!("-----BEGIN RSA PRIVATE KEY-----\n{core}{core}\n{core}{core}\n"), core),
        secret(format!("pass%77ord = {core}"), core),
        (KNOWN.to_owned(), vec!["qwop".to_owned(), "hipp".to_owned()]),
        root(ROOT),
        root(&ROOT[1..]),
        root(&ROOT.replace('/', "\\")),
        root(&ROOT.replace('/', "%2F").replace(' ', "%20")),
        root(&ROOT.replace(' ', "\\ ")),
        root(&format!("file://{ROOT}")),
        root(&format!("C:{}", ROOT.replace('/', "\\"))),
        root(&format!("~/.claude/projects/-srv-qzvx-run-{ID}-w-rk")),
        root(&format!("projects/-srv-qzvx-run-{ID}-w-rk")),
        root(ID),
        other(OTHER),
        other(&OTHER.replace('/', "\\")),
    ]
}

#[test]
fn no_pause_shows_a_part_of_what_is_to_be_hidden() {
    let mut wrong = Vec::new();
    for before in
        ["", "see ", "the key is ", "看", "\"", "(", "a: ", "x=", "\u{1b}[1m", "see this: `"]
    {
        for (plant, parts) in planted() {
            let text = format!("{before}{plant} end");
            let mut stream = stream();
            let mut shown = String::new();
            for (at, byte) in text.bytes().enumerate() {
                shown.push_str(&stream.push(&[byte]));
                let screen = format!("{shown}{}", stream.preview().as_str());
                if let Some(part) = parts.iter().find(|part| screen.contains(part.as_str())) {
                    wrong.push(format!(
                        "{screen:?} shows {part:?} of {:?}",
                        &text.as_bytes()[..=at].escape_ascii().to_string()
                    ));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_pause_anywhere_shows_all_there_is_of_ordinary_text() {
    let mut wrong = Vec::new();
    for (name, text) in SCRIPTS {
        // A path, a login or a long name may still become something else.
        if ["code", "URLs", "paths", "Markdown", "JSON", "logs"].contains(&name) {
            continue;
        }
        let mut stream = stream();
        let (mut shown, mut sent) = (String::new(), String::new());
        for c in text.chars() {
            sent.push(c);
            shown.push_str(&stream.push(c.to_string().as_bytes()));
            let screen = format!("{shown}{}", stream.preview().as_str());
            let held = sent.strip_prefix(screen.as_str());
            // A path or an escape may begin there; a joiner alone is not seen.
            let begun = |held: &str| held.starts_with(['/', '%', '\u{200d}', '\u{fe0f}']);
            if !held.is_some_and(|held| held.is_empty() || begun(held)) {
                wrong.push(format!("{name}: {held:?} is not shown"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn looking_changes_nothing() {
    for (_, text) in SCRIPTS {
        let (mut looked, mut plain) = (stream(), stream());
        for piece in text.as_bytes().chunks(7) {
            assert_eq!(looked.push(piece), plain.push(piece));
            looked.preview();
            assert_eq!(looked.preview(), looked.preview());
        }
        assert_eq!(looked.finish(), plain.finish());
    }
    for (text, _) in planted() {
        let (mut looked, mut plain) = (stream(), stream());
        for piece in text.as_bytes().chunks(3) {
            assert_eq!(looked.push(piece), plain.push(piece));
            looked.preview();
        }
        assert_eq!(looked.finish(), plain.finish());
        assert_eq!(looked.removed(), plain.removed());
    }
}

fn chunk(kind: &str, text: &str) -> String {
    format!(
        "{{\"sessionUpdate\":\"{kind}\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}\n"
    )
}

#[test]
fn a_preview_is_of_the_item_that_comes() {
    let (mut packets, mut pipeline, mut items) =
        (Packets::default(), Pipeline::default(), Items::new());
    let mut push = |line: String| {
        let mut steps = Vec::new();
        packets.push(line.as_bytes(), |given| pipeline.push(given, &mut steps));
        steps.into_iter().flat_map(|s| s.changes).for_each(|c| items.apply(c));
        (pipeline.preview(), items.clone())
    };
    // Of a text that has not been told at all yet.
    let (preview, items) = push(chunk("agent_thought_chunk", "Hel"));
    assert_eq!(items.iter().count(), 0);
    let [Change::Put { item }] = &preview[..] else { panic!("{preview:?}") };
    let id = item.id.clone();
    // Of one that is there.
    let (preview, items) = push(chunk("agent_thought_chunk", "lo wor"));
    assert_eq!(items.iter().map(|i| i.id.clone()).collect::<Vec<_>>(), std::slice::from_ref(&id));
    let [Change::Append { id: of, text, .. }] = &preview[..] else { panic!("{preview:?}") };
    assert_eq!((of, text.as_str()), (&id, "wor"));
    // Of the next one, after one that was told to its end.
    let (preview, items) = push(chunk("agent_message_chunk", "Don"));
    assert_eq!(items.iter().count(), 1);
    let [Change::Put { item }] = &preview[..] else { panic!("{preview:?}") };
    let (preview, items) = push(chunk("agent_message_chunk", "e\\n"));
    assert!(preview.is_empty(), "{preview:?}");
    assert_eq!(items.iter().last().map(|i| i.id.clone()), Some(item.id.clone()));
}
