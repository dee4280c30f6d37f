//! Pauses and ends of the input.

use super::{Pipeline, Step};
use crate::adapter::recorded_usage;
use crate::frame::packets::Packet;
use crate::model::change::Change;
use crate::model::event::Event;

impl Pipeline {
    /// The held-back text that may be shown while its source pauses, as changes to show on top of the
    /// items until the next step. These changes are never part of a step.
    pub fn preview(&mut self) -> Vec<Change> {
        let Some(fold) = &self.fold else { return Vec::new() };
        let (text, outputs) = self.sanitizer.preview();
        let mut changes = text.map_or_else(Vec::new, |event| fold.preview(&event));
        let output = |(id, text)| Change::Append { id, field: "rawOutput", text };
        changes.extend(outputs.into_iter().map(output));
        changes
    }

    /// Ends the input: emits everything that was held back.
    pub fn finish(&mut self, out: &mut Vec<Step>) {
        self.finish_adapter(out);
        self.sanitizer.finish(&mut self.clean);
        self.complete(out);
    }

    /// Ends the input for now: more may come to this pipeline, or to one that replays the packets
    /// since the last checkpoint. Emits what was held back, except a partial secret or path at the
    /// end of an unanswered turn; such a turn stays open, and this pipeline is then not at rest. If
    /// `will_replay`, all of the turn can be read again in any case, and nothing is emitted that may
    /// be the start of a secret or path.
    pub fn suspend(&mut self, will_replay: bool, out: &mut Vec<Step>) {
        self.finish_adapter(out);
        self.sanitizer.pause(will_replay, &mut self.clean);
        self.complete(out);
    }

    fn finish_adapter(&mut self, out: &mut Vec<Step>) {
        self.finish_replay();
        self.flush(out);
        self.adapter.finish(&mut self.adapter_output);
        for event in self.adapter_output.events.drain(..) {
            self.sanitizer.push(event, &mut self.clean);
        }
    }

    /// The usage of an answer in a packet that is skipped because its record was read from the
    /// stream before. The agent's own file has the final number; it is no event of the session.
    pub fn used_again(&mut self, packet: &Packet<'_>) -> Option<Event> {
        let mut clean = Vec::new();
        self.sanitizer.push(recorded_usage(packet)?, &mut clean);
        clean.pop()
    }

    /// Whether text is held back although its turn was answered.
    pub fn waits_answered(&self) -> bool {
        self.sanitizer.holds_answered_text()
    }

    /// Emits the held-back text of an answered turn, after a pause in which nothing followed it.
    pub fn settle_answered(&mut self, out: &mut Vec<Step>) {
        self.flush(out);
        self.sanitizer.end_answered_text(&mut self.clean);
        self.complete(out);
    }
}
