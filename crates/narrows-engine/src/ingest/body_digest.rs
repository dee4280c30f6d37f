//! Checks that a request that repeats an idempotency key has the same body as before.

use narrows_store::{BodyDigest, Error, Result};
use sha2::{Digest, Sha256};

/// Hashes a body while it is read and compares it with the one that came with the key before.
#[derive(Debug)]
pub(super) struct BodyCheck {
    /// The stored part of the earlier body.
    expected: Option<BodyDigest>,
    /// The earlier request was answered: its body is complete.
    complete: bool,
    hasher: Sha256,
    length: u64,
}

impl BodyCheck {
    pub(super) fn new(expected: Option<BodyDigest>, complete: bool) -> BodyCheck {
        BodyCheck { expected, complete, hasher: Sha256::new(), length: 0 }
    }

    /// The digest of what was read so far.
    pub(super) fn digest(&self) -> BodyDigest {
        BodyDigest { length: self.length, sha256: self.hasher.clone().finalize().into() }
    }

    /// Adds the next bytes; fails as soon as they differ from the earlier body.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.expected.map(|expected| expected.length.saturating_sub(self.length));
        let left = left.and_then(|left| usize::try_from(left).ok());
        let (known, new) = left.and_then(|at| bytes.split_at_checked(at)).unwrap_or((bytes, &[]));
        let before = self.length;
        self.add(known);
        let reached = self
            .expected
            .filter(|expected| self.length == expected.length && before < expected.length);
        if reached.is_some_and(|expected| expected != self.digest()) {
            return Err(Error::KeyReused);
        }
        self.add(new);
        self.check_length(|length, expected| length > expected)
    }

    /// Checks the length at the end of the body.
    pub(super) fn finish(&self) -> Result<()> {
        self.check_length(|length, expected| length != expected)?;
        // A body that was cut off may be longer this time, but not shorter.
        match self.expected {
            Some(expected) if self.length < expected.length => Err(Error::KeyReused),
            _ => Ok(()),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
    }

    fn check_length(&self, differs: impl Fn(u64, u64) -> bool) -> Result<()> {
        match self.expected {
            Some(expected) if self.complete && differs(self.length, expected.length) => {
                Err(Error::KeyReused)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> BodyDigest {
        let mut body = BodyCheck::new(None, false);
        body.push(bytes).unwrap_or_default();
        body.digest()
    }

    /// Whether a body is accepted, whatever the size of its pieces.
    fn accepts(earlier: &[u8], complete: bool, bytes: &[u8]) -> bool {
        let accepted = |size: usize| {
            let mut body = BodyCheck::new(Some(digest(earlier)), complete);
            bytes.chunks(size).try_for_each(|piece| body.push(piece)).and_then(|()| body.finish())
        };
        let all: Vec<bool> = (1..=bytes.len().max(1)).map(|size| accepted(size).is_ok()).collect();
        assert!(
            all.windows(2).all(|two| two[0] == two[1]),
            "the result depends on the size of the pieces"
        );
        all[0]
    }

    #[test]
    fn repeated_key_accepts_only_same_body() {
        for complete in [true, false] {
            assert!(accepts(b"one two", complete, b"one two"));
            assert!(accepts(b"", complete, b""));
            assert!(!accepts(b"one two", complete, b"one tw"));
            assert!(!accepts(b"one two", complete, b"one twO"));
            assert!(!accepts(b"one two", complete, b"One two three"));
            assert!(!accepts(b"one two", complete, b""));
        }
        // A body that was cut off may continue; one that was answered may not.
        assert!(accepts(b"one two", false, b"one two three"));
        assert!(accepts(b"", false, b"one"));
        assert!(!accepts(b"one two", true, b"one two three"));
        assert!(!accepts(b"", true, b"one"));
    }
}
