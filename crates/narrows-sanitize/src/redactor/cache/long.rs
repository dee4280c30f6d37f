//! A cache of recent long texts: the same text, or nearly the same, often comes again.
//!
//! Tool output arrives as output and as content; a file before and after an edit differs in a few
//! lines. Lines are redacted one by one, so the common first and last lines of two texts need no
//! second scan.

use crate::paths::Mode;
use crate::text::RawRepr;
use ecow::EcoString;
use memchr::{memchr_iter, memrchr, memrchr_iter};
use std::collections::VecDeque;

/// Sizes of cached texts, and how many texts are cached.
const MIN_TEXT_BYTES: usize = 512;
const MAX_TEXT_BYTES: usize = 128 * 1024;
const MAX_ENTRIES: usize = 8;
/// Shortest common part, start and end together, that makes two texts near matches.
const MIN_COMMON_BYTES: usize = 1024;

/// Some recent texts with their redacted form.
#[derive(Clone, Default)]
pub(crate) struct LongTextCache {
    entries: VecDeque<LongEntry>,
}

#[derive(Clone)]
struct LongEntry {
    raw: RawRepr,
    /// The mode it was redacted in; `None` when the result is the same in both modes.
    mode: Option<Mode>,
    clean: Option<EcoString>,
    /// Each line was redacted alone.
    by_line: bool,
}

impl LongEntry {
    fn is_for(&self, mode: Mode) -> bool {
        self.mode.is_none_or(|m| m == mode)
    }
}

/// The redacted form of a text; `None` when it is unchanged.
pub(crate) struct CachedClean(pub(crate) Option<EcoString>);

/// How a text was redacted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedactionTraits {
    pub(crate) mode: Mode,
    /// The result is the same in the other mode.
    pub(crate) any_mode: bool,
    /// Each line was redacted alone.
    pub(crate) by_line: bool,
}

// Raw text must not be printed, not even for debugging.
impl std::fmt::Debug for LongTextCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LongTextCache({} texts)", self.entries.len())
    }
}

/// The common part of a text and a cached one: only the rest must be redacted.
pub(crate) struct NearMatch {
    /// The part that differs.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The redacted parts before and after it; `None` when they are unchanged.
    pub(crate) around: Option<(EcoString, EcoString)>,
    /// These parts depend on the mode.
    pub(crate) mode_sensitive: bool,
}

impl LongTextCache {
    pub(crate) fn is_for(text: &str) -> bool {
        (MIN_TEXT_BYTES..MAX_TEXT_BYTES).contains(&text.len())
    }

    /// Looks up the same text.
    pub(crate) fn same(&self, text: &str, mode: Mode) -> Option<CachedClean> {
        let entry = self.entries.iter().find(|e| e.is_for(mode) && e.raw.peek() == text)?;
        Some(CachedClean(entry.clean.clone()))
    }

    /// Looks up a text with the same first and last lines.
    pub(crate) fn near(&self, text: &str, mode: Mode) -> Option<NearMatch> {
        let mut usable = self.entries.iter().filter(|e| e.by_line && e.is_for(mode));
        usable.find_map(|e| near(e, text))
    }

    pub(crate) fn insert(
        &mut self,
        raw: RawRepr,
        clean: Option<EcoString>,
        traits: RedactionTraits,
    ) {
        self.entries.truncate(MAX_ENTRIES - 1);
        let mode = (!traits.any_mode).then_some(traits.mode);
        self.entries.push_front(LongEntry { raw, mode, clean, by_line: traits.by_line });
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn near(entry: &LongEntry, text: &str) -> Option<NearMatch> {
    let (a, b) = (entry.raw.peek().as_bytes(), text.as_bytes());
    let front = common(a, b);
    let max_back = (a.len() - front).min(b.len() - front);
    let back = common_back(&a[a.len() - max_back..], &b[b.len() - max_back..]);
    if front + back < MIN_COMMON_BYTES || (front + back) * 2 < b.len() {
        return None;
    }
    // Whole lines only. A text's last line counts only when it ends both texts.
    let from = memrchr(b'\n', &b[..front]).map_or(0, |i| i + 1);
    let to = match memchr_iter(b'\n', &b[b.len() - back..]).next() {
        Some(i) if back > 0 => b.len() - back + i + 1,
        _ => b.len(),
    };
    let around = match &entry.clean {
        None => None,
        Some(clean) => {
            let c = clean.as_bytes();
            let lines = |t: &[u8]| memchr_iter(b'\n', t).count();
            if lines(a) != lines(c) {
                return None;
            }
            let before = match memchr_iter(b'\n', &b[..from]).count() {
                0 => 0,
                n => memchr_iter(b'\n', c).nth(n - 1)? + 1,
            };
            let after = memchr_iter(b'\n', &b[to..]).count();
            // The line feed that ends the line before the common end is counted too.
            let after_end =
                if to == b.len() { c.len() } else { memrchr_iter(b'\n', c).nth(after)? + 1 };
            let part = |t: Option<&str>| t.map(EcoString::from);
            Some((part(clean.get(..before))?, part(clean.get(after_end.max(before)..))?))
        }
    };
    Some(NearMatch { from, to: to.max(from), around, mode_sensitive: entry.mode.is_some() })
}

/// Length of the common start of two texts in bytes.
fn common(a: &[u8], b: &[u8]) -> usize {
    const STEP_BYTES: usize = 256;
    let pairs = a.chunks(STEP_BYTES).zip(b.chunks(STEP_BYTES));
    let whole = pairs.take_while(|(x, y)| x == y && x.len() == STEP_BYTES).count() * STEP_BYTES;
    let rest = a[whole..].iter().zip(&b[whole..]);
    whole + rest.take_while(|(x, y)| x == y).count()
}

/// Length of their common end.
fn common_back(a: &[u8], b: &[u8]) -> usize {
    const STEP_BYTES: usize = 256;
    let pairs = a.rchunks(STEP_BYTES).zip(b.rchunks(STEP_BYTES));
    let whole = pairs.take_while(|(x, y)| x == y && x.len() == STEP_BYTES).count() * STEP_BYTES;
    let (a, b) = (&a[..a.len() - whole], &b[..b.len() - whole]);
    whole + a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}
