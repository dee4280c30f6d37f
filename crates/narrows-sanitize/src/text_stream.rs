//! A byte stream in, clean text out.

use crate::paths::{Mode, Paths};
use crate::redactor::Redactor;
use crate::report::RedactionCounts;
use crate::secrets::Secrets;
use crate::stream_redactor::StreamRedactor;
use crate::text::Clean;

/// Redacts a stream of bytes as one text. Bytes that are not UTF-8 become U+FFFD.
pub struct TextStream {
    redactor: Redactor,
    stream: StreamRedactor,
    /// The first bytes of a character that is not complete yet.
    partial_char: Vec<u8>,
}

// Raw text must not be printed, not even for debugging.
impl std::fmt::Debug for TextStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextStream({:?})", self.stream)
    }
}

impl TextStream {
    /// Creates a stream that redacts `paths` and `secrets`.
    pub fn new(paths: Paths, secrets: Secrets) -> Self {
        TextStream {
            redactor: Redactor::new(paths, secrets),
            stream: StreamRedactor::new(Mode::Text),
            partial_char: Vec::new(),
        }
    }

    /// Counts of everything that was redacted so far.
    pub fn removed(&self) -> &RedactionCounts {
        self.redactor.removed()
    }

    /// Accepts the next bytes; returns the text that no rule can reach any more.
    pub fn push(&mut self, bytes: &[u8]) -> Clean {
        if self.partial_char.is_empty()
            && let Ok(text) = simdutf8::basic::from_utf8(bytes)
        {
            return self.stream.push(&mut self.redactor, text).unwrap_or_default();
        }
        self.partial_char.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&self.partial_char) {
            Ok(_) => self.partial_char.len(),
            // Only a character that is cut at the very end can still be completed.
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            Err(_) => self.partial_char.len() - incomplete_len(&self.partial_char),
        };
        let text = String::from_utf8_lossy(&self.partial_char[..complete]).into_owned();
        self.partial_char.drain(..complete);
        self.stream.push(&mut self.redactor, &text).unwrap_or_default()
    }

    /// Returns the part of the held-back text that may be shown during a pause of the input.
    pub fn preview(&mut self) -> Clean {
        self.stream.preview(&mut self.redactor).unwrap_or_default()
    }

    /// Ends the stream; returns the text that was held back.
    pub fn finish(&mut self) -> Clean {
        let text = String::from_utf8_lossy(&self.partial_char).into_owned();
        self.partial_char.clear();
        let mut out = self.stream.push(&mut self.redactor, &text).unwrap_or_default();
        out.push(&self.stream.finish(&mut self.redactor).unwrap_or_default());
        out
    }
}

/// Number of bytes at the end that may be the start of a character.
fn incomplete_len(b: &[u8]) -> usize {
    for n in 1..=3.min(b.len()) {
        let char_len = match b[b.len() - n] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => 0,
        };
        return if char_len > n { n } else { 0 };
    }
    0
}
