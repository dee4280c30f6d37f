//! Terminals: commands that an agent runs through narrows.

use super::RunOptions;
use super::agents::AgentSpec;
use super::child::{command, environment, spawn, terminate};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Notify, watch};

/// Bytes of output that are kept by default, and at most.
const DEFAULT_OUTPUT_BYTES: usize = 1 << 20;
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// Concurrent commands per session.
const MAX_TERMINALS: usize = 32;

/// The terminals of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Terminals {
    terminals: Arc<Mutex<HashMap<String, Arc<Terminal>>>>,
    count: Arc<AtomicU64>,
}

impl Terminals {
    pub(super) fn add(&self, terminal: Terminal) -> Result<String, String> {
        let mut terminals = self.terminals.lock().unwrap_or_else(PoisonError::into_inner);
        if terminals.len() >= MAX_TERMINALS {
            return Err(format!("more than {MAX_TERMINALS} terminals are open"));
        }
        let id = format!("term-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1);
        terminals.insert(id.clone(), Arc::new(terminal));
        Ok(id)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Terminal>> {
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) {
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) fn clear(&self) {
        let mut terminals = self.terminals.lock().unwrap_or_else(PoisonError::into_inner);
        terminals.drain().for_each(|(_, terminal)| terminal.kill());
    }
}

/// A running command and its output.
#[derive(Debug)]
pub(super) struct Terminal {
    output: Arc<Mutex<TerminalOutput>>,
    ended: watch::Receiver<Option<Value>>,
    kill: Arc<Notify>,
}

#[derive(Debug)]
struct TerminalOutput {
    bytes: VecDeque<u8>,
    max: usize,
    truncated: bool,
}

impl Terminal {
    pub(super) fn start(
        name: &str,
        args: &[String],
        cwd: &Path,
        env: &[(String, String)],
        limit: Option<u64>,
        spec: &AgentSpec,
        options: &RunOptions,
    ) -> Result<Terminal, String> {
        // Many agents send a whole command line, which needs a shell.
        let shell = args.is_empty() && name.contains([' ', '|', '&', ';', '>', '$']);
        let program = if shell { "/bin/sh" } else { name };
        let mut command = command(options, Path::new(program));
        if shell {
            command.args(["-c", name]);
        }
        command.args(args).current_dir(cwd).envs(environment(spec, options));
        command.envs(env.iter().map(|(name, value)| (name, value)));
        let mut process =
            spawn(&mut command, options).map_err(|e| format!("it cannot be started: {e}"))?;
        let pipes = (process.stdout.take(), process.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err("cannot open its pipes".to_owned());
        };
        let max = limit.map_or(DEFAULT_OUTPUT_BYTES, |n| {
            usize::try_from(n.min(MAX_OUTPUT_BYTES)).unwrap_or(0)
        });
        let output =
            Arc::new(Mutex::new(TerminalOutput { bytes: VecDeque::new(), max, truncated: false }));
        let reading = [
            tokio::spawn(read(stdout, Arc::clone(&output))),
            tokio::spawn(read(stderr, Arc::clone(&output))),
        ];
        let (status_sender, ended) = watch::channel(None);
        let (kill, supervised) = (Arc::new(Notify::new()), options.keeper.is_some());
        let killed = Arc::clone(&kill);
        tokio::spawn(async move {
            let status = tokio::select! {
                status = process.wait() => status,
                () = killed.notified() => {
                    terminate(&mut process, supervised);
                    process.wait().await
                }
            };
            for reading in reading {
                let _ = reading.await;
            }
            let code = status.ok().and_then(|s| s.code());
            let (exit, signal) = match code {
                Some(code) if code > 128 => (None, Some((code - 128).to_string())),
                code => (code, None),
            };
            let _ = status_sender.send(Some(json!({"exitCode": exit, "signal": signal})));
        });
        Ok(Terminal { output, ended, kill })
    }

    pub(super) fn output(&self) -> Value {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = output.bytes.iter().copied().collect();
        // A truncated output may begin within a character.
        let text = String::from_utf8_lossy(&bytes);
        let text = if output.truncated { text.trim_start_matches('\u{fffd}') } else { &text };
        let mut result = json!({"output": text, "truncated": output.truncated});
        if let Some(status) = &*self.ended.borrow() {
            result["exitStatus"] = status.clone();
        }
        result
    }

    pub(super) async fn exited(&self) -> Value {
        let mut ended = self.ended.clone();
        let found = ended.wait_for(Option::is_some).await;
        found
            .ok()
            .and_then(|f| f.clone())
            .unwrap_or_else(|| json!({"exitCode": null, "signal": null}))
    }

    pub(super) fn kill(&self) {
        self.kill.notify_one();
    }
}

async fn read(mut from: impl AsyncRead + Unpin, output: Arc<Mutex<TerminalOutput>>) {
    let mut chunk = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut chunk).await {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.bytes.extend(&chunk[..n]);
        let excess = output.bytes.len().saturating_sub(output.max);
        if excess > 0 {
            output.bytes.drain(..excess);
            output.truncated = true;
        }
    }
}
