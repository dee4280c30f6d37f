//! The messages of the activity view, over every recorded session.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::view::{Activity, ActivityConfig};
use narrows::{Body, Step};

fn activity() -> ActivityConfig {
    ActivityConfig { work_order_id: "w".to_owned(), run_id: "r".to_owned(), interval_ms: 5000 }
}

#[test]
fn every_message_has_an_id_of_its_own() {
    let mut most = 0;
    for case in common::cases() {
        let (mut all, mut messages) = (Activity::new(activity()), Vec::new());
        let steps = common::run_case(&case, common::config(&case));
        for (seq, step) in (1..).zip(&steps) {
            all.push(seq, &step.event, &mut messages);
        }
        all.finish(steps.len() as u64, &mut messages);
        let ids = messages.iter().map(|m| serde_json::to_value(m).unwrap()["eventId"].to_string());
        let mut ids: Vec<String> = ids.collect();
        most = most.max(ids.len());
        ids.sort();
        let twice = ids.windows(2).find(|two| two[0] == two[1]);
        assert_eq!(twice, None, "{}", case.display());
    }
    assert!(most > 20, "{most}");
}

/// What is said after the answer is told though nothing comes after it, and no text is told twice.
#[test]
fn what_is_said_after_the_answer_is_told() {
    let mut late = 0;
    for case in common::cases() {
        let steps = common::run_case(&case, common::config(&case));
        let mut all = Activity::new(activity());
        let (mut told, mut rest) = (Vec::new(), Vec::new());
        for (seq, step) in (1..).zip(&steps) {
            all.push(seq, &step.event, &mut told);
        }
        all.finish(steps.len() as u64, &mut rest);
        let answered = steps.iter().rposition(|s| matches!(s.event.body, Body::PromptResponse(_)));
        let Some(answered) = answered else { continue };
        let said = |step: &Step| match &step.event.body {
            Body::TextChunk(c) | Body::ThinkingChunk(c) => {
                !c.has_block_id && !c.text.trim().is_empty()
            }
            _ => false,
        };
        let begins = |step: &Step| matches!(step.event.body, Body::UserMessage(_));
        let goes_on = steps[answered..].iter().any(begins);
        if !goes_on && steps[answered..].iter().any(said) {
            late += 1;
            assert!(rest.is_empty(), "{}: {rest:?}", case.display());
        }
        let told = told.iter().chain(&rest).map(|m| serde_json::to_value(m).unwrap());
        let told = told.filter(|m| m["type"] == "agent_output");
        let told = told.map(|m| m["content"].as_str().unwrap().split_whitespace().collect());
        let told: String = told.collect::<Vec<String>>().concat();
        let shown = common::items(&steps);
        let shown = shown.iter().filter_map(|item| match &item.body {
            narrows::item::ItemBody::Text { content, .. }
            | narrows::item::ItemBody::Thinking { content, .. } => Some(content),
            _ => None,
        });
        let shown: usize = shown.map(|t| t.split_whitespace().map(str::len).sum::<usize>()).sum();
        assert!(told.len() <= shown, "{}: {} of {shown}", case.display(), told.len());
    }
    assert!(late > 10, "{late}");
}
