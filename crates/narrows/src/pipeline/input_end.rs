//! Where the input pauses or ends, for good or for now.

use super::{Pipeline, Step};
use crate::adapter::used_again;
use crate::model::change::Change;
use crate::model::event::Event;
use crate::packet::Packet;

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
    /// since the last rest again. Shows what was held back, but for the half of something to hide at
    /// the end of a turn that was not answered. Such a turn stays open: this pipeline is then not at
    /// rest. Where all of it can be read `again` in any case, what may have begun is not shown either.
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

    /// What a packet says of what an answer used that is passed over, as its record was printed before
    /// and is kept now: the number is final, and no event of the session.
    pub fn used_again(&mut self, packet: &Packet<'_>) -> Option<Event> {
        let mut told = Vec::new();
        self.sanitizer.push(used_again(packet)?, &mut told);
        told.pop()
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

    /// Tells a pipeline that [reads again](Pipeline::reread) the last events of the log, in order; the
    /// first of them is the `first` of the log where all of it is given.
    pub fn recall_log<'a>(&mut self, events: impl IntoIterator<Item = &'a Event>, first: bool) {
        if let Some(shown) = &mut self.shown {
            events.into_iter().enumerate().for_each(|(at, e)| shown.add(e, first && at == 0));
        }
    }
}
