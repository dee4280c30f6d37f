//! Where a text may be cut so that each part can be cleaned alone.
//!
//! A segment ends at a blank after which nothing of what came before can matter: nothing that may
//! be a path, a key or the beginning of a value stands in the last few words. Whether a place is
//! such an end depends on the text just before it and on nothing else, so a stream and a whole
//! text are cut at the same places, however the stream came.

use memchr::memrchr2;

/// A segment without an end is cut at this length.
pub(super) const MAX_SEGMENT: usize = 8 * 1024;
/// How much must be known beyond such a cut, to see what it would cut through.
pub(super) const AHEAD: usize = 1024;
/// How many words, and bytes, before a blank are looked at.
const WORDS: usize = 4;
pub(super) const LOOK: usize = 512;

/// What makes a blank no end, beyond what always does.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds {
    /// Words looked at: more when a root has folders with blanks in their names.
    pub(super) more_words: usize,
    /// Words of rules that a user added.
    pub(super) keywords: Vec<String>,
    /// The beginnings, up to each blank, of known values with blanks in them.
    pub(super) begun: Vec<String>,
}

impl Holds {
    /// Whether a segment ends right before `p`.
    pub(super) fn ends_at(&self, b: &[u8], p: usize) -> bool {
        match p.checked_sub(1).and_then(|i| b.get(i)) {
            Some(b'\n' | b'\r') => true,
            // Only the first blank of several: the others add nothing.
            Some(b' ' | b'\t') if p < 2 || !is_blank(b[p - 2]) => {
                let from = p.saturating_sub(LOOK);
                let before = &b[from..p - 1];
                let line = memrchr2(b'\n', b'\r', before).map_or(0, |i| i + 1);
                let cut = line == 0 && from > 0;
                !self.holds(&before[line..], cut)
                    && !self.begun.iter().any(|v| b[..p].ends_with(v.as_bytes()))
            }
            _ => false,
        }
    }

    /// Whether one of the last words of `before` may go on; `cut` says that its beginning is not
    /// that of a word.
    fn holds(&self, before: &[u8], cut: bool) -> bool {
        let mut end = before.len();
        let mut seen = 0;
        while end > 0 && seen < WORDS + self.more_words {
            let start = before[..end].iter().rposition(|c| is_blank(*c)).map_or(0, |i| i + 1);
            let word = &before[start..end];
            if !word.is_empty() {
                seen += 1;
                let whole = start > 0 || !cut;
                if is_open(word) || (whole && is_key(word)) || self.has_keyword(word) {
                    return true;
                }
            }
            end = start.saturating_sub(1);
        }
        false
    }

    fn has_keyword(&self, word: &[u8]) -> bool {
        self.keywords.iter().any(|k| memchr::memmem::find(word, k.as_bytes()).is_some())
    }

    /// The end of the last segment that ends in `b`, at or after `from`.
    pub(super) fn last_end(&self, b: &[u8], from: usize) -> Option<usize> {
        (from + 1..=b.len()).rev().find(|p| is_white(b[p - 1]) && self.ends_at(b, *p))
    }

    /// The end of the first segment that ends after `at`, within `reach` bytes.
    pub(super) fn next_end(&self, b: &[u8], at: usize, reach: usize) -> Option<usize> {
        let to = b.len().min(at.saturating_add(reach));
        (at + 1..=to).find(|p| is_white(b[p - 1]) && self.ends_at(b, *p))
    }
}

fn is_blank(c: u8) -> bool {
    c == b' ' || c == b'\t'
}

fn is_white(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a path or a value may go on after this word.
fn is_open(word: &[u8]) -> bool {
    word.iter().any(|c| matches!(c, b'/' | b'\\' | b'%' | b':' | b'=' | 0x1b))
}

/// Whether a word names a secret: its value may follow, with or without a sign between.
pub(super) fn is_key(word: &[u8]) -> bool {
    const KEYS: [&str; 10] = [
        "secret",
        "passw",
        "passphr",
        "token",
        "key",
        "auth",
        "basic",
        "bearer",
        "credential",
        "pwd",
    ];
    static LETTERS: [u32; KEYS.len()] = {
        let mut all = [0; KEYS.len()];
        let mut i = 0;
        while i < KEYS.len() {
            all[i] = letters(KEYS[i].as_bytes());
            i += 1;
        }
        all
    };
    let has = letters(word);
    let named = |(key, need): (&&str, &u32)| {
        has & need == *need
            && word.windows(key.len()).any(|w| w.eq_ignore_ascii_case(key.as_bytes()))
    };
    word.starts_with(b"-") || KEYS.iter().zip(&LETTERS).any(named) || has_flag(word)
}

/// `--token` behind a quote or a bracket.
fn has_flag(word: &[u8]) -> bool {
    word.windows(2).any(|w| w == b"--")
}

/// Which letters are in a word, one bit each.
const fn letters(word: &[u8]) -> u32 {
    let mut bits = 0;
    let mut i = 0;
    while i < word.len() {
        let c = word[i] | 0x20;
        if c.is_ascii_lowercase() {
            bits |= 1 << (c - b'a');
        }
        i += 1;
    }
    bits
}
