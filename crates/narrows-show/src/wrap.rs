//! Lines of a terminal: pieces of text with a look, broken where a line is full.

use super::pen::{PLAIN, Pen};
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Some text that looks the same. Its text has passed `escape`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub pen: Pen,
    pub text: String,
}

pub type Line = Vec<Span>;

pub fn span(pen: Pen, text: impl Into<String>) -> Span {
    Span { pen, text: text.into() }
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

pub fn line_width(line: &[Span]) -> usize {
    line.iter().map(|s| width(&s.text)).sum()
}

/// Writes a line, with or without its colours, and nothing behind its last letter.
pub fn write_line(out: &mut impl Write, line: &[Span], colour: bool) -> io::Result<()> {
    let last = line.iter().rposition(|s| !s.text.trim_end().is_empty());
    for (i, span) in line.iter().enumerate().take(last.map_or(0, |l| l + 1)) {
        let text = if Some(i) == last { span.text.trim_end() } else { &span.text };
        if colour && span.pen != PLAIN && !text.is_empty() {
            write!(out, "\x1b[{}m{text}\x1b[0m", span.pen.params())?;
        } else {
            out.write_all(text.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

/// The beginning of a text that fits into some columns, with a sign where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.truncate(out.trim_end().len());
        out.push('…');
    }
    out
}

/// The text with blanks for tabs.
pub fn without_tabs(text: &str, stop: usize) -> String {
    if !text.contains('\t') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + stop);
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let mut column = 0;
        for part in line.split_inclusive('\t') {
            let said = part.trim_end_matches('\t');
            out.push_str(said);
            column += width(said);
            if part.len() > said.len() {
                let blanks = stop - column % stop;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
        }
    }
    out
}

/// Breaks spans into lines of some columns. Line ends in them stay, and so do blanks but for those
/// where a line is broken.
pub fn wrap(spans: &[Span], columns: usize) -> Vec<Line> {
    let mut wrap = Wrap { columns: columns.max(1), ..Wrap::default() };
    for span in spans {
        wrap.take(span);
    }
    wrap.word_ends();
    wrap.lines.push(wrap.line);
    wrap.lines
}

#[derive(Default)]
struct Wrap {
    columns: usize,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// Blanks before the word, and how they look.
    gap: usize,
    gap_pen: Pen,
    word: Line,
    last: Option<char>,
}

impl Wrap {
    fn take(&mut self, span: &Span) {
        for c in span.text.chars() {
            match c {
                '\n' => {
                    self.word_ends();
                    self.line_ends();
                    self.gap = 0;
                    self.last = None;
                    continue;
                }
                ' ' | '\t' => {
                    self.word_ends();
                    (self.gap, self.gap_pen, self.last) = (self.gap + 1, span.pen, None);
                    continue;
                }
                _ => {}
            }
            if self.last.is_some_and(|last| may_break(last, c)) {
                self.word_ends();
            }
            push(&mut self.word, span.pen, c);
            self.last = Some(c);
        }
    }

    fn word_ends(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return;
        }
        let (gap, wide) = (std::mem::take(&mut self.gap), line_width(&word));
        if self.used + gap + wide <= self.columns {
            self.used += gap + wide;
            if gap > 0 {
                self.put(vec![span(self.gap_pen, " ".repeat(gap))]);
            }
            self.put(word);
            return;
        }
        if self.used > 0 {
            self.line_ends();
        }
        // Who clicks on an address or copies it wants it in one piece.
        if wide <= self.columns || word.iter().any(|s| s.text.contains("://")) {
            self.used = wide;
            self.put(word);
            return;
        }
        for span in word {
            for c in span.text.chars() {
                let wide = c.width().unwrap_or(0);
                if self.used > 0 && self.used + wide > self.columns {
                    self.line_ends();
                }
                push(&mut self.line, span.pen, c);
                self.used += wide;
            }
        }
    }

    fn put(&mut self, word: Line) {
        for span in word {
            match self.line.last_mut() {
                Some(last) if last.pen == span.pen => last.text.push_str(&span.text),
                _ => self.line.push(span),
            }
        }
    }

    fn line_ends(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.used = 0;
    }
}

fn push(line: &mut Line, pen: Pen, c: char) {
    match line.last_mut() {
        Some(last) if last.pen == pen => last.text.push(c),
        _ => line.push(span(pen, c)),
    }
}

/// Whether a line may end between two letters of one word: scripts without blanks.
fn may_break(before: char, after: char) -> bool {
    let script = |c: char| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}');
    let closes = |c: char| {
        "、。，．！？：；）」』】〉》”’…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.!?:;)]}%"
            .contains(c)
    };
    let opens = |c: char| "（「『【〈《“‘([{".contains(c);
    (script(before) || script(after))
        && !closes(after)
        && !opens(before)
        && after.width() != Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pen::BOLD;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&[span(PLAIN, text)], columns);
        lines.iter().map(|l| l.iter().map(|s| s.text.as_str()).collect()).collect()
    }

    #[test]
    fn breaks_at_blanks() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 80), ["one two three"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrapped("  kept  blanks here", 14), ["  kept  blanks", "here"]);
    }

    #[test]
    fn breaks_long_words_but_not_addresses() {
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("see https://example.com/a", 8), ["see", "https://example.com/a"]);
        assert_eq!(wrapped("x", 0), ["x"]);
    }

    #[test]
    fn counts_columns_and_not_letters() {
        assert_eq!(wrapped("漢字漢字漢字", 5), ["漢字", "漢字", "漢字"]);
        assert_eq!(wrapped("文章です。次の", 8), ["文章で", "す。次の"]);
        assert_eq!(wrapped("🚀🚀 🚀", 5), ["🚀🚀", "🚀"]);
        assert_eq!(wrapped("e\u{301}e\u{301} e\u{301}", 4), ["e\u{301}e\u{301} e\u{301}"]);
        assert_eq!(wrapped("👩‍👩‍👧 ab", 5), ["👩‍👩‍👧 ab"]);
        for columns in 2..20 {
            for line in
                wrapped("naïve café ☕ 日本語のテキスト, with (words) 🦊🦊 and한국어", columns)
            {
                assert!(width(&line) <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn a_word_of_several_looks_stays_together() {
        let spans = [span(PLAIN, "a "), span(BOLD, "bold"), span(PLAIN, "er word")];
        let lines = wrap(&spans, 7);
        assert_eq!(lines[0], [span(PLAIN, "a")]);
        assert_eq!(lines[1], [span(BOLD, "bold"), span(PLAIN, "er")]);
    }

    #[test]
    fn cuts_and_fills() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("ab", 0), "");
        assert_eq!(without_tabs("a\tb\n\tc\t\td", 4), "a   b\n    c       d");
    }

    #[test]
    fn writes_colours_only_when_asked() {
        let line = [span(BOLD, "a"), span(PLAIN, "b "), span(BOLD, "  ")];
        let written = |colour| {
            let mut out = Vec::new();
            write_line(&mut out, &line, colour).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(true), "\u{1b}[1ma\u{1b}[0mb\n");
        assert_eq!(written(false), "ab\n");
    }
}
