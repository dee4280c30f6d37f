//! Answers that end in a secret: they are over after a while, and what comes then is no part of it.
#![allow(clippy::expect_used, reason = "a test may fail loudly")]

use narrows::{Config, Items, Packets, Pipeline, Step};
use serde_json::json;

fn chunk(text: &str) -> String {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
        .to_string()
}

/// A turn that says so, and what the agent says a while after its answer, in pieces of `size`
/// letters; by the same pipeline, or by one that goes on behind a restart.
fn items(first: &str, later: &str, size: usize, restart: bool) -> Vec<String> {
    let mut pipeline = Pipeline::new(Config::default());
    let mut packets = Packets::default();
    let (mut items, mut number) = (Items::new(), 0);
    let mut say = |pipeline: &mut Pipeline, line: &str| {
        let mut steps = Vec::new();
        packets.push(format!("{line}\n").as_bytes(), |given| pipeline.push(given, &mut steps));
        number += 1;
        steps
    };
    let mut last = None;
    let mut apply = |items: &mut Items, steps: Vec<Step>| {
        for step in steps {
            last = Some(step.event.id);
            step.changes.into_iter().for_each(|change| items.apply(change));
        }
        last
    };
    let end = json!({"type": "prompt_response", "stopReason": "end_turn"}).to_string();
    for line in [chunk(first), end] {
        let steps = say(&mut pipeline, &line);
        apply(&mut items, steps);
    }
    let mut steps = Vec::new();
    pipeline.settle_answered(&mut steps);
    let last = apply(&mut items, steps);
    // What would be seen of half a secret is held back as long as it takes.
    if restart && pipeline.is_at_rest() {
        pipeline = Pipeline::resume(Config::default(), &items, last);
        pipeline.was_read(0, 2);
    }
    let letters: Vec<char> = later.chars().collect();
    for piece in letters.chunks(size) {
        let steps = say(&mut pipeline, &chunk(&piece.iter().collect::<String>()));
        apply(&mut items, steps);
    }
    let mut steps = Vec::new();
    pipeline.finish(&mut steps);
    apply(&mut items, steps);
    let text = |item: &narrows::Item| match &item.body {
        narrows::item::ItemBody::Text { content, .. } => content.to_string(),
        other => format!("{other:?}"),
    };
    items.ordered().into_iter().map(text).collect()
}

fn secrets() -> [String; 3] {
    [
        ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat(),
        ["AKI", "A4X7Q2M5ZP3R8T6WB"].concat(),
        ["DB_PASS", "WORD=k9Lw2zQx7Vb4Rt8m"].concat(),
    ]
}

#[test]
fn an_answer_that_ends_in_a_secret_is_over() {
    for secret in secrets() {
        for restart in [false, true] {
            let said = items(&format!("A key: {secret}"), "Finished the rest.", 3, restart);
            let said = said.concat();
            assert!(said.starts_with("A key: "), "{said}");
            assert!(said.ends_with("]Finished the rest."), "{said}");
        }
    }
}

#[test]
fn the_rest_of_a_secret_is_hidden_however_late_it_comes() {
    for secret in secrets() {
        for at in secret.len() / 2..secret.len() {
            for size in [1, 3, 40] {
                for restart in [false, true] {
                    let (first, rest) = secret.split_at(at);
                    let later = format!("{rest} and done.");
                    let said = items(&format!("It is {first}"), &later, size, restart).join(" ");
                    let tail = &secret[secret.len().saturating_sub(8).max(at)..];
                    let is_part = tail.len() > 3 && said.contains(tail);
                    assert!(!is_part, "{at} {size} {restart}: {said}");
                    assert!(said.ends_with("and done."), "{said}");
                }
            }
        }
    }
}
