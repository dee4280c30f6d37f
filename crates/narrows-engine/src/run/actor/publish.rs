//! The published state of a run.

use super::Actor;
use crate::run::state::{ActiveTurn, RunPhase, RunState, queue_preview};

impl Actor {
    /// Publishes the current state if it has changed.
    pub(super) fn publish_state(&mut self) {
        let mut now =
            RunState { error: self.error.clone(), ..RunState::at_rest(Some(&self.run), true) };
        let waiting = self.turn.iter().filter(|t| !t.sent).chain(&self.queue);
        now.queue = queue_preview(waiting.map(|t| (t.number, &t.prompt)), &mut self.cleaner);
        now.held = self.held && !now.queue.is_empty();
        if let Some(turn) = self.turn.as_ref().filter(|t| t.sent) {
            let after = turn.progress.borrow().after.unwrap_or_default();
            let cursor = format!("{}-{after}", self.session.epoch);
            now.turn = Some(ActiveTurn { id: turn.number.to_string(), cursor });
            now.cancelling = turn.cancelled.is_some();
        }
        if let Some(process) = &self.process {
            now.state = match (&self.turn, process.ready) {
                (_, false) => RunPhase::Starting,
                (_, true) if !process.open_requests.is_empty() => RunPhase::Waiting,
                (Some(_), true) => RunPhase::Running,
                (None, true) => RunPhase::Idle,
            };
            let (all, one) = process.driver.modes();
            (now.modes, now.mode) = (all.to_vec(), one.map(str::to_owned).or(now.mode));
            let (all, one) = process.driver.models();
            (now.models, now.model) = (all.to_vec(), one.map(str::to_owned).or(now.model));
            now.options = process.driver.options().to_vec();
            now.deny_reasons = process.driver.takes_reasons();
            now.requests = process.open_requests.keys().cloned().collect();
        }
        let option_choices = now.options.iter_mut().flat_map(|option| &mut option.choices);
        for choice in now.modes.iter_mut().chain(&mut now.models).chain(option_choices) {
            choice.name = self.redact(&choice.name);
            choice.group = choice.group.take().map(|group| self.redact(&group));
        }
        for option in &mut now.options {
            option.name = self.redact(&option.name);
        }
        let changed = self.state.send_if_modified(|state| {
            now.version = state.version;
            if *state == now {
                return false;
            }
            now.version += 1;
            *state = now;
            true
        });
        if changed {
            self.hub.changed();
        }
    }
}
