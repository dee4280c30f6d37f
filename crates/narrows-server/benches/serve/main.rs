//! What serving costs: durable ingest, fan-out, idle clients, resume, a large session.
//!
//! Every figure stands beside a baseline that was measured in the same run, and beside what went
//! wrong: lost, duplicated and failed must be zero. The server is a process of its own.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark may fail loudly, and its figures are rough"
)]

mod bare;
mod clients;
mod fanout;
mod http;
mod ingest;
mod inside;
mod minimal;
mod scale;

use narrows_server::{HiddenOptions, ServeConfig, Server};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let after = |name: &str| words.iter().position(|w| w == name).and_then(|at| words.get(at + 1));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    match after("--role").map(String::as_str) {
        Some("narrows") => runtime.block_on(serve(Path::new(after("--data").expect("data")))),
        Some("bare") => {
            let at = |name| Path::new(after(name).expect("folder"));
            runtime.block_on(bare::serve(at("--from"), at("--data")));
        }
        Some("minimal") => runtime.block_on(minimal::serve(after("--data").map(Path::new))),
        _ => {
            let only = after("--only").cloned();
            let wanted = |name: &str| only.as_deref().is_none_or(|o| o == name);
            runtime.block_on(async {
                if wanted("ingest") {
                    ingest::run().await;
                }
                if wanted("fanout") {
                    fanout::run().await;
                }
                if wanted("scale") {
                    scale::run().await;
                }
            });
        }
    }
}

async fn serve(data: &Path) {
    let mut config = ServeConfig {
        data: data.to_owned(),
        bind: "127.0.0.1:0".parse().expect("address"),
        ..ServeConfig::default()
    };
    config.limits.streams_per_token = 20_000;
    let server = Server::start(config, HiddenOptions::default()).await.expect("start");
    announce(server.address());
    let mut term =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("signal");
    term.recv().await;
    server.stop().await;
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn announce(address: SocketAddr) {
    println!("{address}");
    let _ = std::io::stdout().flush();
}

/// A server in a process of its own.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Process {
    pub(crate) fn start(role: &str, data: Option<&Path>) -> Process {
        let mut process = Process::spawn(role, data, &[]);
        let token = data.map(|d| std::fs::read_to_string(d.join("token")).expect("token"));
        process.token = token.unwrap_or_default();
        process
    }

    pub(crate) fn start_with(role: &str, data: &Path, more: &[&str]) -> Process {
        Process::spawn(role, Some(data), more)
    }

    fn spawn(role: &str, data: Option<&Path>, more: &[&str]) -> Process {
        let own = std::env::current_exe().expect("own path");
        let mut command = Command::new(own);
        command.args(["--role", role]).args(more);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("spawn");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("output"));
        out.read_line(&mut line).expect("address");
        let address = line.trim().parse().expect("address");
        Process { child, address, token: String::new() }
    }

    /// Its memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1024
    }

    pub(crate) fn stop(mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }

    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// A folder on the disk that holds the project, not in memory.
    pub(crate) fn new(name: &str) -> Scratch {
        let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench").join(name);
        let _ = std::fs::remove_dir_all(&at);
        std::fs::create_dir_all(&at).expect("folder");
        Scratch(at)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The value below which so much of the list lies.
pub(crate) fn percentile(sorted: &[u64], part: f64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "a part of a length")]
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

#[expect(clippy::print_stdout, reason = "this is what a benchmark is for")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
