//! Whether a request that comes again with its key holds what it held before.

use narrows_store::{BodyDigest, Error, Result};
use sha2::{Digest, Sha256};

/// Reads along with a body.
#[derive(Debug)]
pub(super) struct SameBody {
    /// What came with the key before, as far as it was kept.
    told: Option<BodyDigest>,
    /// It was answered: there is no more of it.
    whole: bool,
    read: Sha256,
    length: u64,
}

impl SameBody {
    pub(super) fn new(told: Option<BodyDigest>, whole: bool) -> SameBody {
        SameBody { told, whole, read: Sha256::new(), length: 0 }
    }

    /// What was read up to now.
    pub(super) fn digest(&self) -> BodyDigest {
        BodyDigest { length: self.length, sha256: self.read.clone().finalize().into() }
    }

    /// Takes the next bytes; refused as soon as they differ from what was told.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.told.map(|told| told.length.saturating_sub(self.length));
        let left = left.and_then(|left| usize::try_from(left).ok());
        let (known, new) = left.and_then(|at| bytes.split_at_checked(at)).unwrap_or((bytes, &[]));
        let before = self.length;
        self.add(known);
        let reached = self.told.filter(|told| self.length == told.length && before < told.length);
        if reached.is_some_and(|told| told != self.digest()) {
            return Err(Error::KeyReused);
        }
        self.add(new);
        self.check_length(|length, told| length > told)
    }

    /// The body is over.
    pub(super) fn finish(&self) -> Result<()> {
        self.check_length(|length, told| length != told)?;
        // One that broke off may go on, but not end before it did.
        match self.told {
            Some(told) if self.length < told.length => Err(Error::KeyReused),
            _ => Ok(()),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.read.update(bytes);
        self.length += bytes.len() as u64;
    }

    fn check_length(&self, is_other: impl Fn(u64, u64) -> bool) -> Result<()> {
        match self.told {
            Some(told) if self.whole && is_other(self.length, told.length) => Err(Error::KeyReused),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> BodyDigest {
        let mut body = SameBody::new(None, false);
        body.push(bytes).unwrap_or_default();
        body.digest()
    }

    /// Whether a body is taken, in pieces of every size.
    fn takes(told: &[u8], whole: bool, bytes: &[u8]) -> bool {
        let taken = |size: usize| {
            let mut body = SameBody::new(Some(digest(told)), whole);
            bytes.chunks(size).try_for_each(|piece| body.push(piece)).and_then(|()| body.finish())
        };
        let all: Vec<bool> = (1..=bytes.len().max(1)).map(|size| taken(size).is_ok()).collect();
        assert!(all.windows(2).all(|two| two[0] == two[1]), "the pieces decide");
        all[0]
    }

    #[test]
    fn only_the_same_body_is_taken() {
        for whole in [true, false] {
            assert!(takes(b"one two", whole, b"one two"));
            assert!(takes(b"", whole, b""));
            assert!(!takes(b"one two", whole, b"one tw"));
            assert!(!takes(b"one two", whole, b"one twO"));
            assert!(!takes(b"one two", whole, b"One two three"));
            assert!(!takes(b"one two", whole, b""));
        }
        // One that broke off goes on; one that was answered does not.
        assert!(takes(b"one two", false, b"one two three"));
        assert!(takes(b"", false, b"one"));
        assert!(!takes(b"one two", true, b"one two three"));
        assert!(!takes(b"", true, b"one"));
    }
}
