//! A session that comes by several ways: its file, a copy of the file elsewhere, and its live stream under
//! one name or another. Whatever came first, it is listed, found and counted once.

use crate::bed::{Bed, Parts, id_in, input};
use crate::live::send_at;
use narrows_engine::ingest::{Arrival, Reading, Wrapped};
use narrows_store::{ListFilter, NewSession, Query, StatsBy, StatsFilter};
use serde_json::json;

const NAME: &str = "2.1-c-files";

/// What its file says that the agent reports of its cost.
const COST: f64 = 0.04;

struct Ways {
    bed: Bed,
    parts: Parts,
    live: Vec<u8>,
    kept: Vec<u8>,
}

impl Ways {
    fn new() -> Ways {
        let bed = Bed::new();
        let parts = bed.open();
        let live = input(&format!("claude-stream/{NAME}"));
        let mut kept = input(&format!("claude-history/{NAME}"));
        let cost = json!({"type": "cost-state", "sessionId": id_in(&live), "totalCostUSD": COST});
        kept.extend(format!("{cost}\n").bytes());
        Ways { bed, parts, live, kept }
    }

    /// One way: `f`ile, a `c`opy of it elsewhere, what was posted of i`t`, live as `a` or as `b`.
    async fn come(&self, way: char) {
        match way {
            'f' => {
                self.bed.write("-app", &id_in(&self.live), &self.kept);
            }
            'c' => {
                let label = Some("history-97b2d93c".to_owned());
                let new = NewSession { label, tags: Vec::new() };
                let (session, _) = self.parts.store.create(new).await.expect("session");
                let arrival = Arrival::None;
                let reading = Reading { arrival, wrapped: true, end: true, ..Reading::default() };
                let mut take = self.parts.intake.open(&session, reading).await.expect("open");
                let text = String::from_utf8_lossy(&self.kept);
                for (line, number) in text.lines().zip(1..) {
                    let line = Wrapped::line(0, number, 0, None, line.as_bytes());
                    let line = serde_json::to_string(&line).expect("a line") + "\n";
                    take.push(line.as_bytes()).await.expect("push");
                }
                take.finish().await.expect("finish");
            }
            't' => send_at(&self.parts, "posted", &self.kept, true, None).await,
            'a' => send_at(&self.parts, "fix-42", &self.live, true, None).await,
            _ => send_at(&self.parts, "again", &self.live, true, None).await,
        }
        self.parts.catch_up(&self.bed.options).await;
    }

    /// Sessions, answers, calls, output and time, and the cost in ten thousandths.
    async fn sums(&self) -> (u64, u64, u64, u64, u64) {
        let filter = StatsFilter { by: StatsBy::Agent, ..StatsFilter::default() };
        let rows = self.parts.store.stats(filter).await.expect("stats");
        let cost: f64 = rows.iter().filter_map(|row| row.cost_usd).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
        let cost = (cost * 10_000.0).round() as u64;
        rows.iter().fold((0, 0, 0, 0, cost), |sum, r| {
            (sum.0 + r.sessions, sum.1 + r.answers, sum.2 + r.calls, sum.3 + r.output, sum.4)
        })
    }

    /// In how many sessions something is said.
    async fn found(&self) -> usize {
        while !self.parts.store.is_settled().await.expect("settled") {
            tokio::task::yield_now().await;
        }
        let query = Query { text: "notes.md".to_owned(), limit: 500, ..Query::default() };
        let hits = self.parts.store.search(query).await.expect("search").hits;
        let mut sessions: Vec<String> = hits.into_iter().map(|hit| hit.session_id).collect();
        sessions.sort();
        sessions.dedup();
        sessions.len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_whatever_ways_it_comes_it_is_one_session() {
    let alone = Ways::new();
    alone.come('f').await;
    let file = alone.sums().await;
    assert_eq!((file.0, file.2, file.4), (1, 7, 400), "{file:?}");
    let mut wrong = Vec::new();
    for ways in [
        "fc", "cf", "fa", "af", "ca", "ac", "ab", "ta", "at", "fca", "fac", "caf", "cfa", "acf",
        "afc", "fab", "abf", "afb", "ftb", "fta", "abt", "tab", "fctab", "batcf",
    ] {
        let came = Ways::new();
        for (at, way) in ways.char_indices() {
            came.come(way).await;
            let seen = &ways[..=at];
            let listed = came.parts.sessions().await;
            if listed.len() != 1 || listed.iter().any(|row| row.fork) {
                let labels: Vec<_> = listed.iter().map(|row| row.label.clone()).collect();
                wrong.push(format!("{seen}: {labels:?}"));
            }
            let sums = came.sums().await;
            let is_kept = seen.contains(['f', 'c', 't']);
            // What is only printed guesses how long its answers are, and reports another cost.
            let is_same = (sums.0, sums.2) == (file.0, file.2)
                && (!is_kept || (sums.1, sums.3) == (file.1, file.3))
                && (1..=file.4).contains(&sums.4);
            if !is_same {
                wrong.push(format!("{seen}: {sums:?}, not {file:?}"));
            }
            if came.found().await != 1 {
                wrong.push(format!("{seen}: found in {}", came.found().await));
            }
        }
        for (way, label) in [('a', "fix-42"), ('b', "again"), ('t', "posted")] {
            if ways.contains(way) {
                let label_of =
                    ListFilter { label: Some(label.to_owned()), limit: 9, ..ListFilter::default() };
                let found = came.parts.store.list(label_of).await.expect("list").sessions;
                assert_eq!(found.len(), 1, "{ways}: {label}");
                assert!(!came.parts.items(label).await.is_empty(), "{ways}: {label}");
            }
        }
        came.parts.store.close().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_turn_printed_is_hidden_by_nothing_but_the_file() {
    let came = Ways::new();
    came.come('a').await;
    // Another run of the same session: it prints only what comes then.
    let next = String::from_utf8_lossy(&came.live).replace("\"msg_", "\"msg_next_");
    send_at(&came.parts, "next", next.as_bytes(), true, None).await;
    came.parts.catch_up(&came.bed.options).await;
    assert_eq!(came.parts.labels().await.len(), 2);
    assert_eq!(came.sums().await.2, 14);
    came.come('f').await;
    assert_eq!(came.parts.labels().await.len(), 1);
    came.parts.store.close().await;
}
