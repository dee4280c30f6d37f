//! A source that pauses in the middle of a word: what can be shown of it is told beside the log.

use super::filter::View;
use super::preview::Preview;
use super::subscription::{Output, Subscription, Wire};
use std::sync::Arc;
use tokio::time::Instant;

/// What there is to be shown beside the log.
pub(super) enum Paused {
    /// This, or nothing any more.
    Show(Option<Arc<Preview>>),
    /// Something, at this time.
    Due(Instant),
    /// Nothing else than before.
    No,
}

impl Subscription {
    /// What is to be shown now that everything was told.
    pub(super) fn paused(&self) -> Paused {
        let wanted = self.view != View::Activity && self.filter.is_open();
        if !wanted || self.silent || self.last.is_some() {
            return Paused::No;
        }
        match (self.tail.preview_after(self.place.seq), &self.shown) {
            (None, None) => Paused::No,
            (None, Some(_)) => Paused::Show(None),
            (Some(now), Some(shown)) if now.changes == shown.changes => Paused::No,
            // What is on the screen is wrong.
            (Some(now), Some(shown)) if !now.goes_on_from(shown) => Paused::Show(Some(now)),
            (Some(now), _) if Instant::now() < now.due() => Paused::Due(now.due()),
            (Some(now), _) => Paused::Show(Some(now)),
        }
    }

