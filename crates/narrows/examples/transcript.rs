//! Reads packets from standard input and prints what a person would see.
//!
//! `cargo run -p narrows --example transcript < session.jsonl`
#![allow(clippy::print_stdout, reason = "an example prints")]

use narrows::item::ItemBody;
use narrows::{Items, Packets, Pipeline};
use std::io::Read;

fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;

    let (mut packets, mut pipeline, mut steps) =
        (Packets::default(), Pipeline::default(), Vec::new());
    packets.push(&input, |given| pipeline.push(given, &mut steps));
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let mut items = Items::new();
    steps.into_iter().flat_map(|step| step.changes).for_each(|change| items.apply(change));

    for item in items.ordered() {
        match &item.body {
            ItemBody::UserMessage { text, .. } => println!("> {text}"),
            ItemBody::Text { content, .. } => println!("{content}"),
            ItemBody::ToolCall { tool_call } => {
                let text = |t: &Option<narrows::Clean>| t.clone().unwrap_or_default();
                println!(
                    "  [{}] {}",
                    text(&tool_call.call.title),
                    text(&tool_call.call.description)
                );
            }
            other => println!("  ({})", other.kind()),
        }
    }
    Ok(())
}
