//! An agent's Markdown without raw HTML and without images that a viewer would fetch.

use crate::markdown_blocks::BlockSplitter;
use crate::{escape, terminal_markdown};
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Parser, Tag};
use std::ops::Range;

/// Returns the text with raw HTML as text, images as links, and every fence closed.
pub(super) fn neutralize(text: &str) -> String {
    let text = escape::plain(text);
    let (mut code_ranges, mut image_marks): (Vec<Range<usize>>, Vec<usize>) =
        (Vec::new(), Vec::new());
    for (event, range) in Parser::new_ext(&text, terminal_markdown::options()).into_offset_iter() {
        match event {
            Event::Code(_) => code_ranges.push(range),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                code_ranges.push(range);
            }
            Event::Start(Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. }) => {
                code_ranges.push(range)
            }
            Event::Start(Tag::Image { .. }) => image_marks.push(range.start),
            _ => {}
        }
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut code_ranges, mut image_marks) =
        (code_ranges.into_iter().peekable(), image_marks.into_iter().peekable());
    for (at, c) in text.char_indices() {
        while code_ranges.next_if(|range| range.end <= at).is_some() {}
        while image_marks.next_if(|mark| *mark < at).is_some() {}
        match c {
            '<' if code_ranges.peek().is_none_or(|range| at < range.start) => out.push_str("&lt;"),
            '!' if image_marks.peek() == Some(&at) => out.push_str("\\!"),
            c => out.push(c),
        }
    }
    // Text that follows must not become part of the last code block.
    let mut blocks = BlockSplitter::default();
    blocks.push(&text, &mut Vec::new());
    blocks.push("\n", &mut Vec::new());
    if let Some(fence) = blocks.open_fence() {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&fence);
        out.push('\n');
    }
    out
}

/// Returns one line in which every character of Markdown is escaped.
pub(super) fn escape_inline(text: &str) -> String {
    let line = escape::line(text);
    let mut out = String::with_capacity(line.len() + 8);
    for (at, c) in line.char_indices() {
        let special = match c {
            '\\' | '`' | '*' | '[' | '<' | '>' | '|' | '~' | '&' => true,
            // Inside a word an underscore is no emphasis.
            '_' => {
                let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                !(inside(line[..at].chars().next_back()) && inside(line[at + 1..].chars().next()))
            }
            // Markers of headings and lists: at the start of the line, before a space.
            '#' | '+' | '-' | '=' => {
                at == 0 && line[1..].chars().next().is_none_or(|next| next == ' ' || next == c)
            }
            '.' | ')' => {
                let number = at > 0 && line[..at].bytes().all(|b| b.is_ascii_digit());
                number && line[at + 1..].chars().next().is_none_or(|next| next == ' ')
            }
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neutralize_escapes_html_outside_code() {
        for (text, expected) in [
            ("a <b> c", "a &lt;b> c"),
            ("<script>\nx\n</script>", "&lt;script>\nx\n&lt;/script>"),
            ("`<b>` and <b>", "`<b>` and &lt;b>"),
            ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n&lt;b>"),
            ("- a\n\n  ```\n  <b>\n  ```\n", "- a\n\n  ```\n  <b>\n  ```\n"),
            ("<https://x.example> <!-- x", "<https://x.example> &lt;!-- x"),
            ("![a](https://x.example/p.png) a!", "\\![a](https://x.example/p.png) a!"),
            ("`a <b>", "`a &lt;b>"),
            ("1 < 2", "1 &lt; 2"),
            ("\u{1b}]0;t\u{7}é\u{1b}[31mr", "ér"),
        ] {
            assert_eq!(neutralize(text), expected);
        }
    }

    #[test]
    fn neutralize_closes_open_fences() {
        assert_eq!(neutralize("```rust\nfn a"), "```rust\nfn a\n```\n");
        assert_eq!(neutralize("~~~~\n~~~\n"), "~~~~\n~~~\n~~~~\n");
        assert_eq!(neutralize("```\na\n```"), "```\na\n```");
        assert_eq!(neutralize("```\na"), "```\na\n```\n");
        assert_eq!(neutralize("a\n```"), "a\n```\n```\n");
    }

    #[test]
    fn escape_inline_escapes_every_markdown_character() {
        for (text, expected) in [
            ("a *b* [c](d) <e> `f`", "a \\*b\\* \\[c](d) \\<e\\> \\`f\\`"),
            ("# a", "\\# a"),
            ("1. a\nb", "1\\. a b"),
            ("snake_case _x_ v1.2", "snake_case \\_x\\_ v1.2"),
            ("a & b", "a \\& b"),
            ("0.8 s", "0.8 s"),
            ("+1 −1", "+1 −1"),
            ("- a", "\\- a"),
            ("---", "\\---"),
        ] {
            assert_eq!(escape_inline(text), expected);
        }
    }
}
