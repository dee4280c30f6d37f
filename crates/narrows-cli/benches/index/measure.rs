//! Time and memory of other programs, as the system tells them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often memory is looked at. The system remembers the most itself.
const LOOK: Duration = Duration::from_millis(5);

/// One run of a program.
pub(crate) struct Run {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    /// The most memory it has held, in bytes.
    pub(crate) peak: u64,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) ok: bool,
}

/// Runs a program whose output is short.
pub(crate) fn run(command: &mut Command) -> std::io::Result<Run> {
    run_into(command, Stdio::piped())
}

/// The same; what it prints goes where it is told to.
pub(crate) fn run_into(command: &mut Command, out: Stdio) -> std::io::Result<Run> {
    let before = children();
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::piped()).spawn()?;
    let (id, peak, ended) = (child.id(), AtomicU64::new(0), AtomicBool::new(false));
    let (out, wall) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                peak.fetch_max(memory(id, "VmHWM:"), Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        let out = child.wait_with_output();
        let wall = began.elapsed().as_secs_f64();
        ended.store(true, Ordering::Relaxed);
        (out, wall)
    });
    let out = out?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Run {
        wall,
        cpu: children() - before,
        peak: peak.into_inner(),
        out: text(&out.stdout),
        err: text(&out.stderr),
        ok: out.status.success(),
    })
}

/// Milliseconds until a program has ended, some times over. What it prints goes nowhere. One that
/// ends otherwise than with `code` was quick for nothing: it is told, and not counted.
pub(crate) fn times(
    most: usize,
    code: i32,
    faults: &mut Vec<String>,
    make: impl Fn() -> Command,
) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..most {
        let mut command = make();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let began = Instant::now();
        let done = command.output().expect("the program runs");
        let ms = began.elapsed().as_secs_f64() * 1e3;
        if done.status.code() == Some(code) {
            times.push(ms);
        } else {
            let (what, said) = (format!("{command:?}"), String::from_utf8_lossy(&done.stderr));
            let what = what.rsplit('/').next().unwrap_or_default();
            faults.push(format!("{what}: {} after {ms:.1} ms: {}", done.status, said.trim()));
        }
    }
    times
}

/// Runs of one program, for the best of them and how far they lie apart.
#[derive(Default)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    pub(crate) fn push(&mut self, run: Run) {
        self.0.push(run);
    }

    pub(crate) fn last(&self) -> Option<&Run> {
        self.0.last()
    }

    pub(crate) fn wall(&self) -> f64 {
        least(self.0.iter().map(|r| r.wall))
    }

    pub(crate) fn cpu(&self) -> f64 {
        // The clock of CPU time counts hundredths: less than one is not told from none.
        least(self.0.iter().map(|r| r.cpu)).max(0.001)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.0.iter().map(|r| r.peak).max().unwrap_or(0)
    }

    /// How much longer the slowest took than the fastest, in percent.
    pub(crate) fn spread(&self) -> f64 {
        let most = self.0.iter().map(|r| r.wall).fold(0.0, f64::max);
        (most / self.wall() - 1.0) * 100.0
    }
}

fn least(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(f64::INFINITY, f64::min)
}

/// A part of something else: by the best of each, and from round to round.
pub(crate) fn ratio(ours: &Runs, theirs: &Runs, what: impl Fn(&Run) -> f64) -> String {
    let best = |runs: &Runs| least(runs.0.iter().map(&what));
    let rounds: Vec<f64> = ours.0.iter().zip(&theirs.0).map(|(a, b)| what(a) / what(b)).collect();
    let (low, high) = (quantile(&rounds, 0.0), quantile(&rounds, 1.0));
    let range = if rounds.len() > 1 { format!(" ({low:.2} to {high:.2})") } else { String::new() };
    format!("{:.2}{range}", best(ours) / best(theirs))
}

/// The value below which such a part of all lies.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = (sorted.len().saturating_sub(1)) as f64 * part;
    sorted.get(at.round() as usize).copied().unwrap_or(f64::NAN)
}

/// Bytes of memory of a process: `VmRSS:` now, `VmHWM:` at most.
pub(crate) fn memory(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(what)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// CPU seconds of a process that runs, in hundredths.
pub(crate) fn cpu_of(process: u32) -> f64 {
    seconds(&format!("/proc/{process}/stat"), 10)
}

/// CPU seconds of the children that have ended, with theirs.
fn children() -> f64 {
    seconds("/proc/self/stat", 12)
}

/// User and system time, at a place among the numbers behind the program's name and state.
fn seconds(file: &str, at: usize) -> f64 {
    let stat = fs::read_to_string(file).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let numbers: Vec<f64> = after.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    numbers.get(at..at + 2).map_or(0.0, |t| (t[0] + t[1]) / 100.0)
}

pub(crate) fn size_of(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |m| m.len())
}

/// What a folder holds, in bytes.
pub(crate) fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |path: &Path| if path.is_dir() { size_below(path) } else { size_of(path) };
    entries.filter_map(Result::ok).map(|entry| of(&entry.path())).sum()
}

pub(crate) fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
