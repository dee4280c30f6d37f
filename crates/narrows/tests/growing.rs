//! Fields that are sent whole again as they grow: no event shows the first half of what is hidden in
//! the end, and the last one shows what the field cleaned at once shows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use narrows::sanitize::Mode;
use narrows::{Config, Format, Packets, Paths, Pipeline, PrintedEvent, Redactor, Secrets, Step};
use serde_json::{Value, json};

const ROOT: &str = "/srv/acme-q7-checkout/app";
const FIELDS: [&str; 6] = ["rawOutput", "command", "content", "title", "path", "value"];

fn update(more: &Value) -> Value {
    let mut all = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1"});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

fn field(name: &str, text: &str) -> Value {
    match name {
        "rawOutput" => json!({"rawOutput": {"output": text}}),
        "command" => json!({"rawInput": {"command": text}}),
        "path" => json!({"rawInput": {"file_path": text}, "locations": [{"path": text}]}),
        "value" => json!({"rawInput": {"query": {"text": text}}}),
        "content" => json!({"content": [{"type": "diff", "path": "a.txt", "newText": text}]}),
        _ => json!({"title": text}),
    }
}

/// The printed events of some packets.
fn events(packets: &[Value]) -> Vec<String> {
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    let mut pipeline = Pipeline::new(Config { format: Format::Acp, paths, ..Config::default() });
    let (mut reader, mut steps) = (Packets::default(), Vec::<Step>::new());
    for packet in packets {
        let line = format!("{packet}\n");
        reader.push(line.as_bytes(), |given| pipeline.push(given, &mut steps));
    }
    reader.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let print = |(i, step): (usize, &Step)| {
        serde_json::to_string(&PrintedEvent::new(i as u64, "s", &step.event)).unwrap()
    };
    steps.iter().enumerate().map(print).collect()
}

fn start() -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "execute", "title": "bash",
        "status": "pending"})
}

/// A call one of whose fields grows by `size` characters at a time; how it ends.
fn grown(name: &str, text: &str, size: usize, end: &Value) -> Vec<String> {
    let mut packets = vec![start()];
    let ends: Vec<usize> = text.char_indices().map(|(i, c)| i + c.len_utf8()).collect();
    for end in ends.chunks(size).filter_map(|chunk| chunk.last()) {
        let mut more = field(name, &text[..*end]);
        more["status"] = json!("in_progress");
        packets.push(update(&more));
    }
    packets.push(end.clone());
    events(&packets)
}

/// What is hidden of a text, in windows that say something.
fn hidden(text: &str) -> Vec<String> {
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    let shown = Redactor::new(paths, Secrets::default()).text(text, Mode::Text);
    let same = |(a, b): &(char, char)| a == b;
    let front = text.chars().zip(shown.chars()).take_while(same).count();
    let back = text.chars().rev().zip(shown.chars().rev()).take_while(same).count();
    let chars: Vec<char> = text.chars().collect();
    let inside = chars.get(front..chars.len().saturating_sub(back)).unwrap_or_default();
    let windows = inside.windows(8).map(|w| w.iter().collect::<String>());
    // What all tokens of a service begin with says nothing, nor does the number of an account.
    let has = |w: &str, is: fn(&char) -> bool| w.chars().any(|c| is(&c));
    let says = |w: &String| {
        let (upper, lower) = (has(w, char::is_ascii_uppercase), has(w, char::is_ascii_lowercase));
        let digits = w.chars().filter(char::is_ascii_digit).count();
        (upper && lower) || ((upper || lower) && (1..6).contains(&digits))
    };
    windows.filter(|w| says(w) && !shown.contains(w.as_str())).collect()
}

