//! Laws that hold for every input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::event::Position;
use narrows::{Change, Config, Event, Fold, Items, Packet, Packets, Pipeline};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;

/// Any JSON, with keys that the adapter knows.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|list| Value::Object(list.into_iter().collect())),
        ]
    })
}

fn word() -> impl Strategy<Value = String> {
    let words = [
        "type",
        "sessionUpdate",
        "session_update",
        "content",
        "text",
        "toolCallId",
        "tool_call_id",
        "title",
        "kind",
        "status",
        "rawInput",
        "raw_input",
        "rawOutput",
        "locations",
        "path",
        "line",
        "_meta",
        "claudeCode",
        "toolName",
        "name",
        "messageId",
        "timestamp",
        "ts",
        "dir",
        "msg",
        "method",
        "params",
        "update",
        "id",
        "result",
        "error",
        "message",
        "code",
        "details",
        "stopReason",
        "usage",
        "entries",
        "todos",
        "priority",
        "artifact",
        "options",
        "optionId",
        "outcome",
        "toolCall",
        "command",
        "filePath",
        "pattern",
        "metadata",
        "exit",
        "output",
        "files",
        "diff",
        "oldText",
        "newText",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "prompt_response",
        "artifact_created",
        "image",
        "data",
        "mimeType",
        "completed",
        "failed",
        "pending",
        "in_progress",
        "bash",
        "read",
        "edit",
        "execute",
        "session/update",
        "session/prompt",
        "session/request_permission",
        "cwd",
        "2.0",
        "agent->client",
        "client->agent",
        "user_message_chunk",
        "message_metadata",
        "user",
        "terminal_output_delta",
        "terminal_exit",
        "exit_code",
        "cancelled",
        "selected",
        "allow_once",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

/// A packet of a session: few calls and blocks, so that they meet.
fn packet() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z /]{0,12}", Just(" /srv/run/x1/a ".to_owned())];
    let call = prop::sample::select(vec!["c1", "c2", "c3"]);
    let status = prop::sample::select(vec!["pending", "in_progress", "completed", "failed", "odd"]);
    let title = prop::sample::select(vec!["bash", "read", "todowrite", "edit", "3 todos", "x/y"]);
    let kind = prop::sample::select(vec!["execute", "read", "other", "edit", "search"]);
    let chunk = prop::sample::select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "agent_message",
    ]);
    let block = prop::option::of(prop::sample::select(vec!["m1", "m2"]));
    prop_oneof![
        6 => (chunk, text.clone(), block).prop_map(|(kind, text, id)| {
            json!({"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}})
        }),
        2 => (call.clone(), title.clone(), kind).prop_map(|(id, title, kind)| {
            json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind,
                "status": "pending", "rawInput": {}})
        }),
        4 => (call.clone(), status, text.clone(), title).prop_map(|(id, status, text, title)| {
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
                "title": title, "rawInput": {"command": text, "todos": null},
                "rawOutput": {"output": text, "metadata": {"exit": text.len() % 2}}})
        }),
        1 => (call.clone(), text.clone()).prop_map(|(id, text)| {
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
                "_meta": {"terminal_output_delta": {"data": text}}})
        }),
        1 => (call.clone(), text.clone()).prop_map(|(id, text)| {
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "title": "todowrite",
                "rawInput": {"todos": [{"content": text, "status": "pending"}]}})
        }),
        1 => text.clone().prop_map(|t| json!({"type": "agent_plan_update",
            "entries": [{"content": t, "status": "in_progress"}]})),
        1 => (call, 0..3).prop_map(|(id, n)| json!({"jsonrpc": "2.0", "id": n,
            "method": "session/request_permission", "params": {"toolCall": {"toolCallId": id},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                {"optionId": "n", "name": "No", "kind": "reject_once"}]}})),
        1 => (0..3, prop::sample::select(vec!["y", "n"])).prop_map(|(id, choice)| json!({"id": id,
            "result": {"outcome": {"outcome": "selected", "optionId": choice}}})),
        1 => (0..3, text.clone()).prop_map(|(id, text)| json!({"id": id, "method": "session/prompt",
            "params": {"prompt": [{"type": "text", "text": text}]}})),
        1 => prop::sample::select(vec!["end_turn", "cancelled"])
            .prop_map(|r| json!({"type": "prompt_response", "stopReason": r})),
        1 => text.prop_map(|t| json!({"type": "error", "message": t})),
    ]
}

