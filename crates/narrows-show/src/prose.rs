//! Markdown for a terminal.

use super::pen::{CYAN, DIM, PLAIN, Pen};
use super::wrap::{Line, Span, line_width, span, width, without_tabs, wrap};
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

/// Tabs in code.
const TAB: usize = 4;
/// Columns that code is moved to the right.
pub(crate) const CODE_INDENT: usize = 4;

/// Quotes and lists inside each other that are seen.
const MAX_DEPTH: usize = 10;

/// What is read beyond plain Markdown.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The lines of one block, or of several. The text has passed `escape`.
pub(crate) fn render(text: &str, columns: usize, colour: bool) -> Vec<Line> {
    let mut render = Render { columns: columns.max(20), colour, ..Render::default() };
    for event in Parser::new_ext(text, options()) {
        render.event(event);
    }
    render.text_ends();
    while render.out.last().is_some_and(|l| line_width(l) == 0) {
        render.out.pop();
    }
    render.out
}

/// A line of code.
pub(crate) fn code(line: &str) -> Line {
    vec![span(PLAIN, " ".repeat(CODE_INDENT)), span(CYAN, without_tabs(line, TAB))]
}

#[derive(Default)]
struct Render {
    columns: usize,
    colour: bool,
    out: Vec<Line>,
    /// The text that is being put together.
    spans: Vec<Span>,
    pen: Pen,
    /// What stands before each line: a bar for each quote, blanks for each list.
    margin: Vec<Margin>,
    lists: Vec<Option<u64>>,
    /// Some of a code block.
    code: Option<String>,
    links: Vec<String>,
    table: Option<Table>,
    /// A blank line stands before what comes next, within so many margins.
    gap: Option<usize>,
}

struct Margin {
    /// On the first line, then on the others.
    first: Option<String>,
    rest: String,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Vec<Span>>>,
    alignments: Vec<Alignment>,
}

