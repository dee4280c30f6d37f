//! Ends: of turns and of processes, in time and before it.

use super::{AT_REST, Actor, LAST_WORDS, Process, Turn};
use crate::run::child::Line;
use crate::run::driver::Effect;
use crate::run::turns::{self, Progress};
use narrows::{Body, Raw};
use narrows_store::MessageState;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long an agent gets to put away what it has of a session.
const PUTTING_AWAY: Duration = Duration::from_millis(500);

impl Actor {
    /// When something takes too long.
    pub(super) fn deadline(&self) -> Instant {
        let limits = &self.known.options.limits;
        let Some(process) = &self.process else {
            // What is held waits for a person, not for a time.
            return if self.held { Instant::now() + AT_REST } else { self.rested + AT_REST };
        };
        if !process.ready {
            // Somebody is asked: that takes as long as it takes.
            let waits = !process.asked.is_empty();
            return if waits {
                Instant::now() + limits.start
            } else {
                process.began + limits.start
            };
        }
        match &self.turn {
            Some(Turn { cancelled: Some(at), .. }) => *at + limits.cancel,
            Some(_) => Instant::now() + limits.idle,
            None => process.rested + limits.idle,
        }
    }

    /// When it is said what may be the matter with an agent that says nothing.
    pub(super) fn silent(&self) -> Option<Instant> {
        let process = self.process.as_ref().filter(|process| !process.hinted)?;
        let sent = self.turn.as_ref().is_some_and(|turn| turn.sent);
        let since = if process.ready { process.prompted } else { process.began };
        (sent || !process.ready).then(|| since + self.known.options.limits.silence)
    }

    /// It may wait for a login, or have nobody to ask: some agents do not say so.
    async fn hint(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.hinted = true;
        let Some(ways) = process.driver.login_hint() else { return };
        let seconds = self.known.options.limits.silence.as_secs();
        let what = format!(
            "The agent has said nothing for {seconds} s. It may need a login, or a provider of models:\n{ways}"
        );
        self.notice("warning", &what).await;
    }

    pub(super) async fn late(&mut self) {
        if self.silent().is_some_and(|at| at <= Instant::now()) {
            self.hint().await;
        }
        if self.deadline() > Instant::now() {
            return;
        }
        let Some(process) = &self.process else { return };
        let details = process.child.last_words(LAST_WORDS);
        if !process.ready {
            let seconds = self.known.options.limits.start.as_secs();
            let what = format!("The agent did not begin within {seconds} s.");
            self.fail("AGENT_NOT_STARTED", &what, &details, true).await;
        } else if self.turn.is_some() {
            let seconds = self.known.options.limits.cancel.as_secs();
            let what = format!(
                "The agent did not end its turn within {seconds} s after it was cancelled: it was ended."
            );
            self.notice("warning", &what).await;
            self.end("it did not cancel its turn").await;
        } else {
            self.end("nobody spoke to it").await;
        }
    }

    /// The agent closed its output: its process is over, or of no use.
    pub(super) async fn gone(&mut self) {
        let Some(process) = &mut self.process else { return };
        let patience = Duration::from_secs(2);
        let words = match tokio::time::timeout(patience, process.child.ended()).await {
            Ok(words) => words,
            Err(_) => "it closed its output".to_owned(),
        };
        let details = process.child.last_words(LAST_WORDS);
        if self.turn.as_ref().is_some_and(|t| t.cancelled.is_none()) {
            return self
                .fail("AGENT_EXITED", &format!("The agent is gone: {words}."), &details, true)
                .await;
        }
        self.end(&words).await;
        let told = if details.is_empty() { words } else { format!("{words}\n{details}") };
        self.error = Some(self.clean(&told));
    }

    /// The running turn fails, with words that stay; with `end`, the agent's process ends too.
    pub(super) async fn fail(&mut self, code: &str, what: &str, details: &str, end: bool) {
        let mut bodies = self.withdrawals();
        // What was said to an agent that did not get as far as to hear it is part of the session.
        let unsent = self.turn.as_ref().filter(|turn| !turn.sent);
        bodies.extend(unsent.map(|turn| turns::said(&turn.prompt)));
        bodies.push(turns::failed(what, code, details));
        let before = self.feed.as_ref().map_or(self.session.seq, |f| f.seq);
        self.tell(bodies, false).await;
        let until = self.feed.as_ref().map(|f| f.seq);
        let turn = self.turn.take();
        if end {
            self.end(what).await;
            // Another process knows nothing of what this one was about to do.
            self.hold_waiting();
            let told =
                if details.is_empty() { what.to_owned() } else { format!("{what}\n{details}") };
            self.error = Some(self.clean(&told));
            self.show();
        }
        if let Some(turn) = turn {
            let now = *turn.progress.borrow();
            turn.progress.send_replace(Progress { after: now.after.or(Some(before)), ..now });
            self.close_turn(&turn, MessageState::Done, until).await;
        }
    }

