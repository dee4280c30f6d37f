//! Durable ingest as a program that has narrows built in does it: without HTTP.

use crate::ingest::{Load, Measured, Way, packet};
use narrows::Format;
use narrows_engine::ingest::{Hidden, Intake, Reading};
use narrows_engine::live::Hub;
use narrows_store::{NewSession, Options, Store};
use std::path::Path;
use std::time::Instant;

/// Bytes that are kept at once.
const AT_ONCE: usize = 64 << 10;

/// Gives the packets of a load to a store; returns what was measured, and its commits.
pub(crate) async fn measure(at: &Path, load: Load) -> (Measured, u64) {
    let store =
        Store::open(at, &Options { write_here: true, ..Options::default() }).expect("store");
    let intake = Intake::new(store.clone(), Hub::new(store.clone()), Hidden::default());
    let [before, ..] = store.counts();
    let began = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..load.writers {
        let (store, intake) = (store.clone(), intake.clone());
        tasks.push(tokio::spawn(async move { write(&store, &intake, writer, load).await }));
    }
    let mut all = Measured::default();
    for task in tasks {
        all.add(task.await.expect("writer"));
    }
    all.took = began.elapsed();
    all.acks.sort_unstable();
    let [commits, ..] = store.counts();
    intake.close().await;
    store.close().await;
    (all, commits - before)
}

async fn write(store: &Store, intake: &Intake, writer: usize, load: Load) -> Measured {
    let (session, _) = store.create(NewSession::default()).await.expect("session");
    let reading = Reading { format: Format::Acp, ..Reading::default() };
    let mut measured = Measured::default();
    let pieces = (0..load.times).map(|at| {
        let from = at * load.batch;
        (from..from + load.batch).map(|n| packet(writer, n)).collect::<String>()
    });
    if load.way == Way::Stream {
        let mut take = intake.open(&session, reading).await.expect("take");
        let mut fed = 0;
        for piece in pieces {
            take.push_buffered(piece.as_bytes());
            fed += piece.len();
            // As a server does it with what is there.
            if fed >= AT_ONCE {
                take.flush().await.expect("flush");
                fed = 0;
            }
        }
        measured.events = take.finish().await.expect("finish").events;
    } else {
        for piece in pieces {
            let sent = Instant::now();
            let mut take = intake.open(&session, reading.clone()).await.expect("take");
            take.push_buffered(piece.as_bytes());
            measured.events += take.finish().await.expect("finish").events;
            measured.acks.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
    }
    let kept = store.session(&session.id).await.expect("session").seq;
    let sent = (load.times * load.batch) as u64;
    measured.errors = sent.abs_diff(measured.events) + sent.abs_diff(kept);
    measured
}
