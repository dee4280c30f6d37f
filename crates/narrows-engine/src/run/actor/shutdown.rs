//! Ends of turns and processes: regular, failed and timed out.

use super::{Actor, AgentProcess, IDLE_TIMEOUT, QueuedTurn, STDERR_TAIL_LINES};
use crate::run::child::AgentLine;
use crate::run::driver::Effect;
use crate::run::turns::{self, TurnProgress};
use narrows::{Body, Raw};
use narrows_store::MessageState;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long an agent may take to close its session.
const SESSION_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

impl Actor {
    /// When the current activity times out.
    pub(super) fn deadline(&self) -> Instant {
        let limits = &self.context.options.limits;
        let Some(process) = &self.process else {
            // Held messages wait for a person, so there is no timeout.
            return if self.held {
                Instant::now() + IDLE_TIMEOUT
            } else {
                self.idle_since + IDLE_TIMEOUT
            };
        };
        if !process.ready {
            // Startup waits for a person's answer, so there is no timeout.
            let has_requests = !process.open_requests.is_empty();
            return if has_requests {
                Instant::now() + limits.start
            } else {
                process.started_at + limits.start
            };
        }
        match &self.turn {
            Some(QueuedTurn { cancelled: Some(at), .. }) => *at + limits.cancel,
            Some(_) => Instant::now() + limits.idle,
            None => process.idle_since + limits.idle,
        }
    }

    /// When to hint at a missing login of a silent agent.
    pub(super) fn silence_deadline(&self) -> Option<Instant> {
        let process = self.process.as_ref().filter(|process| !process.login_hinted)?;
        let sent = self.turn.as_ref().is_some_and(|turn| turn.sent);
        let since = if process.ready { process.prompted_at } else { process.started_at };
        (sent || !process.ready).then(|| since + self.context.options.limits.silence)
    }

    /// Hints that the agent may wait for a login: some agents do not report it.
    async fn hint_login(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.login_hinted = true;
        let Some(instructions) = process.driver.login_hint() else { return };
        let seconds = self.context.options.limits.silence.as_secs();
        let what = format!(
            "The agent has said nothing for {seconds} s. It may need a login, or a provider of models:\n{instructions}"
        );
        self.notice("warning", &what).await;
    }

    pub(super) async fn on_deadline(&mut self) {
        if self.silence_deadline().is_some_and(|at| at <= Instant::now()) {
            self.hint_login().await;
        }
        if self.deadline() > Instant::now() {
            return;
        }
        let Some(process) = &self.process else { return };
        let details = process.child.stderr_tail(STDERR_TAIL_LINES);
        if !process.ready {
            let seconds = self.context.options.limits.start.as_secs();
            let what = format!("The agent did not start within {seconds} s.");
            self.fail_turn("AGENT_NOT_STARTED", &what, &details, true).await;
        } else if self.turn.is_some() {
            let seconds = self.context.options.limits.cancel.as_secs();
            let what = format!(
                "The agent did not end its turn within {seconds} s after it was cancelled: it was ended."
            );
            self.notice("warning", &what).await;
            self.stop_process("it did not cancel its turn").await;
        } else {
            self.stop_process("it was idle").await;
        }
    }

    /// Handles the end of the agent's output: the process has exited or is of no use.
    pub(super) async fn on_exit(&mut self) {
        let Some(process) = &mut self.process else { return };
        let timeout = Duration::from_secs(2);
        let words = match tokio::time::timeout(timeout, process.child.wait_exit()).await {
            Ok(words) => words,
            Err(_) => "it closed its output".to_owned(),
        };
        let details = process.child.stderr_tail(STDERR_TAIL_LINES);
        if self.turn.as_ref().is_some_and(|t| t.cancelled.is_none()) {
            return self
                .fail_turn("AGENT_EXITED", &format!("The agent is gone: {words}."), &details, true)
                .await;
        }
        self.stop_process(&words).await;
        let text = if details.is_empty() { words } else { format!("{words}\n{details}") };
        self.error = Some(self.redact(&text));
    }

