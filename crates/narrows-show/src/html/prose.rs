//! Markdown as HTML. Only tags that stand here come out.

use super::escape::{address, push, text};
use crate::escape as terminal;
use crate::prose::options;
use pulldown_cmark::{Alignment, Event, Parser, Tag, TagEnd};

/// Quotes and lists inside each other: deeper ones have no tags.
const MAX_DEPTH: usize = 32;

/// An agent's text.
pub(super) fn render(markdown: &str) -> String {
    let markdown = terminal::plain(markdown);
    let mut render = Render::default();
    for event in Parser::new_ext(&markdown, options()) {
        render.event(event);
    }
    render.out
}

#[derive(Default)]
struct Render {
    out: String,
    /// What closes the links that are open, and tells where they lead.
    links: Vec<String>,
    /// The alignments of the table, and the cell that comes next.
    table: Vec<Alignment>,
    cell: usize,
    head: bool,
    depth: usize,
}

impl Render {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(said) | Event::Html(said) | Event::InlineHtml(said) => {
                push(&mut self.out, &said);
            }
            Event::Code(said) | Event::InlineMath(said) | Event::DisplayMath(said) => {
                self.out.push_str("<code>");
                push(&mut self.out, &said);
                self.out.push_str("</code>");
            }
            Event::FootnoteReference(name) => push(&mut self.out, &format!("[^{name}]")),
            // Agents write a line where they mean one.
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.out.push_str("<p>"),
            // The page has the first two levels for itself.
            Tag::Heading { level, .. } => {
                put!(self.out, "<h{}>", (level as usize + 2).min(6));
            }
            Tag::BlockQuote(_) => self.deeper("<blockquote>\n"),
            Tag::CodeBlock(_) => self.out.push_str("<pre><code>"),
            Tag::HtmlBlock => self.out.push_str("<p class=\"raw\">"),
            Tag::List(Some(first)) => self.deeper(&format!("<ol start=\"{first}\">\n")),
            Tag::List(None) => self.deeper("<ul>\n"),
            Tag::Item => self.out.push_str(if self.depth > MAX_DEPTH { "" } else { "<li>" }),
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.out.push_str("[image: ");
                let url = text(&dest_url);
                self.links.push(format!("] <span class=\"host\">({url})</span>"));
            }
            Tag::Table(alignments) => {
                self.table = alignments;
                self.out.push_str("<div class=\"wide\"><table>\n");
            }
            Tag::TableHead | Tag::TableRow => {
                (self.head, self.cell) = (matches!(tag, Tag::TableHead), 0);
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let align = match self.table.get(self.cell) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    _ => "",
                };
                self.cell += 1;
                put!(self.out, "<{}{align}>", self.cell_tag());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.out.push_str("</p>\n"),
            TagEnd::Heading(level) => {
                put!(self.out, "</h{}>\n", (level as usize + 2).min(6));
            }
            TagEnd::BlockQuote(_) => self.back("</blockquote>\n"),
            TagEnd::CodeBlock => self.out.push_str("</code></pre>\n"),
            TagEnd::List(true) => self.back("</ol>\n"),
            TagEnd::List(false) => self.back("</ul>\n"),
            TagEnd::Item => {
                self.out.push_str(if self.depth > MAX_DEPTH { "\n" } else { "</li>\n" })
            }
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link | TagEnd::Image => {
                let end = self.links.pop().unwrap_or_default();
                self.out.push_str(&end);
            }
            TagEnd::Table => self.out.push_str("</table></div>\n"),
            TagEnd::TableHead | TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => {
                let tag = self.cell_tag();
                put!(self.out, "</{tag}>");
            }
            _ => {}
        }
    }

    fn cell_tag(&self) -> &'static str {
        if self.head { "th" } else { "td" }
    }

    fn deeper(&mut self, tag: &str) {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            self.out.push_str(tag);
        }
    }

    fn back(&mut self, tag: &str) {
        if self.depth <= MAX_DEPTH {
            self.out.push_str(tag);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// A link is its words and whose place it leads to; one that must not be followed is text.
    fn link(&mut self, url: &str) {
        match address(url) {
            Some((url, host)) => {
                put!(self.out, "<a href=\"{url}\" rel=\"noreferrer noopener nofollow\">");
                self.links.push(format!("</a> <span class=\"host\">({host})</span>"));
            }
            None => self.links.push(format!(" <span class=\"host\">({})</span>", text(url))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn markdown_becomes_tags() {
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
    fn nothing_of_the_text_is_a_tag() {
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
    fn links_tell_where_they_lead() {
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
    fn deep_nesting_has_an_end() {
        let html = render(&format!("{}x", "> ".repeat(2000)));
        assert_eq!(html.matches("<blockquote>").count(), 32);
        assert_eq!(html.matches("</blockquote>").count(), 32);
    }
}
