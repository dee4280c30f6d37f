//! What was removed, by kind and count, never the text.

use std::collections::BTreeMap;

/// Counts of what a sanitizer removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    kinds: BTreeMap<String, u64>,
    /// Escape sequences other than colours.
    pub(super) escapes: u64,
}

impl Removed {
    pub(super) fn add(&mut self, kind: &str) {
        match self.kinds.get_mut(kind) {
            Some(n) => *n += 1,
            None => drop(self.kinds.insert(kind.to_owned(), 1)),
        }
    }

    pub(super) fn add_all(&mut self, other: &Removed) {
        for (kind, n) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += n;
        }
        self.escapes += other.escapes;
    }

    /// Every kind with its count, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        let escapes = (self.escapes > 0).then_some(("escape", self.escapes));
        let mut all: Vec<(&str, u64)> =
            self.kinds.iter().map(|(k, n)| (k.as_str(), *n)).chain(escapes).collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// Whether nothing was removed.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.escapes == 0
    }
}