/// The packets without what a cut may change: news of a call after its turn, and of calls that only
/// write the todo list, which have no item.
fn in_turns(packets: Vec<Value>) -> Vec<Value> {
    let mut turn = 0;
    let todos = |p: &Value| p["title"] == "todowrite" || p["rawInput"]["todos"].is_array();
    let packets = packets.into_iter().filter(|p| !todos(p));
    let named = packets.map(|mut packet| {
        turn += u32::from(packet["type"] == "prompt_response" || packet["type"] == "error");
        for at in ["/toolCallId", "/params/toolCall/toolCallId"] {
            if let Some(id) = packet.pointer_mut(at) {
                *id = format!("{}-{turn}", id.as_str().unwrap()).into();
            }
        }
        packet
    });
    named.collect()
}

fn lines(packets: &[Value]) -> Vec<u8> {
    packets.iter().flat_map(|p| format!("{p}\n").into_bytes()).collect()
}

fn rooted() -> Config {
    let mut config = Config::default();
    config.paths.add_root("/srv/run/x1");
    config
}

fn apply(items: &mut Items, changes: Vec<Change>) {
    changes.into_iter().for_each(|change| items.apply(change));
}

fn fold_all(events: &[Event]) -> Items {
    let (mut fold, mut items) = (Fold::new(), Items::new());
    for event in events {
        let mut changes = Vec::new();
        fold.push(event, &mut changes);
        apply(&mut items, changes);
    }
    items
}

