//! A search for many literals at once.

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, Span};

/// A set of literals of at least a few bytes each.
#[derive(Debug, Clone)]
pub(crate) struct KeywordIndex {
    /// SIMD search, for up to a few dozen patterns on processors that support it.
    packed: Option<packed::Searcher>,
    other: Option<AhoCorasick>,
}

impl KeywordIndex {
    pub(crate) fn new(patterns: &[Vec<u8>]) -> Option<KeywordIndex> {
        if patterns.is_empty() {
            return None;
        }
        let packed = packed::Config::new().builder().extend(patterns).build();
        let other = if packed.is_none() { AhoCorasick::new(patterns).ok() } else { None };
        Some(KeywordIndex { packed, other })
    }

    /// The first literal at or after `at`: its index and position.
    pub(crate) fn find(&self, b: &[u8], at: usize) -> Option<(usize, usize)> {
        if at >= b.len() {
            return None;
        }
        let found = match (&self.packed, &self.other) {
            (Some(packed), _) => packed.find_in(b, Span { start: at, end: b.len() })?,
            (None, Some(other)) => other.find(aho_corasick::Input::new(b).range(at..))?,
            (None, None) => return None,
        };
        Some((found.pattern().as_usize(), found.start()))
    }

    /// Reports every position of every literal; one literal per position.
    pub(crate) fn each(&self, b: &[u8], mut on_match: impl FnMut(usize, usize)) {
        let mut at = 0;
        while let Some((pattern, start)) = self.find(b, at) {
            on_match(pattern, start);
            at = start + 1;
        }
    }
}
