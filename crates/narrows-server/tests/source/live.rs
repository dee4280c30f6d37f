//! A session that was sent as it was printed, and whose file is found then.

use crate::bed::{Bed, Parts, append, id_in, input, make_old, texts, until};
use crate::lines::Talk;
use narrows::Format;
use narrows_engine::ingest::{Arrival, Reading};
use narrows_store::NewSession;
use serde_json::Value;

/// Sends packets as a request does.
async fn send(parts: &Parts, label: &str, text: &[u8], end: bool) {
    send_at(parts, label, text, end, None).await;
}

/// Packets that came at a time; else they come now.
pub(crate) async fn send_at(
    parts: &Parts,
    label: &str,
    text: &[u8],
    end: bool,
    heard: Option<i64>,
) {
    let label = Some(label.to_owned());
    let (session, _) =
        parts.store.create(NewSession { label, tags: Vec::new() }).await.expect("session");
    let (format, arrival) = (Format::ClaudeStream, Arrival::None);
    let reading = Reading { format, arrival, heard, end, ..Reading::default() };
    let mut take = parts.intake.open(&session, reading).await.expect("open");
    take.push(text).await.expect("push");
    take.finish().await.expect("finish");
}

/// What there is more than once.
fn doubled(items: &[Value]) -> Vec<String> {
    let mut said: Vec<String> = texts(items);
    let calls = items.iter().filter(|i| i["type"] == "tool_call");
    said.extend(calls.map(|i| i["id"].to_string()));
    said.sort();
    said.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_session_that_was_sent_adds_only_what_came_after() {
    for case in
        ["2.1-b-thinking", "2.1-c-files", "2.1-g-subagent", "2.1-k-parallel-tools", "2.0-c-files"]
    {
        let bed = Bed::new();
        let live = input(&format!("claude-stream/{case}"));
        let id = id_in(&live);
        let main = bed.put(&format!("claude-history/{case}"), "-app");
        let parts = bed.open();
        // Somebody gave it a name of his own: it is known by the agent's own id.
        send(&parts, "mine", &live, true).await;
        let before = parts.items("mine").await;
        parts.catch_up(&bed.options).await;
        assert_eq!(parts.labels().await, ["mine"], "{case}");
        let after = parts.items("mine").await;
        // What is not printed live, as the last words of a subagent, is new; nothing else is.
        assert_eq!(after[..before.len()], before, "{case}");
        assert!(after[before.len()..].iter().all(|i| i["parentToolCallId"].is_string()), "{case}");
        assert!(doubled(&after).is_empty(), "{case}: {:?}", doubled(&after));
        let row = parts.row("mine").await;
        assert_eq!((row.native_id.as_ref(), row.file_exists), (Some(&id), Some(true)), "{case}");
        // It goes on in its file.
        let talk = Talk { session: id.clone(), ..Talk::new(1) };
        append(&main, talk.lines(1..=2));
        parts.catch_up(&bed.options).await;
        let more = texts(&parts.items("mine").await);
        assert_eq!(more, [texts(&after), talk.texts(1..=2)].concat(), "{case}");
        parts.end().await;
        let again = bed.pass().await;
        assert_eq!((again.sessions, again.events), (0, 0), "{case}");
    }
}

/// A line as it is printed while the session runs.
fn printed(line: &str) -> String {
    line.replace("\"sessionId\"", "\"session_id\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_session_is_sent_its_file_waits_and_then_adds_the_rest() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let parts = bed.open();
    let now = Talk { is_now: true, ..talk.clone() };
    send(&parts, &talk.session, printed(&now.lines(1..=4)).as_bytes(), false).await;
    bed.write("-app", &talk.session, talk.lines(1..=6));
    let sums = parts.catch_up(&bed.options).await;
    assert_eq!((sums.events, sums.sessions), (0, 0), "it waits");
    let said = parts.texts(&talk.session).await;
    assert!(!said.contains(&talk.text(6)), "{said:?}");
    // The sender says that it is over.
    send(&parts, &talk.session, b"", true).await;
    parts.catch_up(&bed.options).await;
    let items = parts.items(&talk.session).await;
    assert!(texts(&items).ends_with(&talk.texts(5..=6)), "{items:?}");
    assert!(doubled(&items).is_empty(), "{:?}", doubled(&items));
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_over_stays_so_when_its_file_is_read() {
    for seconds in [1, 900] {
        let bed = Bed::new();
        let talk = Talk::new(1);
        let parts = bed.open();
        let path = bed.write("-app", &talk.session, talk.lines(1..=4));
        make_old(&path, seconds);
        send(&parts, &talk.session, printed(&talk.lines(1..=4)).as_bytes(), true).await;
        for pass in 0..2 {
            parts.catch_up(&bed.options).await;
            assert!(parts.row(&talk.session).await.ended, "{seconds} s old, pass {pass}");
        }
        // Its agent writes again.
        append(&path, Talk { is_now: true, ..talk.clone() }.line(5));
        parts.catch_up(&bed.options).await;
        assert!(!parts.row(&talk.session).await.ended);
        assert!(parts.texts(&talk.session).await.contains(&talk.text(5)));
        parts.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_in_its_file_does_not_wait_for_a_sender_that_is_gone() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let parts = bed.open();
    send(&parts, &talk.session, printed(&talk.lines(1..=4)).as_bytes(), true).await;
    let path = bed.write("-app", &talk.session, talk.lines(1..=5));
    let follower = parts.follow(&bed.options);
    for last in 5..9 {
        if last > 5 {
            // It is used right now: records tell the time.
            append(&path, Talk { is_now: true, ..talk.clone() }.line(last));
        }
        let known = async || parts.texts(&talk.session).await.contains(&talk.text(last));
        until("the line is there", known).await;
    }
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_sent_and_cut_off_is_completed_from_its_file() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    // Sent long ago, never ended; the program that took it is gone.
    let parts = bed.open();
    let long_ago = narrows_store::now() - 3_600_000;
    let text = printed(&talk.lines(1..=4));
    send_at(&parts, &talk.session, text.as_bytes(), false, Some(long_ago)).await;
    parts.store.close().await;
    bed.write("-app", &talk.session, talk.lines(1..=8));
    bed.pass().await;
    let mut said = bed.texts(&talk.session).await;
    said.sort();
    assert_eq!(said, talk.texts(1..=8));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_does_not_wait_for_hours_behind_a_request_that_is_open() {
    let bed = Bed::new();
    let (talk, other) = (Talk::new(1), Talk::new(2));
    let parts = bed.open();
    send(&parts, &talk.session, printed(&talk.lines(1..=4)).as_bytes(), false).await;
    // A request that sends it is still open, and nothing has come for long.
    let session = parts.session(&talk.session).await;
    let open = parts.intake.open(&session, Reading::default()).await.expect("open");
    bed.write("-app", &talk.session, talk.lines(1..=6));
    bed.write("-app", &other.session, other.lines(1..=2));
    // Nobody is held up: the request stays open.
    let sums = parts.catch_up(&bed.options).await;
    assert_eq!(sums.sessions, 1);
    assert_eq!(parts.texts(&other.session).await, other.texts(1..=2));
    drop(open);
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_somebody_named_and_deleted_does_not_come_back_by_its_file() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let parts = bed.open();
    send(&parts, "mine", printed(&talk.lines(1..=4)).as_bytes(), true).await;
    let path = bed.write("-app", &talk.session, talk.lines(1..=6));
    parts.catch_up(&bed.options).await;
    assert_eq!(parts.texts("mine").await, talk.texts(1..=6)[..].to_vec());
    parts.store.delete(&parts.session("mine").await.id).await.expect("delete");
    append(&path, talk.lines(7..=8));
    parts.catch_up(&bed.options).await;
    assert!(parts.sessions().await.is_empty());
    parts.end().await;
}
