//! Made sessions in which secrets and roots are cut over packets, cut at every place, in every way.

use crate::bed::{Bed, CUTS, Cut, HOWS, How, Sender};
use narrows::Format;
use narrows_store::{Query, SearchPage};
use serde_json::{Value, json};

/// Where the made sessions work. Its own name is a canary.
pub(crate) const ROOT: &str = "/srv/acme-q7-checkout/app";

/// Fields of calls that are sent whole again as they grow.
const FIELDS: [&str; 4] = ["rawOutput", "rawInput", "title", "content"];

/// What must never be seen: the parts of secrets and roots that say something.
pub(crate) fn canaries() -> Vec<String> {
    let all = ["16C7e42F292c6912E7710c838347Ae178B4a", "k9Lw2zQx7Vb4Rt8m", "acme-q7-checkout"];
    let windows =
        |c: &str| -> Vec<String> { (0..=c.len() - 8).map(|i| c[i..i + 8].to_owned()).collect() };
    all.into_iter().flat_map(windows).collect()
}

/// What is said, with everything that is to be hidden.
pub(crate) fn said() -> String {
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    format!(
        "The token is {token} and {ROOT}/src/main.rs has postgres://app:k9Lw2zQx7Vb4Rt8m@db/x in it, done."
    )
}

pub(crate) fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

fn pieces(text: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size).map(|c| c.iter().collect()).collect()
}

