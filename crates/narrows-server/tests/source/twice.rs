//! A session that was recorded between its agent and a client, and whose file is found too: two logs,
//! of which one is listed, searched and counted.

use crate::bed::{Bed, Parts, append};
use crate::lines::{CWD, Talk};
use narrows::Format;
use narrows::time::Time;
use narrows_engine::ingest::{Arrival, Reading};
use narrows_store::{ListFilter, NewSession, Query, Sight, StatsBy, StatsFilter, now};
use serde_json::{Value, json};

const RECORDED: &str = "acp:claude-agent-acp:one";

/// When a made-up record was written.
fn at(n: u32) -> i64 {
    1_772_359_200_000 + i64::from(n) * 1000
}

/// What passes between the agent and its client while these records are written, a little later.
struct Wire {
    talk: Talk,
    lines: String,
    asked: u32,
}

impl Wire {
    fn new(talk: &Talk) -> Wire {
        let mut wire = Wire { talk: talk.clone(), lines: String::new(), asked: 1 };
        let cwd = json!({"cwd": CWD, "mcpServers": []});
        wire.put(at(0), "client->agent", &json!({"id": 1, "method": "session/new", "params": cwd}));
        let made = json!({"id": 1, "result": {"sessionId": talk.session}});
        wire.put(at(0), "agent->client", &made);
        wire
    }

    fn put(&mut self, at: i64, dir: &str, message: &Value) {
        let mut msg = json!({"jsonrpc": "2.0"});
        if let (Some(msg), Some(message)) = (msg.as_object_mut(), message.as_object()) {
            msg.extend(message.clone());
        }
        let line = json!({"ts": Time::from_millis(at + 20), "dir": dir, "msg": msg});
        self.lines += &(line.to_string() + "\n");
    }

    fn prompt(&mut self, n: u32, at: i64) {
        self.asked += 1;
        let text = json!([{"type": "text", "text": self.talk.text(n)}]);
        let params = json!({"sessionId": self.talk.session, "prompt": text});
        let (id, method) = (self.asked, "session/prompt");
        self.put(at, "client->agent", &json!({"id": id, "method": method, "params": params}));
    }

    /// A turn: the prompt `n`, and the answer that comes after it.
    fn turn(mut self, n: u32) -> Wire {
        self.prompt(n, at(n));
        let content = json!({"type": "text", "text": self.talk.text(n + 1)});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": self.talk.session, "update": update});
        self.put(
            at(n + 1),
            "agent->client",
            &json!({"method": "session/update", "params": params}),
        );
        let usage = json!({"inputTokens": 7, "outputTokens": 3, "totalTokens": 10});
        let result = json!({"stopReason": "end_turn", "usage": usage});
        self.put(at(n + 1), "agent->client", &json!({"id": self.asked, "result": result}));
        self
    }
}

async fn record(parts: &Parts, lines: &str) {
    let label = Some(RECORDED.to_owned());
    let (session, _) =
        parts.store.create(NewSession { label, tags: Vec::new() }).await.expect("session");
    let reading =
        Reading { format: Format::Acp, arrival: Arrival::None, end: true, ..Reading::default() };
    let mut take = parts.intake.open(&session, reading).await.expect("open");
    take.push(lines.as_bytes()).await.expect("push");
    take.finish().await.expect("finish");
}

/// In which sessions something is said.
async fn found(parts: &Parts, text: &str) -> Vec<String> {
    while !parts.store.is_settled().await.expect("settled") {
        tokio::task::yield_now().await;
    }
    let query = Query { text: format!("\"{text}\""), limit: 100, ..Query::default() };
    let hits = parts.store.search(query).await.expect("search").hits;
    hits.into_iter().filter_map(|hit| hit.label).collect()
}

/// Answers, tokens in, sessions.
async fn counted(parts: &Parts) -> (u64, u64, u64) {
    let filter = StatsFilter { by: StatsBy::Project, ..StatsFilter::default() };
    let rows = parts.store.stats(filter).await.expect("stats");
    rows.iter().fold((0, 0, 0), |sum, r| (sum.0 + r.answers, sum.1 + r.input, sum.2 + r.sessions))
}

