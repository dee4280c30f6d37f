//! A server that works for a long time: sessions come, grow, are read and searched.

use crate::measure::Growth;
use crate::served::serve;
use crate::sessions::{LINES, some_calls};
use crate::wire::Wire;
use std::time::{Duration, Instant};

/// Sessions that grow at the same time, and how much each of them grows to.
const AT_ONCE: usize = 10;
const ROUNDS: usize = 400;
/// How often is looked.
const LOOKS: u32 = 20;

pub(crate) fn run(minutes: f64) -> bool {
    println!("a server that works for {minutes} minutes");
    let dir = tempfile::tempdir().expect("folder");
    let served = serve(&dir.path().join("data"), &[], &[]).expect("a server");
    let mut wire = Wire::open(&served.url, &served.token).expect("connect");
    let mut growth = Growth::of(served.child.id());
    let (began, whole) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let (mut looks, mut done, mut calls) = (0, 0, 0);
    while began.elapsed() < whole {
        let ids: Vec<String> = (0..AT_ONCE).map(|_| wire.session().expect("a session")).collect();
        for round in 0..ROUNDS {
            let mut some = some_calls(calls..calls + 20);
            calls += 20;
            let text = format!("Round {round} of it says this much. ").repeat(20);
            some.extend([format!(
                "{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}\n"
            )]);
            for id in &ids {
                let path = format!("/api/sessions/{id}/packets");
                wire.send("POST", &path, LINES, some.as_bytes()).expect("an answer");
            }
            if round % 20 == 0 {
                let window = format!("/api/sessions/{}/items?limit=50", ids[0]);
                assert!(wire.length(&window).expect("items") > 0);
                wire.length("/api/search?q=number_77").expect("hits");
                wire.length("/api/sessions?limit=50").expect("a list");
            }
            if began.elapsed() >= whole * looks / LOOKS {
                growth.look(usize::try_from(began.elapsed().as_secs()).unwrap_or(0), "s");
                looks += 1;
            }
            if began.elapsed() >= whole {
                break;
            }
        }
        done += ids.len();
    }
    println!("  {done} sessions, {} calls", calls * AT_ONCE);
    growth.end(48)
}
