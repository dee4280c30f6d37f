//! Tokens are counted once.

use crate::bed::{Bed, Parts, cases, id_in, input};
use crate::lines::{Talk, session_id};
use narrows_store::{Query, SessionRow, StatsBy, StatsFilter, StatsRow};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

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

/// Every answer in the files below a folder, once by its message and request: input, output, read
/// from a cache, put into one.
fn added(folder: &Path, sums: &mut HashMap<(String, String), [u64; 4]>) {
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            added(&path, sums);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for record in text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()) {
            let (message, usage) = (&record["message"], &record["message"]["usage"]);
            if record["type"] != "assistant"
                || message["model"] == "<synthetic>"
                || !usage.is_object()
            {
                continue;
            }
            let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let count = |key: &str| usage[key].as_u64().unwrap_or(0);
            let told = [
                count("input_tokens"),
                count("output_tokens"),
                count("cache_read_input_tokens"),
                count("cache_creation_input_tokens"),
            ];
            let known = sums.entry((name(&message["id"]), name(&record["requestId"]))).or_default();
            known.iter_mut().zip(told).for_each(|(known, told)| *known = told.max(*known));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_are_those_of_the_records_with_subagents_that_nobody_asked_for() {
    let bed = Bed::new();
    for (n, case) in cases("claude-history").iter().enumerate() {
        bed.put(case, &format!("-app-{n}"));
    }
    let mut answers = HashMap::new();
    added(&bed.projects(), &mut answers);
    let warm =
        |id: &str| fs::read_to_string(id).is_ok_and(|t| t.contains("\"content\":\"Warmup\""));
    let warm_ups = walk(&bed.projects()).iter().filter(|path| warm(path)).count();
    assert!(warm_ups >= 2, "the recorded sessions hold warm-ups");
    bed.pass().await;
    bed.look(async |parts| {
        let rows = parts.store.stats(StatsFilter::default()).await.expect("stats");
        let sum = |of: fn(&StatsRow) -> u64| rows.iter().map(of).sum::<u64>();
        assert_eq!(sum(|r| r.answers), answers.len() as u64);
        let told =
            [sum(|r| r.input), sum(|r| r.output), sum(|r| r.cache_read), sum(|r| r.cache_write)];
        let plain = answers.values().fold([0; 4], |mut all, one| {
            all.iter_mut().zip(one).for_each(|(all, one)| *all += one);
            all
        });
        assert_eq!(told, plain);
        // Each record names its model, whoever asked for it.
        let models = StatsFilter { by: StatsBy::Model, ..StatsFilter::default() };
        let models = parts.store.stats(models).await.expect("stats");
        let unnamed = |r: &&StatsRow| r.name.is_empty() && r.answers > 0;
        assert_eq!(models.iter().find(unnamed), None);
        // Warm-ups are in the sums of their session and nowhere to be seen.
        for session in parts.sessions().await {
            let shown = parts.items(session.label.as_deref().unwrap_or_default()).await;
            assert!(
                shown.iter().all(|item| !item.to_string().contains("Warmup")),
                "{}",
                session.id
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_of_which_nothing_else_is_left_are_sessions_of_their_own() {
    let bed = Bed::new();
    // A folder with warm-ups only, and one of another project.
    fs::remove_file(bed.put("claude-history/2.0-c-files", "-app")).expect("remove");
    bed.put("claude-history/2.0-d-bash", "-other");
    let (mut answers, mut others) = (HashMap::new(), HashMap::new());
    added(&bed.projects(), &mut answers);
    added(&bed.projects().join("-other"), &mut others);
    assert!(answers.len() > others.len(), "{} {}", answers.len(), others.len());
    for _ in 0..2 {
        bed.pass().await;
        bed.look(async |parts| {
            let sum = all(parts, StatsBy::Day).await;
            assert_eq!(sum.answers, answers.len() as u64);
            let output: u64 = answers.values().map(|told| told[1]).sum();
            assert_eq!(sum.output, output);
            // The other session has its own, and no more.
            let by = StatsFilter { by: StatsBy::Session, ..StatsFilter::default() };
            let rows = parts.store.stats(by).await.expect("stats");
            let own: Vec<u64> = rows.iter().map(|row| row.answers).collect();
            assert!(own.contains(&(others.len() as u64)), "{own:?}");
            assert_eq!(own.len(), 1 + answers.len() - others.len(), "{own:?}");
        })
        .await;
    }
}

fn walk(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(walk(&path));
        } else {
            all.push(path.to_string_lossy().into_owned());
        }
    }
    all
}

/// The file of the session that a recorded fork was made from, and what it had cost.
fn trunk_of(fork: &str) -> (String, String) {
    let id = session_id(7);
    let text = fork.replace(&id_in(fork.as_bytes()), &id);
    let second = text.match_indices("\"type\":\"user\"").nth(1).expect("a second turn").0;
    let end = text[..second].rfind('\n').expect("a line") + 1;
    let cost = format!(
        r#"{{"type":"cost-state","sessionId":"{id}","totalCostUSD":0.002829,"modelUsage":{{}}}}"#
    );
    (id, format!("{}{cost}\n", &text[..end]))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_trunk_cost_is_not_counted_with_its_fork_again() {
    let fork = String::from_utf8(input("claude-history/2.1-w-fork")).expect("text");
    let (trunk_id, trunk) = trunk_of(&fork);
    for first in [true, false] {
        let bed = Bed::new();
        if first {
            bed.write("-app", &trunk_id, &trunk);
            bed.pass().await;
        }
        bed.write("-app", &id_in(fork.as_bytes()), &fork);
        bed.pass().await;
        bed.write("-app", &trunk_id, &trunk);
        // One that reports no cost.
        bed.write("-app", &session_id(1), Talk::new(1).lines(1..=4));
        bed.pass().await;
        bed.look(async |parts| {
            for by in [StatsBy::Day, StatsBy::Session, StatsBy::Model, StatsBy::Project] {
                let rows = parts.store.stats(StatsFilter { by, ..StatsFilter::default() }).await;
                let rows = rows.expect("stats");
                let cost: f64 = rows.iter().filter_map(|r| r.cost_usd).sum();
                assert!((cost - 0.005_709).abs() < 1e-9, "{by:?} {first}: {cost}");
            }
            let all = StatsFilter { by: StatsBy::Agent, ..StatsFilter::default() };
            let rows = parts.store.stats(all).await.expect("stats");
            assert_eq!((rows[0].cost_sessions, rows[0].sessions), (2, 3));
            let rows = parts.sessions().await;
            let is = |row: &SessionRow, native: &str| row.native_id.as_deref() == Some(native);
            let trunk = rows.iter().find(|row| is(row, &trunk_id)).expect("the trunk").id.clone();
            for row in &rows {
                let is_fork = is(row, &id_in(fork.as_bytes()));
                assert_eq!(row.fork, is_fork, "{:?} {first}", row.native_id);
                let of = row.fork_of.as_ref().filter(|of| **of == trunk);
                assert_eq!(of.is_some(), is_fork, "{:?} {first}", row.fork_of);
            }
            // What is in both is found in both, and one of them is told to be the fork.
            let query = Query { text: "original".to_owned(), limit: 50, ..Query::default() };
            let hits = parts.store.search(query).await.expect("search").hits;
            let forks = |fork: bool| hits.iter().filter(|hit| hit.fork == fork).count();
            assert_eq!(forks(true), forks(false), "{hits:?}");
            assert!(
                forks(true) > 0 && hits.iter().all(|hit| hit.fork != (hit.session_id == trunk))
            );
        })
        .await;
    }
}