/// One session is listed, and it is this one; the other is told to be a copy of it.
async fn is_once(parts: &Parts, talk: &Talk, listed: &str, what: &str) {
    let file = talk.session.as_str();
    assert_eq!(parts.labels().await, [listed], "{what}");
    let facets = parts.store.facets(Sight::default()).await.expect("facets");
    assert_eq!(facets.total, 1, "{what}");
    let hidden = if listed == file { RECORDED } else { file };
    let (shown, hidden) = (parts.row(listed).await, parts.row(hidden).await);
    assert_eq!((hidden.copy_of.as_ref(), shown.copy_of), (Some(&shown.id), None), "{what}");
    assert_eq!(found(parts, &talk.text(2)).await, [listed], "{what}");
    // What the file says last may sound as if its agent worked.
    assert!(!hidden.live && (shown.live == (listed == file)), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_and_lies_in_a_file_is_one_session() {
    for file_first in [true, false] {
        let (bed, talk) = (Bed::new(), Talk::new(1));
        let wire = Wire::new(&talk).turn(1).turn(3);
        let path = bed.write("-app", &talk.session, talk.lines(1..=4));
        let what = format!("the file first: {file_first}");
        let parts = bed.open();
        if file_first {
            // As a store has it that was written before one of them was hidden.
            parts.catch_up(&bed.options).await;
            record(&parts, &wire.lines).await;
            assert_eq!(parts.sessions().await.len(), 2);
        } else {
            record(&parts, &wire.lines).await;
        }
        parts.catch_up(&bed.options).await;
        is_once(&parts, &talk, RECORDED, &what).await;
        // The file tells what each answer used.
        assert_eq!(counted(&parts).await, (2, 20, 1), "{what}");
        parts.end().await;

        // It goes on where nobody records it: the file tells more.
        append(&path, talk.lines(5..=6));
        bed.pass().await;
        let parts = bed.open();
        is_once(&parts, &talk, &talk.session, &what).await;
        assert_eq!(found(&parts, &talk.text(6)).await, [talk.session.as_str()], "{what}");
        assert_eq!(counted(&parts).await, (3, 30, 1), "{what}");

        // And is recorded again: what was not recorded is still only in the file.
        let more = Wire { lines: String::new(), ..wire }.turn(7);
        record(&parts, &more.lines).await;
        append(&path, talk.lines(7..=8));
        parts.catch_up(&bed.options).await;
        is_once(&parts, &talk, &talk.session, &what).await;
        assert_eq!(counted(&parts).await, (4, 40, 1), "{what}");
        parts.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_in_which_something_goes_on_is_listed() {
    let (bed, talk) = (Bed::new(), Talk::new(1));
    bed.write("-app", &talk.session, talk.lines(1..=6));
    let mut wire = Wire::new(&talk).turn(1);
    wire.prompt(7, now());
    let parts = bed.open();
    record(&parts, &wire.lines).await;
    // It is over, and tells less than the file.
    parts.catch_up(&bed.options).await;
    assert_eq!(parts.labels().await, [talk.session.as_str()]);
    // Its agent works.
    let session = parts.session(RECORDED).await;
    let reading = Reading { format: Format::Acp, arrival: Arrival::None, ..Reading::default() };
    let mut take = parts.intake.open(&session, reading).await.expect("open");
    let content = json!({"type": "text", "text": "I am "});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    wire.lines.clear();
    let params = json!({"sessionId": talk.session, "update": update});
    wire.put(now(), "agent->client", &json!({"method": "session/update", "params": params}));
    take.push(wire.lines.as_bytes()).await.expect("push");
    take.finish().await.expect("finish");
    parts.catch_up(&bed.options).await;
    assert_eq!(parts.labels().await, [RECORDED]);
    assert!(parts.row(RECORDED).await.live);
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_is_gone_by_both_ways() {
    for listed_by_file in [true, false] {
        let (bed, talk) = (Bed::new(), Talk::new(1));
        let path = bed.write("-app", &talk.session, talk.lines(1..=4));
        let wire = Wire::new(&talk).turn(1);
        let wire = if listed_by_file { wire } else { wire.turn(3) };
        let parts = bed.open();
        record(&parts, &wire.lines).await;
        parts.catch_up(&bed.options).await;
        let listed = parts.sessions().await.remove(0);
        assert_eq!(listed.label.as_deref() == Some(&talk.session), listed_by_file);
        parts.store.delete(&listed.id).await.expect("delete");
        append(&path, talk.lines(5..=6));
        parts.catch_up(&bed.options).await;
        assert!(parts.sessions().await.is_empty());
        let all =
            ListFilter { label: Some(RECORDED.to_owned()), limit: 9, ..ListFilter::default() };
        assert!(parts.store.list(all).await.expect("list").sessions.is_empty());
        assert!(parts.store.session_by_label(RECORDED).await.is_err());
        assert!(parts.store.session_by_label(&talk.session).await.is_err());
        parts.end().await;
    }
}

/// What `ls` and `stats` say that the sessions cost.
async fn costs(parts: &Parts) -> Vec<(Option<f64>, Option<f64>)> {
    let filter = StatsFilter { by: StatsBy::Session, ..StatsFilter::default() };
    let rows = parts.store.stats(filter).await.expect("stats");
    let told = |row: &narrows_store::SessionRow| {
        let info: Value = serde_json::from_str(row.info.get()).expect("a header");
        let added = rows.iter().find(|r| r.name == row.id).and_then(|r| r.cost_usd);
        let cents = |cost: f64| (cost * 1e6).round() / 1e6;
        (info["costUsd"].as_f64().map(cents), added.map(cents))
    };
    parts.sessions().await.iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_cost_stays_what_its_list_says() {
    for (of_file, of_wire) in [(None, Some(0.03)), (Some(0.04), Some(0.03)), (Some(0.04), None)] {
        for file_first in [true, false] {
            let (bed, talk) = (Bed::new(), Talk::new(1));
            let mut wire = Wire::new(&talk).turn(1);
            if let Some(amount) = of_wire {
                let cost = json!({"amount": amount, "currency": "USD"});
                let update =
                    json!({"sessionUpdate": "usage_update", "used": 9, "size": 99, "cost": cost});
                let params = json!({"sessionId": talk.session, "update": update});
                wire.put(
                    at(2),
                    "agent->client",
                    &json!({"method": "session/update", "params": params}),
                );
            }
            let cost = |amount: f64| {
                let (kind, id) = ("cost-state", &talk.session);
                json!({"type": kind, "sessionId": id, "totalCostUSD": amount}).to_string() + "\n"
            };
            let text = talk.lines(1..=2) + &of_file.map_or_else(String::new, cost);
            bed.write("-app", &talk.session, text);
            let parts = bed.open();
            if file_first {
                parts.catch_up(&bed.options).await;
            }
            record(&parts, &wire.lines).await;
            parts.catch_up(&bed.options).await;
            let told = costs(&parts).await;
            let said = of_wire.or(of_file);
            assert_eq!(told, [(said, said)], "{of_file:?} {of_wire:?} {file_first}");
            parts.end().await;
        }
    }
}
