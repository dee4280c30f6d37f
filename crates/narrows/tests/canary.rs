//! Recorded sessions whose root, and every other text, carries a canary: no view shows it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::Config;
use serde_json::Value;
use std::fs;

/// A root with everything in it that makes a root hard to find.
const ROOT: &str = "/srv/qzvx run/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/wörk";
/// What must not show, in lower case. The token's core is as good as the token.
const CANARIES: [&str; 4] = ["qzvx", "9c7662c1", "9021ddbf2893", "d2lm9xc4vb8nn3kp"];

/// The twelve ways in which the root stands in the sessions.
fn spellings() -> Vec<(&'static str, String)> {
    let parts: Vec<&str> = ROOT.split('/').filter(|p| !p.is_empty()).collect();
    let join = |sep: &str| parts.iter().map(|p| format!("{sep}{p}")).collect::<String>();
    let percent = ROOT.replace(' ', "%20").replace('ö', "%C3%B6");
    vec![
        ("plain", ROOT.to_owned()),
        ("upper case", ROOT.to_uppercase()),
        ("decomposed", ROOT.replace('ö', "o\u{308}")),
        ("backslashes", join("\\")),
        ("drive", format!("c:{}", join("\\"))),
        ("escaped slashes", join("\\/")),
        ("escaped letters", ROOT.replace('ö', "\\u00f6").replace('/', "\\u002f")),
        ("percent", percent.replace('/', "%2F")),
        ("percent twice", percent.replace('%', "%25").replace('/', "%252f")),
        ("file url", format!("file://{percent}")),
        ("doubled and dotted", ROOT.replace('/', "//").replace("//w", "/./w")),
        ("coloured", ROOT.replace("vx", "v\u{1b}[1;31mx\u{1b}[0m").replace("9c7", "9\u{200b}c7")),
    ]
}

/// The recorded sessions: name, packets, and the root they ran in.
fn recorded() -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    for case in common::cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let agents = ["opencode-1", "claude-acp-", "codex-acp-", "gemini-acp-", "2.0-", "2.1-"];
        if !agents.iter().any(|a| name.starts_with(a)) {
            continue;
        }
        for file in ["input.jsonl", "load.jsonl"] {
            let Ok(text) = fs::read_to_string(case.join(file)) else { continue };
            if text.len() > 60_000 {
                continue;
            }
            let given = fs::read_to_string(case.join("options.json")).ok();
            let given = given.and_then(|t| serde_json::from_str::<Value>(&t).ok());
            let root = given.and_then(|o| o["root"].as_str().map(str::to_owned)).or_else(|| {
                let at = text.find("\"cwd\":\"")? + 7;
                Some(text[at..].split('"').next()?.to_owned())
            });
            if let Some(root) = root {
                out.push((format!("{name}/{file}"), text, root));
            }
        }
    }
    out
}

fn config() -> Config {
    let mut config = Config::default();
    config.paths.add_root(ROOT);
    config
}

fn assert_clean(shown: &str, what: &str) {
    let bare = shown.replace("\\u001b[1;31m", "").replace("\\u001b[0m", "").replace('\u{200b}', "");
    let lower = bare.to_lowercase();
    for canary in CANARIES {
        if let Some(at) = lower.find(canary) {
            let (from, to) = (at.saturating_sub(300), (at + 200).min(lower.len()));
            let near = &lower[lower.floor_char_boundary(from)..lower.ceil_char_boundary(to)];
            panic!("{what}: {canary} shows: …{near}…");
        }
    }
}

#[test]
fn no_spelling_of_the_root_shows_in_any_view() {
    let sessions = recorded();
    assert!(sessions.len() > 100, "only {} sessions", sessions.len());
    let mut planted = 0;
    for (name, text, root) in sessions {
        for (how, spelling) in spellings() {
            let json = serde_json::to_string(&spelling).unwrap();
            planted += text.matches(&root).count();
            let input = text.replace(&root, &json[1..json.len() - 1]);
            assert_clean(&common::all_views(config(), input.as_bytes()), &format!("{name}, {how}"));
        }
    }
    assert!(planted > 10_000, "only {planted} canaries");
}

/// Keys whose values decide what a packet is.
const SHAPE: [&str; 11] = [
    "jsonrpc",
    "method",
    "sessionUpdate",
    "type",
    "subtype",
    "dir",
    "ts",
    "timestamp",
    "mimeType",
    "media_type",
    "data",
];

/// Puts a text into every string of a packet, and into every key that is not the protocol's.
fn plant(value: &mut Value, text: &str) {
    match value {
        Value::String(s) => s.push_str(text),
        Value::Array(list) => list.iter_mut().for_each(|v| plant(v, text)),
        Value::Object(map) => {
            map.iter_mut()
                .filter(|(k, _)| !SHAPE.contains(&k.as_str()))
                .for_each(|(_, v)| plant(v, text));
            map.insert(format!("extra{text}"), Value::from(format!("x{text}")));
        }
        _ => {}
    }
}

#[test]
fn nothing_planted_in_any_field_shows_in_any_view() {
    let token = concat!("ghp_", "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0JsAbCd");
    let key = concat!("password=", "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0Js");
    let texts = [
        format!(" {ROOT}/a.txt "),
        format!(" see {token}, "),
        format!(" {key} "),
        " 9C7662C1785F4F1CB9E09021DDBF2893 ".to_owned(),
    ];
    for (name, text, _) in recorded() {
        for planted in &texts {
            let mut input = String::new();
            for line in text.lines() {
                let Ok(mut packet) = serde_json::from_str::<Value>(line) else { continue };
                plant(&mut packet, planted);
                input.push_str(&packet.to_string());
                input.push('\n');
            }
            assert_clean(
                &common::all_views(config(), input.as_bytes()),
                &format!("{name}, {planted:?}"),
            );
        }
    }
}
