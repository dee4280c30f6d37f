//! Previews: held-back text that subscribers see while its source pauses, and that never reaches the log.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use narrows_engine::ingest::{Ingest, IngestOptions, RedactionConfig};
use narrows_engine::live::{Filter, Hub, Output, StartAt, Subscription, Transport, View};
use narrows_store::{NewSession, Options, Session, Store};
use std::time::Duration;
use tokio::time::Instant;

/// A store with one session that is written and followed.
struct TestSession {
    _dir: tempfile::TempDir,
    store: Store,
    hub: Hub,
    ingest: Ingest,
    session: Session,
}

impl TestSession {
    async fn new() -> TestSession {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("data");
        let store = Store::open(&data, &Options::default()).expect("a store");
        let (session, _) = store.create(NewSession::default()).await.expect("a session");
        let hub = Hub::new(store.clone());
        let mut redaction = RedactionConfig::default();
        redaction.paths.add_root("/srv/qzvx-run/app");
        let ingest = Ingest::new(store.clone(), hub.clone(), redaction);
        TestSession { _dir: dir, store, hub, ingest, session }
    }

    fn follow(&self, view: View, start: &StartAt) -> Subscription {
        let filter = Filter::default();
        Subscription::new(&self.hub, &self.session, view, filter, Transport::Sse, start)
    }

    /// Ingests a text chunk of the agent; returns when it is durable.
    async fn ingest_text(&self, text: &str) {
        let content = serde_json::json!({"type": "text", "text": text});
        let update =
            serde_json::json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let options = IngestOptions::default();
        let mut request = self.ingest.open(&self.session, options).await.expect("open");
        request.push(format!("{update}\n").as_bytes()).await.expect("kept");
        request.finish().await.expect("durable");
    }

    /// The whole log as text.
    async fn log(&self) -> String {
        let page = self.store.events_after(self.session.key, 0, 1000, 1 << 20).await;
        let rows = page.expect("the log").rows;
        let texts = rows.iter().flat_map(|row| {
            [Some(&row.event), row.changes.as_ref()].into_iter().flatten().cloned()
        });
        texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
    }
}

