//! Counts of redactions by kind; never the redacted text.

use std::collections::BTreeMap;

/// How often each kind of text was redacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactionCounts {
    by_kind: BTreeMap<String, u64>,
    /// Removed escape sequences. Colors are kept and not counted.
    pub(crate) escapes: u64,
}

impl RedactionCounts {
    pub(crate) fn add(&mut self, kind: &str) {
        match self.by_kind.get_mut(kind) {
            Some(n) => *n += 1,
            None => drop(self.by_kind.insert(kind.to_owned(), 1)),
        }
    }

    pub(crate) fn add_all(&mut self, other: &RedactionCounts) {
        for (kind, n) in &other.by_kind {
            *self.by_kind.entry(kind.clone()).or_default() += n;
        }
        self.escapes += other.escapes;
    }

    /// Iterates over the kinds with their counts, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        let escapes = (self.escapes > 0).then_some(("escape", self.escapes));
        let mut all: Vec<(&str, u64)> =
            self.by_kind.iter().map(|(k, n)| (k.as_str(), *n)).chain(escapes).collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// Returns whether nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty() && self.escapes == 0
    }
}
