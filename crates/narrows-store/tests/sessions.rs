//! Sessions: created once, found by their properties, listed in pages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, append, event, raw_sql, session, temp_store};
use narrows_store::{Append, Cursor, Error, ListFilter, NewSession, Place, Sight, Store, now};
use serde_json::json;
use std::collections::BTreeSet;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn everything() -> ListFilter {
    ListFilter { limit: 100, ..ListFilter::default() }
}

/// The labels of matching sessions, sorted.
async fn labels(store: &Store, filter: ListFilter) -> Vec<String> {
    let page = store.list(filter).await.unwrap();
    let mut labels: Vec<String> = page.sessions.into_iter().map(|s| s.label.unwrap()).collect();
    labels.sort();
    labels
}

/// Changes a session, which moves it to the front of the list.
async fn touch(store: &Store, id: &str) {
    let session = store.session(id).await.unwrap();
    let empty = Append { session: session.key, after: session.seq, ..Append::default() };
    append(store, empty).await.unwrap();
}

/// Waits until the clock has advanced.
async fn later() -> i64 {
    let then = narrows_store::now();
    common::wait_until("the clock goes on", async || narrows_store::now() > then + 1).await;
    narrows_store::now()
}

#[tokio::test(flavor = "multi_thread")]
async fn same_label_gives_same_session_with_merged_tags() {
    let (_dir, store) = temp_store();
    let make = async |label: Option<&str>, tags: &[&str]| {
        let new = NewSession { label: label.map(str::to_owned), tags: words(tags) };
        store.create(new).await.unwrap()
    };
    let (first, is_new) = make(Some("order-1"), &["b", "a"]).await;
    assert!(is_new);
    assert_eq!((first.label.as_deref(), first.seq), (Some("order-1"), 0));
    assert_eq!(first.tags, ["a", "b"]);
    let before = store.list(everything()).await.unwrap().touched;
    let (again, is_new) = make(Some("order-1"), &["c", "a"]).await;
    assert!(!is_new);
    assert_eq!((again.key, &again.id, &again.epoch), (first.key, &first.id, &first.epoch));
    assert_eq!(again.tags, ["a", "b", "c"]);
    // Followers of the list receive the new tag.
    let news = ListFilter { touched_after: Some(before), ..everything() };
    assert_eq!(labels(&store, news).await, ["order-1"]);

    assert_eq!(store.session_by_label("order-1").await.unwrap(), again);
    assert_eq!(store.session(&first.id).await.unwrap(), again);
    let (one, two) = (make(None, &[]).await, make(None, &[]).await);
    assert!(one.1 && two.1 && one.0.id != two.0.id);
    assert_ne!(one.0.epoch, two.0.epoch);
    assert!(one.0.tags.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creation_gives_one_session() {
    let (_dir, store) = temp_store();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let store = store.clone();
        tasks.spawn(async move {
            let tags = vec![format!("t{n:02}")];
            store.create(NewSession { label: Some("one".to_owned()), tags }).await.unwrap()
        });
    }
    let made = tasks.join_all().await;
    assert_eq!(made.iter().filter(|(_, new)| *new).count(), 1);
    assert_eq!(made.iter().map(|(s, _)| &s.id).collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(store.session_by_label("one").await.unwrap().tags.len(), 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_added_and_removed() {
    let (_dir, store) = temp_store();
    let made = session(&store, "s", &["old", "both"]).await;
    let before = store.list(everything()).await.unwrap().touched;
    store.tag(&made.id, words(&["new", "both"]), words(&["old", "never"])).await.unwrap();
    assert_eq!(store.session(&made.id).await.unwrap().tags, ["both", "new"]);
    let news = ListFilter { touched_after: Some(before), ..everything() };
    assert_eq!(labels(&store, news).await, ["s"]);
    let none = store.tag("nobody", words(&["x"]), vec![]).await;
    assert_eq!(none, Err(Error::NotFound("session")));
}

#[tokio::test(flavor = "multi_thread")]
async fn list_applies_all_filters() {
    let (_dir, store) = temp_store();
    let head = async |label: &str, tags: &[&str], info: serde_json::Value| {
        let mut book = TestSession::of(session(&store, label, tags).await);
        book.head(&info);
        book.keep(&store).await;
    };
    let about = |status: &str, agent: &str, title: &str| json!({ "status": status, "agent": agent, "title": title });
    head("one", &["web", "team-a"], about("idle", "opencode", "Fix the Login page")).await;
    head("two", &["web"], about("running", "claude", "Ärger mit dem Bau")).await;
    let middle = later().await;
    head("THREE", &["team-a"], about("failed", "claude", "100% _done_")).await;

    let only = async |change: &dyn Fn(&mut ListFilter)| {
        let mut filter = everything();
        change(&mut filter);
        labels(&store, filter).await
    };
    assert_eq!(only(&|_| {}).await, ["THREE", "one", "two"]);
    assert_eq!(only(&|f| f.tags = words(&["web"])).await, ["one", "two"]);
    assert_eq!(only(&|f| f.tags = words(&["web", "team-a"])).await, ["one"]);
    assert_eq!(only(&|f| f.tags = words(&["we"])).await, [""; 0]);
    assert_eq!(only(&|f| f.agent = Some("claude".into())).await, ["THREE", "two"]);
    assert_eq!(only(&|f| f.label = Some("two".into())).await, ["two"]);
    assert_eq!(only(&|f| f.label = Some("tw".into())).await, [""; 0]);
    for (status, label) in [("idle", "one"), ("running", "two"), ("failed", "THREE")] {
        assert_eq!(only(&|f| f.status = Some(status.into())).await, [label]);
    }
    assert_eq!(only(&|f| f.since = Some(middle)).await, ["THREE"]);
    assert_eq!(only(&|f| f.until = Some(middle)).await, ["one", "two"]);
    // In titles and labels, in any case, without wildcards.
    for (text, found) in [
        ("lOGIN", vec!["one"]),
        ("three", vec!["THREE"]),
        ("ärger", vec!["two"]),
        ("ÄRGER", vec!["two"]),
        ("0% _", vec!["THREE"]),
        ("%", vec!["THREE"]),
        ("x_y", vec![]),
        ("'", vec![]),
    ] {
        assert_eq!(only(&|f| f.text = Some(text.into())).await, found, "{text}");
    }
    let both = |f: &mut ListFilter| {
        (f.agent, f.tags) = (Some("claude".into()), words(&["web"]));
    };
    assert_eq!(only(&both).await, ["two"]);
    // A text filter with few matches is paged too.
    let few = ListFilter { text: Some("G".into()), limit: 1, ..ListFilter::default() };
    assert_eq!(pages(&store, few, async |_| {}).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_row_summarizes_session() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::of(session(&store, "s", &["t"]).await);
    book.head(&json!({ "status": "running", "title": "About" }));
    book.say("a", "one");
    book.say("b", "two");
    book.keep(&store).await;
    let row = store.session_row(&book.session.id).await.unwrap();
    assert_eq!((row.events, row.items, row.ended), (3, 2, false));
    assert_eq!((row.label.as_deref(), row.tags), (Some("s"), words(&["t"])));
    let log = store.events_after(book.key(), 0, 9, usize::MAX).await.unwrap().rows;
    let bytes = log.iter().map(|r| r.event.len() + r.changes.as_ref().unwrap().len());
    assert_eq!(row.bytes, bytes.sum::<usize>() as u64);
    assert!(row.created_at <= row.updated_at && row.created_at > narrows_store::now() - 60_000);
    let info: serde_json::Value = serde_json::from_str(row.info.get()).unwrap();
    assert_eq!((&info["title"], &info["status"]), (&json!("About"), &json!("running")));
    let cursor = Cursor::parse(&row.cursor).unwrap();
    assert_eq!(cursor, Cursor { epoch: book.session.epoch, place: Place::after(3) });
}

/// The ids of all pages in sequence; `between` may change the store.
async fn pages(
    store: &Store,
    mut filter: ListFilter,
    mut between: impl AsyncFnMut(&[String]),
) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let page = store.list(filter.clone()).await.unwrap();
        assert!(page.sessions.len() <= filter.limit);
        seen.extend(page.sessions.into_iter().map(|s| s.id));
        let Some(next) = page.next else { return seen };
        filter.after = Some(next);
        between(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn list_pages_return_each_session_once_during_changes() {
    let (_dir, store) = temp_store();
    let mut ids = BTreeSet::new();
    for n in 0..23 {
        ids.insert(session(&store, &format!("s{n}"), &[]).await.id);
    }
    let small = ListFilter { limit: 4, ..ListFilter::default() };
    let seen = pages(&store, small.clone(), async |_| {}).await;
    assert_eq!((seen.len(), seen.iter().cloned().collect::<BTreeSet<_>>()), (23, ids.clone()));

    // Listed sessions move to the front and new ones are created: none is repeated.
    let seen = pages(&store, small.clone(), async |seen: &[String]| {
        later().await;
        touch(&store, &seen[0]).await;
        touch(&store, seen.last().unwrap()).await;
        store.create(NewSession::default()).await.unwrap();
    })
    .await;
    assert_eq!((seen.len(), seen.iter().cloned().collect::<BTreeSet<_>>()), (23, ids.clone()));

    // A session that changes meanwhile is among the changes since the first page, wherever it is.
    let began = store.list(small.clone()).await.unwrap().touched;
    let all: Vec<String> = pages(&store, everything(), async |_| {}).await;
    let last = all.last().unwrap().clone();
    let mut once = false;
    let seen = pages(&store, small, async |_| {
        if !std::mem::replace(&mut once, true) {
            later().await;
            touch(&store, &last).await;
        }
    })
    .await;
    let news = ListFilter { touched_after: Some(began), ..everything() };
    let news = store.list(news).await.unwrap();
    let told: Vec<&String> = news.sessions.iter().map(|s| &s.id).collect();
    if common::is_postgres() {
        // Slightly earlier changes may be repeated, but none is missing; and the revision does not
        // advance while an earlier transaction is open.
        assert!(told.contains(&&last), "{told:?}");
        assert!(news.touched >= began);
    } else {
        assert_eq!(told, [&last]);
        assert!(news.touched > began);
    }
    assert_eq!(seen.iter().collect::<BTreeSet<_>>(), all.iter().collect::<BTreeSet<_>>());
    assert_eq!(seen.len(), all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_list_cursor_is_rejected() {
    let (_dir, store) = temp_store();
    for after in ["", "x", "1.x", "1.2.3", "' OR 1", "99999999999999999999.1"] {
        let filter = ListFilter { after: Some(after.to_owned()), ..everything() };
        let told = store.list(filter).await.unwrap_err();
        assert!(matches!(told, Error::Invalid(_)), "{after}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn list_respects_visibility() {
    let (_dir, store) = temp_store();
    let one = session(&store, "one", &["red"]).await;
    session(&store, "two", &["blue"]).await;
    session(&store, "three", &["red", "blue"]).await;
    session(&store, "four", &[]).await;
    let sees = async |sessions: Option<&[&str]>, tags: Option<&[&str]>| {
        let sight = Sight { sessions: sessions.map(words), tags: tags.map(words) };
        let listed = labels(&store, ListFilter { sight: sight.clone(), ..everything() }).await;
        // The same visibility applies everywhere.
        for row in store.list(everything()).await.unwrap().sessions {
            assert_eq!(sight.sees(&row.id, &row.tags), listed.contains(&row.label.unwrap()));
        }
        listed
    };
    assert_eq!(sees(None, None).await.len(), 4);
    assert_eq!(sees(Some(&[&one.id]), None).await, ["one"]);
    assert_eq!(sees(None, Some(&["blue"])).await, ["three", "two"]);
    assert_eq!(sees(Some(&[&one.id]), Some(&["blue"])).await, ["one", "three", "two"]);
    assert_eq!(sees(Some(&[]), None).await, [""; 0]);
    assert_eq!(sees(None, Some(&[])).await, [""; 0]);
    assert_eq!(sees(Some(&["' OR 1=1 --"]), Some(&["%"])).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn facets_count_visible_sessions() {
    let (_dir, store) = temp_store();
    for (label, tag, agent, project, status) in [
        ("one", "red", "claude-code", Some("parser"), "running"),
        ("two", "red", "codex", Some("parser"), "idle"),
        ("three", "blue", "claude-code", Some("shop"), "running"),
        ("four", "blue", "claude-code", None, "idle"),
    ] {
        let mut book = TestSession::of(session(&store, label, &[tag]).await);
        book.head(&json!({ "status": status, "agent": agent }));
        let mut next = book.next(false);
        let facts = next.facts.as_mut().unwrap();
        facts.project = project.map(str::to_owned);
        // One claims to run but is stale; one has ended.
        next.heard = Some(if label == "three" { 1000 } else { narrows_store::now() });
        next.ended = Some(label == "two");
        append(&store, next).await.unwrap();
    }
    session(&store, "empty", &["red"]).await;
    let told = async |tags: Option<&[&str]>| {
        let sight = Sight { sessions: None, tags: tags.map(words) };
        let facets = store.facets(sight).await.unwrap();
        serde_json::to_value(facets).unwrap()
    };
    let facet = |name: &str, count: u64| json!({ "name": name, "count": count });
    assert_eq!(
        told(None).await,
        json!({
            "agents": [facet("claude-code", 3), facet("codex", 1)],
            "projects": [facet("parser", 2), facet("shop", 1)],
            "live": 1, "total": 5,
        })
    );
    assert_eq!(
        told(Some(&["blue"])).await,
        json!({
            "agents": [facet("claude-code", 2)], "projects": [facet("shop", 1)],
            "live": 0, "total": 2,
        })
    );
    let none = json!({ "agents": [], "projects": [], "live": 0, "total": 0 });
    assert_eq!(told(Some(&[])).await, none);
}

/// Indexes of lists are on buckets, whose borders must not be visible.
#[tokio::test(flavor = "multi_thread")]
async fn list_order_is_correct_across_buckets() {
    let (_dir, store) = temp_store();
    let mut made = Vec::new();
    for n in 0..30 {
        made.push((session(&store, &format!("s{n:02}"), &[]).await, 0));
    }
    let mut seen = store.list(everything()).await.unwrap().touched;
    // Times around bucket borders, some equal; each session moves several times.
    for n in 0..300_i64 {
        let (session, seq) = &mut made[usize::try_from(n * 7 % 30).unwrap()];
        let at = 1_700_000_000_000 + n * 1365 / 2 * 2;
        let events = vec![event(*seq + 1, "more")];
        let times = Some((at, at));
        let more = Append { session: session.key, after: *seq, events, times, ..Append::default() };
        *seq = append(&store, more).await.unwrap();
        let news = ListFilter { touched_after: Some(seen), ..everything() };
        let page = store.list(news).await.unwrap();
        let ids: Vec<_> = page.sessions.iter().map(|s| s.id.as_str()).collect();
        assert!(ids.contains(&session.id.as_str()), "change {n}: {ids:?}");
        seen = page.touched;
    }
    let lost = "SELECT count(*) FROM session WHERE updated_era <> updated >> 12 OR touched_era <> touched >> 7";
    assert_eq!(raw_sql(&store, lost), ["0"]);
    let all = store.list(everything()).await.unwrap().sessions;
    let mut sorted = all.iter().map(|s| (s.updated_at, s.id.clone())).collect::<Vec<_>>();
    sorted.sort_by_key(|(updated, _)| std::cmp::Reverse(*updated));
    assert_eq!(
        all.iter().map(|s| s.updated_at).collect::<Vec<_>>(),
        sorted.iter().map(|s| s.0).collect::<Vec<_>>()
    );
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(ListFilter { after, limit: 4, ..everything() }).await.unwrap();
        paged.extend(page.sessions.into_iter().map(|s| s.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, all.iter().map(|s| s.id.clone()).collect::<Vec<_>>());
    let middle = all[15].updated_at;
    for (filter, expected) in [
        (
            ListFilter { since: Some(middle), ..everything() },
            all.iter().filter(|s| s.updated_at >= middle).count(),
        ),
        (
            ListFilter { until: Some(middle), ..everything() },
            all.iter().filter(|s| s.updated_at < middle).count(),
        ),
    ] {
        assert_eq!(store.list(filter).await.unwrap().sessions.len(), expected);
    }
}

/// A time in the year 2041, in milliseconds.
const FAR: i64 = 2_250_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn future_times_are_corrected() {
    let (_dir, store) = temp_store();
    let order = async || -> Vec<String> {
        let page = store.list(ListFilter { limit: 9, ..ListFilter::default() }).await.unwrap();
        page.sessions.into_iter().filter_map(|s| s.label).collect()
    };
    let write = async |session: i64, seq: u64, at: i64| {
        let events = vec![common::event(seq, "x")];
        let times = Some((at, at));
        let next = Append {
            session,
            after: seq - 1,
            events,
            times,
            heard: Some(now()),
            ..Append::default()
        };
        append(&store, next).await.unwrap();
    };
    // The agent's clock.
    let (ahead, right) = (session(&store, "ahead", &[]).await, session(&store, "right", &[]).await);
    write(ahead.key, 1, FAR).await;
    let told = store.session_row(&ahead.id).await.unwrap();
    assert!(told.updated_at <= now(), "{}", told.updated_at);
    let later = told.updated_at + 1;
    while now() < later {
        tokio::task::yield_now().await;
    }
    write(right.key, 1, now()).await;
    assert_eq!(order().await, ["right", "ahead"]);

    // The clock of this machine was wrong for a while. A session that receives more events is
    // corrected at once.
    common::raw_sql(
        &store,
        &format!("UPDATE session SET updated = {FAR}, heard = {FAR}, updated_era = {FAR} >> 12"),
    );
    write(right.key, 2, now()).await;
    let told = store.session_row(&right.id).await.unwrap();
    assert!(told.updated_at <= now() && told.heard_at <= now());
    // Others are corrected by maintenance.
    while store.session_row(&ahead.id).await.unwrap().updated_at > now() {
        tokio::task::yield_now().await;
    }
    let told = store.session_row(&ahead.id).await.unwrap();
    assert!(
        told.heard_at <= now() && told.created_at <= now() && told.updated_at > now() - 3_600_000
    );
}
