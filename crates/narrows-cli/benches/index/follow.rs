//! A thousand files followed while lines are added to them in turn: memory, and how long it takes
//! until a line is in the store. Beside it, on the same lines at the same time: `tail -F`.

use super::measure::{cpu_of, mb, memory, quantile};
use super::place::{Place, line};
use narrows_store::{ListFilter, Store, Window};
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

pub(crate) const FILES: u64 = 1000;
/// Lines: each file gets two.
const LINES: usize = 2 * FILES as usize;
const EVERY: Duration = Duration::from_millis(5);
/// How often the store is looked at: times are as exact as that.
const LOOK: Duration = Duration::from_millis(2);
/// Time without a line, for the CPU time of only waiting.
const IDLE: Duration = Duration::from_secs(3);
/// After so long everything has been looked at once more: what is not there then is lost.
const LOST: Duration = Duration::from_secs(70);
/// What stands before the number of a line.
const MARK: &str = "bench-line-";

/// When each line was seen first.
type Seen = Arc<Mutex<HashMap<usize, Instant>>>;

/// Returns what went wrong.
pub(crate) fn report(place: &Place, files: &[PathBuf]) -> Vec<String> {
    let place = place.beside("follow", files.iter());
    let lines: Vec<(&PathBuf, Vec<u8>)> = (0..LINES)
        .map(|n| {
            let file = &place.files[n % place.files.len()];
            let session = fs::read(file).expect("a session");
            (file, line(&session, &format!("{MARK}{n:06} is here"), &n.to_string()))
        })
        .collect();

    let mut narrows = start(place.narrows(&["index", "--follow"]));
    let mut said = String::new();
    let out = narrows.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut said).expect("narrows tells what it has read");
    let mut tail = place.command("tail");
    tail.args(["-q", "-n", "0", "-F"]).args(&place.files);
    let mut tail = start(tail);
    let (in_store, in_tail, over) = (Seen::default(), Seen::default(), Arc::default());
    let lines_of_tail = BufReader::new(tail.stdout.take().expect("a pipe"));
    let readers = [
        std::thread::spawn(watch_store(&place, &in_store, &over)),
        std::thread::spawn({
            let seen = Arc::clone(&in_tail);
            move || lines_of_tail.lines().map_while(Result::ok).for_each(|text| mark(&seen, &text))
        }),
    ];
    sleep(Duration::from_secs(1));
    let ids = [narrows.id(), tail.id()];
    let rest = ids.map(|id| (memory(id, "VmRSS:"), cpu_of(id)));
    sleep(IDLE);
    let waited = ids.map(cpu_of);

    let sent = append(&lines);
    let began = Instant::now();
    let all_seen = |seen: &Seen| seen.lock().expect("a lock").len() == LINES;
    while !(all_seen(&in_store) && all_seen(&in_tail)) && began.elapsed() < LOST {
        sleep(LOOK);
    }
    let worked = ids.map(cpu_of);
    let last = ids.map(|id| (memory(id, "VmRSS:"), memory(id, "VmHWM:")));
    over.store(true, Ordering::Relaxed);
    let ended = stop(&mut narrows);
    let _ = (tail.kill(), tail.wait());
    for reader in readers {
        reader.join().expect("a reader");
    }

    println!(
        "following {} files, {LINES} lines added in turn, {:.0} a second; narrows said: {}",
        place.files.len(),
        1.0 / EVERY.as_secs_f64(),
        said.trim()
    );
    println!(
        "{:<16} {:>8} {:>9} {:>8} {:>9} {:>12} {:>8} {:>8} {:>8} {:>6}",
        "",
        "RSS MB",
        "after MB",
        "peak MB",
        "idle CPU",
        "CPU ms/line",
        "p50 ms",
        "p99 ms",
        "most ms",
        "lost"
    );
    let counts = kept(&place);
    let lost_in_store = (0..LINES).filter(|n| !counts.contains_key(n)).count();
    let doubled = counts.values().filter(|n| **n > 1).count();
    for (at, (name, seen)) in [("narrows", &in_store), ("tail -F", &in_tail)].iter().enumerate() {
        let seen = seen.lock().expect("a lock");
        let took = |(n, at): (&usize, &Instant)| at.duration_since(sent[*n]).as_secs_f64() * 1e3;
        let took: Vec<f64> = seen.iter().map(took).collect();
        println!(
            "{name:<16} {:>8.1} {:>9.1} {:>8.1} {:>8.1}% {:>12.2} {:>8.1} {:>8.1} {:>8.1} {:>6}",
            mb(rest[at].0),
            mb(last[at].0),
            mb(last[at].1),
            (waited[at] - rest[at].1) / IDLE.as_secs_f64() * 100.0,
            (worked[at] - waited[at]) * 1e3 / LINES as f64,
            quantile(&took, 0.5),
            quantile(&took, 0.99),
            quantile(&took, 1.0),
            if at == 0 { lost_in_store } else { LINES - took.len() }
        );
    }
    place.remove();
    let late = LINES - in_store.lock().expect("a lock").len() - lost_in_store.min(LINES);
    let mut faults = Vec::new();
    if (lost_in_store, doubled, late) != (0, 0, 0) {
        faults
            .push(format!("following: {lost_in_store} lines lost, {doubled} doubled, {late} late"));
    }
    if !ended {
        faults.push("following: narrows did not end well".to_owned());
    }
    faults
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("the program runs")
}

