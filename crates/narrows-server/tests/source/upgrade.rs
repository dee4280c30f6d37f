//! Sessions that an older parser read are read again.

use crate::bed::{Bed, id_in, input, until};
use crate::lines::Talk;
use narrows_engine::live::{After, Filter, Subscription, View, Wire};
use narrows_store::{StatsBy, StatsFilter};
use rusqlite::Connection;
use std::fs;

/// As if an older parser had read everything.
fn make_older(bed: &Bed) {
    let db = Connection::open(bed.data().join("narrows.db")).expect("database");
    db.execute("UPDATE source SET parser = 0 WHERE parser IS NOT NULL", []).expect("update");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_older_parser_read_is_read_again_under_the_same_id() {
    let bed = Bed::new();
    let case = "claude-history/2.1-g-subagent";
    let (main, id) = (bed.put(case, "-app"), id_in(&input(case)));
    bed.pass().await;
    let stats = StatsFilter { by: StatsBy::Session, ..StatsFilter::default() };
    let (before, counted) = bed
        .look(async |parts| {
            parts
                .store
                .tag(&parts.session(&id).await.id, vec!["kept".to_owned()], Vec::new())
                .await
                .expect("tag");
            (parts.session(&id).await, parts.store.stats(stats.clone()).await.expect("stats"))
        })
        .await;
    make_older(&bed);
    let sums = bed.pass().await;
    assert_eq!(sums.sessions, 1);
    bed.look(async |parts| {
        until("rows are gone", async || parts.store.is_settled().await.expect("store")).await;
        let after = parts.session(&id).await;
        assert_eq!((&after.id, &after.tags), (&before.id, &before.tags));
        assert_ne!(after.epoch, before.epoch);
        assert_eq!(parts.items(&id).await, parts.truth(&main));
        assert_eq!(parts.store.stats(stats.clone()).await.expect("stats"), counted);
    })
    .await;
    assert_eq!(bed.pass().await.sessions, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_file_is_gone_stays_as_the_older_parser_made_it() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let main = bed.write("-app", &talk.session, talk.lines(1..=4));
    bed.pass().await;
    let before = bed.look(async |parts| parts.session(&talk.session).await).await;
    fs::remove_file(main).expect("remove");
    make_older(&bed);
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.session(&talk.session).await.epoch, before.epoch);
        assert_eq!(parts.texts(&talk.session).await, talk.texts(1..=4));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_is_told_to_read_again_and_the_list_keeps_the_session() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    bed.write("-app", &talk.session, talk.lines(1..=4));
    bed.pass().await;
    make_older(&bed);
    let parts = bed.open();
    let session = parts.session(&talk.session).await;
    let count = *parts.hub.list_version().borrow();
    let follow = |session: &_, after| {
        Subscription::new(&parts.hub, session, View::Items, Filter::default(), Wire::Sse, &after)
    };
    let cursor = format!("{}-{}", session.epoch, session.seq);
    let tail = parts.hub.tail(&session);
    let mut waker = tail.waker();
    parts.catch_up(&bed.options).await;
    waker.woken().await;
    assert!(matches!(tail.after(session.seq), narrows_engine::live::Ahead::Ended));
    // Nobody is told that the session went away.
    assert_eq!(parts.hub.deleted_after(count), Some(Vec::new()));
    // The old cursor is of another log.
    let again = parts.session(&talk.session).await;
    let follower = follow(&again, After::Given(cursor.clone()));
    assert_ne!(follower.cursor(), cursor);
    parts.end().await;
}
