//! Who writes a session. What is appended need not be events, so the end of the log does not tell
//! whether somebody else has written.

use crate::error::Result;
use crate::ids::random;

/// The low bits count what was written, the others name the writer.
const COUNT: i64 = (1 << 20) - 1;

/// Whoever writes a session, where others can too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pen {
    before: i64,
    now: i64,
}

impl Pen {
    /// A new writer, who knows the session as it was after `before`.
    pub fn new(before: i64) -> Result<Pen> {
        let random = i64::from_le_bytes(random()?);
        Ok(Pen { before, now: random & !COUNT })
    }

    /// Whether nobody else has written since: what the session tells of its last writer is either what
    /// was there before, to the last append, or this one's own.
    pub fn knows(self, wrote: i64) -> bool {
        wrote == self.before || wrote & !COUNT == self.now & !COUNT
    }

    /// Something more is written.
    pub fn goes_on(&mut self) {
        self.now = (self.now & !COUNT) | (self.now.wrapping_add(1) & COUNT);
    }

    /// The bits that name a writer.
    pub(crate) const WRITER: i64 = !COUNT;

    /// What was there before, and what names this writer: for whoever cannot ask [`Pen::knows`].
    pub(crate) fn parts(self) -> (i64, i64) {
        (self.before, self.now & Pen::WRITER)
    }

    /// What the session tells of its last writer from now on.
    pub(crate) fn mark(self) -> i64 {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_who_goes_on_is_seen_by_others() {
        let mut first = Pen::new(0).expect("a pen");
        first.goes_on();
        let second = Pen::new(first.mark()).expect("a pen");
        assert!(
            second.knows(first.mark()) && first.knows(first.mark()) && !first.knows(second.mark())
        );
        // The second has written nothing yet: what it knows is old now.
        first.goes_on();
        assert!(first.knows(first.mark()) && !second.knows(first.mark()));
        for _ in 0..=COUNT {
            first.goes_on();
        }
        assert!(first.knows(first.mark()));
    }
}
