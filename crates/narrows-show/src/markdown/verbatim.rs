//! An agent's Markdown as it is, without what would run or ask somebody.

use crate::blocks::Blocks;
use crate::{escape, prose};
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Parser, Tag};
use std::ops::Range;

/// The text with raw HTML as text, pictures as links, and no fence left open.
pub(super) fn verbatim(text: &str) -> String {
    let text = escape::plain(text);
    let (mut code, mut signs): (Vec<Range<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
    for (event, range) in Parser::new_ext(&text, prose::options()).into_offset_iter() {
        match event {
            Event::Code(_) => code.push(range),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                code.push(range);
            }
            Event::Start(Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. }) => {
                code.push(range)
            }
            Event::Start(Tag::Image { .. }) => signs.push(range.start),
            _ => {}
        }
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut code, mut signs) = (code.into_iter().peekable(), signs.into_iter().peekable());
    for (at, c) in text.char_indices() {
        while code.next_if(|range| range.end <= at).is_some() {}
        while signs.next_if(|sign| *sign < at).is_some() {}
        match c {
            '<' if code.peek().is_none_or(|range| at < range.start) => out.push_str("&lt;"),
            '!' if signs.peek() == Some(&at) => out.push_str("\\!"),
            c => out.push(c),
        }
    }
    // What comes after the text must not become a part of its last code.
    let mut blocks = Blocks::default();
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

/// One line of words, in which nothing is Markdown.
pub(super) fn words_only(text: &str) -> String {
    let line = escape::line(text);
    let mut out = String::with_capacity(line.len() + 8);
    for (at, c) in line.char_indices() {
        let special = match c {
            '\\' | '`' | '*' | '[' | '<' | '>' | '|' | '~' | '&' => true,
            // Inside a word it is no sign.
            '_' => {
                let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                !(inside(line[..at].chars().next_back()) && inside(line[at + 1..].chars().next()))
            }
            // Signs of a heading or a list, at the beginning and before a blank.
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
    fn html_is_text_but_code_stays() {
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
            assert_eq!(verbatim(text), expected);
        }
    }

    #[test]
    fn fences_are_closed() {
        assert_eq!(verbatim("```rust\nfn a"), "```rust\nfn a\n```\n");
        assert_eq!(verbatim("~~~~\n~~~\n"), "~~~~\n~~~\n~~~~\n");
        assert_eq!(verbatim("```\na\n```"), "```\na\n```");
        assert_eq!(verbatim("```\na"), "```\na\n```\n");
        assert_eq!(verbatim("a\n```"), "a\n```\n```\n");
    }

    #[test]
    fn words_are_words() {
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
            assert_eq!(words_only(text), expected);
        }
    }
}
