//! The fence of appends: which writer appended last.
//!
//! An append may contain no events, so the end of the log alone does not show whether another
//! writer has appended.

use crate::error::Result;
use crate::ids::random;

/// The low bits count appends, the others identify the writer.
const COUNT: i64 = (1 << 20) - 1;

/// The token of a session writer, where several nodes write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pen {
    before: i64,
    now: i64,
}

impl Pen {
    /// A token for a new writer that loaded the session while its row held `before`.
    pub fn new(before: i64) -> Result<Pen> {
        let random = i64::from_le_bytes(random()?);
        Ok(Pen { before, now: random & !COUNT })
    }

    /// Whether no other writer has appended since: the session's row holds the token that was
    /// loaded, or one of this writer.
    pub fn knows(self, wrote: i64) -> bool {
        wrote == self.before || wrote & !COUNT == self.now & !COUNT
    }

    /// Advances the counter before an append.
    pub fn goes_on(&mut self) {
        self.now = (self.now & !COUNT) | (self.now.wrapping_add(1) & COUNT);
    }

    /// The bits that identify the writer.
    pub(crate) const WRITER: i64 = !COUNT;

    /// The loaded token, and the bits that identify this writer: the inputs of [`Pen::knows`] for
    /// SQL.
    pub(crate) fn parts(self) -> (i64, i64) {
        (self.before, self.now & Pen::WRITER)
    }

    /// The token that the session's row holds after an append.
    pub(crate) fn mark(self) -> i64 {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_of_one_writer_invalidate_others() {
        let mut first = Pen::new(0).expect("a pen");
        first.goes_on();
        let second = Pen::new(first.mark()).expect("a pen");
        assert!(
            second.knows(first.mark()) && first.knows(first.mark()) && !first.knows(second.mark())
        );
        // The second writer has not appended: its loaded token is stale now.
        first.goes_on();
        assert!(first.knows(first.mark()) && !second.knows(first.mark()));
        for _ in 0..=COUNT {
            first.goes_on();
        }
        assert!(first.knows(first.mark()));
    }
}
