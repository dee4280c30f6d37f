//! Laws of cleaning: idempotent, blind to chunking, nothing planted survives, nothing else changes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::sanitize::{Mode, TextStream};
use narrows::{Paths, Redactor, Secrets};
use proptest::prelude::*;
use proptest::sample::select;

const ID: &str = "9c7662c1-785f-4f1c-b9e0-9021ddbf2893";
/// A root whose names occur nowhere else.
const ROOT: &str = "/srv/qzvx run/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/wörk";
/// One in a script without blanks, with a blank in it.
const OTHER: &str = "/用户/秘项 目/工作";
/// What must never show, in lower case.
const CANARIES: [&str; 5] = ["qzvx", "9c7662c1", "9021ddbf2893", "9021ddbf", "秘项"];

/// Tokens, and the part of each that must never show.
fn secrets() -> Vec<(String, String)> {
    let core = "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0Js";
    let hex = "9f8e7d6c5b4a39281706f5e4d3c2b1a0";
    let make = |s: String, core: &str| (s, core[4..20].to_owned());
    vec![
        make(format!("{}{core}", "sk-ant-api03-"), core),
        make(format!("{}{core}", "sk-proj-"), core),
        make(format!("{}{hex}{hex}", "sk-or-v1-"), hex),
        make(format!("{}{core}AbCd", "ghp_"), core),
        make(format!("{}11{core}", "github_pat_"), core),
        make(format!("{}{core}", "glpat-"), core),
        (format!("{}{}", "AKIA", "Q7ZW3LMX5CVB2NKP"), "ZW3LMX5CVB".to_owned()),
        make(format!("{}{core}xyz", "AIza"), core),
        make(format!("{}{core}", "xoxb-1234567890-"), core),
        make(format!("{}{core}", "sk_live_"), core),
        make(format!("{}{core}AbCd", "npm_"), core),
        make(format!("{}{core}AbCd", "hf_"), core),
        make(format!("{}{hex}{hex}", "dop_v1_"), hex),
        make(format!("{}{core}", "hvs."), core),
        make(format!("{}{core}_9f8e7d6c", "glsa_"), core),
        make(format!("{}{hex}", "dapi"), hex),
        make(format!("postgres://bob:{core}@db:5432/x"), core),
        make(format!("password={core}"), core),
        make(format!("\"api_key\": \"{core}\""), core),
        make(format!("Authorization: Bearer {core}"), core),
        make(format!("AWS_SECRET_ACCESS_KEY={core}12345678"), core),
        make(
            format!(
                "{}.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{core}",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
            ),
            core,
        ),
        make(
            format!(
                "-----BEGIN {} KEY-----\nMIIE{core}\n{core}\n-----END {} KEY-----",
                "PRIVATE", "PRIVATE"
            ),
            core,
        ),
    ]
}

/// The root as it may be written.
fn spellings() -> Vec<String> {
    let parts: Vec<&str> = ROOT.split('/').filter(|p| !p.is_empty()).collect();
    let join = |sep: &str| parts.iter().map(|p| format!("{sep}{p}")).collect::<String>();
    let percent = |s: &str| -> String {
        s.bytes()
            .map(|c| match c {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'/' => char::from(c).to_string(),
                c => format!("%{c:02X}"),
            })
            .collect()
    };
    vec![
        ROOT.to_owned(),
        join("\\"),
        join("\\\\"),
        join("\\/"),
        percent(ROOT),
        percent(ROOT).replace('/', "%2F"),
        percent(ROOT).replace('/', "%252F").replace("%2", "%252"),
        format!("file://{}", percent(ROOT)),
        format!("C:{}", join("\\")),
        ROOT.to_uppercase(),
        ROOT.replace('ö', "o\u{308}"),
        ROOT.replace('ö', "\\u00f6"),
        ROOT.replace(' ', "\\ "),
        ROOT.replacen('/', "//", 2).replace("/wö", "/./wö"),
        ROOT.replace("qz", "q\u{200b}z").replace("c1-", "c\u{1b}[31m1-\u{1b}[0m"),
        ROOT[1..].to_owned(),
        format!("/home/x/.claude/projects/-srv-qzvx-run-{ID}-w-rk"),
        format!("/private{ROOT}"),
        ID.to_owned(),
        ID.replace('-', "").to_uppercase(),
        OTHER.to_owned(),
        percent(OTHER),
        OTHER.replace(' ', "\\ "),
        OTHER.replace('/', "\\"),
        format!("/home/见{OTHER}"),
    ]
}

