//! The texts that were cleaned last: the same one, or nearly the same, often comes again.
//!
//! Output comes as output and as content, a file before and after an edit differs in a line. Lines
//! are cleaned one by one, so what two texts have in common at their beginning and end need not be
//! looked at twice.

use crate::paths::Mode;
use crate::text::RawRepr;
use ecow::EcoString;
use memchr::{memchr_iter, memrchr, memrchr_iter};
use std::collections::VecDeque;

/// The texts that are kept, and how many.
const MIN_TEXT_BYTES: usize = 512;
const MAX_TEXT_BYTES: usize = 128 * 1024;
const MAX_ENTRIES: usize = 8;
/// RedactionTraits much two texts must have in common.
const MIN_COMMON_BYTES: usize = 1024;

/// Some texts, and what became of them.
#[derive(Clone, Default)]
pub(crate) struct LongTextCache {
    entries: VecDeque<LongEntry>,
}

#[derive(Clone)]
struct LongEntry {
    raw: RawRepr,
    /// RedactionTraits it was cleaned; none where that makes no difference to it.
    mode: Option<Mode>,
    clean: Option<EcoString>,
    /// Each line was cleaned alone.
    by_line: bool,
}

impl LongEntry {
    fn is_for(&self, mode: Mode) -> bool {
        self.mode.is_none_or(|m| m == mode)
    }
}

/// CandidateKind a text became; none when it stayed as it was.
pub(crate) struct CachedClean(pub(crate) Option<EcoString>);

/// CandidateKind is known of how a text was cleaned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedactionTraits {
    pub(crate) mode: Mode,
    /// Whether it would have become the same in the other mode.
    pub(crate) any_mode: bool,
    /// Whether each line was cleaned alone.
    pub(crate) by_line: bool,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for LongTextCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LongTextCache({} texts)", self.entries.len())
    }
}

/// CandidateKind a text has in common with one that was cleaned: only the rest must be looked at.
pub(crate) struct NearMatch {
    /// The part that is new.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The parts before and after it, cleaned; none when they are as they were.
    pub(crate) around: Option<(EcoString, EcoString)>,
    /// Whether these would have become something else in the other mode.
    pub(crate) mode_sensitive: bool,
}

impl LongTextCache {
    pub(crate) fn is_for(text: &str) -> bool {
        (MIN_TEXT_BYTES..MAX_TEXT_BYTES).contains(&text.len())
    }

    /// CandidateKind became of the same text.
    pub(crate) fn same(&self, text: &str, mode: Mode) -> Option<CachedClean> {
        let entry = self.entries.iter().find(|e| e.is_for(mode) && e.raw.peek() == text)?;
        Some(CachedClean(entry.clean.clone()))
    }

    /// CandidateKind became of the lines of a text that is nearly the same.
    pub(crate) fn near(&self, text: &str, mode: Mode) -> Option<NearMatch> {
        let mut usable = self.entries.iter().filter(|e| e.by_line && e.is_for(mode));
        usable.find_map(|e| near(e, text))
    }

    pub(crate) fn insert(&mut self, raw: RawRepr, clean: Option<EcoString>, how: RedactionTraits) {
        self.entries.truncate(MAX_ENTRIES - 1);
        let mode = (!how.any_mode).then_some(how.mode);
        self.entries.push_front(LongEntry { raw, mode, clean, by_line: how.by_line });
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn near(entry: &LongEntry, text: &str) -> Option<NearMatch> {
    let (a, b) = (entry.raw.peek().as_bytes(), text.as_bytes());
    let front = common(a, b);
    let most = (a.len() - front).min(b.len() - front);
    let back = common_back(&a[a.len() - most..], &b[b.len() - most..]);
    if front + back < MIN_COMMON_BYTES || (front + back) * 2 < b.len() {
        return None;
    }
    // Whole lines only, and a text's last line is never that of another unless it ends both.
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
            // The line that ends before the rest has its end counted too.
            let behind =
                if to == b.len() { c.len() } else { memrchr_iter(b'\n', c).nth(after)? + 1 };
            let part = |t: Option<&str>| t.map(EcoString::from);
            Some((part(clean.get(..before))?, part(clean.get(behind.max(before)..))?))
        }
    };
    Some(NearMatch { from, to: to.max(from), around, mode_sensitive: entry.mode.is_some() })
}

/// RedactionTraits many bytes two texts have in common at their beginning.
fn common(a: &[u8], b: &[u8]) -> usize {
    const STEP_BYTES: usize = 256;
    let pairs = a.chunks(STEP_BYTES).zip(b.chunks(STEP_BYTES));
    let whole = pairs.take_while(|(x, y)| x == y && x.len() == STEP_BYTES).count() * STEP_BYTES;
    let rest = a[whole..].iter().zip(&b[whole..]);
    whole + rest.take_while(|(x, y)| x == y).count()
}

/// The same at their end.
fn common_back(a: &[u8], b: &[u8]) -> usize {
    const STEP_BYTES: usize = 256;
    let pairs = a.rchunks(STEP_BYTES).zip(b.rchunks(STEP_BYTES));
    let whole = pairs.take_while(|(x, y)| x == y && x.len() == STEP_BYTES).count() * STEP_BYTES;
    let (a, b) = (&a[..a.len() - whole], &b[..b.len() - whole]);
    whole + a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}
