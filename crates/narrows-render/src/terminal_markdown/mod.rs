//! Markdown for a terminal.

use super::ansi_style::{CYAN, DIM, PLAIN, TextStyle};
use super::wrap::{StyledLine, StyledSpan, line_width, span, width, without_tabs, wrap};
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

/// Columns between tab stops in code.
const TAB_COLUMNS: usize = 4;
/// Columns that code is indented.
pub(crate) const CODE_INDENT_COLUMNS: usize = 4;

/// Nesting levels of quotes and lists that are indented.
const MAX_MARGINS: usize = 10;

/// Returns the Markdown extensions that are parsed.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Renders one or more blocks. The text has passed `escape`.
pub(crate) fn render(text: &str, columns: usize, color: bool) -> Vec<StyledLine> {
    let mut renderer =
        TerminalRenderer { columns: columns.max(20), color, ..TerminalRenderer::default() };
    for event in Parser::new_ext(text, options()) {
        renderer.event(event);
    }
    renderer.end_text();
    while renderer.out.last().is_some_and(|l| line_width(l) == 0) {
        renderer.out.pop();
    }
    renderer.out
}

/// Renders a line of code.
pub(crate) fn code(line: &str) -> StyledLine {
    vec![span(PLAIN, " ".repeat(CODE_INDENT_COLUMNS)), span(CYAN, without_tabs(line, TAB_COLUMNS))]
}

#[derive(Default)]
struct TerminalRenderer {
    columns: usize,
    color: bool,
    out: Vec<StyledLine>,
    /// The inline text that is being collected.
    spans: Vec<StyledSpan>,
    style: TextStyle,
    /// The prefix of each line: a bar for each quote, spaces for each list.
    margins: Vec<Margin>,
    lists: Vec<Option<u64>>,
    /// The text of the open code block.
    code: Option<String>,
    links: Vec<String>,
    table: Option<PendingTable>,
    /// A blank line goes before the next line, with this many margins.
    gap_depth: Option<usize>,
}

struct Margin {
    /// The prefix of the first line; the others have `continuation`.
    first: Option<String>,
    continuation: String,
}

#[derive(Default)]
struct PendingTable {
    rows: Vec<Vec<Vec<StyledSpan>>>,
    alignments: Vec<Alignment>,
}