fn paths() -> Paths {
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    paths.add_root(OTHER);
    paths
}

fn cleaner() -> Redactor {
    Redactor::new(paths(), Secrets::default())
}

fn clean(text: &str, mode: Mode) -> String {
    cleaner().text(text, mode).as_str().to_owned()
}

/// The text cleaned as a stream of pieces that end at `cuts`.
fn streamed(text: &[u8], cuts: &[usize]) -> String {
    let mut stream = TextStream::new(paths(), Secrets::default());
    let mut out = String::new();
    let mut from = 0;
    for cut in cuts {
        out.push_str(&stream.push(&text[from..*cut]));
        from = *cut;
    }
    out.push_str(&stream.push(&text[from..]));
    out.push_str(&stream.finish());
    out
}

/// Ordinary neighbours: what stands between words, and words.
fn neighbour() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec![
            " ", "\n", "  ", "\t", "\"", "'", "`", "(", ")", ",", ";", ":", "=", "|", "&", "<", ">",
            "[", "]", "{", "}", "\r\n", "\\n", "\u{1b}[31m", "\u{1b}[0m", "é", "🎉", "👩‍👩‍👧", "…", "->",
            "$", "#", "\\\"", "%20", "@", "*", "!", "",
        ]).prop_map(str::to_owned),
        2 => select(vec![
            "see", "the", "cat", "key", "password", "token", "Bearer", "-I", "--root", "export X",
            "/etc/hosts", "~/x", "src/main.rs", "https://example.com/a/b?c=d", "sessions", "/sessions/",
            "[redacted:api-key:1a2b]", "http://h:80/", "-----", "=", "C:\\Users\\x", "file://",
        ]).prop_map(str::to_owned),
        2 => select(vec![
            "中文", "，", "项目", "/用户", "/秘", "ไทย", "한국", "かな", "。", "：", "→", "密码: ", "和/或",
            "/home/用户/", "https://用户:", "https://a.b是", "key是", "\u{3000}", "é中", "中\u{200b}",
        ]).prop_map(str::to_owned),
        2 => select(vec![
            "secret access key [", "session token ", "\"token\" : \"", "api_key: &'static str = ",
            "authorization: token ", "cookie: a=b; ", "basic ", "--password ", "-----BEGIN RSA ",
            "-----END ", "PRIVATE KEY-----", "\"/mnt/My ", "/Users/Jo ", "Proc-Type: 4,ENCRYPTED\n",
            "pass%77ord = ", "to\u{1b}[1mken: ", "pwd=", " =", ": ", "abcdefgh", "x1y2z3w4v5",
        ]).prop_map(str::to_owned),
        1 => "[ -~]{0,10}",
        1 => "\\PC{0,6}",
    ]
}

/// What may be planted.
fn plant() -> impl Strategy<Value = String> {
    prop_oneof![
        select(spellings()),
        select(secrets().into_iter().map(|s| s.0).collect::<Vec<_>>()),
        Just("/workspace/sessions/11111111-2222-3333-4444-555555555555/a".to_owned()),
        Just("/data/sandboxes/abc/sessions/def/outputs".to_owned()),
        Just("\u{1b}]0;title\u{7}\u{1b}[2J".to_owned()),
    ]
}