    /// Questions that nobody can answer any more.
    pub(super) fn withdrawals(&mut self) -> Vec<Body<Raw>> {
        let Some(process) = &mut self.process else { return Vec::new() };
        let asked = std::mem::take(&mut process.asked);
        let mut bodies = Vec::new();
        for (request, (call, question)) in asked {
            bodies.push(turns::withdrawn(&request, &call, question));
            self.remember(request);
        }
        bodies
    }

    /// Ends the process and everything that it started; a turn that goes on is cancelled.
    pub(super) async fn end(&mut self, why: &str) {
        let mut bodies = self.withdrawals();
        let Some(mut process) = self.process.take() else { return };
        process.machine.close();
        put_away(&mut process).await;
        let format = process.driver.format();
        let words = process.child.stop().await;
        tracing::info!(session = %self.session.id, why, words, "an agent has ended");
        if self.turn.as_ref().is_some_and(|t| t.sent) {
            bodies.push(turns::cancelled());
        }
        if let Some(feed) = &mut self.feed
            && let Err(error) = feed.tell(format, bodies, true).await
        {
            self.refused(&error, "the end of a run could not be kept");
        }
        if self.turn.as_ref().is_some_and(|t| t.sent)
            && let Some(turn) = self.turn.take()
        {
            let until = self.feed.as_ref().map(|f| f.seq);
            self.close_turn(&turn, MessageState::Done, until).await;
        }
        self.rested = Instant::now();
    }

    /// The log cannot be written: the agent ends, and nothing can be told of it.
    pub(super) async fn lose(&mut self, what: &str) {
        if let Some(process) = self.process.take() {
            process.machine.close();
            process.child.stop().await;
        }
        if let Some(turn) = self.turn.take() {
            let until = self.feed.as_ref().map(|f| f.seq);
            self.close_turn(&turn, MessageState::Done, until).await;
        }
        self.hold_waiting();
        self.error = Some(self.clean(what));
        self.rested = Instant::now();
        self.changed = true;
    }

    /// Holds everything that waits. Whoever follows it is told so: its stream ends, the message stays.
    pub(super) fn hold_waiting(&mut self) {
        if self.turn.as_ref().is_some_and(|t| !t.sent)
            && let Some(turn) = self.turn.take()
        {
            self.queue.push_front(turn);
        }
        self.held = !self.queue.is_empty();
        self.show();
        for turn in &mut self.queue {
            let now = *turn.progress.borrow();
            turn.progress = watch::channel(now).0;
        }
    }

    /// The server ends.
    pub(super) async fn shut(&mut self) {
        // Streams end with it: they are told before.
        self.hold_waiting();
        self.end("the server ends").await;
    }

    pub(super) async fn close_turn(
        &mut self,
        turn: &Turn,
        state: MessageState,
        until: Option<u64>,
    ) {
        let after = turn.progress.borrow().after;
        self.keep_message(turn.number, state, (after, until)).await;
        if self.fenced {
            // Whoever has it now tells how it ends.
            return self.hand_over(turn.number, turn.progress.clone());
        }
        // Whoever waits for its end finds everything as it is then.
        self.show();
        turn.progress.send_replace(Progress { state, after, until });
        self.rested = Instant::now();
    }
}

/// Lets an agent that wants to know put away what it has of the session; it is not waited for long.
async fn put_away(process: &mut Process) {
    let Some(Effect::Tell(line)) = process.driver.close() else { return };
    if !process.child.send(&line) {
        return;
    }
    let Process { child, driver, .. } = process;
    let closed = async {
        while let Some(lines) = child.lines().await {
            let mut texts = lines.iter().filter_map(|line| match line {
                Line::Text(text) => Some(text),
                Line::TooLong(_) => None,
            });
            if texts.any(|text| driver.hear(text).effects.contains(&Effect::Closed)) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(PUTTING_AWAY, closed).await;
}
