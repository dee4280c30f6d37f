//! Many literals at once.

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, Span};

/// A set of literals, each at least a few bytes long.
#[derive(Debug, Clone)]
pub(crate) struct KeywordIndex {
    /// Fast, for up to a few dozen patterns on processors that can.
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

    /// The first literal at or after `at`: its number and place.
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

    /// Tells every place of every literal. Where two begin at one place, only one is told.
    pub(crate) fn each(&self, b: &[u8], mut tell: impl FnMut(usize, usize)) {
        let mut at = 0;
        while let Some((pattern, start)) = self.find(b, at) {
            tell(pattern, start);
            at = start + 1;
        }
    }
}