fn mixed(max: usize) -> impl Strategy<Value = String> {
    let part = prop_oneof![3 => neighbour(), 1 => plant()];
    prop::collection::vec(part, 0..max).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(common::laws(600))]

    #[test]
    fn cleaning_twice_is_cleaning_once(text in mixed(16)) {
        for mode in [Mode::Text, Mode::Body] {
            let once = clean(&text, mode);
            prop_assert_eq!(&clean(&once, mode), &once, "of {:?}", text);
        }
    }

    #[test]
    fn any_pieces_give_the_cleaned_whole(
        text in mixed(30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let whole = clean(&text, Mode::Text);
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).collect();
        at.sort_unstable();
        prop_assert_eq!(&streamed(text.as_bytes(), &at), &whole, "of {:?}", text);
        let each: Vec<usize> = (0..text.len()).collect();
        prop_assert_eq!(&streamed(text.as_bytes(), &each), &whole, "byte by byte of {:?}", text);
    }

    #[test]
    fn every_cut_of_a_short_text_is_the_same(text in mixed(6)) {
        let whole = clean(&text, Mode::Text);
        for cut in 0..=text.len().min(400) {
            prop_assert_eq!(&streamed(text.as_bytes(), &[cut]), &whole, "{:?} at {}", text, cut);
        }
    }

    #[test]
    fn long_texts_without_a_blank_are_the_same(
        unit in mixed(4),
        n in 1usize..400,
        piece in 1usize..9000,
    ) {
        let text: String = unit.replace([' ', '\n', '\r', '\t'], "").repeat(n);
        let text = &text[..text.floor_char_boundary(60_000.min(text.len()))];
        let cuts: Vec<usize> = (piece..text.len()).step_by(piece).collect();
        prop_assert_eq!(streamed(text.as_bytes(), &cuts), clean(text, Mode::Text));
    }

    #[test]
    fn a_planted_root_never_shows(
        before in prop::collection::vec(neighbour(), 0..4),
        spelling in select(spellings()),
        after in select(vec!["", "/a.txt", " x", "\"", "'", ")", ":3", ",", "\n", "\\src\\b", "/../x", "; ls", "\u{1b}[0m", "`", "]", "|", "…"]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let before = before.concat();
        let text = format!("{before}{spelling}{after}");
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).collect();
        at.sort_unstable();
        for mode in [Mode::Text, Mode::Body] {
            no_canary(&clean(&text, mode), &text);
        }
        no_canary(&streamed(text.as_bytes(), &at), &text);
    }

    #[test]
    fn a_planted_secret_never_shows(
        before in prop::collection::vec(neighbour(), 0..4),
        secret in select(secrets()),
        after in prop::collection::vec(neighbour(), 0..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        colour in prop::option::of(any::<prop::sample::Index>()),
        mark in select(vec!["\u{1b}[1;31m", "\u{1b}[0m", "\u{200b}", "\u{ad}", "\\u001b[0m"]),
    ) {
        let (mut planted, core) = secret;
        // A name right before a key, or a letter right before a scheme, makes it another one.
        let before = before.concat();
        let named = planted.starts_with(|c: char| c.is_alphabetic()) && planted.contains(['=', ' ']) || planted.contains("://");
        prop_assume!(!(named && before.ends_with(|c: char| c.is_alphanumeric() || "-_.%".contains(c))));
        if let Some(at) = colour {
            let at = planted.floor_char_boundary(at.index(planted.len()));
            planted.insert_str(at, mark);
        }
        let text = format!("{before}{planted}{}", after.concat());
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).collect();
        at.sort_unstable();
        for out in [clean(&text, Mode::Text), clean(&text, Mode::Body), streamed(text.as_bytes(), &at)] {
            let bare = out.replace(mark, "");
            prop_assert!(!bare.contains(&core), "{:?} shows in {:?} of {:?}", core, out, text);
        }
    }

    #[test]
    fn a_pause_shows_nothing_that_has_begun(
        plant in prop_oneof![
            select(secrets()),
            select(spellings()).prop_map(|s| (s, "9c7662c1".to_owned())),
        ],
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..5), 1..6),
    ) {
        use serde_json::json;
        let (planted, core) = plant;
        let text = format!("see '{planted}' there");
        let mut at: Vec<(usize, usize)> = cuts.iter()
            .map(|(c, what)| (text.floor_char_boundary(c.index(text.len())), *what)).collect();
        at.sort_unstable();
        at.push((text.len(), 4));
        // A call that is new would end the text.
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "status": "pending"});
        let (mut packets, mut from) = (format!("{call}\n"), 0);
        for (cut, what) in at {
            let chunk = json!({"type": "text", "text": &text[from..cut]});
            let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": chunk});
            packets.extend([chunk.to_string().as_str(), "\n"]);
            from = cut;
            packets += &match what {
                0 => json!({"type": "prompt_response", "stopReason": "end_turn"}).to_string(),
                1 => json!({"type": "agent_plan_update", "entries": [{"content": "x", "status": "pending"}]}).to_string(),
                2 => json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": {"terminal_output_delta": {"data": "x "}}}).to_string(),
                3 => json!({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": {"toolCall": {"toolCallId": "c"}, "options": []}}).to_string(),
                _ => String::new(),
            };
            packets.push('\n');
        }
        let config = narrows::Config { paths: paths(), ..Default::default() };
        let shown = common::all_views(config, packets.as_bytes());
        prop_assert!(!shown.contains(&core), "{} shows in {}", core, shown);
    }

    #[test]
    fn arguments_that_stream_as_json_stay_json(
        values in prop::collection::vec(mixed(5), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let input: serde_json::Map<String, serde_json::Value> =
            values.into_iter().enumerate().map(|(i, v)| (format!("k{i}"), v.into())).collect();
        let json = serde_json::to_string(&input).unwrap();
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(json.len() + 1)).collect();
        at.sort_unstable();
        let out = streamed(json.as_bytes(), &at);
        let read = serde_json::from_str::<serde_json::Value>(&out);
        prop_assert!(read.is_ok(), "{:?} became {:?}", json, out);
    }

    #[test]
    fn a_text_is_cleaned_alike_whatever_was_cleaned_before(
        lines in prop::collection::vec(mixed(3), 20..60),
        changes in prop::collection::vec((any::<usize>(), mixed(3)), 1..4),
        modes in prop::collection::vec(any::<bool>(), 4),
    ) {
        // Long enough to be remembered, with lines in common.
        let filler = "let value = compute(input).unwrap_or_default(); // and so on, and so on\n".repeat(12);
        let mode = |body: bool| if body { Mode::Body } else { Mode::Text };
        let mut texts = vec![lines.clone()];
        for (at, line) in changes {
            let mut next = texts.last().unwrap().clone();
            let at = at % next.len();
            next[at] = line;
            texts.push(next);
        }
        let mut one = cleaner();
        for (i, lines) in texts.iter().enumerate() {
            let text = format!("{filler}{}\n{filler}{}", lines[..10].join("\n"), lines[10..].join("\n"));
            let mode = mode(modes[i % modes.len()]);
            let got = one.text(&text, mode).to_string();
            prop_assert_eq!(got, clean(&text, mode));
        }
    }

    #[test]
    fn plain_text_stays_as_it_is(words in prop::collection::vec(select(vec![
        "the", "token", "password", "is", "in", "src/main.rs", "/usr/lib/x86_64-linux-gnu", "/api/sessions/feed/list",
        "https://example.com/sessions/abc/view", "fn", "main()", "{", "}", "let", "key", "value;",
        "max_tokens: 4096,", "\n", "  ", "\u{1b}[32m", "ok", "\u{1b}[0m", "sk-learn", "é", "🎉", "C:\\Windows",
        "git@github.com:a/b.git", "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "node_modules/@types/node", "100%", "a@b.example", "d41d8cd98f00b204e9800998ecf8427e", "\\n", "\"x\"",
    ]), 0..30), glue in select(vec![" ", "\n", "  "])) {
        let text = words.join(glue);
        prop_assert_eq!(&clean(&text, Mode::Text), &text);
        prop_assert_eq!(&clean(&text, Mode::Body), &text);
    }

    #[test]
    fn what_is_not_counted_is_not_changed(text in mixed(12)) {
        let mut cleaner = cleaner();
        let out = cleaner.text(&text, Mode::Text);
        if cleaner.removed().is_empty() {
            prop_assert_eq!(out.as_str(), text);
        } else {
            prop_assert_ne!(out.as_str(), text);
        }
    }
}

