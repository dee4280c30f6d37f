//! Cursors: a client has everything up to a position of a log.

use std::fmt;

/// A position in one epoch of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch of the log.
    pub epoch: String,
    /// The position.
    pub place: Place,
}

/// A position in a log. One event may yield several frames, so a position can be between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The client has everything up to this event.
    pub seq: u64,
    /// And this many frames of the next event.
    pub part: u32,
}

impl Place {
    /// The position after the event `seq`.
    pub fn after(seq: u64) -> Self {
        Place { seq, part: 0 }
    }

    /// Formats the position as a cursor.
    pub fn within(self, epoch: &str) -> Within<'_> {
        Within { epoch, place: self }
    }
}

impl Cursor {
    /// Parses `epoch-seq`, or `epoch-seq.part` for a position inside the event `seq`.
    pub fn parse(text: &str) -> Option<Cursor> {
        let (epoch, place) = text.split_once('-')?;
        let plain =
            |t: &str| !t.is_empty() && t.len() < 20 && t.bytes().all(|b| b.is_ascii_digit());
        if epoch.is_empty() || epoch.len() > 32 || !epoch.bytes().all(|b| b.is_ascii_alphanumeric())
        {
            return None;
        }
        let (seq, part) = match place.split_once('.') {
            Some((seq, part)) => (seq, Some(part)),
            None => (place, None),
        };
        if !plain(seq) || !part.is_none_or(plain) {
            return None;
        }
        let seq: u64 = seq.parse().ok()?;
        let place = match part {
            None => Place::after(seq),
            Some(part) => Place { seq: seq.checked_sub(1)?, part: part.parse().ok()? },
        };
        Some(Cursor { epoch: epoch.to_owned(), place })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.within(&self.epoch).fmt(f)
    }
}

/// A position formatted as a cursor of an epoch.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a> {
    epoch: &'a str,
    place: Place,
}

impl fmt::Display for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place { seq, part: 0 } => write!(f, "{}-{seq}", self.epoch),
            Place { seq, part } => write!(f, "{}-{}.{part}", self.epoch, seq + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_parses_its_display_form() {
        for text in ["abc-0", "abc-17", "abc-1.1", "abc-18.2"] {
            assert_eq!(Cursor::parse(text).expect(text).to_string(), text);
        }
        for text in
            ["", "abc", "abc-", "-1", "abc--1", "abc-1.", "abc-+1", "a/c-1", "abc-0.1", "abc-1e3"]
        {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
