//! Everything into an empty store, and the start after that.

use super::measure::{Run, Runs, mb, quantile, ratio, run, run_into, size_below, times};
use super::peers;
use super::place::Place;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts with nothing new.
const STARTS: usize = 10;
const CATS: usize = 5;

/// Returns what went wrong.
pub(crate) fn report(place: &Place, rounds: usize) -> Vec<String> {
    let mut faults = Vec::new();
    println!(
        "{} sessions, {:.0} MB, read once before; {rounds} rounds in turn, the best of each\n",
        place.files.len(),
        mb(place.bytes)
    );
    let theirs = place.folder.join("agentsview");
    let (mut cat, mut ours, mut other) = (Runs::default(), Runs::default(), Runs::default());
    let mut refused = peers::agentsview(place, &theirs).is_none().then(|| MISSING.to_owned());
    // So that the files are in memory for everyone.
    let _ = run_cat(place);
    for _ in 0..rounds {
        cat.push(run_cat(place));
        ours.push(index(place, place.files.len(), &mut faults));
        if refused.is_none() {
            settle(&theirs);
            fs::create_dir_all(&theirs).expect("a folder");
            let mut sync = peers::agentsview(place, &theirs).expect("it is there");
            match whole(run(&mut sync), place.files.len(), "sessions synced") {
                Ok(run) => other.push(run),
                Err(why) => refused = Some(why),
            }
        }
    }
    println!(
        "{:<24} {:>8} {:>8} {:>8} {:>6} {:>8} {:>9} {:>10} {:>9}",
        "first index",
        "wall s",
        "spread",
        "CPU s",
        "MB/s",
        "peak MB",
        "store MB",
        "wall/cat",
        "CPU/cat"
    );
    row("cat > /dev/null", &cat, place.bytes, 0, &cat);
    row("narrows index", &ours, place.bytes, size_below(&place.data), &cat);
    if let Some(why) = &refused {
        println!("agentsview sync          left out: {why}");
    } else {
        row("agentsview sync", &other, place.bytes, size_below(&theirs), &cat);
    }
    let said = ours.last().map_or("", |r| r.out.trim());
    let failed = said.split(", ").find(|part| part.ends_with("could not be read")).unwrap_or("0");
    println!("narrows said: {said}; failed: {failed}");
    if refused.is_none() {
        let said = other.last().map_or("", |r| r.out.as_str());
        let said: Vec<&str> = said.split(['\r', '\n']).filter(|l| !l.is_empty()).collect();
        println!("agentsview said: {}", said.last().unwrap_or(&""));
        compare("agentsview", &ours, &other);
    }
    tenth(place, &mut faults);
    second(place, &ours, refused.is_none().then_some(theirs.as_path()), &mut faults);
    let _ = fs::remove_dir_all(&theirs);
    faults
}

const MISSING: &str = "it is not installed (scripts/bench-index installs it)";

/// Several times, since the clock of CPU time is coarse.
fn run_cat(place: &Place) -> Run {
    let cat = || run_into(place.command("cat").args(&place.files), Stdio::null()).expect("cat");
    let runs: Vec<Run> = (0..CATS).map(|_| cat()).collect();
    let mean = |what: fn(&Run) -> f64| runs.iter().map(what).sum::<f64>() / CATS as f64;
    let (wall, cpu) = (mean(|r| r.wall), mean(|r| r.cpu));
    Run { wall, cpu, ..runs.into_iter().next().expect("a run") }
}

/// An empty place, and a disk that has nothing left to write for whoever came before.
fn settle(data: &Path) {
    let _ = fs::remove_dir_all(data);
    let _ = Command::new("sync").status();
}

fn index(place: &Place, sessions: usize, faults: &mut Vec<String>) -> Run {
    settle(&place.data);
    let run = run(&mut place.narrows(&["index"])).expect("narrows runs");
    let began = format!("{sessions} sessions imported, ");
    if !run.ok || !run.out.starts_with(&began) || run.out.contains("could not") {
        faults.push(format!("narrows index: {}{}", run.out, run.err));
    } else if !run.err.is_empty() {
        faults.push(format!("narrows index warned: {}", run.err));
    }
    run
}

