//! Commands that an agent runs through narrows.

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

/// What is kept of an output, and at most.
const USUAL_OUTPUT: usize = 1 << 20;
const MAX_OUTPUT: u64 = 16 << 20;
/// Commands of one session at once.
const MAX_TERMINALS: usize = 32;

/// The commands of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Terminals {
    known: Arc<Mutex<HashMap<String, Arc<Terminal>>>>,
    count: Arc<AtomicU64>,
}

impl Terminals {
    pub(super) fn add(&self, terminal: Terminal) -> Result<String, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TERMINALS {
            return Err(format!("more than {MAX_TERMINALS} terminals are open"));
        }
        let id = format!("term-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1);
        known.insert(id.clone(), Arc::new(terminal));
        Ok(id)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Terminal>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) fn clear(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.drain().for_each(|(_, terminal)| terminal.kill());
    }
}

/// A command.
#[derive(Debug)]
pub(super) struct Terminal {
    output: Arc<Mutex<Output>>,
    ended: watch::Receiver<Option<Value>>,
    kill: Arc<Notify>,
}

#[derive(Debug)]
struct Output {
    bytes: VecDeque<u8>,
    max: usize,
    cut: bool,
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
        // Many agents give a whole command line; a shell is what they mean.
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
        let (Some(stdout), Some(stderr)) = pipes else { return Err("it has no pipes".to_owned()) };
        let max = limit.map_or(USUAL_OUTPUT, |n| usize::try_from(n.min(MAX_OUTPUT)).unwrap_or(0));
        let output = Arc::new(Mutex::new(Output { bytes: VecDeque::new(), max, cut: false }));
        let reading = [
            tokio::spawn(read(stdout, Arc::clone(&output))),
            tokio::spawn(read(stderr, Arc::clone(&output))),
        ];
        let (tell, ended) = watch::channel(None);
        let (kill, kept) = (Arc::new(Notify::new()), options.keeper.is_some());
        let killed = Arc::clone(&kill);
        tokio::spawn(async move {
            let status = tokio::select! {
                status = process.wait() => status,
                () = killed.notified() => {
                    terminate(&mut process, kept);
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
            let _ = tell.send(Some(json!({"exitCode": exit, "signal": signal})));
        });
        Ok(Terminal { output, ended, kill })
    }

    pub(super) fn output(&self) -> Value {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = output.bytes.iter().copied().collect();
        // Cut at its beginning, it may begin within a letter.
        let text = String::from_utf8_lossy(&bytes);
        let text = if output.cut { text.trim_start_matches('\u{fffd}') } else { &text };
        let mut told = json!({"output": text, "truncated": output.cut});
        if let Some(status) = &*self.ended.borrow() {
            told["exitStatus"] = status.clone();
        }
        told
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

async fn read(mut from: impl AsyncRead + Unpin, output: Arc<Mutex<Output>>) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut piece).await {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.bytes.extend(&piece[..n]);
        let over = output.bytes.len().saturating_sub(output.max);
        if over > 0 {
            output.bytes.drain(..over);
            output.cut = true;
        }
    }
}