/// The frames of a subscription within a time of the paused clock.
async fn frames_within(subscription: &mut Subscription, within: Duration) -> Vec<String> {
    let mut all = Vec::new();
    let until = Instant::now() + within;
    while let Ok(next) = tokio::time::timeout_at(until, subscription.next()).await {
        let Some(Output::Bytes(bytes)) = next.expect("an output") else { panic!("no bytes") };
        all.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    all
}

const BEFORE_DELAY: Duration = Duration::from_millis(100);
const AFTER_DELAY: Duration = Duration::from_millis(300);

fn is_preview(frame: &str) -> bool {
    frame.starts_with("event: preview\ndata: ")
}

#[tokio::test(start_paused = true)]
async fn pause_within_word_sends_one_preview() {
    for view in [View::Items, View::Events, View::Packets] {
        let test = TestSession::new().await;
        let mut subscription = test.follow(view, &StartAt::End);
        frames_within(&mut subscription, BEFORE_DELAY).await;
        test.ingest_text("Hello wor").await;
        let first = frames_within(&mut subscription, BEFORE_DELAY).await;
        assert!(first.iter().any(|f| f.contains("Hello ")), "{first:?}");
        assert!(!first.iter().any(|f| is_preview(f)), "not at once: {first:?}");
        let paused =
            frames_within(&mut subscription, AFTER_DELAY.saturating_sub(BEFORE_DELAY)).await;
        let [frame] = &paused[..] else { panic!("{paused:?}") };
        assert!(is_preview(frame) && frame.contains(r#""text":"wor""#), "{frame}");
        assert!(!frame.contains("\nid:"), "{frame}");
        assert!(
            frames_within(&mut subscription, AFTER_DELAY * 10).await.is_empty(),
            "the preview is sent once"
        );
        // Later subscribers see it too, wherever they start, and so does a client that resumes.
        for after in [StartAt::Start, StartAt::End, StartAt::Given(subscription.cursor())] {
            let seen = frames_within(&mut test.follow(view, &after), AFTER_DELAY).await;
            assert_eq!(seen.iter().filter(|f| is_preview(f)).count(), 1, "{seen:?}");
        }
        assert!(!test.log().await.contains("wor"), "it is not in the log");
        test.ingest_text("ld.\n").await;
        let rest = frames_within(&mut subscription, AFTER_DELAY * 10).await;
        assert!(rest.iter().any(|f| f.contains(r"world.\n")), "{rest:?}");
        assert!(!rest.iter().any(|f| is_preview(f)), "{rest:?}");
        let seen = frames_within(&mut test.follow(view, &StartAt::End), AFTER_DELAY * 10).await;
        assert!(!seen.iter().any(|f| is_preview(f)), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn growing_word_updates_its_preview() {
    let test = TestSession::new().await;
    let mut subscription = test.follow(View::Items, &StartAt::Start);
    frames_within(&mut subscription, BEFORE_DELAY).await;
    // None of this text is in the log: the preview puts its item.
    test.ingest_text("un").await;
    let [first] = &frames_within(&mut subscription, AFTER_DELAY).await[..] else {
        panic!("one frame")
    };
    assert!(is_preview(first) && first.contains(r#""change":"put""#), "{first}");
    test.ingest_text("believ").await;
    let [second] = &frames_within(&mut subscription, AFTER_DELAY).await[..] else {
        panic!("one frame")
    };
    assert!(is_preview(second) && second.contains("unbeliev"), "{second}");
    // The text becomes a key with a secret value: the preview of it is withdrawn.
    test.ingest_text(" password: hunter2").await;
    let third = frames_within(&mut subscription, AFTER_DELAY).await.concat();
    assert!(third.contains("unbeliev ") && !third.contains("hunt"), "{third}");
}

#[tokio::test(start_paused = true)]
async fn previews_never_contain_parts_of_secrets_or_roots() {
    let core = "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0Js";
    let token = format!("{}{core}AbCd", "ghp_");
    for (plant, part) in [
        (format!("see {token} now"), "Zq7Wd2"),
        (format!("password: {core} now"), "Zq7Wd2"),
        (format!("postgres://bob:{core}@db/x now"), "Zq7Wd2"),
        ("in /srv/qzvx-run/app/src/main.rs now".to_owned(), "qzv"),
    ] {
        let test = TestSession::new().await;
        let mut all: Vec<_> = [View::Items, View::Events, View::Packets]
            .into_iter()
            .map(|view| test.follow(view, &StartAt::Start))
            .collect();
        let mut frames = String::new();
        for c in plant.chars() {
            test.ingest_text(&c.to_string()).await;
            for subscription in &mut all {
                frames.push_str(&frames_within(subscription, AFTER_DELAY).await.concat());
            }
        }
        test.ingest.release(test.session.key).await;
        for subscription in &mut all {
            frames.push_str(&frames_within(subscription, AFTER_DELAY).await.concat());
        }
        assert!(frames.contains("event: preview"), "{frames}");
        assert!(!frames.contains(part), "{frames}");
        assert!(!test.log().await.contains(part));
    }
}

#[tokio::test(start_paused = true)]
async fn preview_is_withdrawn_when_writer_is_released() {
    let test = TestSession::new().await;
    let mut subscription = test.follow(View::Items, &StartAt::Start);
    test.ingest_text("Hello wor").await;
    let before = frames_within(&mut subscription, AFTER_DELAY).await.concat();
    assert!(before.contains(r#""text":"wor""#), "{before}");
    // The writer is closed: a source that continues sends the held-back text again.
    test.ingest.release(test.session.key).await;
    let after = frames_within(&mut subscription, AFTER_DELAY).await;
    let [withdrawn] = &after[..] else { panic!("{after:?}") };
    assert!(is_preview(withdrawn) && withdrawn.contains(r#""changes":[]"#), "{withdrawn}");
    let seen = frames_within(&mut test.follow(View::Items, &StartAt::Start), AFTER_DELAY).await;
    assert!(!seen.iter().any(|f| is_preview(f)), "{seen:?}");
}
