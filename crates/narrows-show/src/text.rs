//! Sessions for a terminal.
//!
//! [`Printer`] takes items as they come and writes each at once: nothing is collected. What a
//! subagent does stands to the right of a bar, below a heading where somebody else spoke before.
//! `watch` gives it items while they grow ([`Printer::update`]): what was printed is not printed
//! again.

mod card;
mod flow;
mod item;
mod live;

use super::escape;
use super::header::Header;
use super::pen::{BOLD, DIM};
use super::style::Style;
use super::wrap::{Line, cut, span, width, wrap, write_line};
use live::{Live, Printed};
use narrows::Item;
use narrows::item::ItemBody;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

/// Calls and items that are remembered.
const MAX_KNOWN: usize = 10_000;
/// Columns that the deeds of a subagent are moved to the right.
const STEP: usize = 4;
/// Subagents of subagents that are moved further.
const MAX_DEPTH: usize = 4;

/// Prints items.
#[derive(Debug)]
pub struct Printer<W> {
    out: W,
    style: Style,
    calls: Known<Caller>,
    shown: Known<u64>,
    texts: Known<Printed>,
    live: Option<Live>,
    /// The call of the subagent that spoke last.
    speaker: Option<String>,
    /// What was printed last.
    last: Option<Last>,
}

/// A call that may have a subagent.
#[derive(Debug, Clone)]
struct Caller {
    depth: usize,
    about: String,
}

/// Where an item stands.
#[derive(Debug, Clone)]
struct Place {
    /// Its id; of a call the call's, by which its children know it.
    id: String,
    parent: Option<String>,
    depth: usize,
    close: bool,
}

impl Place {
    fn of(item: &Item, style: &Style, depth: usize) -> Place {
        let id = match &item.body {
            ItemBody::ToolCall { tool_call } => &tool_call.id,
            _ => &item.id,
        };
        Place {
            id: id.as_str().to_owned(),
            parent: item.parent.as_ref().map(|p| p.as_str().to_owned()),
            depth,
            close: item::is_close(item, style),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Last {
    id: String,
    /// One line, which stands close to others of its kind.
    close: bool,
}

impl<W: Write> Printer<W> {
    pub fn new(out: W, style: Style) -> Self {
        Printer {
            out,
            style,
            calls: Known::default(),
            shown: Known::default(),
            texts: Known::default(),
            live: None,
            speaker: None,
            last: None,
        }
    }

    /// What stands above a session.
    pub fn header(&mut self, header: &Header) -> io::Result<()> {
        let columns = self.style.width;
        for line in wrap(&[span(BOLD, header.title())], columns) {
            self.line(0, line)?;
        }
        for parts in [header.who(), header.facts(&self.style.zone), header.names()] {
            for line in joined(parts, columns) {
                self.line(0, vec![span(DIM, line)])?;
            }
        }
        self.line(0, vec![span(DIM, "─".repeat(columns))])?;
        self.last = Some(Last { id: String::new(), close: false });
        Ok(())
    }

    /// A whole item, as it is now.
    pub fn item(&mut self, item: &Item) -> io::Result<()> {
        if self.part(item)? {
            return Ok(());
        }
        self.live_ends()?;
        let depth = self.depth(item);
        let lines = item::lines(item, &self.style, self.room(depth));
        self.remember(item, depth);
        if lines.is_empty() {
            return Ok(());
        }
        self.begin(&Place::of(item, &self.style, depth))?;
        lines.into_iter().try_for_each(|line| self.line(depth, line))
    }

    /// An item that is new or has changed. It is printed when it is complete; a text line by line
    /// while it grows. What is on the screen already is not printed again.
    pub fn update(&mut self, item: &Item) -> io::Result<()> {
        if let Some((text, streams)) = live::text_of(item) {
            return self.grow(item, text, streams);
        }
        // Questions wait for somebody who reads them here; a call is told when it is over.
        let waits = matches!(
            item.body,
            ItemBody::ToolCall { .. } | ItemBody::Text { .. } | ItemBody::Thinking { .. }
        );
        if waits && item.is_open() {
            self.remember(item, self.depth(item));
            return Ok(());
        }
        let lines = item::lines(item, &self.style, self.room(self.depth(item)));
        let hash = live::hash_lines(&lines);
        if self.shown.get(&item.id) == Some(&hash) {
            return Ok(());
        }
        self.shown.put(&item.id, hash);
        self.item(item)
    }

    /// Nothing more comes for now.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The end: gives back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.live_ends()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn depth(&self, item: &Item) -> usize {
        let Some(parent) = &item.parent else { return 0 };
        self.calls.get(parent).map_or(1, |caller| caller.depth + 1).min(MAX_DEPTH)
    }

    fn room(&self, depth: usize) -> usize {
        self.style.width.saturating_sub(depth * STEP).max(20)
    }

    fn remember(&mut self, item: &Item, depth: usize) {
        if let ItemBody::ToolCall { tool_call } = &item.body {
            let about = super::call::CallLine::of(&tool_call.call).about;
            self.calls.put(&tool_call.id, Caller { depth, about });
        }
    }

    /// What stands before an item: a blank line, and who speaks where that has changed.
    fn begin(&mut self, place: &Place) -> io::Result<()> {
        let Place { depth, close, .. } = *place;
        let parent = place.parent.as_deref();
        let other = parent != self.speaker.as_deref();
        let below = parent.is_some_and(|p| self.last.as_ref().is_some_and(|l| l.id == p));
        if let Some(last) = &self.last
            && !(last.close && close && !other)
        {
            self.line(if other { 0 } else { depth }, Vec::new())?;
        }
        if let Some(parent) = parent.filter(|_| other && !below) {
            let about = self.calls.get(parent).map(|c| c.about.clone()).unwrap_or_default();
            let about = if about.is_empty() { "subagent".to_owned() } else { about };
            let words = cut(&about, self.room(depth).saturating_sub(2));
            self.line(depth, vec![span(DIM, format!("⤷ {words}"))])?;
            if !close {
                self.line(depth, Vec::new())?;
            }
        }
        self.speaker.clone_from(&place.parent);
        self.last = Some(Last { id: place.id.clone(), close });
        Ok(())
    }

    fn line(&mut self, depth: usize, line: Line) -> io::Result<()> {
        let mut whole: Line = (0..depth).map(|_| span(DIM, "  │ ")).collect();
        whole.extend(line);
        write_line(&mut self.out, &whole, self.style.colour)
    }
}

/// What is known by id: the newest of it.
#[derive(Debug)]
struct Known<T> {
    map: HashMap<String, T>,
    order: VecDeque<String>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Known { map: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Known<T> {
    fn get(&self, id: &str) -> Option<&T> {
        self.map.get(id)
    }

    fn put(&mut self, id: &str, value: T) {
        if self.map.insert(id.to_owned(), value).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.map.remove(&oldest);
        }
    }
}

/// Parts with dots between, in as many lines as they need.
fn joined(parts: Vec<String>, columns: usize) -> Vec<String> {
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

/// A rule with words in it, over the whole width.
fn rule(words: &str, columns: usize) -> Line {
    let words = cut(&escape::line(words), columns.saturating_sub(8));
    let rest = columns.saturating_sub(width(&words) + 5);
    vec![span(DIM, format!("─── {words} {}", "─".repeat(rest)))]
}
