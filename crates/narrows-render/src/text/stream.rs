//! Streamed Markdown as terminal lines, block by block.

use crate::markdown_blocks::{BlockSplitter, MarkdownBlock};
use crate::wrap::StyledLine;
use crate::{escape, terminal_markdown};

/// Converts a text into lines while it grows.
#[derive(Debug)]
pub(super) struct MarkdownStream {
    blocks: BlockSplitter,
    columns: usize,
    color: bool,
    last: Option<PrecedingBlock>,
}

/// The block before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrecedingBlock {
    /// A blank line follows it.
    NeedsGap,
    /// The next block may follow without a gap.
    Compact,
    /// A code block that is open.
    OpenCode,
}

impl MarkdownStream {
    pub(super) fn new(columns: usize, color: bool) -> MarkdownStream {
        MarkdownStream { blocks: BlockSplitter::default(), columns, color, last: None }
    }

    /// Returns the lines of a whole text.
    pub(super) fn render_all(text: &str, columns: usize, color: bool) -> Vec<StyledLine> {
        let mut stream = MarkdownStream::new(columns, color);
        let mut out = stream.push(text);
        out.extend(stream.finish());
        out
    }

    /// Appends text and returns the lines that are complete.
    pub(super) fn push(&mut self, text: &str) -> Vec<StyledLine> {
        let mut blocks = Vec::new();
        self.blocks.push(&escape::plain(text), &mut blocks);
        self.lines(blocks)
    }

    /// Returns the lines that were held back.
    pub(super) fn finish(&mut self) -> Vec<StyledLine> {
        let mut blocks = Vec::new();
        self.blocks.finish(&mut blocks);
        self.lines(blocks)
    }

    fn lines(&mut self, blocks: Vec<MarkdownBlock>) -> Vec<StyledLine> {
        let mut out = Vec::new();
        for block in blocks {
            match block {
                MarkdownBlock::Markdown { text, blank_after } => {
                    let heading = text.starts_with('#');
                    let lines = terminal_markdown::render(&text, self.columns, self.color);
                    if lines.is_empty() {
                        continue;
                    }
                    if self.last == Some(PrecedingBlock::NeedsGap)
                        || (heading && self.last.is_some())
                    {
                        out.push(StyledLine::new());
                    }
                    out.extend(lines);
                    let needs_gap = blank_after || heading;
                    self.last = Some(if needs_gap {
                        PrecedingBlock::NeedsGap
                    } else {
                        PrecedingBlock::Compact
                    });
                }
                MarkdownBlock::CodeStart(_) => {
                    if self.last.is_some() {
                        out.push(StyledLine::new());
                    }
                    self.last = Some(PrecedingBlock::OpenCode);
                }
                MarkdownBlock::CodeLine(line) => out.push(terminal_markdown::code(&line)),
                MarkdownBlock::CodeEnd => self.last = Some(PrecedingBlock::NeedsGap),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(|l| l.iter().map(|s| s.text.as_str()).collect()).collect()
    }

    const TEXT: &str = "# Title\nSome words:\n- one\n- two\n\n```rust\nfn a() {\n\n}\n```\nAfter.\n\n1. a\n2. b\n\n> q\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd **bold\nmore**";

    #[test]
    fn blocks_are_separated_by_gaps() {
        assert_eq!(
            text(&MarkdownStream::render_all(TEXT, 60, false)).join("\n"),
            "# Title\n\nSome words:\n• one\n• two\n\n    fn a() {\n    \n    }\n\nAfter.\n\n1. a\n2. b\n\n│ q\n\na │ b\n──┼──\n1 │ 2\n\nEnd **bold\nmore**"
        );
    }

    #[test]
    fn stream_output_is_independent_of_chunking() {
        let whole = MarkdownStream::render_all(TEXT, 60, true);
        let chars: Vec<char> = TEXT.chars().collect();
        for piece in 1..30 {
            let mut stream = MarkdownStream::new(60, true);
            let mut lines = Vec::new();
            for part in chars.chunks(piece) {
                lines.extend(stream.push(&part.iter().collect::<String>()));
            }
            lines.extend(stream.finish());
            assert_eq!(lines, whole, "{piece}");
        }
    }

    #[test]
    fn code_is_emitted_line_by_line() {
        let mut stream = MarkdownStream::new(60, false);
        assert_eq!(text(&stream.push("Look:\n```\none\ntw")), ["Look:", "", "    one"]);
        assert_eq!(text(&stream.push("o\nthree")), ["    two"]);
        assert_eq!(text(&stream.finish()), ["    three"]);
    }
}