proptest! {
    #![proptest_config(common::laws(300))]

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut input = bytes;
        input.extend_from_slice(b"\n{\"type\":\"agent_message\",\"content\":\"the end\"}\n");
        let items = common::items(&common::run(Config::default(), &input));
        let found = common::items_json(&items).iter().any(|i| i["content"] == "the end");
        prop_assert!(found);
    }

    #[test]
    fn strings_are_read_as_serde_json_reads_them(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "\\", "\\\\", "\\\\\\", "\"", "\\\"", "\\n", "\\u00e9", "\\u", "\\q", "n", "\t", "é",
                "sixteen letters.", "thirty-two letters and some more", "x",
            ]),
            0..40,
        ),
    ) {
        let text = format!("[\"{}\"]", pieces.concat());
        let theirs = serde_json::from_str::<Vec<String>>(&text).ok();
        let mut index = narrows::json::Index::default();
        let ours = index.read(&text).ok().map(|doc| {
            doc.root().items().filter_map(|s| s.str().map(Into::into)).collect::<Vec<String>>()
        });
        prop_assert_eq!(ours, theirs, "{}", text);
    }

    #[test]
    fn any_json_is_read(list in prop::collection::vec(any_json(), 1..8)) {
        let steps = common::run(rooted(), &lines(&list));
        for line in common::events_text(&steps).lines() {
            prop_assert!(serde_json::from_str::<Value>(line).is_ok());
        }
        for step in &steps {
            prop_assert!(serde_json::to_value(&step.changes).is_ok());
        }
        common::items_json(&common::items(&steps));
    }

    #[test]
    fn pieces_of_the_input_do_not_matter(
        list in prop::collection::vec(packet(), 1..12),
        piece in 1usize..40,
    ) {
        let bytes = lines(&list);
        let whole = common::events_text(&common::run(rooted(), &bytes));
        let parts = common::events_text(&common::steps(rooted(), &bytes, piece));
        prop_assert_eq!(whole, parts);
    }

    #[test]
    fn joined_pieces_give_the_same_items(list in prop::collection::vec(packet(), 1..20)) {
        let bytes = lines(&list);
        let joined = Config { join: true, ..rooted() };
        let apart = common::items_json(&common::items(&common::run(rooted(), &bytes)));
        let together = common::items_json(&common::items(&common::run(joined, &bytes)));
        prop_assert_eq!(apart, together);
    }

    #[test]
    fn a_second_run_gives_the_same_ids(list in prop::collection::vec(packet(), 1..20)) {
        let bytes = lines(&list);
        let text = |bytes: &[u8]| {
            let steps = common::run(rooted(), bytes);
            (common::events_text(&steps), common::items_json(&common::items(&steps)))
        };
        prop_assert_eq!(text(&bytes), text(&bytes));
    }

    #[test]
    fn the_fold_takes_each_event_once(list in prop::collection::vec(packet(), 1..20)) {
        let events = common::events(&common::run(rooted(), &lines(&list)));
        let once = common::items_json(&fold_all(&events));
        let twice: Vec<Event> = events.iter().flat_map(|e| [e.clone(), e.clone()]).collect();
        prop_assert_eq!(&once, &common::items_json(&fold_all(&twice)));
        let again: Vec<Event> = events.iter().chain(&events).cloned().collect();
        prop_assert_eq!(&once, &common::items_json(&fold_all(&again)));
    }

    #[test]
    fn the_fold_can_be_resumed_anywhere(list in prop::collection::vec(packet(), 1..20)) {
        let events = common::events(&common::run(rooted(), &lines(&list)));
        let whole = common::items_json(&fold_all(&events));
        for cut in 0..=events.len() {
            let (before, after) = events.split_at(cut);
            let mut items = fold_all(before);
            let last = before.last().map(|e| e.id).unwrap_or_default();
            let mut fold = Fold::resume(&items, [last]);
            for event in after {
                let mut changes = Vec::new();
                fold.push(event, &mut changes);
                apply(&mut items, changes);
            }
            prop_assert_eq!(&whole, &common::items_json(&items), "cut at {}", cut);
        }
    }

    #[test]
    fn a_session_goes_on_after_any_cut(list in prop::collection::vec(packet(), 1..20)) {
        let list = in_turns(list);
        let all = |pipeline: &mut Pipeline, from: usize, out: &mut Vec<_>| {
            for (i, packet) in list.iter().enumerate().skip(from) {
                let position = Position { line: i as u64 + 1, ..Position::default() };
                pipeline.push_packet(&Packet::new(packet.to_string().as_bytes(), position), out);
            }
            pipeline.finish(out);
        };
        let mut steps = Vec::new();
        all(&mut Pipeline::new(rooted()), 0, &mut steps);
        let whole = common::items_json(&common::items(&steps));
        let (mut pipeline, mut steps) = (Pipeline::new(rooted()), Vec::new());
        let (mut rest, mut since) = (0, 0);
        for cut in 0..=list.len() {
            let mut items = common::items(&steps);
            if pipeline.is_at_rest() {
                (rest, since) = (cut, items.next_order());
            }
            let last = steps.last().map(|s: &narrows::Step| s.event.id);
            let config = Config { format: pipeline.format(), ..rooted() };
            let mut resumed = Pipeline::reread(config, &items, last, since);
            resumed.was_read(0, cut as u64);
            let mut after = Vec::new();
            all(&mut resumed, rest, &mut after);
            apply(&mut items, after.into_iter().flat_map(|s| s.changes).collect());
            prop_assert_eq!(&whole, &common::items_json(&items), "cut at {}, from {}", cut, rest);
            if let Some(packet) = list.get(cut) {
                let position = Position { line: cut as u64 + 1, ..Position::default() };
                let json = packet.to_string();
                pipeline.push_packet(&Packet::new(json.as_bytes(), position), &mut steps);
            }
        }
    }

    #[test]
    fn the_root_never_shows(list in prop::collection::vec(packet(), 1..20)) {
        let steps = common::run(rooted(), &lines(&list));
        let events = common::events_text(&steps);
        let items = serde_json::to_string(&common::items_json(&common::items(&steps))).unwrap();
        prop_assert!(!events.contains("/srv/run/x1"), "{}", events);
        prop_assert!(!items.contains("/srv/run/x1"), "{}", items);
    }

    #[test]
    fn chunks_join_to_the_cleaned_text(
        words in prop::collection::vec(prop::sample::select(vec![
            "/srv/run/x1", "/srv/run/x1/a.rs", "see", "/etc", " ", "\n", "x/y", "é", "(", "\"",
            "/workspace/sessions/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/b", ",", "/srv/ru", "ab",
        ]), 1..12),
        cuts in prop::collection::vec(0usize..80, 0..6),
    ) {
        let text = words.concat();
        let mut at: Vec<usize> = cuts.into_iter().filter(|c| text.is_char_boundary(*c) && *c <= text.len()).collect();
        at.push(0);
        at.push(text.len());
        at.sort_unstable();
        let chunks: Vec<Value> = at.windows(2).map(|w| {
            json!({"type": "agent_message_chunk", "content": {"type": "text", "text": &text[w[0]..w[1]]}})
        }).collect();
        let whole = json!({"type": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let said = |packets: &[Value]| -> String {
            let items = common::items(&common::run(rooted(), &lines(packets)));
            common::items_json(&items).iter().filter_map(|i| i["content"].as_str().map(str::to_owned)).collect()
        };
        prop_assert_eq!(said(&chunks), said(&[whole]));
    }
}

#[test]
fn every_fixture_can_be_cut_and_resumed() {
    for case in common::cases() {
        let input = fs::read(case.join("input.jsonl")).unwrap();
        if input.len() > 60_000 {
            continue;
        }
        let steps = common::run(common::config(&case), &input);
        let events = common::events(&steps);
        let whole = common::items_json(&fold_all(&events));
        for cut in (0..=events.len()).step_by(events.len() / 8 + 1) {
            let mut items = fold_all(&events[..cut]);
            let last = events[..cut].last().map(|e| e.id).unwrap_or_default();
            let mut fold = Fold::resume(&items, [last]);
            for event in &events[cut..] {
                let mut changes = Vec::new();
                fold.push(event, &mut changes);
                apply(&mut items, changes);
            }
            assert_eq!(whole, common::items_json(&items), "{} cut at {cut}", case.display());
        }
    }
}

#[test]
fn every_fixture_has_the_same_items_when_pieces_are_joined() {
    for case in common::cases() {
        let input = fs::read(case.join("input.jsonl")).unwrap();
        let joined = Config { join: true, ..common::config(&case) };
        let apart = common::items(&common::run(common::config(&case), &input));
        let together = common::items(&common::run(joined, &input));
        assert_eq!(common::items_json(&apart), common::items_json(&together), "{}", case.display());
    }
}

#[test]
fn every_fixture_is_the_same_in_any_pieces() {
    for case in common::cases() {
        let input = fs::read(case.join("input.jsonl")).unwrap();
        let whole = common::events_text(&common::run(common::config(&case), &input));
        for piece in [1, 7, 4096] {
            if piece == 1 && input.len() > 60_000 {
                continue;
            }
            let parts = common::events_text(&common::steps(common::config(&case), &input, piece));
            assert!(whole == parts, "{} in pieces of {piece}", case.display());
        }
    }
}

#[test]
fn one_pipeline_serves_many_packets_without_finish() {
    let mut pipeline = Pipeline::default();
    let mut packets = Packets::default();
    let mut steps = Vec::new();
    packets.push(b"{\"type\":\"agent_message\",\"content\":\"a\"}\n", |g| {
        pipeline.push(g, &mut steps)
    });
    assert_eq!(steps.len(), 1);
}

/// Applies changes as a browser does: on JSON, knowing nothing of agents.
fn apply_json(items: &mut Vec<Value>, change: &Value) {
    let id = change["id"].clone();
    let at = |items: &[Value], id: &Value| items.iter().position(|i| i["id"] == *id);
    match change["change"].as_str().unwrap() {
        "put" => {
            let mut item = change["item"].clone();
            match at(items, &item["id"]) {
                Some(i) => {
                    item["order"] = items[i]["order"].clone();
                    items[i] = item;
                }
                None => items.push(item),
            }
        }
        "set" => {
            let Some(i) = at(items, &id) else { return };
            for (key, value) in change.as_object().unwrap() {
                match key.as_str() {
                    "change" | "id" => {}
                    "toolCall" => {
                        for (field, value) in value.as_object().unwrap() {
                            items[i]["toolCall"][field] = value.clone();
                        }
                    }
                    "content" if items[i].get("content").is_none() => {
                        items[i]["text"] = value.clone()
                    }
                    key => items[i][key] = value.clone(),
                }
            }
        }
        "append" => {
            let Some(i) = at(items, &id) else { return };
            let field = change["field"].as_str().unwrap();
            let item = &mut items[i];
            let target =
                if field == "rawOutput" { &mut item["toolCall"][field] } else { &mut item[field] };
            let text =
                format!("{}{}", target.as_str().unwrap_or(""), change["text"].as_str().unwrap());
            *target = text.into();
        }
        "remove" => items.retain(|i| i["id"] != id),
        "info" => {}
        other => panic!("no such change: {other}"),
    }
}

#[test]
fn changes_as_json_are_enough_to_keep_the_items() {
    for case in common::cases() {
        let input = fs::read(case.join("input.jsonl")).unwrap();
        let steps = common::run(common::config(&case), &input);
        let mut kept = Vec::new();
        for change in steps.iter().flat_map(|s| &s.changes) {
            apply_json(&mut kept, &serde_json::to_value(change).unwrap());
        }
        let items = common::items(&steps);
        let want: Vec<Value> = items.iter().map(|i| serde_json::to_value(i).unwrap()).collect();
        assert_eq!(kept, want, "{}", case.display());
    }
}

/// Every picture that some JSON names.
fn named(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::Object(map) => {
            found.extend(map.get("blob").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|v| named(v, found));
        }
        Value::Array(list) => list.iter().for_each(|v| named(v, found)),
        _ => {}
    }
}

#[test]
fn every_picture_that_is_named_is_given() {
    let mut pictures = 0;
    for case in common::cases() {
        let steps =
            common::run(common::config(&case), &fs::read(case.join("input.jsonl")).unwrap());
        let given: Vec<&str> =
            steps.iter().flat_map(|s| &s.blobs).map(|b| b.hash.as_str()).collect();
        let mut found = Vec::new();
        common::items_json(&common::items(&steps)).iter().for_each(|i| named(i, &mut found));
        pictures += found.len();
        for hash in found {
            assert!(given.contains(&hash.as_str()), "{}: {hash}", case.display());
        }
    }
    assert!(pictures > 3, "the fixtures show no pictures");
}
