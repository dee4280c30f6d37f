//! Handles an agent's output: appends its lines to the log and applies the driver's effects.

use super::{Actor, STDERR_TAIL_LINES, now};
use crate::run::child::AgentLine;
use crate::run::driver::Effect;
use crate::run::turns;
use narrows::Body;
use narrows_store::MessageState;
use std::path::Path;
use std::time::Instant;

impl Actor {
    /// Processes lines of the agent: appends them to the log, then applies their effects.
    pub(super) async fn on_lines(&mut self, lines: Vec<AgentLine>) {
        let mut log = Vec::new();
        for line in lines {
            let Some(process) = &mut self.process else { return };
            let text = match line {
                AgentLine::Text(text) => text,
                AgentLine::TooLong(length) => {
                    self.log_lines(&mut log).await;
                    let what = format!(
                        "The agent wrote a line of {length} bytes, which is too long to keep."
                    );
                    self.notice("warning", &what).await;
                    continue;
                }
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            let output = process.driver.on_line(&text);
            if output.log {
                process.driver.envelope(false, &text, &now(), &mut log);
            }
            if !output.effects.is_empty() {
                self.log_lines(&mut log).await;
                self.apply(output.effects).await;
            }
        }
        self.log_lines(&mut log).await;
    }

    /// Appends lines to the log. The agent is not read meanwhile.
    pub(super) async fn log_lines(&mut self, log: &mut Vec<u8>) {
        let lines = std::mem::take(log);
        let (Some(process), Some(log)) = (&self.process, &mut self.log) else { return };
        if let Err(error) = log.append_lines(process.driver.format(), &lines).await {
            self.on_store_error(&error, "cannot log the output of an agent");
            if self.fenced {
                return self.kill_process().await;
            }
            // Output that could not be logged must not have effects: it could not be read later.
            self.abort(&format!("cannot log the agent's output: {error}")).await;
            return;
        }
        let calls = std::mem::take(&mut log.calls);
        if !calls.is_empty() {
            self.attribution.record_calls(self.session.key, Path::new(&self.run.cwd), calls);
        }
    }

    pub(super) async fn apply(&mut self, effects: Vec<Effect>) {
        self.changed = true;
        for effect in effects {
            let Some(process) = &mut self.process else { return };
            match effect {
                Effect::Send(line) => {
                    let mut log = Vec::new();
                    process.driver.envelope(true, line.as_bytes(), &now(), &mut log);
                    self.log_lines(&mut log).await;
                    self.write(&line).await;
                }
                Effect::Log(line) => {
                    let mut log = Vec::new();
                    process.driver.envelope(true, line.as_bytes(), &now(), &mut log);
                    self.log_lines(&mut log).await;
                }
                Effect::SendUnlogged(line) => self.write(&line).await,
                Effect::Ready => process.ready = true,
                Effect::AgentSessionId(native) => {
                    if self.run.native.as_ref() != Some(&native) {
                        self.run.native = Some(native);
                        self.persist_run().await;
                    }
                }
                Effect::OptionsChanged => {}
                Effect::TurnEnded => {
                    process.idle_since = Instant::now();
                    if let Some(turn) = self.turn.take() {
                        let until = self.log.as_ref().map(|f| f.seq);
                        self.finish_turn(&turn, MessageState::Done, until).await;
                    }
                }
                Effect::RequestOpened { request, call, question } => {
                    process.open_requests.insert(request, (call, question));
                }
                Effect::RequestRefused(call) => {
                    let is_open = process.open_requests.values().any(|(asked, _)| *asked == call);
                    let call = Some(call).filter(|call| !call.is_empty() && !is_open);
                    self.log_events(turns::request_refused(call.as_deref()), false).await;
                }
                Effect::RequestClosed(request) => {
                    process.open_requests.remove(&request);
                    self.remember_answered(request);
                }
                Effect::ClientRequest { id, method, params } => {
                    let (services, results) =
                        (process.services.clone(), self.client_results.0.clone());
                    tokio::spawn(async move {
                        let client_results = services.serve(&method, &params).await;
                        let _ = results.send((id, client_results)).await;
                    });
                }
                Effect::Notice(text) => self.notice("warning", &text).await,
                Effect::LoginRequired(what) => {
                    // After the login a new message starts the agent again, and it finds its credentials.
                    self.fail_turn("LOGIN_REQUIRED", &what, "", true).await;
                }
                Effect::HistoryReplayed => {
                    // The replayed history contains no running turn.
                    let over = Body::PromptResponse(Box::default());
                    self.log_events(vec![over], false).await;
                }
                Effect::SessionClosed => {}
                Effect::Fatal(what) => {
                    let details = process.child.stderr_tail(STDERR_TAIL_LINES);
                    self.fail_turn("AGENT_FAILED", &what, &details, true).await;
                }
            }
        }
    }

    /// Writes a line to the agent; an agent that does not read its input is stopped.
    pub(super) async fn write(&mut self, line: &str) {
        let Some(process) = &self.process else { return };
        if !process.child.send(line) {
            let details = process.child.stderr_tail(STDERR_TAIL_LINES);
            let what = "The agent does not read its input.";
            self.fail_turn("AGENT_NOT_READING", what, &details, true).await;
        }
    }
}
