//! Makes untrusted text safe for a terminal: nothing in it may act as a command.
//!
//! A title, a name, a file or an output may hold sequences that move the cursor, change the window
//! title, fill the clipboard or hide the target of a link. Every text passes through here; the
//! result has printable characters, line ends, tabs and, where requested, colors.

use crate::ansi_style::{PLAIN, TextStyle};
use crate::wrap::StyledSpan;
use std::iter::FusedIterator;

/// The longest command string that is searched for its end; of a longer one only the introducer is
/// removed.
const MAX_STRING_CHARS: usize = 4096;

/// A token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextToken<'a> {
    Text(&'a str),
    /// The parameters of an SGR sequence.
    Sgr(&'a str),
    /// A line end.
    LineEnd,
    /// A lone carriage return.
    CarriageReturn,
    /// A bidirectional control character.
    BidiControl(char),
}

/// Removes every escape sequence. Line ends and tabs stay; a lone carriage return becomes a line
/// end, so that no later text overwrites what precedes it.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in Tokenizer(text) {
        match token {
            TextToken::Text(text) => out.push_str(text),
            TextToken::Sgr(_) => {}
            TextToken::LineEnd | TextToken::CarriageReturn => out.push('\n'),
            TextToken::BidiControl(c) => out.push_str(&code_point_label(c)),
        }
    }
    out
}

/// Returns the escaped text on one line: each run of white space becomes one space.
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

/// Escapes a line of code: spaces stay, and inner line ends become visible.
pub fn line_of_code(text: &str) -> String {
    plain(text.strip_suffix('\r').unwrap_or(text)).replace('\n', "␍")
}

/// Returns the lines of terminal output with their colors. A line that carriage returns overwrote,
/// such as a progress bar, has its last state. The spans of a line begin with the style that the
/// line before ended with.
pub fn styled_lines(text: &str) -> StyledLines<'_> {
    StyledLines { tokens: Tokenizer(text), style: PLAIN, is_done: text.is_empty() }
}

/// The iterator of [`styled_lines`].
#[derive(Debug)]
pub struct StyledLines<'a> {
    tokens: Tokenizer<'a>,
    style: TextStyle,
    is_done: bool,
}

impl Iterator for StyledLines<'_> {
    type Item = Vec<StyledSpan>;

    fn next(&mut self) -> Option<Vec<StyledSpan>> {
        if self.is_done {
            return None;
        }
        let mut spans: Vec<StyledSpan> = Vec::new();
        let mut overwrites = false;
        loop {
            let label;
            let text = match self.tokens.next() {
                None => {
                    self.is_done = true;
                    return Some(spans);
                }
                Some(TextToken::LineEnd) => {
                    // A trailing line end adds no empty line.
                    self.is_done = self.tokens.0.is_empty();
                    return Some(spans);
                }
                Some(TextToken::Sgr(params)) => {
                    self.style.apply_sgr(params);
                    continue;
                }
                Some(TextToken::CarriageReturn) => {
                    overwrites = true;
                    continue;
                }
                Some(TextToken::BidiControl(c)) => {
                    label = code_point_label(c);
                    label.as_str()
                }
                Some(TextToken::Text(text)) => text,
            };
            if std::mem::take(&mut overwrites) {
                spans.clear();
            }
            match spans.last_mut() {
                Some(last) if last.pen == self.style => last.text.push_str(text),
                _ => spans.push(StyledSpan { pen: self.style, text: text.to_owned() }),
            }
        }
    }
}

impl FusedIterator for StyledLines<'_> {}

/// Shows an invisible character by its code point.
fn code_point_label(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// The tokens of the remaining text.
#[derive(Debug)]
struct Tokenizer<'a>(&'a str);

impl<'a> Iterator for Tokenizer<'a> {
    type Item = TextToken<'a>;

    fn next(&mut self) -> Option<TextToken<'a>> {
        loop {
            let rest = self.0;
            let end = rest.find(is_control_or_bidi).unwrap_or(rest.len());
            if end > 0 {
                let (text, after) = rest.split_at(end);
                self.0 = after;
                return Some(TextToken::Text(text));
            }
            let c = rest.chars().next()?;
            let after = &rest[c.len_utf8()..];
            let (token, after) = match c {
                '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => (Some(TextToken::LineEnd), after),
                '\r' => match after.strip_prefix('\n') {
                    Some(after) => (Some(TextToken::LineEnd), after),
                    None => (Some(TextToken::CarriageReturn), after),
                },
                '\u{1b}' => skip_escape(after),
                '\u{9b}' => skip_csi(after),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => (None, skip_string(after)),
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    (Some(TextToken::BidiControl(c)), after)
                }
                _ => (None, after),
            };
            self.0 = after;
            if token.is_some() {
                return token;
            }
        }
    }
}

/// Returns whether a character is a control other than the tab, or a bidirectional control.
fn is_control_or_bidi(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Skips the sequence after `ESC`.
fn skip_escape(after: &str) -> (Option<TextToken<'_>>, &str) {
    match after.as_bytes().first() {
        Some(b'[') => skip_csi(&after[1..]),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => (None, skip_string(&after[1..])),
        // Other sequences have intermediates and a final byte.
        Some(0x20..=0x7e) => {
            let intermediates = count_leading(after, |c| matches!(c, 0x20..=0x2f));
            let last = count_leading(&after[intermediates..], |c| matches!(c, 0x30..=0x7e)).min(1);
            (None, &after[intermediates + last..])
        }
        _ => (None, after),
    }
}

/// Skips the sequence after `ESC [`: parameters, intermediates and a final byte.
fn skip_csi(after: &str) -> (Option<TextToken<'_>>, &str) {
    let params = count_leading(after, |c| matches!(c, 0x30..=0x3f));
    let intermediates = count_leading(&after[params..], |c| matches!(c, 0x20..=0x2f));
    let (params_text, rest) = (&after[..params], &after[params + intermediates..]);
    match rest.as_bytes().first() {
        Some(b'm')
            if intermediates == 0
                && params_text.bytes().all(|c| matches!(c, b'0'..=b'9' | b';' | b':')) =>
        {
            (Some(TextToken::Sgr(params_text)), &rest[1..])
        }
        Some(0x40..=0x7e) => (None, &rest[1..]),
        // A sequence without a final byte: a terminal would wait for more, the text continues here.
        _ => (None, rest),
    }
}

/// Returns the text after the end of a command string. Of a string without an end, only the
/// introducer is removed: the rest is harmless text.
fn skip_string(after: &str) -> &str {
    let mut at = 0;
    for c in after.chars().take(MAX_STRING_CHARS) {
        let next = at + c.len_utf8();
        match c {
            '\u{07}' | '\u{9c}' => return &after[next..],
            '\u{1b}' if after[next..].starts_with('\\') => return &after[next + 1..],
            // Another sequence begins, or a terminal would abort the string.
            '\u{1b}' | '\u{18}' | '\u{1a}' | '\u{80}'..='\u{9f}' => return after,
            _ => at = next,
        }
    }
    after
}

fn count_leading(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|c| is(*c)).count()
}

#[cfg(test)]
mod tests;
