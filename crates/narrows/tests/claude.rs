//! Claude Code: what it prints and what it keeps give one transcript.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::parity::{ACCEPTED, compare};
use narrows::session::Status;
use narrows::{Config, Items};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The cases that are there in both forms.
fn pairs() -> Vec<(String, PathBuf, PathBuf)> {
    let folder = |form: &str| common::fixtures().join(form);
    let mut names: Vec<String> = fs::read_dir(folder("claude-history"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| folder("claude-stream").join(name).exists())
        .collect();
    names.sort();
    let both = |n: &String| (folder("claude-stream").join(n), folder("claude-history").join(n));
    names.iter().map(|n| (n.clone(), both(n).0, both(n).1)).collect()
}

/// The session that a kept file is of.
fn session(case: &Path) -> Option<String> {
    let text = fs::read_to_string(case.join("input.jsonl")).unwrap();
    let mut ids = text.lines().filter_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        record["uuid"].as_str()?;
        record["sessionId"].as_str().map(str::to_owned)
    });
    ids.next_back()
}

fn items(case: &Path, only: Option<String>) -> Items {
    let config = Config { only, ..common::config(case) };
    let mut items = common::items(&common::run_case(case, config));
    items.settle();
    items
}

/// How the turns of a case end, by its events; one that the program itself answers has no reason.
fn ends(case: &Path) -> Vec<String> {
    let events = fs::read_to_string(case.join("events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = events.filter_map(|event| match event["type"].as_str() {
        Some("error") if event["parentToolCallId"].is_null() => Some("error".to_owned()),
        Some("prompt_response") if event["failed"] != true => {
            event["stopReason"].as_str().map(str::to_owned)
        }
        _ => None,
    });
    ends.collect()
}

/// Older versions keep no reason with most answers, and what was cut off may go on.
#[test]
fn kept_turns_end_as_printed_ones() {
    let pairs: Vec<_> = pairs().into_iter().filter(|(name, ..)| name.starts_with("2.1-")).collect();
    assert!(pairs.len() > 30, "{}", pairs.len());
    for (name, printed, kept) in pairs {
        assert_eq!(ends(&kept), ends(&printed), "{name}");
    }
}