#[test]
fn debugging_shows_nothing_either() {
    let mut secrets = Secrets::default();
    secrets.add_known("qzvx-known-value");
    secrets.set_key(*b"qzvxqzvxqzvxqzvxqzvxqzvxqzvxqzvx");
    let mut stream = TextStream::new(paths(), secrets.clone());
    stream.push(format!("see {ROOT}/qzvx").as_bytes());
    let mut cleaner = Redactor::new(paths(), secrets.clone());
    cleaner.text(&format!("{ROOT}/qzvx ").repeat(20), Mode::Text);
    let config = narrows::Config {
        paths: paths(),
        secrets: std::sync::Arc::new(secrets),
        ..Default::default()
    };
    let said = format!("{config:?} {:?}", narrows::Pipeline::new(config.clone()));
    let said = format!("{said} {stream:?} {cleaner:?}");
    assert!(!said.contains("qzvx") && !said.contains("113, 122"), "{said}");
}

#[test]
fn arguments_that_grow_never_show_what_they_will_hold() {
    let token = concat!("ghp_", "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0JsAbCd");
    let command = format!("cat '{ROOT}/a.txt' && export T={token}");
    for end in (0..=command.len()).filter(|i| command.is_char_boundary(*i)) {
        let shown = clean(&command[..end], Mode::Text);
        assert!(!shown.contains("9c7662c"), "{shown}");
        assert!(!shown.contains("wörk") && !shown.contains("/wö"), "{shown}");
        assert!(!shown.contains(&token[..16]), "{shown}");
    }
}