    /// The frame of it; it has no id.
    pub(super) fn preview(&self, preview: Option<&Preview>) -> Output {
        let changes = preview.map_or("[]", |preview| preview.changes.as_str());
        let data =
            format!(r#"{{"type":"preview","changes":{changes},"cursor":"{}""#, self.cursor());
        match &self.wire {
            Wire::Sse => Output::Bytes(format!("event: preview\ndata: {data}}}\n\n").into()),
            Wire::Ws(name) => {
                let name = serde_json::Value::from(name.as_str());
                let told = format!(r#"{data},"subscription":{name}}}"#);
                Output::Messages(Arc::new(std::iter::once(told).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::Filter;
    use super::super::subscription::After;
    use super::*;
    use crate::ingest::{Hidden, Intake, Reading};
    use crate::live::Hub;
    use narrows_store::{NewSession, Options, Session, Store};
    use std::time::Duration;

    /// A store with one session, which is written and followed.
    struct Bed {
        _dir: tempfile::TempDir,
        store: Store,
        hub: Hub,
        intake: Intake,
        session: Session,
    }

    impl Bed {
        async fn new() -> Bed {
            let dir = tempfile::tempdir().expect("a folder");
            let data = dir.path().join("data");
            let store = Store::open(&data, &Options::default()).expect("a store");
            let (session, _) = store.create(NewSession::default()).await.expect("a session");
            let hub = Hub::new(store.clone());
            let mut hidden = Hidden::default();
            hidden.paths.add_root("/srv/qzvx-run/app");
            let intake = Intake::new(store.clone(), hub.clone(), hidden);
            Bed { _dir: dir, store, hub, intake, session }
        }

        fn follow(&self, view: View, after: &After) -> Subscription {
            let filter = Filter::default();
            Subscription::new(&self.hub, &self.session, view, filter, Wire::Sse, after)
        }

        /// The agent says something; returns when that is durable.
        async fn say(&self, text: &str) {
            let content = serde_json::json!({"type": "text", "text": text});
            let update =
                serde_json::json!({"sessionUpdate": "agent_message_chunk", "content": content});
            let reading = Reading::default();
            let mut take = self.intake.open(&self.session, reading).await.expect("open");
            take.push(format!("{update}\n").as_bytes()).await.expect("kept");
            take.finish().await.expect("durable");
        }

        /// Everything that is in the log, as bytes.
        async fn log(&self) -> String {
            let page = self.store.events_after(self.session.key, 0, 1000, 1 << 20).await;
            let rows = page.expect("the log").rows;
            let texts = rows.iter().flat_map(|row| {
                [Some(&row.event), row.changes.as_ref()].into_iter().flatten().cloned()
            });
            texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
        }
    }

    /// What is told within a time of the test's own clock.
    async fn told(following: &mut Subscription, within: Duration) -> Vec<String> {
        let mut all = Vec::new();
        let until = Instant::now() + within;
        while let Ok(next) = tokio::time::timeout_at(until, following.next()).await {
            let Some(Output::Bytes(bytes)) = next.expect("told") else { panic!("no bytes") };
            all.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        all
    }

    const AT_ONCE: Duration = Duration::from_millis(100);
    const SOON: Duration = Duration::from_millis(300);

    fn is_preview(frame: &str) -> bool {
        frame.starts_with("event: preview\ndata: ")
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_within_a_word_shows_it_beside_the_log() {
        for view in [View::Items, View::Events, View::Packets] {
            let bed = Bed::new().await;
            let mut following = bed.follow(view, &After::End);
            told(&mut following, AT_ONCE).await;
            bed.say("Hello wor").await;
            let first = told(&mut following, AT_ONCE).await;
            assert!(first.iter().any(|f| f.contains("Hello ")), "{first:?}");
            assert!(!first.iter().any(|f| is_preview(f)), "not at once: {first:?}");
            let paused = told(&mut following, SOON.saturating_sub(AT_ONCE)).await;
            let [frame] = &paused[..] else { panic!("{paused:?}") };
            assert!(is_preview(frame) && frame.contains(r#""text":"wor""#), "{frame}");
            assert!(!frame.contains("\nid:"), "{frame}");
            assert!(told(&mut following, SOON * 10).await.is_empty(), "it is told once");
            // Whoever comes now sees it too, wherever it begins; and so does who comes again.
            for after in [After::Start, After::End, After::Given(following.cursor())] {
                let seen = told(&mut bed.follow(view, &after), SOON).await;
                assert_eq!(seen.iter().filter(|f| is_preview(f)).count(), 1, "{seen:?}");
            }
            assert!(!bed.log().await.contains("wor"), "it is not in the log");
            bed.say("ld.\n").await;
            let rest = told(&mut following, SOON * 10).await;
            assert!(rest.iter().any(|f| f.contains(r"world.\n")), "{rest:?}");
            assert!(!rest.iter().any(|f| is_preview(f)), "{rest:?}");
            let seen = told(&mut bed.follow(view, &After::End), SOON * 10).await;
            assert!(!seen.iter().any(|f| is_preview(f)), "{seen:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_word_that_comes_slowly_is_shown_as_far_as_it_is() {
        let bed = Bed::new().await;
        let mut following = bed.follow(View::Items, &After::Start);
        told(&mut following, AT_ONCE).await;
        // Nothing of this text is in the log: its item is shown before it comes.
        bed.say("un").await;
        let [first] = &told(&mut following, SOON).await[..] else { panic!("one frame") };
        assert!(is_preview(first) && first.contains(r#""change":"put""#), "{first}");
        bed.say("believ").await;
        let [second] = &told(&mut following, SOON).await[..] else { panic!("one frame") };
        assert!(is_preview(second) && second.contains("unbeliev"), "{second}");
        // It becomes a name with a value: what was shown of it is taken back.
        bed.say(" password: hunter2").await;
        let third = told(&mut following, SOON).await.concat();
        assert!(third.contains("unbeliev ") && !third.contains("hunt"), "{third}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_frame_has_a_part_of_a_token_or_a_root_wherever_the_agent_pauses() {
        let core = "Zq7Wd2Lm9Xc4Vb8Nn3Kp6Rt1Yh5Gf0Js";
        let token = format!("{}{core}AbCd", "ghp_");
        for (plant, part) in [
            (format!("see {token} now"), "Zq7Wd2"),
            (format!("password: {core} now"), "Zq7Wd2"),
            (format!("postgres://bob:{core}@db/x now"), "Zq7Wd2"),
            ("in /srv/qzvx-run/app/src/main.rs now".to_owned(), "qzv"),
        ] {
            let bed = Bed::new().await;
            let mut all: Vec<_> = [View::Items, View::Events, View::Packets]
                .into_iter()
                .map(|view| bed.follow(view, &After::Start))
                .collect();
            let mut frames = String::new();
            for c in plant.chars() {
                bed.say(&c.to_string()).await;
                for following in &mut all {
                    frames.push_str(&told(following, SOON).await.concat());
                }
            }
            bed.intake.release(bed.session.key).await;
            for following in &mut all {
                frames.push_str(&told(following, SOON).await.concat());
            }
            assert!(frames.contains("event: preview"), "{frames}");
            assert!(!frames.contains(part), "{frames}");
            assert!(!bed.log().await.contains(part));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_back_no_more_is_not_shown_any_more() {
        let bed = Bed::new().await;
        let mut following = bed.follow(View::Items, &After::Start);
        bed.say("Hello wor").await;
        let before = told(&mut following, SOON).await.concat();
        assert!(before.contains(r#""text":"wor""#), "{before}");
        // The session is let go of: whoever goes on sends it again.
        bed.intake.release(bed.session.key).await;
        let after = told(&mut following, SOON).await;
        let [taken_back] = &after[..] else { panic!("{after:?}") };
        assert!(is_preview(taken_back) && taken_back.contains(r#""changes":[]"#), "{taken_back}");
        let seen = told(&mut bed.follow(View::Items, &After::Start), SOON).await;
        assert!(!seen.iter().any(|f| is_preview(f)), "{seen:?}");
    }
}
