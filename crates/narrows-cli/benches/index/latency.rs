//! How long the commands take that show sessions, on the index of all of them.

use super::measure::{quantile, run, times};
use super::place::{PLANTED, Place};

const TIMES: usize = 10;
/// A word that nearly every session has.
const OFTEN: &str = "whether";
const NEVER: &str = "quinsigamond_nowhere";

/// Returns what went wrong.
pub(crate) fn report(place: &Place) -> Vec<String> {
    let mut faults = Vec::new();
    // What is timed is right: as many hits as a page has, one, none.
    for (word, hits) in [(OFTEN, 20), (PLANTED, 1), (NEVER, 0)] {
        let found = run(&mut place.narrows(&["search", word, "--json", "--no-scan"]));
        let found = found.expect("narrows runs").out.lines().count();
        if found != hits {
            faults.push(format!("search {word}: {found} hits instead of {hits}"));
        }
    }
    println!(
        "{:<34} {:>8} {:>8} {:>10} {:>8}   beside it, best",
        format!("ms, {TIMES} times"),
        "best",
        "median",
        "--no-scan",
        "median"
    );
    let version = times(TIMES, 0, &mut faults, || place.narrows(&["--version"]));
    let start = format!("narrows --version {:.1}", best(&version));
    row(place, "ls", &["ls"], 0, &start, &mut faults);
    for (name, word, code) in [
        ("search, 20 of many hits", OFTEN, 0),
        ("search, one hit", PLANTED, 0),
        // Both programs say by their exit that there is nothing.
        ("search, no hit", NEVER, 1),
    ] {
        let grep = times(TIMES, code, &mut faults, || {
            let mut grep = place.command("grep");
            grep.args(["-rlF", word]).arg(place.projects());
            grep
        });
        let grep = format!("grep -rlF {:.1}", best(&grep));
        row(place, name, &["search", word], code, &grep, &mut faults);
    }
    let show = ["show", "latest", "--no-pager"];
    row(place, "show latest > /dev/null", &show, 0, &start, &mut faults);
    println!();
    faults
}

fn best(times: &[f64]) -> f64 {
    quantile(times, 0.0)
}

fn row(
    place: &Place,
    name: &str,
    args: &[&str],
    code: i32,
    beside: &str,
    faults: &mut Vec<String>,
) {
    let scan = times(TIMES, code, faults, || place.narrows(args));
    let quick = [args, &["--no-scan"]].concat();
    let without = times(TIMES, code, faults, || place.narrows(&quick));
    println!(
        "{:<34} {:>8.1} {:>8.1} {:>10.1} {:>8.1}   {beside}",
        format!("narrows {name}"),
        best(&scan),
        quantile(&scan, 0.5),
        best(&without),
        quantile(&without, 0.5)
    );
}
