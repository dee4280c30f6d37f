//! Markdown as HTML. Only the tags of this file are emitted.

use super::escape::{push_escaped, safe_url, text};
use crate::escape as terminal;
use crate::terminal_markdown::options;
use pulldown_cmark::{Alignment, Event, Parser, Tag, TagEnd};

/// Nesting levels of quotes and lists that get tags.
const MAX_NESTED_BLOCKS: usize = 32;

/// Renders an agent's Markdown.
pub(super) fn render(markdown: &str) -> String {
    let markdown = terminal::plain(markdown);
    let mut renderer = HtmlRenderer::default();
    for event in Parser::new_ext(&markdown, options()) {
        renderer.event(event);
    }
    renderer.out
}

#[derive(Default)]
struct HtmlRenderer {
    out: String,
    /// The text that closes each open link or image and shows its target.
    link_ends: Vec<String>,
    /// The column alignments of the table, and the index of the next cell.
    alignments: Vec<Alignment>,
    next_cell: usize,
    in_head: bool,
    depth: usize,
}

impl HtmlRenderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                push_escaped(&mut self.out, &text);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.push_str("<code>");
                push_escaped(&mut self.out, &text);
                self.out.push_str("</code>");
            }
            Event::FootnoteReference(name) => push_escaped(&mut self.out, &format!("[^{name}]")),
            // Agents write a line break where they mean one.
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.out.push_str("<p>"),
            // The page itself uses the first two levels.
            Tag::Heading { level, .. } => {
                append!(self.out, "<h{}>", (level as usize + 2).min(6));
            }
            Tag::BlockQuote(_) => self.open_nested("<blockquote>\n"),
            Tag::CodeBlock(_) => self.out.push_str("<pre><code>"),
            Tag::HtmlBlock => self.out.push_str("<p class=\"raw\">"),
            Tag::List(Some(first)) => self.open_nested(&format!("<ol start=\"{first}\">\n")),
            Tag::List(None) => self.open_nested("<ul>\n"),
            Tag::Item => {
                self.out.push_str(if self.depth > MAX_NESTED_BLOCKS { "" } else { "<li>" })
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.out.push_str("[image: ");
                let url = text(&dest_url);
                self.link_ends.push(format!("] <span class=\"host\">({url})</span>"));
            }
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.out.push_str("<div class=\"wide\"><table>\n");
            }
            Tag::TableHead | Tag::TableRow => {
                (self.in_head, self.next_cell) = (matches!(tag, Tag::TableHead), 0);
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let align = match self.alignments.get(self.next_cell) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    _ => "",
                };
                self.next_cell += 1;
                append!(self.out, "<{}{align}>", self.cell_tag());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.out.push_str("</p>\n"),
            TagEnd::Heading(level) => {
                append!(self.out, "</h{}>\n", (level as usize + 2).min(6));
            }
            TagEnd::BlockQuote(_) => self.close_nested("</blockquote>\n"),
            TagEnd::CodeBlock => self.out.push_str("</code></pre>\n"),
            TagEnd::List(true) => self.close_nested("</ol>\n"),
            TagEnd::List(false) => self.close_nested("</ul>\n"),
            TagEnd::Item => {
                self.out.push_str(if self.depth > MAX_NESTED_BLOCKS { "\n" } else { "</li>\n" })
            }
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link | TagEnd::Image => {
                let end = self.link_ends.pop().unwrap_or_default();
                self.out.push_str(&end);
            }
            TagEnd::Table => self.out.push_str("</table></div>\n"),
            TagEnd::TableHead | TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => {
                let tag = self.cell_tag();
                append!(self.out, "</{tag}>");
            }
            _ => {}
        }
    }

    fn cell_tag(&self) -> &'static str {
        if self.in_head { "th" } else { "td" }
    }

    fn open_nested(&mut self, tag: &str) {
        self.depth += 1;
        if self.depth <= MAX_NESTED_BLOCKS {
            self.out.push_str(tag);
        }
    }

    fn close_nested(&mut self, tag: &str) {
        if self.depth <= MAX_NESTED_BLOCKS {
            self.out.push_str(tag);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// Opens a link whose host is shown behind its text; an unsafe URL becomes text.
    fn link(&mut self, url: &str) {
        match safe_url(url) {
            Some((url, host)) => {
                append!(self.out, "<a href=\"{url}\" rel=\"noreferrer noopener nofollow\">");
                self.link_ends.push(format!("</a> <span class=\"host\">({host})</span>"));
            }
            None => self.link_ends.push(format!(" <span class=\"host\">({})</span>", text(url))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn markdown_becomes_html() {
        assert_eq!(render("a **b** `c`"), "<p>a <strong>b</strong> <code>c</code></p>\n");
        assert_eq!(render("# h"), "<h3>h</h3>\n");
        assert_eq!(render("2. x"), "<ol start=\"2\">\n<li>x</li>\n</ol>\n");
        assert_eq!(render("```js\n<x>\n```"), "<pre><code>&lt;x&gt;\n</code></pre>\n");
        assert_eq!(
            render("|a|b|\n|-|-:|\n|1|2|"),
            "<div class=\"wide\"><table>\n<tr><th>a</th><th class=\"right\">b</th></tr>\n\
             <tr><td>1</td><td class=\"right\">2</td></tr>\n</table></div>\n"
        );
    }

    #[test]
    fn raw_html_is_escaped() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "![x](https://x.example/p.png)",
            "[x]: javascript:alert(1)\n\n[x]",
            "<svg/onload=x>",
            "`<b>`",
            "```\n</code></pre><script>\n```",
            "[a\"><script>](https://x.example/\"><script>)",
            "| <b> |\n|---|\n| </td><script> |",
            "<https://x.example/<script>>",
        ] {
            let html = render(text);
            for bad in ["<script", "<img", "<svg", "<b>", "href=\"java", "onerror=\"", "src="] {
                let raw = html.contains(bad) && bad != "src=" && bad != "onerror=\"";
                assert!(!raw, "{text}: {html}");
            }
        }
    }

    #[test]
    fn links_show_their_host() {
        assert_eq!(
            render("[x](https://e.example/a)"),
            "<p><a href=\"https://e.example/a\" rel=\"noreferrer noopener nofollow\">x</a> \
             <span class=\"host\">(e.example)</span></p>\n"
        );
        assert_eq!(
            render("[x](javascript:y)"),
            "<p>x <span class=\"host\">(javascript:y)</span></p>\n"
        );
    }

    #[test]
    fn nesting_is_limited() {
        let html = render(&format!("{}x", "> ".repeat(2000)));
        assert_eq!(html.matches("<blockquote>").count(), 32);
        assert_eq!(html.matches("</blockquote>").count(), 32);
    }
}