/// A session of an ACP agent: texts in pieces, output in pieces, fields that grow and are sent whole.
pub(crate) fn acp(size: usize) -> Vec<Vec<u8>> {
    let chunk = |kind: &str, text: &str| {
        line(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
    };
    let mut packets = vec![chunk("user_message_chunk", "Look for tokens.")];
    packets.extend(pieces(&said(), size).iter().map(|t| chunk("agent_thought_chunk", t)));
    packets.extend(pieces(&said(), size).iter().map(|t| chunk("agent_message_chunk", t)));
    let update = |id: &str, kind: &str, more: Value| {
        let mut all = json!({"sessionUpdate": kind, "toolCallId": id, "kind": "execute"});
        all.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        line(&all)
    };
    for (id, field) in FIELDS.iter().enumerate() {
        let id = format!("call-{id}");
        packets.push(update(&id, "tool_call", json!({"title": "bash", "status": "pending"})));
        let mut grown = String::new();
        for piece in pieces(&said(), 2 * size) {
            grown += &piece;
            let told = match *field {
                "rawOutput" => json!({"output": grown}),
                "rawInput" => json!({"command": grown}),
                "content" => json!([{"type": "diff", "path": "a.txt", "newText": grown}]),
                _ => json!(grown),
            };
            let more = json!({"status": "in_progress", *field: told});
            packets.push(update(&id, "tool_call_update", more));
        }
        packets.push(update(&id, "tool_call_update", json!({"status": "completed"})));
    }
    // Outside of calls too.
    let mut grown = String::new();
    for piece in pieces(&said(), 8 * size) {
        grown += &piece;
        let entry = json!({"content": grown, "priority": "high", "status": "pending"});
        packets.push(line(&json!({"sessionUpdate": "plan", "entries": [entry]})));
        packets.push(line(&json!({"sessionUpdate": "session_info_update", "title": grown})));
    }
    packets.push(chunk("agent_message_chunk", "All is well."));
    packets.push(line(&json!({"type": "prompt_response", "stopReason": "end_turn"})));
    packets
}

/// A session of Claude Code with partial messages.
pub(crate) fn claude(size: usize) -> Vec<Vec<u8>> {
    let ids =
        json!({"session_id": "0b0e7c9e-3a52-4a39-9f3c-9d6a6d1d7a11", "parent_tool_use_id": null});
    let with = |mut value: Value| {
        value.as_object_mut().expect("object").extend(ids.as_object().expect("object").clone());
        line(&value)
    };
    let event = |event: Value| with(json!({"type": "stream_event", "event": event, "uuid": "u"}));
    let init = json!({"type": "system", "subtype": "init", "cwd": ROOT, "model": "m",
        "tools": [], "claude_code_version": "2.1.0", "uuid": "i"});
    let mut packets = vec![with(init)];
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    packets
        .push(event(json!({"type": "message_start", "message": {"id": "m1", "role": "assistant",
        "content": [], "model": "m", "usage": usage}})));
    for (index, (kind, delta)) in
        [("thinking", "thinking_delta"), ("text", "text_delta")].into_iter().enumerate()
    {
        packets.push(event(json!({"type": "content_block_start", "index": index,
            "content_block": {"type": kind, kind: ""}})));
        for piece in pieces(&said(), size) {
            packets.push(event(json!({"type": "content_block_delta", "index": index,
                "delta": {"type": delta, kind: piece}})));
        }
        let whole = json!({"type": "assistant", "uuid": format!("a{index}"), "message":
            {"id": "m1", "role": "assistant", "model": "m", "usage": usage,
             "content": [{"type": kind, kind: said()}]}});
        packets.push(with(whole));
        packets.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    packets.push(event(json!({"type": "message_stop"})));
    packets.push(with(json!({"type": "result", "subtype": "success", "is_error": false,
        "result": "", "uuid": "r", "num_turns": 1})));
    packets
}

/// Sends a session that is cut after so many packets; the items are those of the uncut one.
async fn cut_at(
    bed: &mut Bed,
    (packets, format): (&[Vec<u8>], Format),
    at: usize,
    (how, cut): (How, Cut),
    truth: &[Value],
) {
    let mut sender = Sender::new(bed, packets, how, format, ROOT).await;
    sender.before(bed, at, true).await;
    bed.cut(cut).await;
    sender.after(bed, at).await;
    let what = format!("{how:?}, {cut:?} after {at} of {}", packets.len());
    let rows = bed.rows(&sender.session).await;
    let around = |canary: String| {
        let at = rows.find(&canary)?;
        Some(rows.get(at.saturating_sub(200)..at + 60).unwrap_or_default().to_owned())
    };
    let seen = canaries().into_iter().find_map(around);
    assert_eq!(seen, None, "{what}");
    let items = bed.items(&sender.session).await;
    for (item, should) in items.iter().zip(truth) {
        assert_eq!(item, should, "{what}");
    }
    assert_eq!(items.len(), truth.len(), "{what}");
    if cut == Cut::Sweep && how != How::Open {
        assert_eq!(sender.refused, 0, "{what}: whoever pauses may go on");
    }
}

/// A session whose turn is over before its call, its plan and its title are, twice; facts and packets
/// of an unknown kind grow in it as well.
fn unfinished(size: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (turn, from) in [(0, 0), (1, said().len() / 3)] {
        let mut grown = String::new();
        for piece in pieces(&said()[from..], size) {
            grown += &piece;
            let update = |id: &str, more: Value| {
                let mut all = json!({"sessionUpdate": "tool_call_update", "kind": "execute",
                    "toolCallId": format!("{id}-{turn}"), "status": "in_progress"});
                all.as_object_mut().expect("object").extend(more.as_object().expect("o").clone());
                line(&all)
            };
            let entry = json!({"content": grown, "priority": "high", "status": "pending"});
            let command = json!({"name": "go", "description": grown});
            let all = [
                update("input", json!({"rawInput": {"command": grown}, "title": grown})),
                update("output", json!({"rawOutput": {"output": grown}})),
                update("path", json!({"locations": [{"path": grown}]})),
                line(&json!({"sessionUpdate": "plan", "entries": [entry]})),
                line(&json!({"sessionUpdate": "session_info_update", "title": grown})),
                line(&json!({"sessionUpdate": "available_commands_update",
                    "availableCommands": [command]})),
                line(&json!({"sessionUpdate": "current_mode_update", "currentModeId": grown})),
                line(&json!({"sessionUpdate": "weather_update", "path": grown, "text": [grown]})),
            ];
            packets.extend(all);
            packets.push(line(&json!({"type": "prompt_response", "stopReason": "cancelled"})));
        }
    }
    packets
}

async fn every_cut(packets: &[Vec<u8>], format: Format) {
    let mut bed = Bed::new();
    let truth = bed.truth(packets, format, ROOT);
    assert!(truth.len() > 1, "{truth:?}");
    let each = std::env::var("NARROWS_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(3);
    let mut ways = HOWS.iter().flat_map(|how| CUTS.iter().map(|cut| (*how, *cut))).cycle();
    for at in 1..packets.len() {
        // Every way comes at every kind of place: their numbers have no common divisor. All of them come
        // at every place in `make soak`.
        for way in ways.by_ref().take(each) {
            cut_at(&mut bed, (packets, format), at, way, &truth).await;
        }
    }
    let texts = truth.iter().map(ToString::to_string).collect::<String>();
    assert!(canaries().iter().all(|canary| !texts.contains(canary)), "the uncut items");
    let files = bed.files();
    for canary in canaries() {
        // The roots of a session are kept in a column of their own, to be hidden after a restart.
        let found = memchr::memmem::find(&files, canary.as_bytes());
        assert!(found.is_none() || ROOT.contains(&canary), "{canary} lies in the store");
        let query = Query { text: canary.clone(), ..Query::default() };
        let SearchPage { hits, .. } = bed.store.search(query).await.expect("search");
        assert!(hits.is_empty(), "{canary} is found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acp_sessions_are_cut_everywhere() {
    every_cut(&acp(7), Format::Acp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_sessions_are_cut_everywhere() {
    every_cut(&claude(7), Format::ClaudeStream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_that_end_before_their_calls_are_cut_everywhere() {
    every_cut(&unfinished(61), Format::Acp).await;
}

/// Whatever ends within a secret or a root: no part of it is shown, in the order of pieces of any size.
#[test]
fn no_half_is_shown_when_a_turn_ends() {
    let bed = Bed::new();
    for size in 1..40 {
        let items = bed.truth(&unfinished(size), Format::Acp, ROOT);
        let all = items.iter().map(ToString::to_string).collect::<String>();
        let seen = canaries().into_iter().find(|canary| all.contains(canary));
        assert_eq!(seen, None, "pieces of {size}");
    }
}