/// A run that has read everything; else why not.
fn whole(run: std::io::Result<Run>, sessions: usize, said: &str) -> Result<Run, String> {
    let run = run.map_err(|e| e.to_string())?;
    if run.ok && run.out.contains(&format!("{sessions} {said}")) {
        return Ok(run);
    }
    let told = format!("{} {}", run.err.trim(), run.out.trim());
    let last = told.trim().split(['\r', '\n']).next_back().unwrap_or_default();
    Err(if last.is_empty() { "it failed without a word".to_owned() } else { last.to_owned() })
}

fn row(name: &str, runs: &Runs, bytes: u64, store: u64, cat: &Runs) {
    println!(
        "{name:<24} {:>8.2} {:>7.0}% {:>8.2} {:>6.0} {:>8.0} {:>9.0} {:>9.1}x {:>8.1}x",
        runs.wall(),
        runs.spread(),
        runs.cpu(),
        mb(bytes) / runs.wall(),
        mb(runs.peak()),
        mb(store),
        runs.wall() / cat.wall(),
        runs.cpu() / cat.cpu()
    );
}

fn compare(name: &str, ours: &Runs, other: &Runs) {
    println!(
        "narrows / {name}: wall {}, CPU {}, peak memory {}\n",
        ratio(ours, other, |r| r.wall),
        ratio(ours, other, |r| r.cpu),
        ratio(ours, other, |r| r.peak as f64)
    );
}

/// What is too slow for all of it, on a tenth: once each.
fn tenth(place: &Place, faults: &mut Vec<String>) {
    let tenth = place.beside("tenth", place.files.iter().step_by(10));
    let Some(mut log) = peers::claude_code_log(&tenth) else {
        println!("claude-code-log          left out: {MISSING}\n");
        return tenth.remove();
    };
    println!("a tenth: {} sessions, {:.0} MB, one round", tenth.files.len(), mb(tenth.bytes));
    let (mut cat, mut ours) = (Runs::default(), Runs::default());
    let _ = run_cat(&tenth);
    cat.push(run_cat(&tenth));
    ours.push(index(&tenth, tenth.files.len(), faults));
    let store = size_below(&tenth.data);
    row("cat > /dev/null", &cat, tenth.bytes, 0, &cat);
    row("narrows index", &ours, tenth.bytes, store, &cat);
    settle(&tenth.data);
    match run(&mut log) {
        Ok(done) if done.ok => {
            let pages = size_below(&tenth.folder).saturating_sub(tenth.bytes);
            let mut other = Runs::default();
            other.push(done);
            row("claude-code-log (pages)", &other, tenth.bytes, pages, &cat);
            compare("claude-code-log", &ours, &other);
        }
        Ok(done) => println!("claude-code-log          left out: {}\n", done.err.trim()),
        Err(why) => println!("claude-code-log          left out: {why}\n"),
    }
    tenth.remove();
}

/// The start after that, when nothing has changed.
fn second(place: &Place, first: &Runs, theirs: Option<&Path>, faults: &mut Vec<String>) {
    let again = run(&mut place.narrows(&["index"])).expect("narrows runs");
    if again.out.trim() != "nothing new" {
        faults.push(format!("the second start: {}{}", again.out, again.err));
    }
    let mut starts = |make: &dyn Fn() -> Command| times(STARTS, 0, faults, make);
    let find = starts(&|| {
        let mut find = place.command("find");
        find.arg(place.projects()).args(["-type", "f", "-printf", "%s %T@ %i\n"]);
        find
    });
    let ours = starts(&|| place.narrows(&["index"]));
    println!(
        "{:<24} {:>8} {:>8} {:>16} {:>9}",
        "nothing new, ms", "best", "median", "part of first", "find"
    );
    let row = |name: &str, times: &[f64], first: Option<f64>| {
        let part = first.map_or(String::new(), |s| format!("1/{:.0}", s * 1e3 / best(times)));
        println!(
            "{name:<24} {:>8.1} {:>8.1} {part:>16} {:>8.1}x",
            best(times),
            quantile(times, 0.5),
            best(times) / best(&find)
        );
    };
    row("find, size and time", &find, None);
    row("narrows index", &ours, Some(first.wall()));
    if let Some(data) = theirs {
        let sync = starts(&|| peers::agentsview(place, data).expect("it is there"));
        row("agentsview sync", &sync, None);
        println!("narrows / agentsview: {:.2}", best(&ours) / best(&sync));
    }
    println!();
}

fn best(times: &[f64]) -> f64 {
    quantile(times, 0.0)
}
