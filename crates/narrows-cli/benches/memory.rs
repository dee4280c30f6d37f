//! Peak memory of `narrows parse --view events` while a gigabyte is piped through it, and while
//! one line of a gigabyte comes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../../narrows/benches/support/generate.rs"]
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod generate;

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

const GIGABYTE: usize = 1 << 30;

fn main() {
    let (mut child, mut stdin) = spawn();
    let mut session = generate::Session::new(5, 5);
    println!("a session of 1 GB");
    let mut sent = 0;
    while sent < GIGABYTE {
        let part = session.make(64 << 20);
        stdin.write_all(&part).expect("narrows reads");
        sent += part.len();
        println!("  {:>5} MB in, peak {:>4} MB", sent >> 20, peak(&child) >> 10);
    }
    drop(stdin);
    child.wait().expect("narrows ends");

    let (mut child, mut stdin) = spawn();
    println!("one line of 1 GB");
    let part = vec![b'x'; 64 << 20];
    for _ in 0..16 {
        stdin.write_all(&part).expect("narrows reads");
    }
    println!("   1024 MB in, peak {:>4} MB", peak(&child) >> 10);
    drop(stdin);
    child.wait().expect("narrows ends");
}

fn spawn() -> (Child, ChildStdin) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(["parse", "--view", "events"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("narrows runs");
    let stdin = child.stdin.take().expect("a pipe");
    (child, stdin)
}

/// Peak resident memory in kB.
fn peak(child: &Child) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}
