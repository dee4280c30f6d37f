//! Two thousand kept sessions of Claude Code from files, on all cores: parsed, cleaned with every
//! rule, folded. Beside it, in the same run and in turn: `cat` of the same files, `serde_json` to
//! a tree, and what others run on such files where they install.
//!
//! CPU time is what counts; ratios are what is meant to be kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::format_push_string,
    reason = "a benchmark may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]
#![allow(dead_code, reason = "the generator serves other benchmarks too")]

mod corpus;
#[path = "../../../narrows/benches/support/generate.rs"]
mod generate;

use narrows::{Config, Items, Packets, Pipeline, Secrets};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROUNDS: usize = 5;
/// Bytes read at once.
const CHUNK: usize = 1 << 17;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |name: &str, usual: u64| {
        let at = args.iter().position(|a| a == name);
        at.and_then(|i| args.get(i + 1)).and_then(|n| n.parse().ok()).unwrap_or(usual)
    };
    let (sessions, mb) = (number("--sessions", 2000), number("--mb", 500));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let files = corpus::files(folder, sessions, mb << 20).expect("the corpus");
    // A child does one piece of work, so that its memory and time are its own.
    if let Some(at) = args.iter().position(|a| a == "--work") {
        let work: fn(&Path, &mut State) -> usize = match args[at + 1].as_str() {
            "narrows" => narrows_items,
            _ => tree,
        };
        let done = on_all_cores(&files, work);
        println!("{done} {}", peak());
        return;
    }
    report(&files, sessions, mb);
}

/// What a worker keeps from file to file.
struct State {
    bytes: Vec<u8>,
    secrets: Arc<Secrets>,
}

fn on_all_cores(files: &[PathBuf], work: fn(&Path, &mut State) -> usize) -> usize {
    // The C library gives memory back to the system after each session and asks for it again for the
    // next, unless it has seen larger blocks come and go.
    drop(std::hint::black_box(vec![0u8; 30 << 20]));
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let secrets = Arc::new(Secrets::default());
    std::thread::scope(|scope| {
        let worker = || {
            let mut state = State { bytes: Vec::new(), secrets: secrets.clone() };
            let mut done = 0;
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                done += work(file, &mut state);
            }
            done
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|w| w.join().expect("a worker")).sum()
    })
}

/// The items of a session.
fn narrows_items(file: &Path, state: &mut State) -> usize {
    let mut packets = Packets::default();
    let secrets = state.secrets.clone();
    let mut pipeline = Pipeline::new(Config { secrets, join: true, ..Config::default() });
    let mut items = Items::new();
    let mut steps = Vec::new();
    let mut input = File::open(file).expect("a file");
    // Small enough to be still in the cache when it is read.
    state.bytes.resize(CHUNK, 0);
    loop {
        let n = input.read(&mut state.bytes).expect("a file");
        if n == 0 {
            break;
        }
        packets.push(&state.bytes[..n], |given| {
            pipeline.push(given, &mut steps);
            for change in steps.drain(..).flat_map(|step| step.changes) {
                items.apply(change);
            }
        });
    }
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    for change in steps.drain(..).flat_map(|step| step.changes) {
        items.apply(change);
    }
    std::hint::black_box(&items).iter().count()
}

/// A file into a buffer that is used again.
fn read(file: &Path, bytes: &mut Vec<u8>) {
    bytes.clear();
    File::open(file).and_then(|mut f| f.read_to_end(bytes)).expect("a file");
}

/// Every line to a tree, dropped.
fn tree(file: &Path, state: &mut State) -> usize {
    read(file, &mut state.bytes);
    let lines = state.bytes.split(|c| *c == b'\n').filter(|l| !l.is_empty());
    lines
        .map(|line| {
            let value: serde_json::Value = serde_json::from_slice(line).expect("JSON");
            usize::from(std::hint::black_box(value).is_object())
        })
        .sum()
}

/// The most memory this process has held, in kB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// CPU seconds of the children that have ended, in hundredths.
fn children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let numbers: Vec<f64> = after.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // The state comes first and is no number: user and system time of children are 13 and 14.
    numbers.get(12..14).map_or(0.0, |t| (t[0] + t[1]) / 100.0)
}

/// CPU seconds and output of a command; none when it fails.
fn timed(command: &mut Command) -> Option<(f64, String)> {
    let before = children();
    let out = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    out.status.success().then(|| (children() - before, text))
}