#[test]
fn a_secret_of_any_length_is_hidden_to_its_end() {
    for len in [200, 1000, 1100, 4000, 4200, 8000, 9000, 30_000] {
        let value: String = "Zq7Wd2Lm9Xc4Vb8N".chars().cycle().take(len).collect();
        for text in [
            format!("X_TOKEN={value}"),
            format!("{}{value} x", "sk-ant-"),
            format!("Bearer {value}"),
        ] {
            let shown = clean(&text, Mode::Text);
            assert!(!shown.contains("Lm9Xc4"), "{len}: {shown}");
        }
    }
}

fn no_canary(out: &str, text: &str) {
    let bare = out
        .replace("\u{1b}[31m", "")
        .replace("\u{1b}[0m", "")
        .replace('\u{200b}', "")
        .to_lowercase();
    for canary in CANARIES {
        assert!(!bare.contains(canary), "{canary} shows in {out:?} of {text:?}");
    }
}

#[test]
fn every_rule_finds_its_samples_and_leaves_the_others() {
    let mut wrong = Vec::new();
    let mut rules = 0;
    for rule in Secrets::rules() {
        rules += 1;
        assert!(!rule.hits.is_empty() && !rule.misses.is_empty(), "{} has no samples", rule.kind);
        let mut cleaner = Redactor::new(Paths::new(), Secrets::default());
        for hit in rule.hits {
            let out = cleaner.text(hit, Mode::Text);
            if !out.contains(&format!("[redacted:{}:", rule.kind)) {
                wrong.push(format!("{} misses {hit:?}: {out:?}", rule.kind));
            }
        }
        for miss in rule.misses {
            let out = cleaner.text(miss, Mode::Text);
            if out.as_str() != *miss {
                wrong.push(format!("{} finds {miss:?}: {out:?}", rule.kind));
            }
        }
    }
    assert!(rules >= 34, "only {rules} rules");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
