//! `narrows search`.

use crate::args::SearchArgs;
use crate::library::Library;
use crate::ls::{ALL, Known, heading};
use crate::table::{Look, json_line, unwritten};
use crate::when::Clock;
use crate::{Fault, fault};
use narrows_show::escape;
use narrows_show::pen::{BLUE, DIM, PLAIN, Pen, RED};
use narrows_show::wrap::{Line, line_width, span, wrap};
use narrows_store::{Hit, Part, Query};
use std::io::{self, BufWriter, Write};

/// What stands before the text of a hit.
const INDENT: &str = "    ";

pub(crate) fn run(args: &SearchArgs) -> Result<bool, Fault> {
    let clock = Clock::here();
    let (since, until) = clock.range(&args.which)?;
    let text = args.query.join(" ");
    if text.trim_matches(|c: char| c.is_whitespace() || c == '"').is_empty() {
        return Err(fault("there is nothing to search for"));
    }
    let library = Library::open(&args.library)?;
    let session = match &args.session {
        Some(name) => {
            let row = library.session(name)?;
            Some(library.wait(library.store.session(&row.id))?.key)
        }
        None => None,
    };
    let query = Query {
        text,
        session,
        agent: args.which.agent.clone(),
        project: args.which.project.clone(),
        since,
        until,
        ..Query::default()
    };
    let (hits, more) = find(&library, query, if args.limit == 0 { ALL } else { args.limit })?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        hits.iter().try_for_each(|hit| json_line(&mut out, hit))?;
    } else if hits.is_empty() {
        let told = escape::line(&args.query.join(" "));
        let _ = writeln!(io::stderr(), "narrows: nobody said `{told}`");
    } else {
        let look = Look::new(args.color);
        print(&library, &hits, look, &clock, &mut out)?;
        if more {
            let told = format!("more hits: -n {}", args.limit.saturating_mul(2));
            look.line(&mut out, &[])?;
            look.line(&mut out, &[span(DIM, told)])?;
        }
    }
    out.flush().map_err(unwritten)?;
    Ok(!hits.is_empty())
}

/// The first hits, and whether there may be more.
fn find(library: &Library, mut query: Query, most: usize) -> Result<(Vec<Hit>, bool), Fault> {
    let mut hits: Vec<Hit> = Vec::new();
    loop {
        query.limit = most - hits.len();
        let page = library.wait(library.store.search(query.clone()))?;
        hits.extend(page.hits);
        query.after = page.next;
        // A page may end early, when it has looked at much and found little.
        if query.after.is_none() || hits.len() >= most {
            return Ok((hits, query.after.is_some()));
        }
    }
}

fn print(
    library: &Library,
    hits: &[Hit],
    look: Look,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<(), Fault> {
    let known = Known::read(library)?;
    let groups = hits.chunk_by(|a, b| a.session_id == b.session_id);
    for (at, group) in groups.enumerate() {
        let Some(first) = group.first() else { continue };
        if at > 0 {
            look.line(out, &[])?;
        }
        look.line(out, &heading(&known, &first.session_id, (look, clock)))?;
        for hit in group {
            look.line(out, &about(hit, known.short(&hit.session_id), (look, clock)))?;
            for line in broken(context(&hit.parts), look) {
                look.line(out, &line)?;
            }
        }
    }
    Ok(())
}

/// The line above a hit: what it is, when it was, how to get there.
fn about(hit: &Hit, session: &str, (look, clock): (Look, &Clock)) -> Line {
    let time = hit.timestamp.as_deref().and_then(|t| clock.short_of(t));
    let item = escape::line(&hit.item_id);
    let address = format!("{session}#{item}");
    // An id that a shell would take apart is quoted.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+%#".contains(c);
    let address = if address.chars().all(plain) {
        address
    } else {
        format!("'{}'", address.replace('\'', r"'\''"))
    };
    let mut line = vec![span(PLAIN, "  "), span(BLUE, kind(&hit.r#type))];
    let address = vec![span(PLAIN, "  "), span(DIM, format!("narrows show {address}"))];
    if let Some(time) = time {
        let time = [span(PLAIN, "  "), span(DIM, time)];
        // An address on two lines could not be copied.
        let all = line_width(&line) + line_width(&time) + line_width(&address);
        line.extend(time.into_iter().filter(|_| !look.terminal || all <= look.columns()));
    }
    line.extend(address);
    line
}

/// What an item's type is called.
fn kind(of: &str) -> String {
    match of {
        "user_message" => "user".to_owned(),
        "text" => "agent".to_owned(),
        "tool_call" => "call".to_owned(),
        "todo_list" => "todos".to_owned(),
        "background_task" => "background".to_owned(),
        other => escape::line(other),
    }
}

/// The text around a hit on one line, with what was looked for in another colour.
fn context(parts: &[Part]) -> Line {
    let mut line = Line::new();
    // Blanks and line ends are one blank, also where one part ends and another begins.
    let mut blank = None;
    for part in parts {
        let pen = if part.hit { RED.bold() } else { PLAIN };
        for c in escape::plain(&part.text).chars() {
            if c.is_whitespace() {
                blank = blank.or(Some(pen));
                continue;
            }
            if let Some(pen) = blank.take().filter(|_| !line.is_empty()) {
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

/// A line, broken where the terminal ends; one in a pipe or a file stays as it is.
fn broken(line: Line, look: Look) -> Vec<Line> {
    let room = look.columns().saturating_sub(INDENT.len()).max(20);
    let lines =
        if look.terminal && line_width(&line) > room { wrap(&line, room) } else { vec![line] };
    let indented = |mut line: Line| {
        line.insert(0, span(PLAIN, INDENT));
        line
    };
    lines.into_iter().map(indented).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, hit: bool) -> Part {
        Part { text: text.to_owned(), hit }
    }

    #[test]
    fn a_context_is_one_line_without_commands() {
        let parts = [
            part("  a\n\t\x1b[", false),
            part("31m", true),
            part("\x1b[2J \n", false),
            part(" x", true),
            part("\u{9b}y\n", false),
        ];
        let line = context(&parts);
        let told: String = line.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(told, "a 31m x");
        assert_eq!(line.iter().filter(|s| s.pen != PLAIN).count(), 2);
    }

    #[test]
    fn an_address_is_what_a_shell_takes_as_one_word() {
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
        let (look, clock) = (Look::new(crate::args::When::Never), Clock::here());
        let told = |item| {
            let line = about(&hit(item), "7f3k", (look, &clock));
            line.iter().map(|s| s.text.as_str()).collect::<String>()
        };
        assert_eq!(told("text-msg_01:0"), "  agent  narrows show 7f3k#text-msg_01:0");
        assert_eq!(told("a b's"), r"  agent  narrows show '7f3k#a b'\''s'");
        assert_eq!(told("a\x1b[2J$(x)"), "  agent  narrows show '7f3k#a$(x)'");
    }
}
