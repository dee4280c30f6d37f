//! `narrows search`: finds text in all sessions.

use super::session_index::{SessionIndex, heading};
use crate::args::SearchArgs;
use crate::error::CliError;
use crate::local_store::{LocalStore, NO_LIMIT};
use crate::output::{Clock, TerminalInfo, json_line};
use narrows_render::escape;
use narrows_render::pen::{BLUE, DIM, PLAIN, Pen, RED};
use narrows_render::wrap::{Line, line_width, span, wrap};
use narrows_store::{Hit, Part, Query};
use std::io::{self, BufWriter, Write};

const INDENT: &str = "    ";
const MIN_TEXT_COLUMNS: usize = 20;

pub(crate) fn run(args: &SearchArgs) -> Result<bool, CliError> {
    let clock = Clock::local();
    let (since, until) = clock.time_range(&args.filter)?;
    let text = args.query.join(" ");
    if text.trim_matches(|c: char| c.is_whitespace() || c == '"').is_empty() {
        return Err(CliError::new("cannot search: the query is empty"));
    }
    let local = LocalStore::open(&args.local)?;
    let session = match &args.session {
        Some(name) => {
            let row = local.resolve_session(name)?;
            Some(local.block_on(local.store.session(&row.id))?.key)
        }
        None => None,
    };
    let query = Query {
        text,
        session,
        agent: args.filter.agent.clone(),
        project: args.filter.project.clone(),
        since,
        until,
        ..Query::default()
    };
    let limit = if args.limit == 0 { NO_LIMIT } else { args.limit };
    let (hits, has_more) = find(&local, query, limit)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        hits.iter().try_for_each(|hit| json_line(&mut out, hit))?;
    } else if hits.is_empty() {
        let query = escape::line(&args.query.join(" "));
        let _ = writeln!(io::stderr(), "narrows: no match for `{query}`");
    } else {
        let terminal = TerminalInfo::stdout(args.color);
        print(&local, &hits, terminal, &clock, &mut out)?;
        if has_more {
            let note = format!("more matches: use -n {}", args.limit.saturating_mul(2));
            terminal.write_line(&mut out, &[])?;
            terminal.write_line(&mut out, &[span(DIM, note)])?;
        }
    }
    out.flush().map_err(CliError::stdout)?;
    Ok(!hits.is_empty())
}

/// Returns the first hits, and whether there may be more.
fn find(local: &LocalStore, mut query: Query, limit: usize) -> Result<(Vec<Hit>, bool), CliError> {
    let mut hits: Vec<Hit> = Vec::new();
    loop {
        query.limit = limit - hits.len();
        let page = local.block_on(local.store.search(query.clone()))?;
        hits.extend(page.hits);
        query.after = page.next;
        // A page may be short: the store bounds how many items it scans at a time.
        if query.after.is_none() || hits.len() >= limit {
            return Ok((hits, query.after.is_some()));
        }
    }
}

fn print(
    local: &LocalStore,
    hits: &[Hit],
    terminal: TerminalInfo,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let index = SessionIndex::load(local)?;
    let groups = hits.chunk_by(|a, b| a.session_id == b.session_id);
    for (at, group) in groups.enumerate() {
        let Some(first) = group.first() else { continue };
        if at > 0 {
            terminal.write_line(out, &[])?;
        }
        terminal.write_line(out, &heading(&index, &first.session_id, terminal, clock))?;
        for hit in group {
            let session = index.short_id(&hit.session_id);
            terminal.write_line(out, &hit_header(hit, session, terminal, clock))?;
            for line in wrap_indented(snippet(&hit.parts), terminal) {
                terminal.write_line(out, &line)?;
            }
        }
    }
    Ok(())
}

