//! What an agent says, and what follows from it.

use super::{Actor, LAST_WORDS, now};
use crate::run::child::Line;
use crate::run::driver::Effect;
use crate::run::turns;
use narrows::Body;
use narrows_store::MessageState;
use std::path::Path;
use std::time::Instant;

impl Actor {
    /// Takes lines of the agent: into the log, then what follows from them.
    pub(super) async fn heard(&mut self, lines: Vec<Line>) {
        let mut log = Vec::new();
        for line in lines {
            let Some(process) = &mut self.process else { return };
            let text = match line {
                Line::Text(text) => text,
                Line::TooLong(length) => {
                    self.keep(&mut log).await;
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
            let heard = process.driver.hear(&text);
            if heard.log {
                process.driver.wrap(false, &text, &now(), &mut log);
            }
            if !heard.effects.is_empty() {
                self.keep(&mut log).await;
                self.apply(heard.effects).await;
            }
        }
        self.keep(&mut log).await;
    }

    /// Keeps lines in the log. Meanwhile the agent waits.
    pub(super) async fn keep(&mut self, log: &mut Vec<u8>) {
        let lines = std::mem::take(log);
        let (Some(process), Some(feed)) = (&self.process, &mut self.feed) else { return };
        if let Err(error) = feed.lines(process.driver.format(), &lines).await {
            self.refused(&error, "what an agent said could not be kept");
            if self.fenced {
                return self.end_process().await;
            }
            // Nothing is said that nobody can read later.
            self.lose(&format!("what the agent said could not be kept: {error}")).await;
            return;
        }
        let calls = std::mem::take(&mut feed.calls);
        if !calls.is_empty() {
            self.writers.heard(self.session.key, Path::new(&self.run.cwd), calls);
        }
    }

    pub(super) async fn apply(&mut self, effects: Vec<Effect>) {
        self.changed = true;
        for effect in effects {
            let Some(process) = &mut self.process else { return };
            match effect {
                Effect::Send(line) => {
                    let mut log = Vec::new();
                    process.driver.wrap(true, line.as_bytes(), &now(), &mut log);
                    self.keep(&mut log).await;
                    self.write(&line).await;
                }
                Effect::Log(line) => {
                    let mut log = Vec::new();
                    process.driver.wrap(true, line.as_bytes(), &now(), &mut log);
                    self.keep(&mut log).await;
                }
                Effect::Tell(line) => self.write(&line).await,
                Effect::Ready => process.ready = true,
                Effect::Native(native) => {
                    if self.run.native.as_ref() != Some(&native) {
                        self.run.native = Some(native);
                        self.keep_run().await;
                    }
                }
                Effect::Choices => {}
                Effect::Ended => {
                    process.rested = Instant::now();
                    if let Some(turn) = self.turn.take() {
                        let until = self.feed.as_ref().map(|f| f.seq);
                        self.close_turn(&turn, MessageState::Done, until).await;
                    }
                }
                Effect::Asked { request, call, question } => {
                    process.asked.insert(request, (call, question));
                }
                Effect::Full(call) => {
                    let waits = process.asked.values().any(|(asked, _)| *asked == call);
                    let call = Some(call).filter(|call| !call.is_empty() && !waits);
                    self.tell(turns::too_many(call.as_deref()), false).await;
                }
                Effect::Withdrawn(request) => {
                    process.asked.remove(&request);
                    self.remember(request);
                }
                Effect::Wants { id, method, params } => {
                    let (machine, tell) = (process.machine.clone(), self.given.0.clone());
                    tokio::spawn(async move {
                        let given = machine.serve(&method, &params).await;
                        let _ = tell.send((id, given)).await;
                    });
                }
                Effect::Notice(text) => self.notice("warning", &text).await,
                Effect::Login(what) => {
                    // Whoever has logged in starts it again, and it finds what it needs.
                    self.fail("LOGIN_REQUIRED", &what, "", true).await;
                }
                Effect::Told => {
                    // Nothing of it goes on.
                    let over = Body::PromptResponse(Box::default());
                    self.tell(vec![over], false).await;
                }
                Effect::Closed => {}
                Effect::Fatal(what) => {
                    let details = process.child.last_words(LAST_WORDS);
                    self.fail("AGENT_FAILED", &what, &details, true).await;
                }
            }
        }
    }

    /// Gives the agent a line; one that reads nothing is of no use.
    pub(super) async fn write(&mut self, line: &str) {
        let Some(process) = &self.process else { return };
        if !process.child.send(line) {
            let details = process.child.last_words(LAST_WORDS);
            let what = "The agent does not read what it is told.";
            self.fail("AGENT_NOT_READING", what, &details, true).await;
        }
    }
}
