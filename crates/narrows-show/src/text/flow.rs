//! An agent's text as it flows: block by block, whole or while it comes.

use crate::blocks::{Block, Blocks};
use crate::wrap::Line;
use crate::{escape, prose};

/// Turns a text into lines.
#[derive(Debug)]
pub(super) struct Flow {
    blocks: Blocks,
    columns: usize,
    colour: bool,
    last: Option<Before>,
}

/// What was before a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A blank line stands after it.
    Apart,
    /// The next block may stand right below.
    Close,
    /// Lines of the code that is open; it has none yet.
    Code,
}

impl Flow {
    pub(super) fn new(columns: usize, colour: bool) -> Flow {
        Flow { blocks: Blocks::default(), columns, colour, last: None }
    }

    /// The lines of a whole text.
    pub(super) fn whole(text: &str, columns: usize, colour: bool) -> Vec<Line> {
        let mut flow = Flow::new(columns, colour);
        let mut out = flow.push(text);
        out.extend(flow.finish());
        out
    }

    /// The lines that are complete now.
    pub(super) fn push(&mut self, text: &str) -> Vec<Line> {
        let mut blocks = Vec::new();
        self.blocks.push(&escape::plain(text), &mut blocks);
        self.lines(blocks)
    }

    /// The lines that were held back.
    pub(super) fn finish(&mut self) -> Vec<Line> {
        let mut blocks = Vec::new();
        self.blocks.finish(&mut blocks);
        self.lines(blocks)
    }

    fn lines(&mut self, blocks: Vec<Block>) -> Vec<Line> {
        let mut out = Vec::new();
        for block in blocks {
            match block {
                Block::Marked { text, blank_after } => {
                    let heading = text.starts_with('#');
                    let lines = prose::render(&text, self.columns, self.colour);
                    if lines.is_empty() {
                        continue;
                    }
                    if self.last == Some(Before::Apart) || (heading && self.last.is_some()) {
                        out.push(Line::new());
                    }
                    out.extend(lines);
                    let apart = blank_after || heading;
                    self.last = Some(if apart { Before::Apart } else { Before::Close });
                }
                Block::CodeBegins(_) => {
                    if self.last.is_some() {
                        out.push(Line::new());
                    }
                    self.last = Some(Before::Code);
                }
                Block::Code(line) => out.push(prose::code(&line)),
                Block::CodeEnds => self.last = Some(Before::Apart),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|l| l.iter().map(|s| s.text.as_str()).collect()).collect()
    }

    const TEXT: &str = "# Title\nSome words:\n- one\n- two\n\n```rust\nfn a() {\n\n}\n```\nAfter.\n\n1. a\n2. b\n\n> q\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd **bold\nmore**";

    #[test]
    fn blocks_have_room() {
        assert_eq!(
            text(&Flow::whole(TEXT, 60, false)).join("\n"),
            "# Title\n\nSome words:\n• one\n• two\n\n    fn a() {\n    \n    }\n\nAfter.\n\n1. a\n2. b\n\n│ q\n\na │ b\n──┼──\n1 │ 2\n\nEnd **bold\nmore**"
        );
    }

    #[test]
    fn a_text_that_comes_in_pieces_is_shown_as_the_whole() {
        let whole = Flow::whole(TEXT, 60, true);
        let chars: Vec<char> = TEXT.chars().collect();
        for piece in 1..30 {
            let mut flow = Flow::new(60, true);
            let mut lines = Vec::new();
            for part in chars.chunks(piece) {
                lines.extend(flow.push(&part.iter().collect::<String>()));
            }
            lines.extend(flow.finish());
            assert_eq!(lines, whole, "{piece}");
        }
    }

    #[test]
    fn code_is_shown_line_by_line() {
        let mut flow = Flow::new(60, false);
        assert_eq!(text(&flow.push("Look:\n```\none\ntw")), ["Look:", "", "    one"]);
        assert_eq!(text(&flow.push("o\nthree")), ["    two"]);
        assert_eq!(text(&flow.finish()), ["    three"]);
    }
}
