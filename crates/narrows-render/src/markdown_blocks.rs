//! Splits Markdown into blocks that can be rendered one by one while the text streams.
//!
//! A block is a paragraph, a list item, a table or a line of fenced code. Later text never changes
//! an emitted block, so a streamed text renders as the whole text does.

/// A piece of Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MarkdownBlock {
    /// A block, and whether a blank line follows it.
    Markdown { text: String, blank_after: bool },
    /// The start of fenced code, with its info string.
    CodeStart(String),
    /// A line of fenced code.
    CodeLine(String),
    /// The end of fenced code.
    CodeEnd,
}

/// A longer line or block is cut: no output waits for the end of a text.
const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Splits a text into blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockSplitter {
    /// The text after the last line end.
    partial_line: String,
    /// The lines of the open block.
    lines: String,
    /// Whether a blank line follows them.
    blank_pending: bool,
    /// The open fence at the left margin.
    fence: Option<Fence>,
    /// The open fence inside a block, such as a list item.
    nested_fence: Option<Fence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    marker: char,
    length: usize,
    /// Spaces before the fence.
    pub(crate) indent: usize,
}

impl BlockSplitter {
    /// Appends text and emits the blocks that are complete.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<MarkdownBlock>) {
        let mut pieces = text.split_inclusive('\n');
        for piece in &mut pieces {
            self.partial_line.push_str(piece);
            while self.partial_line.trim_end_matches('\n').len() > MAX_BLOCK_BYTES {
                let more = self
                    .partial_line
                    .split_off(self.partial_line.floor_char_boundary(MAX_BLOCK_BYTES));
                let line = std::mem::replace(&mut self.partial_line, more);
                self.push_line(&line, out);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial_line);
                self.push_line(line.trim_end_matches('\n'), out);
            }
        }
    }

    /// Emits the rest of the text.
    pub(crate) fn finish(&mut self, out: &mut Vec<MarkdownBlock>) {
        let partial_line = std::mem::take(&mut self.partial_line);
        if !partial_line.is_empty() {
            self.push_line(&partial_line, out);
        }
        self.end_block(out);
        if self.fence.take().is_some() {
            out.push(MarkdownBlock::CodeEnd);
        }
        *self = BlockSplitter::default();
    }

    /// Returns the line that closes the open fence, if any. Before other text is appended, the fence
    /// must be closed.
    pub(crate) fn open_fence(&self) -> Option<String> {
        self.fence.map(|f| f.marker.to_string().repeat(f.length))
    }

    fn push_line(&mut self, line: &str, out: &mut Vec<MarkdownBlock>) {
        if self.lines.len() > MAX_BLOCK_BYTES {
            self.end_block(out);
        }
        if let Some(fence) = self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
                out.push(MarkdownBlock::CodeEnd);
            } else {
                let blanks = line.bytes().take_while(|c| *c == b' ').count().min(fence.indent);
                out.push(MarkdownBlock::CodeLine(line[blanks..].to_owned()));
            }
            return;
        }
        if let Some(fence) = self.nested_fence {
            if fence.is_closed_by(line) {
                self.nested_fence = None;
            }
            self.append_line(line);
            return;
        }
        if line.trim().is_empty() {
            self.blank_pending = !self.lines.is_empty();
            // Only a list item may continue after a blank line.
            if list_item(&self.lines).is_none() {
                self.end_block(out);
            }
            return;
        }
        let opening = Fence::parse_opening(line);
        let indented = line.starts_with([' ', '\t']);
        let in_list_item = list_item(&self.lines).is_some();
        // A line at the margin continues a paragraph unless it starts a block.
        let starts_block = match list_item(line) {
            _ if indented => false,
            Some(first) => in_list_item || first,
            None => {
                self.blank_pending
                    || is_heading(line)
                    || opening.is_some()
                    || is_heading(&self.lines)
            }
        };
        // An indented line belongs to the list item before it; after a blank line, to nothing else.
        if starts_block || (self.blank_pending && !in_list_item) {
            self.end_block(out);
        }
        match opening {
            Some(fence) if !in_list_item || !indented => {
                self.end_block(out);
                self.fence = Some(fence);
                let info = line.trim().trim_start_matches(fence.marker).trim();
                out.push(MarkdownBlock::CodeStart(info.to_owned()));
                return;
            }
            opening => self.nested_fence = opening,
        }
        self.append_line(line);
    }

    fn append_line(&mut self, line: &str) {
        if std::mem::take(&mut self.blank_pending) {
            self.lines.push('\n');
        }
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    fn end_block(&mut self, out: &mut Vec<MarkdownBlock>) {
        let (text, blank_after) =
            (std::mem::take(&mut self.lines), std::mem::take(&mut self.blank_pending));
        self.nested_fence = None;
        if !text.is_empty() {
            out.push(MarkdownBlock::Markdown { text, blank_after });
        }
    }
}