/// As Ctrl-C does it.
fn stop(child: &mut Child) -> bool {
    let id = child.id().to_string();
    let _ = Command::new("kill").args(["-TERM", &id]).status();
    child.wait().is_ok_and(|status| status.success())
}

/// Adds the lines, each at its time; returns when each was added.
fn append(lines: &[(&PathBuf, Vec<u8>)]) -> Vec<Instant> {
    let mut next = Instant::now();
    let add = |(file, line): &(&PathBuf, Vec<u8>)| {
        sleep(next.saturating_duration_since(Instant::now()));
        next += EVERY;
        let mut file = OpenOptions::new().append(true).open(file).expect("a session");
        let at = Instant::now();
        file.write_all(line).expect("a line");
        at
    };
    lines.iter().map(add).collect()
}

/// Remembers the line that a text tells of.
fn mark(seen: &Seen, text: &str) {
    let now = Instant::now();
    for n in numbers(text) {
        seen.lock().expect("a lock").entry(n).or_insert(now);
    }
}

fn numbers(text: &str) -> impl Iterator<Item = usize> {
    text.split(MARK).skip(1).filter_map(|rest| rest.get(..6)?.parse().ok())
}

/// Looks at the last items of every session that changes.
fn watch_store(place: &Place, seen: &Seen, over: &Arc<AtomicBool>) -> impl FnOnce() + Send + use<> {
    let (data, seen, over) = (place.data.clone(), Arc::clone(seen), Arc::clone(over));
    move || {
        let runtime = runtime();
        let store = runtime.block_on(async { Store::open_read_only(&data) }).expect("a store");
        let mut touched = None;
        while !over.load(Ordering::Relaxed) {
            let filter =
                ListFilter { touched_after: touched, limit: LINES, ..ListFilter::default() };
            let page = runtime.block_on(store.list(filter)).expect("a list");
            touched = Some(page.touched);
            for row in page.sessions {
                items(&runtime, &store, &row.id, Window::End, 4, |text| mark(&seen, text));
            }
            sleep(LOOK);
        }
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn items(
    runtime: &Runtime,
    store: &Store,
    id: &str,
    window: Window,
    most: usize,
    mut each: impl FnMut(&str),
) {
    let page = runtime.block_on(async {
        let key = store.session(id).await?.key;
        store.items(key, window, most).await
    });
    for row in page.expect("items").items {
        each(&serde_json::to_string(&row.item).expect("an item is JSON"));
    }
}

/// How often each line is in the store at the end.
fn kept(place: &Place) -> HashMap<usize, usize> {
    let runtime = runtime();
    let store = runtime.block_on(async { Store::open_read_only(&place.data) }).expect("a store");
    let filter = ListFilter { limit: LINES, ..ListFilter::default() };
    let all = runtime.block_on(store.list(filter)).expect("a list").sessions;
    let mut counts = HashMap::new();
    for session in &all {
        items(&runtime, &store, &session.id, Window::From(0), LINES, |text| {
            numbers(text).for_each(|n| *counts.entry(n).or_default() += 1);
        });
    }
    counts
}
