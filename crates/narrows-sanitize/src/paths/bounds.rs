//! Around an anchor: separators, names, and where a path starts.

use super::scan::PathScanner;
use crate::chars::{MAX_ID_LEN, ends_path, is_name_byte};
use memchr::memmem;

/// Bytes before an anchor that are searched for the start of its path.
const MAX_LOOKBACK_BYTES: usize = 4096;

impl PathScanner<'_> {
    /// The start of the separator that ends at `at`.
    pub(crate) fn sep_before(&self, at: usize) -> Option<usize> {
        let b = self.b.get(..at)?;
        let mut end = match b.last() {
            Some(b'/') => at - 1,
            Some(b'\\') => return Some(at - 1),
            _ => return None,
        };
        // `//` and `/./` count as one.
        while at - end < 8 {
            let more = b.get(..end)?;
            if more.ends_with(b"/") {
                end -= 1;
            } else if more.ends_with(b"/.") {
                end -= 2;
            } else {
                break;
            }
        }
        Some(end)
    }

    /// The end of the separator that starts at `at`.
    pub(crate) fn sep_after(&self, at: usize) -> Option<usize> {
        let b = self.b.get(at..)?;
        if b.starts_with(b"/") {
            let mut len = 1;
            while len < 8 {
                let more = b.get(len..)?;
                if more.starts_with(b"/") {
                    len += 1;
                } else if more.starts_with(b"./") {
                    len += 2;
                } else {
                    break;
                }
            }
            return Some(at + len);
        }
        if b.starts_with(b"\\") {
            // After a root, `\n`, `\t` and the like are escapes of a JSON dump, not names.
            let escape = matches!(b.get(1), None | Some(b'n' | b't' | b'r' | b'u'));
            let near = self.b.get(at.saturating_sub(MAX_ID_LEN)..at)?;
            let last = memchr::memrchr2(b'/', b'\\', near);
            let windows = last.is_some_and(|i| near[i] == b'\\');
            return (!escape || windows).then_some(at + 1);
        }
        None
    }

    /// Returns whether the name that ends at `end` is complete.
    pub(crate) fn name_ends(&self, end: usize) -> bool {
        match self.b.get(end) {
            None => true,
            Some(b'.') => !self.b.get(end + 1).copied().is_some_and(is_name_byte),
            Some(c) if c.is_ascii() => !is_name_byte(*c),
            // Letters and accents continue a name; an ellipsis, a quote or an emoji does not.
            Some(_) => {
                let rest = &self.b[end..self.b.len().min(end + 4)];
                let text = rest.utf8_chunks().next().map_or("", |c| c.valid());
                let accent = |c: char| ('\u{300}'..'\u{370}').contains(&c);
                !text.chars().next().is_some_and(|c| c.is_alphanumeric() || accent(c))
            }
        }
    }

    /// Returns whether the text at `at` continues a longer name.
    pub(crate) fn is_glued(&self, at: usize) -> bool {
        let before = self.b.get(self.floor..at).unwrap_or_default();
        match before.last() {
            None => false,
            Some(c) if c.is_ascii() => is_name_byte(*c),
            Some(_) => {
                let len =
                    before.iter().rev().take(4).take_while(|c| **c & 0xC0 == 0x80).count() + 1;
                let last = before.get(before.len().saturating_sub(len)..).unwrap_or_default();
                std::str::from_utf8(last).is_ok_and(|c| c.chars().all(char::is_alphanumeric))
            }
        }
    }

    /// Returns whether the separator at `at` is a backslash.
    pub(crate) fn is_backslash(&self, at: usize) -> bool {
        self.b.get(at) == Some(&b'\\') && self.b.get(at + 1) != Some(&b'/')
    }

    /// The end of the path that contains `at`.
    pub(crate) fn token_end(&self, at: usize) -> usize {
        let rest = self.b.get(at..).unwrap_or_default();
        at + rest.iter().position(|c| ends_path(*c) || *c == b':').unwrap_or(rest.len())
    }

    /// Walks back from a separator to the start of its path.
    pub(crate) fn walk_back(&self, lead: usize, backslashes: bool) -> PathStart {
        let low = self.floor.max(lead.saturating_sub(MAX_LOOKBACK_BYTES));
        let mut start = self.word_start(lead, low, backslashes);
        // A folder name may contain spaces: continue while the words before belong to the path.
        while let PathStart::At(at) = start
            && at > low
            && self.b[at - 1] == b' '
            && !self.is_absolute(at)
            && let Some(joined) = self.words_before(at, low)
            && let PathStart::At(word) = self.word_start(joined, low, backslashes)
        {
            start = PathStart::At(word);
        }
        match start {
            PathStart::InUrl => PathStart::InUrl,
            // Never start inside a character.
            PathStart::At(mut at) => {
                while self.b.get(at).is_some_and(|c| c & 0xC0 == 0x80) && at < lead {
                    at += 1;
                }
                PathStart::At(at)
            }
        }
    }

    /// Walks back to the start of the word that contains or precedes `lead`.
    pub(crate) fn word_start(&self, lead: usize, low: usize, backslashes: bool) -> PathStart {
        let mut at = lead;
        while at > low {
            let c = self.b[at - 1];
            if c == b':' {
                return self.colon(at, low);
            }
            if c == b'\\' && !backslashes && self.b.get(at) != Some(&b'/') {
                // The text is a JSON dump: `\n/workspace/…`.
                let escape = matches!(self.b.get(at), Some(b'n' | b't' | b'r'));
                return PathStart::At((at + usize::from(escape)).min(lead));
            }
            if c == b'm' && self.is_color(at, low) {
                break;
            }
            if ends_path(c) && !self.is_soft(at, low) {
                break;
            }
            at -= 1;
        }
        PathStart::At(self.after_flag(at, lead))
    }

    /// Returns whether a color sequence ends at `at`.
    pub(crate) fn is_color(&self, at: usize, low: usize) -> bool {
        let before = self.b.get(low..at - 1).unwrap_or_default();
        let digits = before.iter().rev().take(16).take_while(|c| c.is_ascii_digit() || **c == b';');
        let len = digits.count();
        before.get(..before.len() - len).is_some_and(|b| b.ends_with(b"\x1b["))
    }

    /// Returns whether the delimiter before `at` is part of a folder name: no path starts after it,
    /// and one starts before it in the same word.
    pub(crate) fn is_soft(&self, at: usize, low: usize) -> bool {
        let c = self.b[at - 1];
        let apostrophe = c == b'\'' && at > low + 1 && self.b[at - 2].is_ascii_alphanumeric();
        let soft = apostrophe || matches!(c, b',' | b';' | b'&' | b'=' | b'(' | b')' | b'{' | b'}');
        if !soft || self.is_absolute(at) {
            return false;
        }
        let before = self.b.get(low..at - 1).unwrap_or_default();
        let word = before.iter().rev().take(MAX_ID_LEN).take_while(|c| !c.is_ascii_whitespace());
        word.take_while(|c| **c != b'"').any(|c| *c == b'/')
    }

    /// `-I/path`, `@/path` and the like: the path starts at its separator.
    pub(crate) fn after_flag(&self, at: usize, lead: usize) -> usize {
        let Some(word) = self.b.get(at..=lead) else {
            return at;
        };
        let len = word.iter().take_while(|c| !matches!(c, b'/' | b'\\')).count();
        let flag = match word.first() {
            Some(b'-') => len <= 3,
            Some(b'@' | b'#' | b'+' | b'$') => len == 1,
            _ => false,
        };
        if flag { at + len } else { at }
    }

    /// Classifies the colon that a walk reached: a drive letter, `file:`, another URL, or a
    /// delimiter.
    pub(crate) fn colon(&self, at: usize, low: usize) -> PathStart {
        let before = self.b.get(low..at - 1).unwrap_or_default();
        let len = before.iter().rev().take(16).take_while(|c| c.is_ascii_alphanumeric()).count();
        let word = before.get(before.len() - len..).unwrap_or_default();
        // `\\n:` of a JSON dump is no drive.
        let escape = before[..before.len() - len].ends_with(b"\\")
            && b"nrtbf".contains(&word.first().copied().unwrap_or(0));
        if len == 1 && !escape && word.iter().all(u8::is_ascii_alphabetic) {
            return PathStart::At(at - 2);
        }
        if self.b.get(at..).is_some_and(|rest| rest.starts_with(b"//")) && len > 0 {
            if word.eq_ignore_ascii_case(b"file") {
                return PathStart::At(at - 1 - len);
            }
            return PathStart::InUrl;
        }
        // Before a port stands a host.
        if self.b.get(at).is_some_and(u8::is_ascii_digit) {
            let len = before.iter().rev().take(MAX_ID_LEN).take_while(|c| !ends_path(**c)).count();
            let host = before.get(before.len() - len..).unwrap_or_default();
            if memmem::find(host, b"://").is_some() {
                return PathStart::InUrl;
            }
        }
        PathStart::At(at)
    }

    pub(crate) fn is_absolute(&self, at: usize) -> bool {
        matches!(self.b.get(at), Some(b'/' | b'\\' | b'~')) || self.b.get(at + 1) == Some(&b':')
    }

    /// A folder name may contain spaces: the position where the words before `at` continue the
    /// path.
    pub(crate) fn words_before(&self, at: usize, low: usize) -> Option<usize> {
        let mut end = at - 1;
        for _ in 0..4 {
            let word = self.b.get(low..end)?;
            let len = word.iter().rev().take_while(|c| !ends_path(**c)).count();
            let word = word.get(word.len() - len..)?;
            let start = end - len;
            let quoted = start > low && matches!(self.b[start - 1], b'"' | b'\'' | b'`');
            let path = word.iter().any(|c| matches!(c, b'/' | b'\\'));
            if len > 0 && path && (end == at - 1 || (quoted && self.is_absolute(start))) {
                return Some(end);
            }
            if len == 0 || start <= low || self.b[start - 1] != b' ' {
                return None;
            }
            end = start - 1;
        }
        None
    }
}

/// Where a walk back ended.
pub(crate) enum PathStart {
    At(usize),
    InUrl,
}

/// Returns whether a byte may be part of a path before a separator.
pub(crate) fn is_path_byte(c: u8) -> bool {
    !ends_path(c)
}
