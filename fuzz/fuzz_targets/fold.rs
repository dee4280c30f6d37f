//! Any packets, any order, any cut: the fold never panics, takes each event once, and goes on from
//! its items as if it had never stopped.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows::{Change, Config, Event, Fold, Items, Packets, Pipeline};

/// Packets that meet: few calls, few blocks, every kind.
fn packet(a: u8, b: u8, c: u8) -> String {
    let call = b % 4;
    let status = ["pending", "in_progress", "completed", "failed", "cancelled"][usize::from(c) % 5];
    let title = ["bash", "read", "edit", "todowrite", "task", "x"][usize::from(c) / 5 % 6];
    match a % 14 {
        0..=2 => format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m{}","content":{{"type":"text","text":"t{c} "}}}}"#, b % 3),
        3 => format!(r#"{{"sessionUpdate":"agent_thought_chunk","content":{{"type":"text","text":"h{c}"}}}}"#),
        4 => format!(r#"{{"sessionUpdate":"user_message_chunk","content":{{"type":"text","text":"u{c}"}}}}"#),
        5 => format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"c{call}","title":"{title}","kind":"execute","status":"pending","rawInput":{{}}}}"#),
        6 | 7 => format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c{call}","status":"{status}","title":"{title}","rawOutput":{{"output":"o{c}"}}}}"#),
        8 => format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c{call}","_meta":{{"terminal_output_delta":{{"data":"d{c}"}}}}}}"#),
        9 => format!(r#"{{"sessionUpdate":"plan","entries":[{{"content":"p{b}","status":"{status}"}}]}}"#),
        10 => format!(r#"{{"jsonrpc":"2.0","id":{call},"method":"session/request_permission","params":{{"toolCall":{{"toolCallId":"c{call}"}},"options":[{{"optionId":"y","name":"Yes","kind":"allow_once"}}]}}}}"#),
        11 => format!(r#"{{"id":{call},"result":{{"outcome":{{"outcome":"selected","optionId":"y"}}}}}}"#),
        12 => r#"{"type":"prompt_response","stopReason":"end_turn"}"#.to_owned(),
        _ => format!(r#"{{"type":"error","message":"e{c}"}}"#),
    }
}

fn apply(items: &mut Items, changes: Vec<Change>) {
    changes.into_iter().for_each(|change| items.apply(change));
}

fn fold(events: &[Event], fold: &mut Fold, items: &mut Items) {
    for event in events {
        let mut changes = Vec::new();
        fold.push(event, &mut changes);
        apply(items, changes);
    }
}

fn shown(items: &Items) -> String {
    serde_json::to_string(&items.ordered()).expect("items are JSON")
}

fuzz_target!(|input: (Vec<(u8, u8, u8)>, u8)| {
    let (list, cut) = input;
    let bytes: String = list.iter().take(200).map(|(a, b, c)| packet(*a, *b, *c) + "\n").collect();
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps = Vec::new();
    packets.push(bytes.as_bytes(), |given| pipeline.push(given, &mut steps));
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let events: Vec<Event> = steps.into_iter().map(|step| step.event).collect();

    let (mut whole, mut once) = (Fold::new(), Items::new());
    fold(&events, &mut whole, &mut once);
    let (mut again, mut twice) = (Fold::new(), Items::new());
    for event in &events {
        fold(std::slice::from_ref(event), &mut again, &mut twice);
        fold(std::slice::from_ref(event), &mut again, &mut twice);
    }
    assert_eq!(shown(&once), shown(&twice), "each event twice");

    let cut = usize::from(cut) % (events.len() + 1);
    let (mut first, mut items) = (Fold::new(), Items::new());
    fold(&events[..cut], &mut first, &mut items);
    let last = events[..cut].last().map(|e| e.id).unwrap_or_default();
    let mut resumed = Fold::resume(&items, [last]);
    fold(&events[cut..], &mut resumed, &mut items);
    assert_eq!(shown(&once), shown(&items), "cut at {cut}");
});