impl Fence {
    pub(crate) fn parse_opening(line: &str) -> Option<Fence> {
        let trimmed = line.trim_start();
        let marker = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = trimmed.chars().take_while(|c| *c == marker).count();
        let info = &trimmed[length..];
        let indent = line.len() - trimmed.len();
        (length >= 3 && !(marker == '`' && info.contains('`'))).then_some(Fence {
            marker,
            length,
            indent,
        })
    }

    pub(crate) fn is_closed_by(self, line: &str) -> bool {
        let trimmed = line.trim();
        trimmed.len() >= self.length && trimmed.chars().all(|c| c == self.marker)
    }
}

/// Returns `Some` if the text starts with a list item at the margin; `Some(true)` if the item may
/// interrupt a paragraph.
fn list_item(text: &str) -> Option<bool> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = match text.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => &text[1..],
        b'.' | b')' if (1..=9).contains(&digits) => &text[digits + 1..],
        _ => return None,
    };
    let first = digits == 0 || &text[..digits] == "1";
    (after.starts_with([' ', '\t', '\n']) || after.is_empty())
        .then_some(first && !after.trim().is_empty())
}

fn is_heading(line: &str) -> bool {
    let after = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - after.len()))
        && (after.is_empty() || after.starts_with([' ', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, piece: usize) -> Vec<MarkdownBlock> {
        let (mut blocks, mut out) = (BlockSplitter::default(), Vec::new());
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(piece.max(1)) {
            blocks.push(&piece.iter().collect::<String>(), &mut out);
        }
        blocks.finish(&mut out);
        out
    }

    fn markdown(text: &str, blank_after: bool) -> MarkdownBlock {
        MarkdownBlock::Markdown { text: text.to_owned(), blank_after }
    }

    const TEXT: &str = "# Title\nA text\non two lines.\n\n- one\n- two\n  more\n\n  after\n- three\n\nEnd:\n```rust\nfn a() {}\n\n- no item\n```\n1. x\n2. y\n   ```\n   - code\n   ```\n3. z\n\n| a | b |\n|---|---|\n| 1 | 2 |\n~~~~\n```\n~~~~";

    #[test]
    fn splitter_cuts_at_block_boundaries() {
        let code = |t: &str| MarkdownBlock::CodeLine(t.to_owned());
        let expected = [
            markdown("# Title\n", false),
            markdown("A text\non two lines.\n", true),
            markdown("- one\n", false),
            markdown("- two\n  more\n\n  after\n", false),
            markdown("- three\n", true),
            markdown("End:\n", false),
            MarkdownBlock::CodeStart("rust".to_owned()),
            code("fn a() {}"),
            code(""),
            code("- no item"),
            MarkdownBlock::CodeEnd,
            markdown("1. x\n", false),
            markdown("2. y\n   ```\n   - code\n   ```\n", false),
            markdown("3. z\n", true),
            markdown("| a | b |\n|---|---|\n| 1 | 2 |\n", false),
            MarkdownBlock::CodeStart(String::new()),
            code("```"),
            MarkdownBlock::CodeEnd,
        ];
        assert_eq!(split(TEXT, usize::MAX >> 1), expected);
    }

    #[test]
    fn splitter_output_is_independent_of_chunking() {
        let whole = split(TEXT, TEXT.len());
        for piece in 1..40 {
            assert_eq!(split(TEXT, piece), whole, "{piece}");
        }
    }

    #[test]
    fn splitter_handles_edge_cases() {
        assert_eq!(split("", 1), []);
        assert_eq!(split("\n\n", 1), []);
        assert_eq!(split("a\n2. b", 9), [markdown("a\n2. b\n", false)]);
        assert_eq!(split("a\n---", 9), [markdown("a\n---\n", false)]);
        assert_eq!(
            split("```\nopen", 99),
            [
                MarkdownBlock::CodeStart(String::new()),
                MarkdownBlock::CodeLine("open".to_owned()),
                MarkdownBlock::CodeEnd
            ]
        );
        assert_eq!(split("    code\n\n    more", 99).len(), 2);
    }
}
