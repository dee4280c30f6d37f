//! A cache of short texts that come again and again: names, ids, paths, commands.

use crate::paths::Mode;
use crate::report::RedactionCounts;
use ecow::EcoString;

/// Sizes of cached texts, and the number of slots. A newer text replaces the one in its slot.
const MIN_TEXT_BYTES: usize = 4;
const MAX_TEXT_BYTES: usize = 160;
const SLOT_COUNT: usize = 256;

/// How a short text was redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text(Mode),
    Path,
}

#[derive(Clone)]
struct ShortEntry {
    raw: EcoString,
    kind: FieldKind,
    clean: EcoString,
    /// What was redacted in it; counted again on each hit.
    counts: RedactionCounts,
}

/// Some recent short texts, one per slot.
#[derive(Clone, Default)]
pub(crate) struct ShortTextCache {
    slots: Vec<Option<ShortEntry>>,
}

// Raw text must not be printed, not even for debugging.
impl std::fmt::Debug for ShortTextCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShortTextCache({} texts)", self.slots.iter().flatten().count())
    }
}

impl ShortTextCache {
    pub(crate) fn is_for(text: &str) -> bool {
        (MIN_TEXT_BYTES..=MAX_TEXT_BYTES).contains(&text.len())
    }

    /// Looks up a text and what was redacted in it.
    pub(crate) fn get(&self, text: &str, kind: FieldKind) -> Option<(EcoString, &RedactionCounts)> {
        let entry = self.slots.get(slot_of(text, kind))?.as_ref()?;
        let same = entry.kind == kind && entry.raw == text;
        same.then(|| (entry.clean.clone(), &entry.counts))
    }

    pub(crate) fn insert(
        &mut self,
        text: &str,
        kind: FieldKind,
        clean: Option<&EcoString>,
        counts: RedactionCounts,
    ) -> EcoString {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOT_COUNT, || None);
        }
        let raw = EcoString::from(text);
        let clean = clean.unwrap_or(&raw).clone();
        let entry = ShortEntry { raw, kind, clean: clean.clone(), counts };
        self.slots[slot_of(text, kind)] = Some(entry);
        clean
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }
}

/// The slot of a text, by its length, ends and middle.
fn slot_of(text: &str, kind: FieldKind) -> usize {
    let b = text.as_bytes();
    let word = |at: usize| {
        let mut eight = [0; 8];
        let part = &b[at.min(b.len().saturating_sub(8))..];
        let n = part.len().min(8);
        eight[..n].copy_from_slice(&part[..n]);
        u64::from_le_bytes(eight)
    };
    let seed = match kind {
        FieldKind::Text(Mode::Text) => 1,
        FieldKind::Text(Mode::Body) => 2,
        FieldKind::Path => 3,
    };
    let mut hash = seed ^ b.len() as u64;
    for at in [0, b.len() / 2, b.len().saturating_sub(8)] {
        hash = (hash ^ word(at)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    (hash >> 40) as usize % SLOT_COUNT
}
