//! Where the input pauses or ends, for good or for now.

use super::{Pipeline, Step};
use crate::change::Change;

impl Pipeline {
    /// What of the text that is held back can be shown while its source pauses: changes to be shown
    /// beside the items, until the next step. They never become steps themselves.
    pub fn preview(&mut self) -> Vec<Change> {
        let Some(fold) = &self.fold else { return Vec::new() };
        let (text, outputs) = self.sanitizer.preview();
        let mut changes = text.map_or_else(Vec::new, |event| fold.preview(&event));
        let output = |(id, text)| Change::Append { id, field: "rawOutput", text };
        changes.extend(outputs.into_iter().map(output));
        changes
    }

    /// The input is over: lets go of what was held back.
    pub fn finish(&mut self, out: &mut Vec<Step>) {
        self.finish_adapter(out);
        self.sanitizer.finish(&mut self.clean);
        self.complete(out);
    }

    /// The input is over for now, and more may come to this pipeline, or to one that is given the packets
    /// since the last rest again. Lets go of what was held back, but for the half of something to
    /// hide at the end of a turn that was not answered: then this pipeline is not at rest. Where all of
    /// it can be read `again` in any case, such a turn stays open.
    pub fn suspend(&mut self, again: bool, out: &mut Vec<Step>) {
        self.finish_adapter(out);
        self.sanitizer.suspend(again, &mut self.clean);
        self.complete(out);
    }

    fn finish_adapter(&mut self, out: &mut Vec<Step>) {
        self.caught_up();
        self.flush(out);
        self.adapter.finish(&mut self.yielded);
        for event in self.yielded.events.drain(..) {
            self.sanitizer.push(event, &mut self.clean);
        }
    }

    /// Whether part of a text is held back though its turn was answered.
    pub fn waits_answered(&self) -> bool {
        self.sanitizer.waits_answered()
    }

    /// A while has passed since the turn was answered, and nothing came: lets go of its text.
    pub fn settle_answered(&mut self, out: &mut Vec<Step>) {
        self.flush(out);
        self.sanitizer.settle_answered(&mut self.clean);
        self.complete(out);
    }
}
