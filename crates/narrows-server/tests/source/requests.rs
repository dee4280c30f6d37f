//! Requests of agents that wait for a person while the agent's own file is read.

use crate::bed::{Bed, Parts, append, id_in, input, make_old};
use crate::lines::Talk;
use crate::live::send_at;
use narrows_engine::discovery::SourceOptions;
use narrows_store::{SessionRow, now};
use serde_json::Value;
use std::time::Duration;

/// The lines of a recorded session up to the one in which the agent asks.
fn until_asked(case: &str) -> (Vec<u8>, Vec<u8>) {
    let text = String::from_utf8(input(case)).expect("text");
    let asked = text.find("\"can_use_tool\"").expect("a request");
    let end = text[asked..].find('\n').map_or(text.len(), |at| asked + at + 1);
    let (before, after) = text.as_bytes().split_at(end);
    (before.to_vec(), after.to_vec())
}

async fn waiting(parts: &Parts, label: &str) -> Vec<String> {
    let key = parts.session(label).await.key;
    parts.store.outline(key, None, 10).await.expect("outline").waiting
}

fn status(row: &SessionRow) -> String {
    let info: Value = serde_json::from_str(row.info.get()).expect("JSON");
    info["status"].as_str().expect("a status").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_stays_while_the_file_of_its_session_is_silent() {
    for case in ["2.1-u-bidi-permission", "2.0-v-ask-user"] {
        let bed = Bed::new();
        let (live, rest) = until_asked(&format!("claude-stream/{case}"));
        let main = bed.put(&format!("claude-history/{case}"), "-app");
        // As it is while the agent waits: without what was answered.
        let text = std::fs::read_to_string(&main).expect("file");
        let asked = text.lines().take_while(|l| !l.contains("\"tool_result\""));
        std::fs::write(&main, asked.map(|l| format!("{l}\n")).collect::<String>()).expect("file");
        make_old(&main, 600);
        let parts = bed.open();
        // Ten minutes ago.
        send_at(&parts, "mine", &live, false, Some(now() - 600_000)).await;
        assert_eq!(waiting(&parts, "mine").await.len(), 1, "{case}");
        for _ in 0..2 {
            parts.catch_up(&bed.options).await;
            let row = parts.row("mine").await;
            assert_eq!(waiting(&parts, "mine").await.len(), 1, "{case}");
            assert!(!row.ended && row.live && row.waiting == 1, "{case}");
            assert_eq!(status(&row), "running", "{case}");
            assert_eq!((row.native_id, parts.sessions().await.len()), (Some(id_in(&live)), 1));
        }
        // Nor does the end of the program answer it.
        parts.end().await;
        bed.pass().await;
        let parts = bed.open();
        assert_eq!(waiting(&parts, "mine").await.len(), 1, "{case}");
        // Somebody answers: the turn goes on to its end.
        send_at(&parts, "mine", &rest, true, None).await;
        let row = parts.row("mine").await;
        assert_eq!((waiting(&parts, "mine").await.len(), row.ended), (0, true), "{case}");
        assert!(!row.live && row.waiting == 0, "{case}");
        assert_ne!(status(&row), "running", "{case}");
        parts.end().await;
    }
}

/// What a session's rows, its list and its file say must not contradict each other.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_file_ends_its_session_and_a_session_that_goes_on_is_not_over() {
    let bed = Bed::new();
    let talk = Talk { is_now: true, ..Talk::new(1) };
    let path = bed.write("-app", &talk.session, talk.lines(1..=3));
    let parts = bed.open();
    parts.catch_up(&bed.options).await;
    let row = parts.row(&talk.session).await;
    assert_eq!((row.ended, row.live, status(&row)), (false, true, "running".to_owned()));
    // As it is when nothing was written for long.
    let silent = SourceOptions { silence: Some(Duration::ZERO), ..bed.options.clone() };
    parts.catch_up(&silent).await;
    let row = parts.row(&talk.session).await;
    assert_eq!((row.ended, row.live, status(&row)), (true, false, "idle".to_owned()));
    append(&path, talk.line(4));
    parts.catch_up(&bed.options).await;
    let row = parts.row(&talk.session).await;
    assert_eq!((row.ended, row.live, status(&row)), (false, true, "running".to_owned()));
    // An old one is over as soon as it is read.
    let old = Talk::new(2);
    make_old(&bed.write("-app", &old.session, old.lines(1..=2)), 86_400);
    parts.catch_up(&bed.options).await;
    let row = parts.row(&old.session).await;
    assert!(row.heard_at < now() - 86_000_000, "it arrived when it was written");
    assert_eq!((row.ended, row.live, status(&row)), (true, false, "idle".to_owned()));
    let facets = parts.store.facets(narrows_store::Sight::default()).await.expect("facets");
    assert_eq!((facets.live, facets.total), (1, 2));
    parts.end().await;
}

/// Its source says that it is over: nobody can answer any more, and it says so.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_is_taken_back_when_its_source_is_over() {
    for case in ["2.1-u-bidi-permission", "2.0-v-ask-user"] {
        let bed = Bed::new();
        let (live, _) = until_asked(&format!("claude-stream/{case}"));
        let parts = bed.open();
        send_at(&parts, "mine", &live, false, None).await;
        assert_eq!(parts.row("mine").await.waiting, 1, "{case}");
        send_at(&parts, "mine", b"", true, None).await;
        let row = parts.row("mine").await;
        assert_eq!((row.ended, row.live, row.waiting), (true, false, 0), "{case}");
        assert!(waiting(&parts, "mine").await.is_empty(), "{case}");
        let events = parts.events("mine").await;
        let kinds: Vec<&str> =
            events.iter().filter_map(|e| e["kind"].as_str().or(e["type"].as_str())).collect();
        let last = kinds.last().copied().expect("an event");
        assert!(last.ends_with("_answer"), "{case}: {kinds:?}");
        parts.end().await;
    }
}
