//! Questions about what a pipeline has read.

use super::Pipeline;
use crate::adapter::Format;
use crate::sanitize::{Clean, Paths, RedactionCounts};
use crate::tally::Tally;
use crate::tool_calls::CallActivity;

impl Pipeline {
    /// The format of the packets; [`Format::Auto`] until it is detected.
    pub fn format(&self) -> Format {
        self.adapter.format()
    }

    /// Whether the input is a session file that the agent stores, not the stream of a running agent.
    pub fn is_kept(&self) -> bool {
        self.adapter.is_history()
    }

    /// How much of the input was understood so far.
    pub fn tally(&self) -> Tally {
        let decided = self.adapter.format() != Format::Auto;
        Tally { decided, kept: self.is_kept(), ..self.tally }
    }

    /// Packets so far that were bookkeeping of the agent.
    pub fn quiet(&self) -> u64 {
        self.ignored_packets
    }

    /// Redactions so far, by kind.
    pub fn removed(&self) -> &RedactionCounts {
        self.sanitizer.counts()
    }

    /// The redacted paths, with those that packets of the session named.
    pub fn paths(&self) -> &Paths {
        self.sanitizer.paths()
    }

    /// The roots that packets named: input for the pipeline that resumes this one. They are paths of
    /// the machine and must never be shown.
    pub fn roots(&self) -> &[String] {
        self.sanitizer.added_roots()
    }

    /// The name of the agent's working directory.
    pub fn project(&mut self) -> Option<Clean> {
        self.sanitizer.project_name()
    }

    /// Takes the calls that were updated since the last call of this function; only the newest ones
    /// if there are many.
    pub fn heard(&mut self) -> Vec<CallActivity> {
        self.calls.take_updated()
    }

    /// Number of calls whose full state is in memory; bounded, however many calls the session has.
    pub fn tracked_calls(&self) -> usize {
        self.calls.tracked()
    }

    /// Approximate bytes of held-back text and of tracked calls.
    pub fn weight(&self) -> usize {
        self.sanitizer.held_bytes() + self.calls.weight()
    }
}
