//! Transcripts for a terminal.
//!
//! [`TranscriptPrinter`] writes items as they arrive and buffers none. The items of a subagent stand
//! to the right of a bar, below a heading if another agent's items came before. `narrows watch`
//! passes items while they grow ([`TranscriptPrinter::update`]): printed text is not printed again.

mod card;
mod item;
mod live;
mod stream;

use super::ansi_style::{BOLD, DIM};
use super::escape;
use super::options::RenderOptions;
use super::session_header::SessionHeader;
use super::wrap::{StyledLine, cut, span, width, wrap, write_line};
use live::{RenderedState, StreamingText};
use narrows::Item;
use narrows::item::ItemBody;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

// Former name, until its uses in other crates are renamed.
pub use self::TranscriptPrinter as Printer;

/// Calls and items whose state is remembered.
const MAX_REMEMBERED_IDS: usize = 10_000;
/// Columns that the items of a subagent are indented.
const NESTING_COLUMNS: usize = 4;
/// Nesting levels of subagents that are indented.
const MAX_INDENT_DEPTH: usize = 4;

/// Prints the items of a transcript.
#[derive(Debug)]
pub struct TranscriptPrinter<W> {
    out: W,
    options: RenderOptions,
    calls: RecentMap<CallContext>,
    printed_hashes: RecentMap<u64>,
    printed_texts: RecentMap<RenderedState>,
    live: Option<StreamingText>,
    /// The call of the subagent whose item was printed last.
    last_parent: Option<String>,
    /// The item that was printed last.
    last: Option<PrecedingItem>,
}

/// A call that may have a subagent.
#[derive(Debug, Clone)]
struct CallContext {
    depth: usize,
    subject: String,
}

/// The position of an item in the transcript.
#[derive(Debug, Clone)]
struct Placement {
    /// The item id; for a call the call id, which its children refer to.
    id: String,
    parent: Option<String>,
    depth: usize,
    compact: bool,
}

