//! Lines of styled text, wrapped to the width of a terminal.

use super::ansi_style::{PLAIN, TextStyle};
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

// Former names, until their uses in other crates are renamed.
pub use self::{StyledLine as Line, StyledSpan as Span};

/// Text of one style. The text has passed `escape`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    pub pen: TextStyle,
    pub text: String,
}

/// A line of a terminal.
pub type StyledLine = Vec<StyledSpan>;

/// Creates a span.
pub fn span(style: TextStyle, text: impl Into<String>) -> StyledSpan {
    StyledSpan { pen: style, text: text.into() }
}

/// Returns the columns of a text.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns the columns of a line.
pub fn line_width(line: &[StyledSpan]) -> usize {
    line.iter().map(|s| width(&s.text)).sum()
}

/// Writes a line, with or without color, and without trailing spaces.
pub fn write_line(out: &mut impl Write, line: &[StyledSpan], color: bool) -> io::Result<()> {
    let last = line.iter().rposition(|s| !s.text.trim_end().is_empty());
    for (i, span) in line.iter().enumerate().take(last.map_or(0, |l| l + 1)) {
        let text = if Some(i) == last { span.text.trim_end() } else { &span.text };
        if color && span.pen != PLAIN && !text.is_empty() {
            write!(out, "\x1b[{}m{text}\x1b[0m", span.pen.sgr_params())?;
        } else {
            out.write_all(text.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

/// Truncates a text to a number of columns, with an ellipsis in place of the missing end.
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

/// Expands tabs.
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
            let text_part = part.trim_end_matches('\t');
            out.push_str(text_part);
            column += width(text_part);
            if part.len() > text_part.len() {
                let blanks = stop - column % stop;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
        }
    }
    out
}

/// Wraps spans into lines of at most `columns` columns. Line ends and spaces are kept, except for
/// spaces at a break.
pub fn wrap(spans: &[StyledSpan], columns: usize) -> Vec<StyledLine> {
    let mut breaker = LineBreaker { columns: columns.max(1), ..LineBreaker::default() };
    for span in spans {
        breaker.push_span(span);
    }
    breaker.end_word();
    breaker.lines.push(breaker.line);
    breaker.lines
}

#[derive(Default)]
struct LineBreaker {
    columns: usize,
    lines: Vec<StyledLine>,
    line: StyledLine,
    used: usize,
    /// Spaces before the word, and their style.
    gap: usize,
    gap_style: TextStyle,
    word: StyledLine,
    last: Option<char>,
}

impl LineBreaker {
    fn push_span(&mut self, span: &StyledSpan) {
        for c in span.text.chars() {
            match c {
                '\n' => {
                    self.end_word();
                    self.end_line();
                    self.gap = 0;
                    self.last = None;
                    continue;
                }
                ' ' | '\t' => {
                    self.end_word();
                    (self.gap, self.gap_style, self.last) = (self.gap + 1, span.pen, None);
                    continue;
                }
                _ => {}
            }
            if self.last.is_some_and(|last| can_break_between(last, c)) {
                self.end_word();
            }
            push_char(&mut self.word, span.pen, c);
            self.last = Some(c);
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return;
        }
        let (gap, wide) = (std::mem::take(&mut self.gap), line_width(&word));
        if self.used + gap + wide <= self.columns {
            self.used += gap + wide;
            if gap > 0 {
                self.append_word(vec![span(self.gap_style, " ".repeat(gap))]);
            }
            self.append_word(word);
            return;
        }
        if self.used > 0 {
            self.end_line();
        }
        // A URL stays in one piece, so that it can be clicked and copied.
        if wide <= self.columns || word.iter().any(|s| s.text.contains("://")) {
            self.used = wide;
            self.append_word(word);
            return;
        }
        for span in word {
            for c in span.text.chars() {
                let wide = c.width().unwrap_or(0);
                if self.used > 0 && self.used + wide > self.columns {
                    self.end_line();
                }
                push_char(&mut self.line, span.pen, c);
                self.used += wide;
            }
        }
    }

    fn append_word(&mut self, word: StyledLine) {
        for span in word {
            match self.line.last_mut() {
                Some(last) if last.pen == span.pen => last.text.push_str(&span.text),
                _ => self.line.push(span),
            }
        }
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.used = 0;
    }
}

fn push_char(line: &mut StyledLine, style: TextStyle, c: char) {
    match line.last_mut() {
        Some(last) if last.pen == style => last.text.push(c),
        _ => line.push(span(style, c)),
    }
}

/// Returns whether a line may end between two characters of one word, as in CJK text.
fn can_break_between(before: char, after: char) -> bool {
    let is_cjk = |c: char| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}');
    let is_closing = |c: char| {
        "、。，．！？：；）」』】〉》”’…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.!?:;)]}%"
            .contains(c)
    };
    let is_opening = |c: char| "（「『【〈《“‘([{".contains(c);
    (is_cjk(before) || is_cjk(after))
        && !is_closing(after)
        && !is_opening(before)
        && after.width() != Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ansi_style::BOLD;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&[span(PLAIN, text)], columns);
        lines.iter().map(|l| l.iter().map(|s| s.text.as_str()).collect()).collect()
    }

    #[test]
    fn wrap_breaks_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 80), ["one two three"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrapped("  kept  blanks here", 14), ["  kept  blanks", "here"]);
    }

    #[test]
    fn wrap_breaks_long_words_but_not_urls() {
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("see https://example.com/a", 8), ["see", "https://example.com/a"]);
        assert_eq!(wrapped("x", 0), ["x"]);
    }

    #[test]
    fn wrap_counts_display_columns() {
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
    fn wrap_keeps_a_word_of_several_styles_together() {
        let spans = [span(PLAIN, "a "), span(BOLD, "bold"), span(PLAIN, "er word")];
        let lines = wrap(&spans, 7);
        assert_eq!(lines[0], [span(PLAIN, "a")]);
        assert_eq!(lines[1], [span(BOLD, "bold"), span(PLAIN, "er")]);
    }

    #[test]
    fn cut_and_without_tabs_respect_columns() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("ab", 0), "");
        assert_eq!(without_tabs("a\tb\n\tc\t\td", 4), "a   b\n    c       d");
    }

    #[test]
    fn write_line_emits_sgr_only_with_color() {
        let line = [span(BOLD, "a"), span(PLAIN, "b "), span(BOLD, "  ")];
        let written = |color| {
            let mut out = Vec::new();
            write_line(&mut out, &line, color).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(true), "\u{1b}[1ma\u{1b}[0mb\n");
        assert_eq!(written(false), "ab\n");
    }
}