impl TerminalRenderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push_text(self.style, &text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let quoted = if self.color { text.to_string() } else { quoted(&text) };
                self.push_text(TextStyle { fg: CYAN.fg, ..self.style }, &quoted);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.push_text(self.style, &text),
            Event::FootnoteReference(name) => self.push_text(self.style, &format!("[^{name}]")),
            // Agents write a line break where they mean one.
            Event::SoftBreak | Event::HardBreak => self.push_text(PLAIN, "\n"),
            Event::Rule => {
                self.push_line(vec![span(DIM, "─".repeat(self.available_columns().min(40)))]);
                self.request_gap();
            }
            Event::TaskListMarker(done) => self.push_text(PLAIN, if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_text();
                self.style.bold = true;
                if !self.color {
                    let marker = "#".repeat(level as usize);
                    self.push_text(PLAIN, &format!("{marker} "));
                }
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                self.margins.push(Margin { first: None, continuation: "│ ".to_owned() });
            }
            Tag::CodeBlock(_) => {
                self.end_text();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_text();
                // A nested list follows the text of its item without a gap.
                if !self.lists.is_empty() {
                    self.gap_depth = None;
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_text();
                let marker = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        format!("{}. ", n.saturating_sub(1))
                    }
                    _ => "• ".to_owned(),
                };
                let continuation = " ".repeat(width(&marker));
                self.margins.push(Margin { first: Some(marker), continuation });
            }
            Tag::Emphasis => self.open_emphasis(|style| style.italic = true, "*"),
            Tag::Strong => self.open_emphasis(|style| style.bold = true, "**"),
            Tag::Strikethrough => self.open_emphasis(|style| style.strikethrough = true, "~~"),
            Tag::Link { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.style.underline = true;
            }
            Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.push_text(self.style, "[image: ");
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.table = Some(PendingTable { rows: Vec::new(), alignments });
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
                self.end_text();
                self.request_gap();
            }
            TagEnd::Heading(_) => {
                self.end_text();
                self.style.bold = false;
                self.request_gap();
            }
            TagEnd::BlockQuote(_) => {
                self.end_text();
                self.margins.pop();
                self.request_gap();
            }
            TagEnd::CodeBlock => {
                let text = self.code.take().unwrap_or_default();
                for line in text.lines() {
                    self.push_line(code(line));
                }
                self.request_gap();
            }
            TagEnd::List(_) => {
                self.end_text();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.request_gap();
                } else {
                    self.gap_depth = None;
                }
            }
            TagEnd::Item => {
                self.end_text();
                if self.margins.last().is_some_and(|m| m.first.is_some()) {
                    self.push_line(Vec::new());
                }
                self.margins.pop();
            }
            TagEnd::Emphasis => self.close_emphasis(|style| style.italic = false, "*"),
            TagEnd::Strong => self.close_emphasis(|style| style.bold = false, "**"),
            TagEnd::Strikethrough => self.close_emphasis(|style| style.strikethrough = false, "~~"),
            TagEnd::Link => {
                self.style.underline = false;
                self.push_link_url();
            }
            TagEnd::Image => {
                self.push_text(self.style, "]");
                self.push_link_url();
            }
            TagEnd::TableCell => {
                let spans = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(spans);
                }
            }
            TagEnd::Table => {
                self.end_table();
                self.request_gap();
            }
            _ => {}
        }
    }

    fn request_gap(&mut self) {
        self.gap_depth = Some(self.margins.len());
    }

    fn push_text(&mut self, style: TextStyle, text: &str) {
        self.spans.push(span(style, without_tabs(text, TAB_COLUMNS)));
    }

    /// Starts an emphasis; without color, its Markdown marker is shown.
    fn open_emphasis(&mut self, set: fn(&mut TextStyle), marker: &str) {
        set(&mut self.style);
        if !self.color {
            self.push_text(PLAIN, marker);
        }
    }

    fn close_emphasis(&mut self, set: fn(&mut TextStyle), marker: &str) {
        set(&mut self.style);
        if !self.color {
            self.push_text(PLAIN, marker);
        }
    }

    /// Shows the target of a link unless its text is the target.
    fn push_link_url(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let last = self.spans.last().map(|s| s.text.as_str()).unwrap_or_default();
        if !link.is_empty() && last != link && link.strip_prefix("mailto:") != Some(last) {
            self.push_text(DIM, &format!(" ({link})"));
        }
    }

    fn available_columns(&self) -> usize {
        let margin: usize =
            self.margins.iter().take(MAX_MARGINS).map(|m| width(&m.continuation)).sum();
        self.columns.saturating_sub(margin).max(self.columns / 3)
    }

    fn end_text(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().all(|s| s.text.trim().is_empty()) {
            return;
        }
        for line in wrap(&spans, self.available_columns()) {
            self.push_line(line);
        }
    }

    /// Appends a line behind its margins.
    fn push_line(&mut self, line: StyledLine) {
        if let Some(depth) = self.gap_depth.take().filter(|_| !self.out.is_empty()) {
            let old = self.margins.iter().take(depth.min(MAX_MARGINS));
            self.out.push(old.map(|m| span(DIM, m.continuation.clone())).collect());
        }
        let mut whole: StyledLine = Vec::new();
        for margin in self.margins.iter_mut().take(MAX_MARGINS) {
            match margin.first.take() {
                Some(first) => whole.push(span(PLAIN, first)),
                None => whole.push(span(DIM, margin.continuation.clone())),
            }
        }
        whole.extend(line);
        self.out.push(whole);
    }

    /// Renders a table in columns if they fit, else each row as a list.
    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &table.rows {
            for (i, cell) in row.iter().enumerate() {
                widths[i] = widths[i].max(line_width(cell));
            }
        }
        let fits = widths.iter().sum::<usize>() + columns.saturating_sub(1) * 3
            <= self.available_columns();
        if fits {
            for (n, row) in table.rows.iter().enumerate() {
                let mut line: StyledLine = Vec::new();
                for (i, column_width) in widths.iter().enumerate() {
                    let cell = row.get(i).map(Vec::as_slice).unwrap_or_default();
                    if i > 0 {
                        line.push(span(DIM, " │ "));
                    }
                    let blanks = column_width.saturating_sub(line_width(cell));
                    let right = table.alignments.get(i) == Some(&Alignment::Right);
                    line.push(span(PLAIN, " ".repeat(if right { blanks } else { 0 })));
                    line.extend(cell.iter().map(|s| StyledSpan {
                        pen: TextStyle { bold: s.pen.bold || n == 0, ..s.pen },
                        text: s.text.replace('\n', " "),
                    }));
                    line.push(span(PLAIN, " ".repeat(if right { 0 } else { blanks })));
                }
                self.push_line(line);
                if n == 0 {
                    let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
                    self.push_line(vec![span(DIM, rule.join("─┼─"))]);
                }
            }
            return;
        }
        let mut rows = table.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        for row in rows {
            for (i, cell) in row.into_iter().enumerate() {
                let mut spans: Vec<StyledSpan> = Vec::new();
                if let Some(name) = head.get(i).filter(|n| !n.is_empty()) {
                    let bold = |s: &StyledSpan| StyledSpan {
                        pen: TextStyle { bold: true, ..s.pen },
                        text: s.text.clone(),
                    };
                    spans.extend(name.iter().map(bold));
                    spans.push(span(PLAIN, ": "));
                }
                spans.extend(cell);
                let marker = if i == 0 { "• " } else { "  " };
                self.margins
                    .push(Margin { first: Some(marker.to_owned()), continuation: "  ".to_owned() });
                for line in wrap(&spans, self.available_columns()) {
                    self.push_line(line);
                }
                self.margins.pop();
            }
        }
    }
}

/// Returns inline code with backticks that the text does not close.
pub(crate) fn quoted(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests;