impl Render {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.say(self.pen, &text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let quoted = if self.colour { text.to_string() } else { quoted(&text) };
                self.say(Pen { ink: CYAN.ink, ..self.pen }, &quoted);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.say(self.pen, &text),
            Event::FootnoteReference(name) => self.say(self.pen, &format!("[^{name}]")),
            // Agents write a line where they mean one.
            Event::SoftBreak | Event::HardBreak => self.say(PLAIN, "\n"),
            Event::Rule => {
                self.put(vec![span(DIM, "─".repeat(self.room().min(40)))]);
                self.apart();
            }
            Event::TaskListMarker(done) => self.say(PLAIN, if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.text_ends();
                self.pen.bold = true;
                if !self.colour {
                    let signs = "#".repeat(level as usize);
                    self.say(PLAIN, &format!("{signs} "));
                }
            }
            Tag::BlockQuote(_) => {
                self.text_ends();
                self.margin.push(Margin { first: None, rest: "│ ".to_owned() });
            }
            Tag::CodeBlock(_) => {
                self.text_ends();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.text_ends();
                // A list inside an item stands right below its text.
                if !self.lists.is_empty() {
                    self.gap = None;
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.text_ends();
                let sign = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        format!("{}. ", n.saturating_sub(1))
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(width(&sign));
                self.margin.push(Margin { first: Some(sign), rest });
            }
            Tag::Emphasis => self.mark(|pen| pen.italic = true, "*"),
            Tag::Strong => self.mark(|pen| pen.bold = true, "**"),
            Tag::Strikethrough => self.mark(|pen| pen.strike = true, "~~"),
            Tag::Link { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.pen.underline = true;
            }
            Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.say(self.pen, "[image: ");
            }
            Tag::Table(alignments) => {
                self.text_ends();
                self.table = Some(Table { rows: Vec::new(), alignments });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.text_ends();
                self.apart();
            }
            TagEnd::Heading(_) => {
                self.text_ends();
                self.pen.bold = false;
                self.apart();
            }
            TagEnd::BlockQuote(_) => {
                self.text_ends();
                self.margin.pop();
                self.apart();
            }
            TagEnd::CodeBlock => {
                let text = self.code.take().unwrap_or_default();
                for line in text.lines() {
                    self.put(code(line));
                }
                self.apart();
            }
            TagEnd::List(_) => {
                self.text_ends();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.apart();
                } else {
                    self.gap = None;
                }
            }
            TagEnd::Item => {
                self.text_ends();
                if self.margin.last().is_some_and(|m| m.first.is_some()) {
                    self.put(Vec::new());
                }
                self.margin.pop();
            }
            TagEnd::Emphasis => self.unmark(|pen| pen.italic = false, "*"),
            TagEnd::Strong => self.unmark(|pen| pen.bold = false, "**"),
            TagEnd::Strikethrough => self.unmark(|pen| pen.strike = false, "~~"),
            TagEnd::Link => {
                self.pen.underline = false;
                self.address();
            }
            TagEnd::Image => {
                self.say(self.pen, "]");
                self.address();
            }
            TagEnd::TableCell => {
                let spans = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(spans);
                }
            }
            TagEnd::Table => {
                self.table_ends();
                self.apart();
            }
            _ => {}
        }
    }

    fn apart(&mut self) {
        self.gap = Some(self.margin.len());
    }

    fn say(&mut self, pen: Pen, text: &str) {
        self.spans.push(span(pen, without_tabs(text, TAB)));
    }

    /// Without colours the signs of Markdown say what is meant.
    fn mark(&mut self, set: fn(&mut Pen), sign: &str) {
        set(&mut self.pen);
        if !self.colour {
            self.say(PLAIN, sign);
        }
    }

    fn unmark(&mut self, set: fn(&mut Pen), sign: &str) {
        set(&mut self.pen);
        if !self.colour {
            self.say(PLAIN, sign);
        }
    }

    /// Where a link leads, if its words do not tell.
    fn address(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let last = self.spans.last().map(|s| s.text.as_str()).unwrap_or_default();
        if !link.is_empty() && last != link && link.strip_prefix("mailto:") != Some(last) {
            self.say(DIM, &format!(" ({link})"));
        }
    }

    fn room(&self) -> usize {
        let margin: usize = self.margin.iter().take(MAX_DEPTH).map(|m| width(&m.rest)).sum();
        self.columns.saturating_sub(margin).max(self.columns / 3)
    }

    fn text_ends(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().all(|s| s.text.trim().is_empty()) {
            return;
        }
        for line in wrap(&spans, self.room()) {
            self.put(line);
        }
    }

    /// Adds a line, behind what stands at its left.
    fn put(&mut self, line: Line) {
        if let Some(depth) = self.gap.take().filter(|_| !self.out.is_empty()) {
            let old = self.margin.iter().take(depth.min(MAX_DEPTH));
            self.out.push(old.map(|m| span(DIM, m.rest.clone())).collect());
        }
        let mut whole: Line = Vec::new();
        for margin in self.margin.iter_mut().take(MAX_DEPTH) {
            match margin.first.take() {
                Some(first) => whole.push(span(PLAIN, first)),
                None => whole.push(span(DIM, margin.rest.clone())),
            }
        }
        whole.extend(line);
        self.out.push(whole);
    }

    /// Columns where they fit, else each row as a small list.
    fn table_ends(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &table.rows {
            for (i, cell) in row.iter().enumerate() {
                widths[i] = widths[i].max(line_width(cell));
            }
        }
        let fits = widths.iter().sum::<usize>() + columns.saturating_sub(1) * 3 <= self.room();
        if fits {
            for (n, row) in table.rows.iter().enumerate() {
                let mut line: Line = Vec::new();
                for (i, wide) in widths.iter().enumerate() {
                    let cell = row.get(i).map(Vec::as_slice).unwrap_or_default();
                    if i > 0 {
                        line.push(span(DIM, " │ "));
                    }
                    let blanks = wide.saturating_sub(line_width(cell));
                    let right = table.alignments.get(i) == Some(&Alignment::Right);
                    line.push(span(PLAIN, " ".repeat(if right { blanks } else { 0 })));
                    line.extend(cell.iter().map(|s| Span {
                        pen: Pen { bold: s.pen.bold || n == 0, ..s.pen },
                        text: s.text.replace('\n', " "),
                    }));
                    line.push(span(PLAIN, " ".repeat(if right { 0 } else { blanks })));
                }
                self.put(line);
                if n == 0 {
                    let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
                    self.put(vec![span(DIM, rule.join("─┼─"))]);
                }
            }
            return;
        }
        let mut rows = table.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        for row in rows {
            for (i, cell) in row.into_iter().enumerate() {
                let mut spans: Vec<Span> = Vec::new();
                if let Some(name) = head.get(i).filter(|n| !n.is_empty()) {
                    let bold =
                        |s: &Span| Span { pen: Pen { bold: true, ..s.pen }, text: s.text.clone() };
                    spans.extend(name.iter().map(bold));
                    spans.push(span(PLAIN, ": "));
                }
                spans.extend(cell);
                let sign = if i == 0 { "• " } else { "  " };
                self.margin.push(Margin { first: Some(sign.to_owned()), rest: "  ".to_owned() });
                for line in wrap(&spans, self.room()) {
                    self.put(line);
                }
                self.margin.pop();
            }
        }
    }
}

/// Code in a line, as Markdown writes it.
pub(crate) fn quoted(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests;
