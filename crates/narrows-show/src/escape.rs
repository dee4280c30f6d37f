//! Text of agents on its way to a terminal: nothing in it may be a command.
//!
//! A title, a name, a file or an output may hold sequences that move the cursor, change the
//! window's title, fill the clipboard or hide what a link points to. Every text passes here: what
//! comes out has letters, line ends and tabs, and colours where they are asked for.

use super::pen::{PLAIN, Pen};
use std::iter::FusedIterator;

/// The longest command string that is looked through; a longer one was none, and only its
/// beginning goes.
const MAX_STRING: usize = 4096;

/// Some text that looks the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub pen: Pen,
    pub text: String,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    /// The parameters of a colour.
    Colour(&'a str),
    /// A line's end.
    End,
    /// Back to the beginning of the line.
    Back,
    /// A character that turns the direction of what follows.
    Turn(char),
}

/// The text without any escape. Line ends and tabs stay; a lone carriage return is a line's end, so
/// that nothing is hidden by what follows it.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in Parts(text) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Colour(_) => {}
            Part::End | Part::Back => out.push('\n'),
            Part::Turn(c) => out.push_str(&visible(c)),
        }
    }
    out
}

/// The text on one line, without any escape: blanks and line ends are one blank each.
pub fn line(text: &str) -> String {
    let plain = plain(text);
    let mut out = String::with_capacity(plain.len());
    for word in plain.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// A line of code, without any escape: blanks stay, and what would begin a new line is seen.
pub fn line_of_code(text: &str) -> String {
    plain(text.strip_suffix('\r').unwrap_or(text)).replace('\n', "␍")
}

/// The lines of a terminal's output, with their colours. A line that was written several times from
/// its beginning, as a progress bar is, is there as it was last. Each line has its own runs, which
/// begin with the colours that the line before ended with.
pub fn lines(text: &str) -> Lines<'_> {
    Lines { parts: Parts(text), pen: PLAIN, done: text.is_empty() }
}

/// See [`lines`].
#[derive(Debug)]
pub struct Lines<'a> {
    parts: Parts<'a>,
    pen: Pen,
    done: bool,
}

impl Iterator for Lines<'_> {
    type Item = Vec<Run>;

    fn next(&mut self) -> Option<Vec<Run>> {
        if self.done {
            return None;
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut again = false;
        loop {
            let said;
            let text = match self.parts.next() {
                None => {
                    self.done = true;
                    return Some(runs);
                }
                Some(Part::End) => {
                    // What ends with a line's end has no empty line after it.
                    self.done = self.parts.0.is_empty();
                    return Some(runs);
                }
                Some(Part::Colour(params)) => {
                    self.pen.take(params);
                    continue;
                }
                Some(Part::Back) => {
                    again = true;
                    continue;
                }
                Some(Part::Turn(c)) => {
                    said = visible(c);
                    said.as_str()
                }
                Some(Part::Text(text)) => text,
            };
            if std::mem::take(&mut again) {
                runs.clear();
            }
            match runs.last_mut() {
                Some(last) if last.pen == self.pen => last.text.push_str(text),
                _ => runs.push(Run { pen: self.pen, text: text.to_owned() }),
            }
        }
    }
}

impl FusedIterator for Lines<'_> {}

/// A character that cannot be seen, by its number.
fn visible(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// The parts of a text; the rest of it is kept here.
#[derive(Debug)]
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        loop {
            let rest = self.0;
            let end = rest.find(is_special).unwrap_or(rest.len());
            if end > 0 {
                let (text, after) = rest.split_at(end);
                self.0 = after;
                return Some(Part::Text(text));
            }
            let c = rest.chars().next()?;
            let after = &rest[c.len_utf8()..];
            let (part, after) = match c {
                '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => (Some(Part::End), after),
                '\r' => match after.strip_prefix('\n') {
                    Some(after) => (Some(Part::End), after),
                    None => (Some(Part::Back), after),
                },
                '\u{1b}' => escape(after),
                '\u{9b}' => control(after),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => (None, string(after)),
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => (Some(Part::Turn(c)), after),
                _ => (None, after),
            };
            self.0 = after;
            if part.is_some() {
                return part;
            }
        }
    }
}

/// What is not text: controls but for the tab, and characters that turn the direction of writing.
fn is_special(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What follows `ESC`.
fn escape(after: &str) -> (Option<Part<'_>>, &str) {
    match after.as_bytes().first() {
        Some(b'[') => control(&after[1..]),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => (None, string(&after[1..])),
        // Others are some characters of one range and one of another.
        Some(0x20..=0x7e) => {
            let between = count(after, |c| matches!(c, 0x20..=0x2f));
            let last = count(&after[between..], |c| matches!(c, 0x30..=0x7e)).min(1);
            (None, &after[between + last..])
        }
        _ => (None, after),
    }
}

/// What follows `ESC [`: parameters, more of them, and one letter that says what is to be done.
fn control(after: &str) -> (Option<Part<'_>>, &str) {
    let params = count(after, |c| matches!(c, 0x30..=0x3f));
    let between = count(&after[params..], |c| matches!(c, 0x20..=0x2f));
    let (given, rest) = (&after[..params], &after[params + between..]);
    match rest.as_bytes().first() {
        Some(b'm')
            if between == 0 && given.bytes().all(|c| matches!(c, b'0'..=b'9' | b';' | b':')) =>
        {
            (Some(Part::Colour(given)), &rest[1..])
        }
        Some(0x40..=0x7e) => (None, &rest[1..]),
        // It has no end: the terminal would wait for it, we do not.
        _ => (None, rest),
    }
}

/// What follows the beginning of a command string: the text after its end. A string without an end
/// is text without its beginning, which does nothing.
fn string(after: &str) -> &str {
    let mut at = 0;
    for c in after.chars().take(MAX_STRING) {
        let next = at + c.len_utf8();
        match c {
            '\u{07}' | '\u{9c}' => return &after[next..],
            '\u{1b}' if after[next..].starts_with('\\') => return &after[next + 1..],
            // Another sequence begins, or the terminal would give up.
            '\u{1b}' | '\u{18}' | '\u{1a}' | '\u{80}'..='\u{9f}' => return after,
            _ => at = next,
        }
    }
    after
}

fn count(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|c| is(*c)).count()
}

#[cfg(test)]
mod tests;
