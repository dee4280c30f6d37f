//! Plain text in, clean text out: the sanitizer as a filter.

use super::clean::Cleaner;
use super::paths::{Mode, Paths};
use super::removed::Removed;
use super::seam::Seam;
use super::secret::Secrets;
use super::text::Clean;
use std::sync::Arc;

/// Cleans a stream of bytes as one text. Bytes that are not UTF-8 become U+FFFD.
pub struct TextStream {
    cleaner: Cleaner,
    seam: Seam,
    /// The beginning of a character whose end has not come yet.
    part: Vec<u8>,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for TextStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextStream({:?})", self.seam)
    }
}

impl TextStream {
    /// A filter that hides `paths` and `secrets`.
    pub fn new(paths: Paths, secrets: Secrets) -> Self {
        let cleaner = Cleaner::new(paths, Arc::new(secrets));
        TextStream { cleaner, seam: Seam::new(Mode::Text), part: Vec::new() }
    }

    /// What was removed so far.
    pub fn removed(&self) -> &Removed {
        &self.cleaner.removed
    }

    /// Takes the next bytes; returns what is safe to show.
    pub fn push(&mut self, bytes: &[u8]) -> Clean {
        if self.part.is_empty()
            && let Ok(text) = simdutf8::basic::from_utf8(bytes)
        {
            return self.seam.push(&mut self.cleaner, text).unwrap_or_default();
        }
        self.part.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.part) {
            Ok(_) => self.part.len(),
            // Only a character that is cut at the very end may be waited for.
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            Err(_) => self.part.len() - unfinished(&self.part),
        };
        let text = String::from_utf8_lossy(&self.part[..whole]).into_owned();
        self.part.drain(..whole);
        self.seam.push(&mut self.cleaner, &text).unwrap_or_default()
    }

    /// What can be shown of what is held back, as long as no more comes.
    pub fn preview(&mut self) -> Clean {
        self.seam.preview(&mut self.cleaner).unwrap_or_default()
    }

    /// Ends the stream; returns the rest.
    pub fn finish(&mut self) -> Clean {
        let text = String::from_utf8_lossy(&self.part).into_owned();
        self.part.clear();
        let mut out = self.seam.push(&mut self.cleaner, &text).unwrap_or_default();
        out.push(&self.seam.finish(&mut self.cleaner).unwrap_or_default());
        out
    }
}

/// How many bytes at the end may be the beginning of a character.
fn unfinished(b: &[u8]) -> usize {
    for n in 1..=3.min(b.len()) {
        let wanted = match b[b.len() - n] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => 0,
        };
        return if wanted > n { n } else { 0 };
    }
    0
}
