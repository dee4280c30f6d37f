//! Sessions that were deleted here stay away, until somebody asks for them.

use crate::bed::{Bed, append, until};
use crate::lines::Talk;
use narrows_store::{NewSession, StatsBy, StatsFilter};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_is_not_read_again_until_it_is_asked_for() {
    let bed = Bed::new();
    let (talk, other) = (Talk::new(1), Talk::new(2));
    let path = bed.write("-app", &talk.session, talk.lines(1..=4));
    bed.write("-app", &other.session, other.named("b").lines(1..=2));
    bed.pass().await;
    bed.look(async |parts| {
        let id = parts.session(&talk.session).await.id;
        parts.store.delete(&id).await.expect("delete");
    })
    .await;
    let settle = async || {
        bed.look(async |parts| {
            until("rows are gone", async || parts.store.is_settled().await.expect("store")).await;
        })
        .await;
    };
    for settled in [false, true] {
        if settled {
            settle().await;
        }
        let sums = bed.pass().await;
        assert_eq!((sums.sessions, sums.events), (0, 0), "{settled}");
    }
    append(&path, talk.lines(5..=6));
    bed.pass().await;
    bed.look(async |parts| assert_eq!(parts.labels().await, [other.session.as_str()])).await;
    // Somebody asks for it.
    bed.look(async |parts| {
        let label = Some(talk.session.clone());
        let (_, made) =
            parts.store.create(NewSession { label, tags: Vec::new() }).await.expect("create");
        assert!(made);
    })
    .await;
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.items(&talk.session).await, parts.truth(&path));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_comes_back_at_once_is_whole_and_counts() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let path = bed.write("-app", &talk.session, talk.lines(1..=8));
    bed.pass().await;
    let parts = bed.open();
    let id = parts.session(&talk.session).await.id;
    parts.store.delete(&id).await.expect("delete");
    let label = Some(talk.session.clone());
    parts.store.create(NewSession { label, tags: Vec::new() }).await.expect("create");
    parts.catch_up(&bed.options).await;
    until("rows are gone", async || parts.store.is_settled().await.expect("store")).await;
    assert_eq!(parts.items(&talk.session).await, parts.truth(&path));
    let filter = StatsFilter { by: StatsBy::Session, ..StatsFilter::default() };
    let rows = parts.store.stats(filter).await.expect("stats");
    assert_eq!(rows.iter().map(|r| r.answers).sum::<u64>(), 4, "{rows:?}");
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_while_it_is_followed_stays_away() {
    let bed = Bed::new();
    let (talk, other) = (Talk::new(1), Talk::new(2));
    let path = bed.write("-app", &talk.session, talk.lines(1..=2));
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    until("it is there", async || !parts.texts(&talk.session).await.is_empty()).await;
    let session = parts.session(&talk.session).await;
    parts.store.delete(&session.id).await.expect("delete");
    parts.intake.forget(session.key).await;
    parts.hub.on_deleted(&session);
    append(&path, talk.lines(3..=4));
    bed.write("-app", &other.session, other.lines(1..=2));
    until("the other is there", async || !parts.texts(&other.session).await.is_empty()).await;
    assert_eq!(parts.labels().await, [other.session.as_str()]);
    assert_eq!(follower.progress().sums().failed, 0, "{:?}", follower.progress().fault());
    follower.stop().await;
    parts.end().await;
}