impl Placement {
    fn of(item: &Item, options: &RenderOptions, depth: usize) -> Placement {
        let id = match &item.body {
            ItemBody::ToolCall { tool_call } => &tool_call.id,
            _ => &item.id,
        };
        Placement {
            id: id.as_str().to_owned(),
            parent: item.parent.as_ref().map(|p| p.as_str().to_owned()),
            depth,
            compact: item::is_compact(item, options),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PrecedingItem {
    id: String,
    /// One line that follows its neighbors without a gap.
    compact: bool,
}

impl<W: Write> TranscriptPrinter<W> {
    /// Creates a printer that writes to `out`.
    pub fn new(out: W, options: RenderOptions) -> Self {
        TranscriptPrinter {
            out,
            options,
            calls: RecentMap::default(),
            printed_hashes: RecentMap::default(),
            printed_texts: RecentMap::default(),
            live: None,
            last_parent: None,
            last: None,
        }
    }

    /// Prints the header of a session.
    pub fn header(&mut self, header: &SessionHeader) -> io::Result<()> {
        let columns = self.options.width;
        for line in wrap(&[span(BOLD, header.title())], columns) {
            self.write_indented(0, line)?;
        }
        for parts in
            [header.agent_details(), header.statistics(&self.options.zone), header.identifiers()]
        {
            for line in joined_lines(parts, columns) {
                self.write_indented(0, vec![span(DIM, line)])?;
            }
        }
        self.write_indented(0, vec![span(DIM, "─".repeat(columns))])?;
        self.last = Some(PrecedingItem { id: String::new(), compact: false });
        Ok(())
    }

    /// Prints a whole item in its current state.
    pub fn item(&mut self, item: &Item) -> io::Result<()> {
        if self.print_part(item)? {
            return Ok(());
        }
        self.end_streaming()?;
        let depth = self.depth(item);
        let lines = item::lines(item, &self.options, self.columns_at(depth));
        self.remember(item, depth);
        if lines.is_empty() {
            return Ok(());
        }
        self.start_item(&Placement::of(item, &self.options, depth))?;
        lines.into_iter().try_for_each(|line| self.write_indented(depth, line))
    }

    /// Prints an item that is new or changed once it is complete; a text line by line while it
    /// grows. Printed text is not printed again.
    pub fn update(&mut self, item: &Item) -> io::Result<()> {
        if let Some((text, is_streaming)) = live::text_of(item) {
            return self.print_growth(item, text, is_streaming);
        }
        // Permission requests and questions are shown while open; a call is shown when it has ended.
        let waits_for_end = matches!(
            item.body,
            ItemBody::ToolCall { .. } | ItemBody::Text { .. } | ItemBody::Thinking { .. }
        );
        if waits_for_end && item.is_open() {
            self.remember(item, self.depth(item));
            return Ok(());
        }
        let lines = item::lines(item, &self.options, self.columns_at(self.depth(item)));
        let hash = live::hash_lines(&lines);
        if self.printed_hashes.get(&item.id) == Some(&hash) {
            return Ok(());
        }
        self.printed_hashes.put(&item.id, hash);
        self.item(item)
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Prints the rest of an open text and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_streaming()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn depth(&self, item: &Item) -> usize {
        let Some(parent) = &item.parent else { return 0 };
        self.calls.get(parent).map_or(1, |caller| caller.depth + 1).min(MAX_INDENT_DEPTH)
    }

    fn columns_at(&self, depth: usize) -> usize {
        self.options.width.saturating_sub(depth * NESTING_COLUMNS).max(20)
    }

    fn remember(&mut self, item: &Item, depth: usize) {
        if let ItemBody::ToolCall { tool_call } = &item.body {
            let subject = super::call::CallSummary::of(&tool_call.call).subject;
            self.calls.put(&tool_call.id, CallContext { depth, subject });
        }
    }

    /// Prints the gap before an item, and the heading of its subagent if that changed.
    fn start_item(&mut self, placement: &Placement) -> io::Result<()> {
        let Placement { depth, compact, .. } = *placement;
        let parent = placement.parent.as_deref();
        let parent_changed = parent != self.last_parent.as_deref();
        let follows_call = parent.is_some_and(|p| self.last.as_ref().is_some_and(|l| l.id == p));
        if let Some(last) = &self.last
            && !(last.compact && compact && !parent_changed)
        {
            self.write_indented(if parent_changed { 0 } else { depth }, Vec::new())?;
        }
        if let Some(parent) = parent.filter(|_| parent_changed && !follows_call) {
            let subject = self.calls.get(parent).map(|c| c.subject.clone()).unwrap_or_default();
            let subject = if subject.is_empty() { "subagent".to_owned() } else { subject };
            let label = cut(&subject, self.columns_at(depth).saturating_sub(2));
            self.write_indented(depth, vec![span(DIM, format!("⤷ {label}"))])?;
            if !compact {
                self.write_indented(depth, Vec::new())?;
            }
        }
        self.last_parent.clone_from(&placement.parent);
        self.last = Some(PrecedingItem { id: placement.id.clone(), compact });
        Ok(())
    }

    fn write_indented(&mut self, depth: usize, line: StyledLine) -> io::Result<()> {
        let mut whole: StyledLine = (0..depth).map(|_| span(DIM, "  │ ")).collect();
        whole.extend(line);
        write_line(&mut self.out, &whole, self.options.colour)
    }
}

/// A map that remembers the newest [`MAX_REMEMBERED_IDS`] ids.
#[derive(Debug)]
struct RecentMap<T> {
    map: HashMap<String, T>,
    order: VecDeque<String>,
}

impl<T> Default for RecentMap<T> {
    fn default() -> Self {
        RecentMap { map: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> RecentMap<T> {
    fn get(&self, id: &str) -> Option<&T> {
        self.map.get(id)
    }

    fn put(&mut self, id: &str, value: T) {
        if self.map.insert(id.to_owned(), value).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_REMEMBERED_IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.map.remove(&oldest);
        }
    }
}

/// Joins parts with dots, in as many lines as they need.
fn joined_lines(parts: Vec<String>, columns: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(line) if width(line) + 3 + width(&part) <= columns => {
                line.push_str(" · ");
                line.push_str(&part);
            }
            _ => out.push(cut(&part, columns)),
        }
    }
    out
}

/// Returns a horizontal rule with a label.
fn rule(label: &str, columns: usize) -> StyledLine {
    let label = cut(&escape::line(label), columns.saturating_sub(8));
    let rest = columns.saturating_sub(width(&label) + 5);
    vec![span(DIM, format!("─── {label} {}", "─".repeat(rest)))]
}
