//! Programs that are cut off anywhere: the next one goes on, and in the end everything is there.

use crate::bed::{Bed, Parts, id_in, input, make_old, texts};
use crate::lines::Talk;
use narrows_server::source::{Progress, catch_up};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copies the store as a crash would leave it on disk. Pages that a checkpoint moves meanwhile are in
/// the write-ahead log, which is copied last, unless the log was restarted: then it is copied again.
fn copy(from: &Path, to: &Path) {
    let header = || -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        let mut wal = fs::File::open(from.join("narrows.db-wal")).ok()?;
        wal.read_exact(&mut bytes).ok().map(|()| bytes)
    };
    loop {
        fs::create_dir_all(to).expect("folder");
        let before = header();
        for name in ["narrows.db", "narrows.db-wal"] {
            if from.join(name).exists() {
                fs::copy(from.join(name), to.join(name)).expect("copy");
            }
        }
        if before == header() {
            return;
        }
        fs::remove_dir_all(to).expect("folder");
    }
}

/// Sessions of all kinds.
fn fill(bed: &Bed) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    for case in ["2.1-g-subagent", "2.1-c-files", "2.0-g-subagent", "2.1-d-bash", "2.1-q-compact"] {
        let case = format!("claude-history/{case}");
        files.push((id_in(&input(&case)), bed.put(&case, "-app")));
    }
    // Long enough to be kept in several steps.
    let talk = Talk::new(1);
    let long = "word ".repeat(4000);
    let lines = (1..=160).map(|i| match i % 2 {
        1 => talk.prompt(i, &format!("{i} {long}")),
        _ => talk.line(i),
    });
    let path = bed.write("-long", &talk.session, lines.collect::<String>());
    files.push((talk.session.clone(), path));
    files
}

/// What the sessions must hold in the end.
type Truths = Vec<(String, Vec<Value>)>;

fn truths(parts: &Parts, files: &[(String, PathBuf)]) -> Truths {
    files.iter().map(|(id, path)| (id.clone(), parts.truth(path))).collect()
}

async fn check(parts: &Parts, truths: &Truths, what: &str) {
    for (id, truth) in truths {
        let items = parts.items(id).await;
        assert_eq!(texts(&items), texts(truth), "{what}: {id}");
        assert_eq!(items, *truth, "{what}: {id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_killed_anywhere_leaves_a_store_that_goes_on() {
    for old in [false, true] {
        // How far a pass is when the disk is copied is chance: one that was
        // too fast to be seen is followed by another.
        let mut seen = 0;
        while seen < 3 {
            let bed = Bed::new();
            let files = fill(&bed);
            if old {
                make_old(&bed.projects(), 3600);
            }
            let parts = bed.open();
            let progress = Arc::<Progress>::default();
            let (store, intake, hub) =
                (parts.store.clone(), parts.intake.clone(), parts.hub.clone());
            let reading = catch_up(store, intake, hub, bed.options.clone(), Arc::clone(&progress));
            let reading = tokio::spawn(reading);
            // Copies of the disk while it reads: whenever something more has been read.
            let (mut copies, mut last) = (Vec::new(), u64::MAX);
            while !reading.is_finished() && copies.len() < 6 {
                let sums = progress.sums();
                if sums.read != last {
                    last = sums.read;
                    let to = bed.path().join(format!("copy-{}", copies.len()));
                    copy(&bed.data(), &to);
                    copies.push(to);
                }
                tokio::task::yield_now().await;
            }
            reading.await.expect("task").expect("a pass");
            let truths = truths(&parts, &files);
            check(&parts, &truths, "without a crash").await;
            parts.end().await;
            seen += copies.len();
            for (n, data) in copies.iter().enumerate() {
                let parts = Parts::on(data);
                parts.catch_up(&bed.options).await;
                check(&parts, &truths, &format!("copy {n} of {}, old: {old}", copies.len())).await;
                let again = parts.catch_up(&bed.options).await;
                assert_eq!(again.events, 0, "copy {n}");
                parts.store.close().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_cut_off_while_it_reads_goes_on() {
    let bed = Bed::new();
    let files = fill(&bed);
    for read in [0, 1, 2, 3, 5] {
        let parts = bed.open();
        let (store, intake, hub) = (parts.store.clone(), parts.intake.clone(), parts.hub.clone());
        let progress = Arc::<Progress>::default();
        let reading = catch_up(store, intake, hub, bed.options.clone(), Arc::clone(&progress));
        let reading = tokio::spawn(reading);
        while progress.sums().done < read && !reading.is_finished() {
            tokio::task::yield_now().await;
        }
        // From now on nothing can be kept.
        parts.store.close().await;
        let _ = reading.await;
    }
    bed.pass().await;
    bed.look(async |parts| check(parts, &truths(parts, &files), "in the end").await).await;
}