    /// Fails the current turn with an error in the log; with `end`, also stops the process.
    pub(super) async fn fail_turn(&mut self, code: &str, what: &str, details: &str, end: bool) {
        let mut bodies = self.close_requests();
        // The log includes a message that the agent did not receive.
        let unsent = self.turn.as_ref().filter(|turn| !turn.sent);
        bodies.extend(unsent.map(|turn| turns::unsent_message(&turn.prompt)));
        bodies.push(turns::failure(what, code, details));
        let before = self.log.as_ref().map_or(self.session.seq, |f| f.seq);
        self.log_events(bodies, false).await;
        let until = self.log.as_ref().map(|f| f.seq);
        let turn = self.turn.take();
        if end {
            self.stop_process(what).await;
            // A new process does not know what this one was about to do.
            self.hold_queue();
            let text =
                if details.is_empty() { what.to_owned() } else { format!("{what}\n{details}") };
            self.error = Some(self.redact(&text));
            self.publish_state();
        }
        if let Some(turn) = turn {
            let now = *turn.progress.borrow();
            turn.progress.send_replace(TurnProgress { after: now.after.or(Some(before)), ..now });
            self.finish_turn(&turn, MessageState::Done, until).await;
        }
    }

    /// Takes the events that close all open requests, which can no longer be answered.
    pub(super) fn close_requests(&mut self) -> Vec<Body<Raw>> {
        let Some(process) = &mut self.process else { return Vec::new() };
        let open = std::mem::take(&mut process.open_requests);
        let mut bodies = Vec::new();
        for (request, (call, question)) in open {
            bodies.push(turns::request_closed(&request, &call, question));
            self.remember_answered(request);
        }
        bodies
    }

    /// Stops the process and all its descendants; a running turn is cancelled.
    pub(super) async fn stop_process(&mut self, why: &str) {
        let mut bodies = self.close_requests();
        let Some(mut process) = self.process.take() else { return };
        process.services.close();
        close_session(&mut process).await;
        let format = process.driver.format();
        let words = process.child.stop().await;
        tracing::info!(session = %self.session.id, why, words, "an agent has stopped");
        if self.turn.as_ref().is_some_and(|t| t.sent) {
            bodies.push(turns::cancelled());
        }
        if let Some(log) = &mut self.log
            && let Err(error) = log.append_events(format, bodies, true).await
        {
            self.on_store_error(&error, "cannot log the end of a run");
        }
        if self.turn.as_ref().is_some_and(|t| t.sent)
            && let Some(turn) = self.turn.take()
        {
            let until = self.log.as_ref().map(|f| f.seq);
            self.finish_turn(&turn, MessageState::Done, until).await;
        }
        self.idle_since = Instant::now();
    }

    /// Stops the agent after the log could not be written; nothing can be logged about it.
    pub(super) async fn abort(&mut self, what: &str) {
        if let Some(process) = self.process.take() {
            process.services.close();
            process.child.stop().await;
        }
        if let Some(turn) = self.turn.take() {
            let until = self.log.as_ref().map(|f| f.seq);
            self.finish_turn(&turn, MessageState::Done, until).await;
        }
        self.hold_queue();
        self.error = Some(self.redact(what));
        self.idle_since = Instant::now();
        self.changed = true;
    }

    /// Holds all queued messages. Their followers see it: the stream ends, the message stays.
    pub(super) fn hold_queue(&mut self) {
        if self.turn.as_ref().is_some_and(|t| !t.sent)
            && let Some(turn) = self.turn.take()
        {
            self.queue.push_front(turn);
        }
        self.held = !self.queue.is_empty();
        self.publish_state();
        for turn in &mut self.queue {
            let now = *turn.progress.borrow();
            turn.progress = watch::channel(now).0;
        }
    }

    /// Shuts the actor down with the server.
    pub(super) async fn shutdown(&mut self) {
        // The shutdown ends all streams, so followers must learn about held messages first.
        self.hold_queue();
        self.stop_process("the server ends").await;
    }

    pub(super) async fn finish_turn(
        &mut self,
        turn: &QueuedTurn,
        state: MessageState,
        until: Option<u64>,
    ) {
        let after = turn.progress.borrow().after;
        self.persist_message(turn.number, state, (after, until)).await;
        if self.fenced {
            // The new owner reports how the turn ends.
            return self.follow_remotely(turn.number, turn.progress.clone());
        }
        // A waiter for the end must see the final state.
        self.publish_state();
        turn.progress.send_replace(TurnProgress { state, after, until });
        self.idle_since = Instant::now();
    }
}

/// Lets an agent that supports it close its session, for a short time.
async fn close_session(process: &mut AgentProcess) {
    let Some(Effect::SendUnlogged(line)) = process.driver.close() else { return };
    if !process.child.send(&line) {
        return;
    }
    let AgentProcess { child, driver, .. } = process;
    let closed = async {
        while let Some(lines) = child.lines().await {
            let mut texts = lines.iter().filter_map(|line| match line {
                AgentLine::Text(text) => Some(text),
                AgentLine::TooLong(_) => None,
            });
            if texts.any(|text| driver.on_line(text).effects.contains(&Effect::SessionClosed)) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(SESSION_CLOSE_TIMEOUT, closed).await;
}
