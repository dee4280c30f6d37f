//! Estimates the progress of a turn; the estimate never decreases.

use super::activity::ActivityPayload;
use crate::model::change::Items;
use crate::model::event::{Body, Event};
use crate::model::item::{Item, ItemBody};
use crate::model::time::Time;
use crate::model::tool::{Todo, ToolKind, ToolName, ToolStatus};

/// Number of results between two progress messages in a source without times.
const RESULTS_PER_MESSAGE: u64 = 10;

#[derive(Debug)]
pub(super) struct TurnProgress {
    interval_ms: u64,
    turn: u64,
    started: Option<Time>,
    last_sent: Option<Time>,
    /// Time spent in the turn, from times of one clock; never decreases.
    elapsed_ms: u64,
    /// Time spent before `measured_from`.
    base_ms: u64,
    measured_from: Option<Time>,
    calls: u64,
    results: u64,
    /// Done and total todos of the turn.
    todos: Option<(u64, u64)>,
    percentage: u64,
    phase: &'static str,
    answered: bool,
}

impl TurnProgress {
    pub(super) fn new(interval_ms: u64) -> Self {
        TurnProgress {
            interval_ms,
            turn: 0,
            started: None,
            last_sent: None,
            elapsed_ms: 0,
            base_ms: 0,
            measured_from: None,
            calls: 0,
            results: 0,
            todos: None,
            percentage: 0,
            phase: "Planning",
            answered: false,
        }
    }

    /// Continues a session with these items, before `events` are projected again.
    pub(super) fn resume(&mut self, items: &Items, events: &[Event]) {
        let info = items.info();
        if info.turns == 0 {
            return;
        }
        // An error ends no turn here, but it counts as an answer in the header.
        let is_error = |i: &&Item| i.parent.is_none() && matches!(i.body, ItemBody::Error { .. });
        let errors = items.iter().filter(is_error).count() as u64;
        let is_answer = |e: &&Event| matches!(e.body, Body::PromptResponse(_));
        let answers = events.iter().filter(is_answer).count() as u64;
        self.turn = info.answers.saturating_sub(errors + answers);
        self.answered = self.turn > 0;
    }

    /// Continues from `seconds`: replayed events do not record their clock.
    pub(super) fn continue_from(&mut self, seconds: u64) {
        self.base_ms = seconds * 1000;
        self.elapsed_ms = self.base_ms;
        (self.measured_from, self.last_sent) = (None, None);
    }

    /// Updates the elapsed time.
    fn measure(&mut self, time: Option<&Time>) {
        let Some(now) = time else { return };
        let from = self.measured_from.get_or_insert_with(|| now.clone());
        if let Some(ms) = now.since_on_same_clock(from) {
            self.elapsed_ms = self.elapsed_ms.max(self.base_ms + ms);
        }
    }

    pub(super) fn count_call(&mut self) {
        self.calls += 1;
    }

    /// Updates the estimate with an event; returns a message if one is due.
    pub(super) fn push(&mut self, event: &Event) -> Option<ActivityPayload> {
        let mut due = false;
        match &event.body {
            Body::UserMessage(_) if event.parent.is_none() => {
                if self.answered || self.turn == 0 {
                    // Work before the first visible prompt counts as a turn before it.
                    let had_work = self.turn == 0 && self.started.is_some();
                    let turn = self.turn + 1 + u64::from(had_work);
                    *self = TurnProgress { turn, ..TurnProgress::new(self.interval_ms) };
                }
                self.started = self.started.take().or_else(|| event.time.clone());
                self.measure(event.time.as_ref());
            }
            Body::ThinkingChunk(_) => self.phase = "Planning",
            Body::TextChunk(_) if self.results > 0 => self.phase = "Finishing",
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                let call = &tool.call;
                let tests = call.command.as_ref().is_some_and(|c| runs_tests(c));
                self.phase = phase_of(call.tool_name, call.kind, tests);
                if let Some(todos) = &call.todos {
                    self.count_todos(todos.iter().map(|t: &Todo| t.status));
                }
                if call.status.is_some_and(ToolStatus::is_final) {
                    self.results += 1;
                    due = event.time.is_none() && self.results.is_multiple_of(RESULTS_PER_MESSAGE);
                }
            }
            Body::PlanUpdate(plan) => self.count_todos(plan.entries.iter().map(|e| e.status)),
            Body::PromptResponse(_) if event.parent.is_none() && !self.answered => {
                self.answered = true;
                self.phase = "Finishing";
                self.percentage = 100;
                self.measure(event.time.as_ref());
                return Some(self.message());
            }
            _ => {}
        }
        // Events before the first sign of work are no progress.
        let is_setup =
            matches!(event.body, Body::SessionInfo(_) | Body::Usage(_) | Body::Unknown(_));
        if self.answered || (is_setup && self.started.is_none()) {
            return None;
        }
        self.started = self.started.take().or_else(|| event.time.clone());
        self.measure(event.time.as_ref());
        let since = self.last_sent.as_ref().or(self.measured_from.as_ref());
        let since_last = event.time.as_ref().zip(since);
        let since_last = since_last.and_then(|(now, then)| now.since_on_same_clock(then));
        if !due && since_last.is_none_or(|ms| ms < self.interval_ms) {
            return None;
        }
        self.last_sent.clone_from(&event.time);
        let estimate = match self.todos {
            Some((done, all)) if all > 0 => 5 + 90 * done / all,
            // The number of calls of a turn is unknown: eight results count as half of it.
            _ => 95 * self.results / (self.results + 8),
        };
        self.percentage = self.percentage.max(estimate).min(95);
        Some(self.message())
    }

    fn count_todos(&mut self, statuses: impl Iterator<Item = ToolStatus>) {
        let (mut done, mut all) = (0, 0);
        for status in statuses {
            all += 1;
            done += u64::from(status.is_final());
        }
        if all > 0 {
            self.todos = Some((done, all));
        }
    }

    fn message(&self) -> ActivityPayload {
        let elapsed = self.elapsed_ms / 1000;
        let remaining = match self.todos {
            Some((done, all)) if done > 0 && elapsed > 0 && !self.answered => {
                Some(elapsed * (all - done) / done)
            }
            _ => None,
        };
        ActivityPayload::Progress {
            percentage: self.percentage,
            current_phase: self.phase,
            tool_call_count: self.calls,
            elapsed_seconds: elapsed,
            estimated_remaining_seconds: remaining,
            turn: self.turn.max(1),
        }
    }
}

fn phase_of(tool: ToolName, kind: ToolKind, tests: bool) -> &'static str {
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

fn runs_tests(command: &str) -> bool {
    let is_test = |w: &str| w.trim_matches(|c: char| !c.is_alphanumeric()) == "test";
    ["pytest", "vitest", "jest", "nextest", "unittest"].iter().any(|t| command.contains(t))
        || command.split([' ', ':', '-', '\n']).any(is_test)
}