fn report(files: &[PathBuf], sessions: u64, mb: u64) {
    let lens: Vec<u64> = files.iter().map(|f| fs::metadata(f).map_or(0, |m| m.len())).collect();
    let bytes: u64 = lens.iter().sum();
    let largest = lens.iter().max().copied().unwrap_or(0);
    println!(
        "{} sessions, {:.0} MB, the largest {:.1} MB",
        files.len(),
        bytes as f64 / 1e6,
        largest as f64 / 1e6
    );
    let own = std::env::current_exe().expect("this program");
    let (n, m) = (sessions.to_string(), mb.to_string());
    let child = |work: &str| {
        let mut command = Command::new(&own);
        command.args(["--work", work, "--sessions", &n, "--mb", &m]);
        command
    };
    let home = files[0].parent().and_then(Path::parent).and_then(Path::parent).expect("a folder");
    let mut peers = peers(home);
    let mut best: Vec<(String, f64, String)> = Vec::new();
    for _ in 0..ROUNDS {
        let mut cat = Command::new("cat");
        cat.args(files).stdout(Stdio::null());
        let mut all: Vec<(String, Command)> = vec![
            ("cat".into(), cat),
            ("serde_json to a tree".into(), child("tree")),
            ("narrows, items".into(), child("narrows")),
        ];
        all.extend(peers.iter_mut().map(|(name, make)| (name.clone(), make())));
        for (name, mut command) in all {
            let Some((cpu, out)) = timed(&mut command) else { continue };
            match best.iter_mut().find(|(known, ..)| *known == name) {
                Some(known) if known.1 <= cpu => {}
                Some(known) => (known.1, known.2) = (cpu, out),
                None => best.push((name, cpu, out)),
            }
        }
    }
    let cpu = |name: &str| best.iter().find(|(n, ..)| n == name).map_or(f64::NAN, |b| b.1);
    println!("{:<28} {:>8} {:>10} {:>10} {:>12}", "", "CPU s", "MB/s", "x of cat", "x of a tree");
    for (name, time, out) in &best {
        let rate = bytes as f64 / 1e6 / time;
        let peak = out.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
        let memory = peak
            .filter(|_| name.starts_with("narrows"))
            .map(|kb| format!("  peak {:.0} MB", kb / 1e3));
        println!(
            "{name:<28} {time:>8.2} {rate:>10.0} {:>10.1} {:>12.2}{}",
            time / cpu("cat"),
            cpu("serde_json to a tree") / time,
            memory.unwrap_or_default()
        );
    }
    tenth(home, files, cpu("narrows, items") / bytes as f64);
}

type Make = Box<dyn FnMut() -> Command>;

/// What others run on the whole corpus.
fn peers(home: &Path) -> Vec<(String, Make)> {
    let mut list: Vec<(String, Make)> = Vec::new();
    // Set by `make bench-history`, which installs them.
    if let Some(ccusage) = std::env::var_os("CCUSAGE") {
        let home = home.to_owned();
        list.push((
            "ccusage (token sums)".into(),
            Box::new(move || {
                let mut command = Command::new(&ccusage);
                command.args(["daily", "--json", "--offline"]);
                command.env("CLAUDE_CONFIG_DIR", &home);
                command
            }),
        ));
    }
    list
}

/// What is too slow for all of it, on a tenth.
fn tenth(home: &Path, files: &[PathBuf], ours: f64) {
    let Some(log) = std::env::var_os("CLAUDE_CODE_LOG") else { return };
    let folder = home.join("tenth");
    let _ = fs::remove_dir_all(&folder);
    let mut bytes = 0;
    for file in files.iter().step_by(10) {
        let project = folder.join(file.parent().and_then(Path::file_name).unwrap_or_default());
        fs::create_dir_all(&project).expect("a folder");
        let name = file.file_name().unwrap_or_default();
        bytes += fs::copy(file, project.join(name)).expect("a copy");
    }
    let mut command = Command::new(log);
    command.arg(&folder).args(["--all-projects"]);
    if let Some((cpu, _)) = timed(&mut command) {
        println!(
            "claude-code-log (pages) on {:.0} MB: {cpu:.1} CPU s, {:.0} times ours",
            bytes as f64 / 1e6,
            cpu / (ours * bytes as f64)
        );
    }
    let _ = fs::remove_dir_all(&folder);
}
