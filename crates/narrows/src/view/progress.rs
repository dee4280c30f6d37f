//! How far a turn is: a guess that only grows and is honest about its grounds.

use super::activity::What;
use crate::model::change::Items;
use crate::model::event::{Body, Event};
use crate::model::item::{Item, ItemBody};
use crate::model::time::Time;
use crate::model::tool::{Todo, ToolKind, ToolName, ToolStatus};

/// Where sources tell no times, progress is told every so many results.
const RESULTS_WITHOUT_TIME: u64 = 10;

#[derive(Debug)]
pub(super) struct Progress {
    interval_ms: u64,
    turn: u64,
    began: Option<Time>,
    told: Option<Time>,
    /// What was measured of the turn so far, and from where on it is measured: by one clock, and it
    /// only grows.
    elapsed_ms: u64,
    measured: u64,
    from: Option<Time>,
    calls: u64,
    results: u64,
    /// Done and all of the turn's todos.
    todos: Option<(u64, u64)>,
    percentage: u64,
    phase: &'static str,
    answered: bool,
}

impl Progress {
    pub(super) fn new(interval_ms: u64) -> Self {
        Progress {
            interval_ms,
            turn: 0,
            began: None,
            told: None,
            elapsed_ms: 0,
            measured: 0,
            from: None,
            calls: 0,
            results: 0,
            todos: None,
            percentage: 0,
            phase: "Planning",
            answered: false,
        }
    }

    /// Goes on in a session with these items, before `events` are read again.
    pub(super) fn resume(&mut self, items: &Items, events: &[Event]) {
        let info = items.info();
        if info.turns == 0 {
            return;
        }
        // A failure ends no turn here; in the header it does.
        let failed = |i: &&Item| i.parent.is_none() && matches!(i.body, ItemBody::Error { .. });
        let failures = items.iter().filter(failed).count() as u64;
        let answer = |e: &&Event| matches!(e.body, Body::PromptResponse(_));
        let answers = events.iter().filter(answer).count() as u64;
        self.turn = info.answers.saturating_sub(failures + answers);
        self.answered = self.turn > 0;
    }

    /// Measures on from so many seconds: what was read again does not tell by which clock it was.
    pub(super) fn go_on_from(&mut self, seconds: u64) {
        self.measured = seconds * 1000;
        self.elapsed_ms = self.measured;
        (self.from, self.told) = (None, None);
    }

    /// Takes the time of an event.
    fn measure(&mut self, time: Option<&Time>) {
        let Some(now) = time else { return };
        let from = self.from.get_or_insert_with(|| now.clone());
        if let Some(ms) = now.since_by_one_clock(from) {
            self.elapsed_ms = self.elapsed_ms.max(self.measured + ms);
        }
    }

    pub(super) fn call(&mut self) {
        self.calls += 1;
    }

    /// Takes an event; returns what to tell, if it is time to.
    pub(super) fn push(&mut self, event: &Event) -> Option<What> {
        let mut due = false;
        match &event.body {
            Body::UserMessage(_) if event.parent.is_none() => {
                if self.answered || self.turn == 0 {
                    // Work before the first prompt that is seen was the turn before it.
                    let seen = self.turn == 0 && self.began.is_some();
                    let turn = self.turn + 1 + u64::from(seen);
                    *self = Progress { turn, ..Progress::new(self.interval_ms) };
                }
                self.began = self.began.take().or_else(|| event.time.clone());
                self.measure(event.time.as_ref());
            }
            Body::ThinkingChunk(_) => self.phase = "Planning",
            Body::TextChunk(_) if self.results > 0 => self.phase = "Finishing",
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                let call = &tool.call;
                let tests = call.command.as_ref().is_some_and(|c| is_test(c));
                self.phase = phase(call.tool_name, call.kind, tests);
                if let Some(todos) = &call.todos {
                    self.count(todos.iter().map(|t: &Todo| t.status));
                }
                if call.status.is_some_and(ToolStatus::is_final) {
                    self.results += 1;
                    due = event.time.is_none() && self.results.is_multiple_of(RESULTS_WITHOUT_TIME);
                }
            }
            Body::PlanUpdate(plan) => self.count(plan.entries.iter().map(|e| e.status)),
            Body::PromptResponse(_) if event.parent.is_none() && !self.answered => {
                self.answered = true;
                self.phase = "Finishing";
                self.percentage = 100;
                self.measure(event.time.as_ref());
                return Some(self.tell());
            }
            _ => {}
        }
        // What comes before the first sign of work is no progress.
        let idle = matches!(event.body, Body::SessionInfo(_) | Body::Usage(_) | Body::Unknown(_));
        if self.answered || (idle && self.began.is_none()) {
            return None;
        }
        self.began = self.began.take().or_else(|| event.time.clone());
        self.measure(event.time.as_ref());
        let since = self.told.as_ref().or(self.from.as_ref());
        let waited = event.time.as_ref().zip(since);
        let waited = waited.and_then(|(now, then)| now.since_by_one_clock(then));
        if !due && waited.is_none_or(|ms| ms < self.interval_ms) {
            return None;
        }
        self.told.clone_from(&event.time);
        let guess = match self.todos {
            Some((done, all)) if all > 0 => 5 + 90 * done / all,
            // Nobody knows how many calls a turn takes: half way after eight.
            _ => 95 * self.results / (self.results + 8),
        };
        self.percentage = self.percentage.max(guess).min(95);
        Some(self.tell())
    }

    fn count(&mut self, statuses: impl Iterator<Item = ToolStatus>) {
        let (mut done, mut all) = (0, 0);
        for status in statuses {
            all += 1;
            done += u64::from(status.is_final());
        }
        if all > 0 {
            self.todos = Some((done, all));
        }
    }

    fn tell(&self) -> What {
        let elapsed = self.elapsed_ms / 1000;
        let remaining = match self.todos {
            Some((done, all)) if done > 0 && elapsed > 0 && !self.answered => {
                Some(elapsed * (all - done) / done)
            }
            _ => None,
        };
        What::Progress {
            percentage: self.percentage,
            current_phase: self.phase,
            tool_call_count: self.calls,
            elapsed_seconds: elapsed,
            estimated_remaining_seconds: remaining,
            turn: self.turn.max(1),
        }
    }
}

fn phase(tool: ToolName, kind: ToolKind, tests: bool) -> &'static str {
    match kind {
        _ if tool == ToolName::TodoWrite => "Planning",
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch => "Reading files",
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => "Writing code",
        ToolKind::Execute if tests => "Running tests",
        ToolKind::Execute => "Running commands",
        ToolKind::Task => "Running subagents",
        ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other => "Planning",
    }
}

fn is_test(command: &str) -> bool {
    let word = |w: &str| w.trim_matches(|c: char| !c.is_alphanumeric()) == "test";
    ["pytest", "vitest", "jest", "nextest", "unittest"].iter().any(|t| command.contains(t))
        || command.split([' ', ':', '-', '\n']).any(word)
}
