//! Tokens are counted once.

use crate::bed::{Bed, Parts};
use crate::lines::{Talk, session_id};
use narrows_store::{StatsBy, StatsFilter, StatsRow};

async fn all(parts: &Parts, by: StatsBy) -> StatsRow {
    let rows = parts.store.stats(StatsFilter { by, ..StatsFilter::default() }).await;
    rows.expect("stats").into_iter().fold(StatsRow::default(), |sum, row| StatsRow {
        answers: sum.answers + row.answers,
        input: sum.input + row.input,
        output: sum.output + row.output,
        ..sum
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_fork_repeats_is_counted_once() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let first = talk.lines(1..=8);
    bed.write("-app", &talk.session, &first);
    // The fork has the same records under another session's id, and goes on.
    let fork = Talk { session: session_id(2), ..talk.clone() };
    let text = first.replace(&talk.session, &fork.session) + &fork.lines(9..=12);
    bed.write("-app", &fork.session, &text);
    // Another copy, whose records still name the first session.
    bed.write("-app", &session_id(3), first + &fork.lines(9..=10));
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.sessions().await.len(), 3);
        for by in [StatsBy::Day, StatsBy::Session, StatsBy::Model, StatsBy::Project] {
            let sum = all(parts, by).await;
            assert_eq!((sum.answers, sum.input, sum.output), (6, 60, 30), "{by:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_in_pieces_or_again_is_counted_once() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    for last in 1..=10 {
        bed.write("-app", &talk.session, talk.lines(1..=last));
        if last % 2 == 0 {
            bed.pass().await
        } else {
            bed.cut_pass().await
        };
    }
    // The same in another place.
    bed.write("-other", &talk.session, talk.lines(3..=10));
    bed.pass().await;
    bed.look(async |parts| {
        let sum = all(parts, StatsBy::Day).await;
        assert_eq!((sum.answers, sum.input, sum.output), (5, 50, 25));
    })
    .await;
}