#[test]
fn what_is_printed_and_what_is_kept_agree() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let pairs = pairs();
    assert!(pairs.len() > 70, "the fixtures are missing");
    for (name, live, history) in pairs {
        let only = session(&history);
        let found = compare(&items(&live, only), &items(&history, None));
        for d in found {
            match d.reason {
                Some(_) => {
                    used.insert((d.what.clone(), format!("{:?}", d.side)));
                }
                None => wrong.push(format!("{name}: {:?} {}: {}", d.side, d.what, d.shown)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A row that nothing needs is a hole.
    let row = |what: &str, side| (what.to_owned(), format!("{side:?}"));
    let idle = ACCEPTED.iter().map(|(what, side, _)| row(what, side));
    let idle: Vec<_> = idle.filter(|row| !used.contains(row)).collect();
    assert!(idle.is_empty(), "nothing needs {idle:?}");
}

#[test]
fn a_turn_that_failed_is_answered_once_in_either_form() {
    let mut failed = 0;
    for (name, live, history) in pairs() {
        let (live, history) = (items(&live, session(&history)), items(&history, None));
        let has_failed = |items: &Items| items.info().status == Status::Failed;
        if has_failed(&live) && history.info().turns == 1 {
            failed += 1;
            assert!(has_failed(&history), "{name}");
            assert_eq!((live.info().answers, history.info().answers), (1, 1), "{name}");
        }
    }
    assert!(failed >= 4, "the failed turns are missing: {failed}");
}

/// Every case of either form, and its input.
fn inputs() -> Vec<(String, PathBuf, Vec<u8>)> {
    let of = |case: PathBuf| {
        let form = case.parent()?.file_name()?.to_string_lossy().into_owned();
        let name = format!("{form}/{}", case.file_name()?.to_string_lossy());
        let input = fs::read(case.join("input.jsonl")).unwrap();
        form.starts_with("claude-").then_some((name, case, input))
    };
    common::cases().into_iter().filter_map(of).collect()
}

fn shown(config: Config, input: &[u8]) -> Vec<Value> {
    let mut items = common::items(&common::run(config, input));
    items.settle();
    common::items_json(&items)
}

/// Items without the numbers of the lines they came from.
fn bare(mut items: Vec<Value>) -> Vec<Value> {
    for item in &mut items {
        let map = item.as_object_mut().unwrap();
        if map["type"] != "tool_call" {
            map.remove("id");
        }
        map.retain(|key, _| key != "order" && key != "blockId");
    }
    items
}

#[test]
fn a_session_may_come_in_two_pieces_cut_anywhere() {
    for name in ["claude-stream/2.0-u-bidi-task-notification"] {
        let (_, case, input) = inputs().into_iter().find(|(n, ..)| n == name).unwrap();
        assert!((10_000..20_000).contains(&input.len()), "{name} has {} bytes", input.len());
        let whole = shown(common::config(&case), &input);
        for cut in 0..=input.len() {
            let mut packets = narrows::Packets::default();
            let mut pipeline = narrows::Pipeline::new(common::config(&case));
            let mut steps = Vec::new();
            for piece in [&input[..cut], &input[cut..]] {
                packets.push(piece, |given| pipeline.push(given, &mut steps));
            }
            packets.finish(|given| pipeline.push(given, &mut steps));
            pipeline.finish(&mut steps);
            let mut items = common::items(&steps);
            items.settle();
            assert_eq!(common::items_json(&items), whole, "{name} cut at {cut}");
        }
    }
}

#[test]
fn a_record_that_comes_twice_counts_once() {
    for (name, case, input) in inputs() {
        // Records without an id of their own are not those of any version.
        if name.contains("/doc-") || name.contains("/made-") {
            continue;
        }
        let once = bare(shown(common::config(&case), &input));
        let lines = || input.split_inclusive(|c| *c == b'\n');
        let twice: Vec<u8> = lines().flat_map(|l| [l, l]).flatten().copied().collect();
        assert_eq!(bare(shown(common::config(&case), &twice)), once, "{name}: every line twice");
        let again = [input.as_slice(), input.as_slice()].concat();
        assert_eq!(bare(shown(common::config(&case), &again)), once, "{name}: the file twice");
    }
}

/// Ways to spoil one field of a record.
fn spoiled(record: &Value) -> Vec<Value> {
    let Value::Object(map) = record else { return Vec::new() };
    let mut out = Vec::new();
    for key in map.keys() {
        let mut dropped = map.clone();
        dropped.remove(key);
        out.push(Value::Object(dropped));
        for other in [json!(null), json!(7), json!("word"), json!([[]]), json!({"x": {}})] {
            let mut retyped = map.clone();
            retyped.insert(key.clone(), other);
            out.push(Value::Object(retyped));
        }
        // The same one level deeper.
        for inner in spoiled(&map[key]).into_iter().step_by(3) {
            let mut deeper = map.clone();
            deeper.insert(key.clone(), inner);
            out.push(Value::Object(deeper));
        }
    }
    let mut more = map.clone();
    more.insert("addedLater".into(), json!({"deep": [1, "two"]}));
    out.push(Value::Object(more));
    out
}

#[test]
fn a_spoiled_record_spoils_nothing_else() {
    let end = r#"{"type":"assistant","uuid":"ffffffff-ffff-4fff-8fff-ffffffffffff","message":{"id":"the-end","content":[{"type":"text","text":"The end."}]}}"#;
    let mut tried = 0;
    for name in ["claude-stream/2.1-f-todos-legacy", "claude-history/2.1-k-parallel-tools"] {
        let (_, case, input) = inputs().into_iter().find(|(n, ..)| n == name).unwrap();
        let lines: Vec<&str> = std::str::from_utf8(&input).unwrap().lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let before = format!("{}\n", lines[..at].join("\n"));
            let alone = common::events_text(&common::run(common::config(&case), before.as_bytes()));
            let record: Value = serde_json::from_str(line).unwrap();
            let list = spoiled(&record);
            // A few of each record: their number is large.
            let step = (list.len() / 12).max(1);
            for bad in list.iter().skip(at % step).step_by(step) {
                tried += 1;
                let rest = lines[at + 1..].join("\n");
                let text = format!("{before}{bad}\n{rest}\n{end}\n");
                let steps = common::run(common::config(&case), text.as_bytes());
                let events = common::events_text(&steps);
                // What came before is the same but for what ends with the input.
                let same = alone.lines().zip(events.lines()).take_while(|(a, b)| a == b).count();
                assert!(same + 1 >= alone.lines().count(), "{name} line {at}: {bad}");
                assert!(!events.contains("\"malformed\""), "{name} line {at}: {bad}");
                assert!(events.contains("The end."), "{name} line {at}: {bad}");
            }
        }
    }
    assert!(tried > 400, "only {tried}");
}

#[test]
fn what_can_be_read_of_a_damaged_file_is_read() {
    let (_, case, input) =
        inputs().into_iter().find(|(n, ..)| n == "claude-history/made-damaged").unwrap();
    let steps = common::run(common::config(&case), &input);
    let events = common::events_text(&steps);
    for word in ["One.", "Two.", "Three.", "Five.", "Six."] {
        assert!(events.contains(word), "{word} is lost");
    }
    let damage: Vec<Value> = events
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .filter(|e| e["type"] == "malformed")
        .collect();
    let at: Vec<String> =
        damage.iter().map(|e| format!("{} {}", e["position"]["line"], e["reason"])).collect();
    assert_eq!(
        at,
        [
            "1 \"no line break between two packets\"",
            "2 \"NUL bytes\"",
            "3 \"NUL bytes\"",
            "4 \"unexpected character\"",
            "6 \"cut short\"",
        ]
    );
}

#[test]
fn a_picture_of_twenty_megabytes_is_a_blob() {
    use base64::Engine;
    let data = base64::engine::general_purpose::STANDARD.encode(vec![7u8; 15 << 20]);
    let block = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": [block]});
    let line = json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": [result]}});
    let line = format!("{line}\n");
    assert!(line.len() > 20 << 20);
    let steps = common::run(Config::default(), line.as_bytes());
    let blobs: Vec<_> = steps.iter().flat_map(|s| &s.blobs).collect();
    assert_eq!(blobs[0].bytes.len(), 15 << 20);
    assert!(common::events_text(&steps).len() < 2000);
}

#[test]
fn tokens_are_counted_once() {
    // What the agent itself says it used in each turn, against what was added up of its answers.
    let mut compared = 0;
    for (name, live, history) in pairs() {
        let only = session(&history);
        let (live, history) = (items(&live, only), items(&history, None));
        let (Some(a), Some(b)) = (&live.info().usage, &history.info().usage) else { continue };
        // These histories hold turns that another run printed.
        if name.ends_with("w-fork") || name.starts_with("2.0-l-resume") {
            continue;
        }
        compared += 1;
        let counts = |u: &narrows::event::Usage| {
            (u.input_tokens, u.output_tokens, u.cached_read_tokens, u.cached_write_5m_tokens)
        };
        assert_eq!(counts(a), counts(b), "{name}");
    }
    assert!(compared > 50, "only {compared}");
    let case = common::fixtures().join("claude-history/2.1-g-subagent");
    let info = items(&case, None).info().clone();
    let (own, subs) = (info.usage.unwrap(), info.subagent_usage.unwrap());
    assert_eq!((own.input_tokens, own.output_tokens), (Some(28), Some(121)));
    assert_eq!((subs.input_tokens, subs.output_tokens), (Some(45), Some(205)));
    assert_eq!(info.cost_usd, Some(0.017_123_999_999_999_997));
}

#[test]
fn a_command_that_makes_the_agent_work_is_a_turn() {
    for (case, turns, kind) in [
        ("2.0-q-slash-custom", 1, "user_message"),
        ("2.1-q-slash-custom", 1, "user_message"),
        ("2.0-q-slash-builtin", 0, "notice"),
        ("2.1-q-slash-builtin", 0, "notice"),
    ] {
        let items = items(&common::fixtures().join("claude-history").join(case), None);
        assert_eq!(items.info().turns, turns, "{case}");
        assert_eq!(common::items_json(&items)[0]["type"], kind, "{case}");
    }
}

#[test]
fn plan_and_skill_files_cannot_be_forged() {
    let case = common::fixtures().join("claude-history/made-forged-files");
    let events = common::events_text(&common::run_case(&case, common::config(&case)));
    let files: Vec<Value> = events
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .filter(|e| e["type"] == "plan_file" || e["type"] == "skill_file")
        .collect();
    let files: Vec<String> = files.iter().map(|f| format!("{} {}", f["type"], f["path"])).collect();
    assert_eq!(
        files,
        [
            "\"skill_file\" \"~/.claude/skills/pdf tools/SKILL.md\"",
            "\"plan_file\" \"~/.claude/plans/calm-sea.md\""
        ]
    );
}

#[test]
fn progress_grows_and_ends_with_the_result() {
    use narrows::view::{Activity, ActivityConfig};
    for (name, case, input) in inputs() {
        let steps = common::run(common::config(&case), &input);
        let mut activity = Activity::new(ActivityConfig {
            work_order_id: "w".to_owned(),
            run_id: "r".to_owned(),
            interval_ms: 0,
        });
        let mut messages = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            activity.push(i as u64 + 1, &step.event, &mut messages);
        }
        let results = steps.iter().filter(|s| s.event.body.kind() == "prompt_response").count();
        let (mut last, mut whole) = ((0, 0), 0);
        for message in messages.iter().map(|m| serde_json::to_value(m).unwrap()) {
            match message["type"].as_str().unwrap() {
                "progress_update" => {
                    let turn = message["turn"].as_u64().unwrap();
                    let now = (turn, message["percentage"].as_u64().unwrap());
                    assert!(now >= last, "{name}: {last:?} then {now:?}");
                    whole += usize::from(now.1 == 100);
                    last = now;
                }
                // 2.0 prints no times.
                "agent_tool_result" if name.starts_with("claude-history/2") => {
                    assert!(message["durationMs"].is_u64(), "{name}: {message}");
                }
                _ => {}
            }
        }
        assert!(whole <= results, "{name}: done {whole} times, {results} results");
    }
}

#[test]
fn a_question_is_answered_by_any_result() {
    let input = json!({"questions": [{"question": "Which colour?", "header": "Colour",
        "options": [{"label": "Blue"}, {"label": "Red"}], "multiSelect": false}]});
    let session = "0b0e7c9e-3a52-4a39-9f3c-9d6a6d1d7a11";
    let called = json!({"type": "assistant", "session_id": session, "parent_tool_use_id": null,
        "uuid": "a", "message": {"id": "m1", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": input}]}});
    let asked = json!({"type": "control_request", "request_id": "r1", "request": {
        "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t1", "input": input}});
    for (text, failed) in [("Blue, they said", false), ("The user refused", true)] {
        let result = json!({"type": "user", "session_id": session, "parent_tool_use_id": null,
            "uuid": "b", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": failed}]}});
        let lines = |packets: &[&Value]| -> Vec<u8> {
            packets.iter().flat_map(|p| format!("{p}\n").into_bytes()).collect()
        };
        let question = |packets: &[&Value]| {
            let shown = shown(Config::default(), &lines(packets));
            shown.into_iter().find(|item| item["type"] == "question").unwrap()["answers"].clone()
        };
        assert_eq!(question(&[&called, &asked]), Value::Null);
        assert_eq!(question(&[&called, &asked, &result]), json!([]), "{text}");
    }
}
