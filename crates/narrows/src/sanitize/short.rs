//! Short texts come again and again: names, ids, paths, commands. What became of the last few is
//! looked up instead of being found out anew.

use super::paths::Mode;
use super::removed::Removed;
use ecow::EcoString;

/// The texts that are kept, and how many; a text has one place, and the last one there stays.
const MIN_LEN: usize = 4;
const MAX_LEN: usize = 160;
const PLACES: usize = 256;

/// What a short text was cleaned as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    Text(Mode),
    Path,
}

#[derive(Clone)]
struct Entry {
    raw: EcoString,
    r#as: As,
    clean: EcoString,
    /// What was removed from it, which counts each time.
    removed: Removed,
}

/// The last few short texts.
#[derive(Clone, Default)]
pub(super) struct Short {
    places: Vec<Option<Entry>>,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Short({} texts)", self.places.iter().flatten().count())
    }
}

impl Short {
    pub(super) fn is_for(text: &str) -> bool {
        (MIN_LEN..=MAX_LEN).contains(&text.len())
    }

    /// What became of a text, and what was removed from it.
    pub(super) fn get(&self, text: &str, r#as: As) -> Option<(EcoString, &Removed)> {
        let entry = self.places.get(place(text, r#as))?.as_ref()?;
        let same = entry.r#as == r#as && entry.raw == text;
        same.then(|| (entry.clean.clone(), &entry.removed))
    }

    pub(super) fn keep(
        &mut self,
        text: &str,
        r#as: As,
        clean: Option<&EcoString>,
        removed: Removed,
    ) -> EcoString {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let raw = EcoString::from(text);
        let clean = clean.unwrap_or(&raw).clone();
        let entry = Entry { raw, r#as, clean: clean.clone(), removed };
        self.places[place(text, r#as)] = Some(entry);
        clean
    }

    pub(super) fn forget(&mut self) {
        self.places.clear();
    }
}

/// The place of a text, from its length, its ends and its middle.
fn place(text: &str, r#as: As) -> usize {
    let b = text.as_bytes();
    let word = |at: usize| {
        let mut eight = [0; 8];
        let part = &b[at.min(b.len().saturating_sub(8))..];
        let n = part.len().min(8);
        eight[..n].copy_from_slice(&part[..n]);
        u64::from_le_bytes(eight)
    };
    let seed = match r#as {
        As::Text(Mode::Text) => 1,
        As::Text(Mode::Body) => 2,
        As::Path => 3,
    };
    let mut hash = seed ^ b.len() as u64;
    for at in [0, b.len() / 2, b.len().saturating_sub(8)] {
        hash = (hash ^ word(at)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    (hash >> 40) as usize % PLACES
}
