//! What `narrows acp` costs: the round trip of a line to an agent that says it back, with and
//! without narrows in between, and many lines at once. A `cat` on each side of the agent is the least
//! that anything in between can cost. All are measured in turns in one run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");
const ROUNDS: usize = 20;
const LINES: usize = 1000;
/// Lines that are sent at once.
const MANY: usize = 200_000;

/// An agent that says everything back.
struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(words: &[&str]) -> Agent {
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let input = child.stdin.take().expect("input");
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().expect("output"));
        let mut agent = Agent { child, input, output };
        // A session, so that there is something to record.
        let update = line(0);
        for _ in 0..100 {
            agent.round(&update);
        }
        agent
    }

    fn round(&mut self, line: &str) -> Duration {
        let began = Instant::now();
        self.input.write_all(line.as_bytes()).expect("write");
        let mut back = String::with_capacity(line.len());
        self.output.read_line(&mut back).expect("read");
        let took = began.elapsed();
        assert_eq!(back, line);
        took
    }

    /// Many lines as fast as they go.
    fn many(&mut self) -> Duration {
        let text: String = (0..MANY).map(line).collect();
        let began = Instant::now();
        std::thread::scope(|scope| {
            let input = &mut self.input;
            scope.spawn(|| input.write_all(text.as_bytes()).expect("write"));
            let mut back = vec![0; text.len()];
            self.output.read_exact(&mut back).expect("read");
        });
        began.elapsed()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line(n: usize) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"bench\",\"update\":\
         {{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"word {n} \"}}}}}}}}\n"
    )
}

/// Of a thousand, the one at this place; in microseconds.
fn at(sorted: &[Duration], place: usize) -> f64 {
    sorted[(sorted.len() - 1) * place / 1000].as_secs_f64() * 1e6
}

fn compare(what: &str, data: &Path) {
    let data = data.to_str().expect("path");
    let mut agents = [
        ("alone", Agent::start(&["cat"])),
        ("between two `cat`", Agent::start(&["sh", "-c", "cat | cat | cat"])),
        ("behind narrows", Agent::start(&[NARROWS, "acp", "--data", data, "--", "cat"])),
    ];
    let mut took = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let lines: Vec<String> = (0..LINES).map(|n| line(round * LINES + n)).collect();
        for ((_, agent), took) in agents.iter_mut().zip(&mut took) {
            took.extend(lines.iter().map(|line| agent.round(line)));
        }
    }
    took.iter_mut().for_each(|took| took.sort());
    println!(
        "{what}: round trip of a line in µs, {} each; of {MANY} at once, µs a line",
        took[0].len()
    );
    println!("  {:<18} {:>15} {:>15} {:>15} {:>15}", "the agent", "p50", "p99", "p99.9", "at once");
    let mut first: Option<[f64; 4]> = None;
    for ((name, agent), took) in agents.iter_mut().zip(&took) {
        let many = agent.many().as_secs_f64() * 1e6 / MANY as f64;
        let row = [at(took, 500), at(took, 990), at(took, 999), many];
        let alone = first.get_or_insert(row);
        let cells = row.iter().zip(alone).map(|(a, b)| format!("{a:>8.2} {:>5.1}x", a / *b));
        println!("  {name:<18} {}", cells.collect::<Vec<_>>().join(" "));
    }
}

fn main() {
    let dir = tempfile::tempdir().expect("folder");
    compare("no server (spooled)", &dir.path().join("spooled"));
    let data = dir.path().join("served");
    let mut server = Command::new(NARROWS)
        .args(["serve", "--no-env", "--no-follow", "--bind", "127.0.0.1:0", "--data"])
        .arg(&data)
        .env("NARROWS_LOG", "error")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut told = BufReader::new(server.stdout.take().expect("output")).lines();
    let _ = told.find(|line| line.as_ref().is_ok_and(|l| l.contains("token")));
    compare("a server runs (sent)", &data);
    let _ = server.kill();
    let _ = server.wait();
}