/// A text as it stands in JSON.
fn printed(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn check(texts: &[String], sizes: &[usize]) {
    let completed = update(&json!({"status": "completed"}));
    let mut wrong = Vec::new();
    for text in texts {
        let hidden = hidden(text);
        for name in FIELDS.into_iter().filter(|name| *name != "path" || text.starts_with('/')) {
            for size in sizes {
                let rows = grown(name, text, *size, &completed);
                let seen = hidden.iter().find(|w| rows.iter().any(|r| r.contains(&printed(w))));
                if let Some(seen) = seen {
                    wrong.push(format!("{name} by {size}: {seen:?} of {text:?}"));
                }
                // At the end it is what it would be at once.
                let mut whole = field(name, text);
                whole["status"] = json!("completed");
                let once = events(&[start(), update(&whole)]);
                let last = |rows: &[String]| -> Value {
                    let mut row: Value = serde_json::from_str(rows.last().unwrap()).unwrap();
                    for own in ["id", "eventId", "seq", "rawOutputAppend"] {
                        row.as_object_mut().unwrap().remove(own);
                    }
                    row
                };
                let (a, b) = (last(&rows), last(&once));
                for key in ["rawInput", "rawOutput", "title", "command", "filePath", "diffs"] {
                    if a["toolCall"][key] != b["toolCall"][key] {
                        wrong.push(format!("{name} by {size}: {key} of {text:?}"));
                    }
                }
            }
        }
    }
    wrong.sort_by_key(|line| line.split_once(": ").map(|(_, what)| what.to_owned()));
    wrong.dedup_by_key(|line| line.split_once(": ").map(|(_, what)| what.to_owned()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_half_of_a_secret_of_any_rule_is_shown() {
    let samples = Secrets::rules().flat_map(|rule| rule.hits.iter().map(ToString::to_string));
    let texts: Vec<String> = samples
        .flat_map(|hit| [hit.clone(), format!("curl -v {hit} # done"), format!("`{hit}`")])
        .collect();
    assert!(texts.len() > 100);
    check(&texts, &[1, 5]);
}

#[test]
fn no_half_of_a_root_or_a_login_is_shown() {
    let texts = [
        format!("{ROOT}/src/main.rs"),
        format!("cat {ROOT}/src/main.rs | head"),
        format!("see `{ROOT}`"),
        "psql postgres://app:k9Lw2zQx7Vb4Rt8m@db/x -c 'select 1'".to_owned(),
        "https://bot:hunter2hunter2@example.com/x.git".to_owned(),
        "export API_TOKEN=abcdefghijkl9876zyx && run".to_owned(),
        "密码 password: k9Lw2zQx7Vb4Rt8m 完".to_owned(),
    ];
    check(&texts, &[1, 2, 7]);
}

#[test]
fn no_part_of_a_private_key_is_shown() {
    let key = "MHcCAQEEIKq7Zx3Vn5Tb9Wm2Yd4Lf6Hp8Rs0Gj1Kc3Qa5Ue7XoAoGCCqGSM49\nAwEHoUQDQgAE7k2Zx9";
    let texts = ["EC PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY"]
        .map(|name| format!("cat id\n-----BEGIN {name}-----\n{key}\n-----END {name}-----\ndone"));
    check(&texts, &[1, 5]);
}

#[test]
fn a_summary_that_is_cut_off_shows_no_half() {
    let update = |kind: &str, more: Value| {
        let mut all = json!({"sessionUpdate": kind, "compactionId": "k"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let chunk = |text: &str| {
        update("compaction_summary_chunk", json!({"content": {"type": "text", "text": text}}))
    };
    let begin = || update("compaction_update", json!({"status": "in_progress"}));
    for (half, shows) in
        [("use postgres://app:k9Lw2zQ", "use postgres://app:…"), ("see /srv/acme-q7-chec", "see …")]
    {
        let answer = |reason: &str| json!({"type": "prompt_response", "stopReason": reason});
        for packets in [
            vec![begin(), chunk(half)],
            vec![begin(), chunk(half), answer("end_turn")],
            vec![begin(), chunk(half), answer("cancelled")],
            vec![update("compaction_update", json!({"summary": half}))],
        ] {
            let rows = events(&packets);
            let summaries = rows.iter().filter(|row| row.contains(r#""type":"compaction""#));
            let summaries: Vec<_> = summaries.collect();
            assert!(!summaries.is_empty(), "{rows:?}");
            assert!(summaries.iter().all(|row| row.contains(shows)), "{summaries:?}");
        }
        let whole = update("compaction_update", json!({"status": "completed"}));
        let rows = events(&[begin(), chunk("It reads a file."), whole]);
        assert!(rows.iter().any(|row| row.contains("It reads a file.")), "{rows:?}");
    }
}

#[test]
fn a_path_that_is_a_root_is_shown_though_another_root_lies_in_it() {
    for root in ["/srv/apps", "/srv/tmp4Rr5Dk"] {
        let mut paths = Paths::new();
        paths.add_root(root);
        paths.add_root(&format!("{root}/data/home"));
        let mut pipeline =
            Pipeline::new(Config { format: Format::Acp, paths, ..Config::default() });
        let (mut reader, mut steps) = (Packets::default(), Vec::<Step>::new());
        let mut start = start();
        start["locations"] = json!([{ "path": root }]);
        let line = format!("{start}\n");
        reader.push(line.as_bytes(), |given| pipeline.push(given, &mut steps));
        let row = serde_json::to_value(PrintedEvent::new(1, "s", &steps[0].event)).unwrap();
        assert_eq!(row["locations"], json!([{"path": ".", "line": null}]), "{root}");
    }
}

#[test]
fn plans_and_titles_that_grow_show_no_half_and_end_whole() {
    let text = format!("psql postgres://app:k9Lw2zQx7Vb4Rt8m@db/x in {ROOT}/src, then log4j2");
    let plan = |text: &str| {
        let entry = json!({"content": text, "priority": "high", "status": "pending"});
        json!({"sessionUpdate": "plan", "entries": [entry]})
    };
    let title = |text: &str| json!({"sessionUpdate": "session_info_update", "title": text});
    let answer = json!({"type": "prompt_response", "stopReason": "end_turn"});
    for size in [1, 3, 7] {
        let mut packets = Vec::new();
        let ends: Vec<usize> = text.char_indices().map(|(i, c)| i + c.len_utf8()).collect();
        for end in ends.chunks(size).filter_map(|chunk| chunk.last()) {
            packets.extend([plan(&text[..*end]), title(&text[..*end])]);
        }
        let rows = events(&packets);
        let parts = hidden(&text);
        assert!(!parts.is_empty());
        assert!(!parts.iter().any(|part| rows.iter().any(|row| row.contains(part))), "{rows:?}");
        // The turn's answer lets go of what was left out, as the end of the input does.
        let last = |packets: &[Value], field: &str| {
            let rows = events(packets);
            let row = rows.into_iter().rfind(|row| row.contains(field)).unwrap();
            row.split_once(field).unwrap().1.split('"').next().unwrap().to_owned()
        };
        let mut paths = Paths::new();
        paths.add_root(ROOT);
        let clean = Redactor::new(paths, Secrets::default()).text(&text, Mode::Text);
        packets.push(answer.clone());
        assert_eq!(last(&packets, "\"content\":\""), clean.as_str());
        assert_eq!(last(&packets, "\"title\":\""), clean.as_str());
        // Between turns a title is whole.
        packets.push(title("Upgrade log4j2"));
        assert_eq!(last(&packets, "\"title\":\""), "Upgrade log4j2");
    }
}

#[test]
fn an_answer_within_a_token_shows_no_half_of_it() {
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let answer = json!({"type": "prompt_response", "stopReason": "end_turn"});
    for cut in 1..token.len() {
        let first = format!("It is {}", &token[..cut]);
        let rows = events(&[chunk(&first), answer.clone(), chunk(&token[cut..]), chunk(" now.")]);
        let halves = |row: &String| (8..36).any(|at| row.contains(&token[at - 4..at + 4]));
        assert!(!rows.iter().any(halves), "{cut}: {rows:?}");
    }
}