/// The line above a hit: item type, time, and the command that shows it.
fn hit_header(hit: &Hit, session: &str, terminal: TerminalInfo, clock: &Clock) -> Line {
    let time = hit.timestamp.as_deref().and_then(|t| clock.format_timestamp(t));
    let item = escape::line(&hit.item_id);
    let address = format!("{session}#{item}");
    // Quoted if a shell would split or expand it.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+%#".contains(c);
    let address = if address.chars().all(is_plain) {
        address
    } else {
        format!("'{}'", address.replace('\'', r"'\''"))
    };
    let mut line = vec![span(PLAIN, "  "), span(BLUE, type_label(&hit.r#type))];
    let address = vec![span(PLAIN, "  "), span(DIM, format!("narrows show {address}"))];
    if let Some(time) = time {
        let time = [span(PLAIN, "  "), span(DIM, time)];
        // An address that wraps could not be copied, so the time is left out.
        let all = line_width(&line) + line_width(&time) + line_width(&address);
        line.extend(
            time.into_iter().filter(|_| !terminal.is_terminal || all <= terminal.columns()),
        );
    }
    line.extend(address);
    line
}

/// The short name of an item type.
fn type_label(item_type: &str) -> String {
    match item_type {
        "user_message" => "user".to_owned(),
        "text" => "agent".to_owned(),
        "tool_call" => "call".to_owned(),
        "todo_list" => "todos".to_owned(),
        "background_task" => "background".to_owned(),
        other => escape::line(other),
    }
}

/// The text around a hit on one line, with the match highlighted.
fn snippet(parts: &[Part]) -> Line {
    let mut line = Line::new();
    // Whitespace collapses to one blank, also across parts.
    let mut pending_blank = None;
    for part in parts {
        let pen = if part.hit { RED.bold() } else { PLAIN };
        for c in escape::plain(&part.text).chars() {
            if c.is_whitespace() {
                pending_blank = pending_blank.or(Some(pen));
                continue;
            }
            if let Some(pen) = pending_blank.take().filter(|_| !line.is_empty()) {
                push(&mut line, pen, ' ');
            }
            push(&mut line, pen, c);
        }
    }
    line
}

fn push(line: &mut Line, pen: Pen, c: char) {
    match line.last_mut() {
        Some(last) if last.pen == pen => last.text.push(c),
        _ => line.push(span(pen, c)),
    }
}

/// Wraps a line at the width of the terminal; pipes and files get it whole.
fn wrap_indented(line: Line, terminal: TerminalInfo) -> Vec<Line> {
    let room = terminal.columns().saturating_sub(INDENT.len()).max(MIN_TEXT_COLUMNS);
    let lines = if terminal.is_terminal && line_width(&line) > room {
        wrap(&line, room)
    } else {
        vec![line]
    };
    let indent = |mut line: Line| {
        line.insert(0, span(PLAIN, INDENT));
        line
    };
    lines.into_iter().map(indent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, hit: bool) -> Part {
        Part { text: text.to_owned(), hit }
    }

    #[test]
    fn snippet_is_one_line_without_escape_sequences() {
        let parts = [
            part("  a\n\t\x1b[", false),
            part("31m", true),
            part("\x1b[2J \n", false),
            part(" x", true),
            part("\u{9b}y\n", false),
        ];
        let line = snippet(&parts);
        let text: String = line.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(text, "a 31m x");
        assert_eq!(line.iter().filter(|s| s.pen != PLAIN).count(), 2);
    }

    #[test]
    fn hit_address_is_quoted_for_the_shell() {
        let hit = |item: &str| Hit {
            session_id: "7f3kabcd".to_owned(),
            title: None,
            label: None,
            item_id: item.to_owned(),
            r#type: "text".to_owned(),
            order: 0,
            timestamp: None,
            field: String::new(),
            parts: Vec::new(),
            fork: false,
        };
        let terminal = TerminalInfo::stdout(crate::args::ColorChoice::Never);
        let clock = Clock::local();
        let header = |item| {
            let line = hit_header(&hit(item), "7f3k", terminal, &clock);
            line.iter().map(|s| s.text.as_str()).collect::<String>()
        };
        assert_eq!(header("text-msg_01:0"), "  agent  narrows show 7f3k#text-msg_01:0");
        assert_eq!(header("a b's"), r"  agent  narrows show '7f3k#a b'\''s'");
        assert_eq!(header("a\x1b[2J$(x)"), "  agent  narrows show '7f3k#a$(x)'");
    }
}
