//! Markdown cut into blocks that can be shown one by one, while more of it still comes.
//!
//! A block is a paragraph, one item of a list, a table, a line of a fenced code. What is cut off does
//! not depend on what comes later, so a text that streams is shown as the whole text is.

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    /// Markdown, with what follows it empty or not.
    Marked { text: String, blank_after: bool },
    /// A fenced code begins, with the word behind its fence.
    CodeBegins(String),
    /// A line of it.
    Code(String),
    /// It ends.
    CodeEnds,
}

/// A line or a block that is longer is cut there: nothing waits for the end of a text.
const MAX_BLOCK: usize = 1 << 20;

/// Cuts a text into blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// What came behind the last line's end.
    rest: String,
    /// Lines of a block whose end has not come.
    lines: String,
    /// A blank line came after them.
    blank: bool,
    /// The fence of a code at the left margin.
    fence: Option<Fence>,
    /// The fence of a code inside a block, of a list for example.
    inner: Option<Fence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    sign: char,
    length: usize,
    /// Blanks before it.
    pub(crate) indent: usize,
}

impl Blocks {
    /// Takes more of the text; gives the blocks that are complete.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Block>) {
        let mut pieces = text.split_inclusive('\n');
        for piece in &mut pieces {
            self.rest.push_str(piece);
            while self.rest.trim_end_matches('\n').len() > MAX_BLOCK {
                let more = self.rest.split_off(self.rest.floor_char_boundary(MAX_BLOCK));
                let line = std::mem::replace(&mut self.rest, more);
                self.line(&line, out);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.rest);
                self.line(line.trim_end_matches('\n'), out);
            }
        }
    }

    /// The text is over.
    pub(crate) fn finish(&mut self, out: &mut Vec<Block>) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.line(&rest, out);
        }
        self.block_ends(out);
        if self.fence.take().is_some() {
            out.push(Block::CodeEnds);
        }
        *self = Blocks::default();
    }

    /// Whether a fence is open: whoever joins texts must close it. Returns what closes it.
    pub(crate) fn open_fence(&self) -> Option<String> {
        self.fence.map(|f| f.sign.to_string().repeat(f.length))
    }

    fn line(&mut self, line: &str, out: &mut Vec<Block>) {
        if self.lines.len() > MAX_BLOCK {
            self.block_ends(out);
        }
        if let Some(fence) = self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
                out.push(Block::CodeEnds);
            } else {
                let blanks = line.bytes().take_while(|c| *c == b' ').count().min(fence.indent);
                out.push(Block::Code(line[blanks..].to_owned()));
            }
            return;
        }
        if let Some(fence) = self.inner {
            if fence.is_closed_by(line) {
                self.inner = None;
            }
            self.add(line);
            return;
        }
        if line.trim().is_empty() {
            self.blank = !self.lines.is_empty();
            // An item of a list may go on after it, nothing else does.
            if item(&self.lines).is_none() {
                self.block_ends(out);
            }
            return;
        }
        let opens = Fence::opened_by(line);
        let indented = line.starts_with([' ', '\t']);
        let in_list = item(&self.lines).is_some();
        // A line at the margin goes on with a paragraph, unless it begins something.
        let begins = match item(line) {
            _ if indented => false,
            Some(first) => in_list || first,
            None => self.blank || is_heading(line) || opens.is_some() || is_heading(&self.lines),
        };
        // Indented lines belong to the item before them, and to nothing else after a blank line.
        if begins || (self.blank && !in_list) {
            self.block_ends(out);
        }
        match opens {
            Some(fence) if !in_list || !indented => {
                self.block_ends(out);
                self.fence = Some(fence);
                let word = line.trim().trim_start_matches(fence.sign).trim();
                out.push(Block::CodeBegins(word.to_owned()));
                return;
            }
            opens => self.inner = opens,
        }
        self.add(line);
    }

    fn add(&mut self, line: &str) {
        if std::mem::take(&mut self.blank) {
            self.lines.push('\n');
        }
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    fn block_ends(&mut self, out: &mut Vec<Block>) {
        let (text, blank_after) =
            (std::mem::take(&mut self.lines), std::mem::take(&mut self.blank));
        self.inner = None;
        if !text.is_empty() {
            out.push(Block::Marked { text, blank_after });
        }
    }
}

impl Fence {
    pub(crate) fn opened_by(line: &str) -> Option<Fence> {
        let said = line.trim_start();
        let sign = said.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = said.chars().take_while(|c| *c == sign).count();
        let word = &said[length..];
        let indent = line.len() - said.len();
        (length >= 3 && !(sign == '`' && word.contains('`'))).then_some(Fence {
            sign,
            length,
            indent,
        })
    }

    pub(crate) fn is_closed_by(self, line: &str) -> bool {
        let said = line.trim();
        said.len() >= self.length && said.chars().all(|c| c == self.sign)
    }
}

/// Whether a text begins with an item of a list at the margin; with true, one that may end a
/// paragraph.
fn item(text: &str) -> Option<bool> {
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

    fn cut(text: &str, piece: usize) -> Vec<Block> {
        let (mut blocks, mut out) = (Blocks::default(), Vec::new());
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(piece.max(1)) {
            blocks.push(&piece.iter().collect::<String>(), &mut out);
        }
        blocks.finish(&mut out);
        out
    }

    fn marked(text: &str, blank_after: bool) -> Block {
        Block::Marked { text: text.to_owned(), blank_after }
    }

    const TEXT: &str = "# Title\nA text\non two lines.\n\n- one\n- two\n  more\n\n  after\n- three\n\nEnd:\n```rust\nfn a() {}\n\n- no item\n```\n1. x\n2. y\n   ```\n   - code\n   ```\n3. z\n\n| a | b |\n|---|---|\n| 1 | 2 |\n~~~~\n```\n~~~~";

    #[test]
    fn cuts_where_a_block_ends() {
        let code = |t: &str| Block::Code(t.to_owned());
        let expected = [
            marked("# Title\n", false),
            marked("A text\non two lines.\n", true),
            marked("- one\n", false),
            marked("- two\n  more\n\n  after\n", false),
            marked("- three\n", true),
            marked("End:\n", false),
            Block::CodeBegins("rust".to_owned()),
            code("fn a() {}"),
            code(""),
            code("- no item"),
            Block::CodeEnds,
            marked("1. x\n", false),
            marked("2. y\n   ```\n   - code\n   ```\n", false),
            marked("3. z\n", true),
            marked("| a | b |\n|---|---|\n| 1 | 2 |\n", false),
            Block::CodeBegins(String::new()),
            code("```"),
            Block::CodeEnds,
        ];
        assert_eq!(cut(TEXT, usize::MAX >> 1), expected);
    }

    #[test]
    fn pieces_do_not_matter() {
        let whole = cut(TEXT, TEXT.len());
        for piece in 1..40 {
            assert_eq!(cut(TEXT, piece), whole, "{piece}");
        }
    }

    #[test]
    fn odd_texts() {
        assert_eq!(cut("", 1), []);
        assert_eq!(cut("\n\n", 1), []);
        assert_eq!(cut("a\n2. b", 9), [marked("a\n2. b\n", false)]);
        assert_eq!(cut("a\n---", 9), [marked("a\n---\n", false)]);
        assert_eq!(
            cut("```\nopen", 99),
            [Block::CodeBegins(String::new()), Block::Code("open".to_owned()), Block::CodeEnds]
        );
        assert_eq!(cut("    code\n\n    more", 99).len(), 2);
    }
}
