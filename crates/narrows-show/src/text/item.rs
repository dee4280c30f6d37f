//! The lines of one item.

use super::flow::Flow;
use super::{card, rule};
use crate::asked;
use crate::call::{self, CallLine, given};
use crate::escape;
use crate::pen::{BLUE, BOLD, CYAN, DIM, GREEN, PLAIN, Pen, RED, YELLOW};
use crate::style::Style;
use crate::words;
use crate::wrap::{Line, cut, line_width, span, width, without_tabs, wrap};
use narrows::Item;
use narrows::event::{ArtifactInfo, Background, Choice, GivenAnswer, QuestionPart, Summary};
use narrows::item::{ItemBody, TodoList, ToolItem};
use narrows::sanitize::{Clean, Tree};
use narrows::tool::{Image, ToolCall, ToolStatus};

/// Columns that short lines are moved to the right.
pub(super) const INDENT: usize = 2;
/// A prompt may have so many times the lines of an output.
const PROMPT: usize = 4;

/// Whether an item is one short line, which stands close to others.
pub(super) fn is_close(item: &Item, style: &Style) -> bool {
    match &item.body {
        ItemBody::ToolCall { .. } => !style.tools,
        ItemBody::Thinking { hidden, .. } => !style.thinking || *hidden,
        ItemBody::BackgroundTask(_) | ItemBody::Notice { .. } => true,
        ItemBody::Artifact { .. } => true,
        ItemBody::UserMessage { .. }
        | ItemBody::Text { .. }
        | ItemBody::TodoList { .. }
        | ItemBody::Permission { .. }
        | ItemBody::Plan { .. }
        | ItemBody::Question { .. }
        | ItemBody::Compaction(_)
        | ItemBody::Error { .. } => false,
    }
}

/// The lines of an item that is `columns` wide.
pub(super) fn lines(item: &Item, style: &Style, columns: usize) -> Vec<Line> {
    match &item.body {
        ItemBody::UserMessage { text, images, .. } => prompt(item, text, images, style, columns),
        ItemBody::Text { content, images, .. } => {
            let mut out = Flow::whole(content, columns, style.colour);
            out.extend(pictures(images));
            out
        }
        // Of a thought in parts, the first one says what there is to say.
        ItemBody::Thinking { .. } if item.continues.is_some() && !style.thinking => Vec::new(),
        ItemBody::Thinking { content, hidden, .. } => thinking(content, *hidden, style, columns),
        ItemBody::ToolCall { tool_call } => {
            let mut out = vec![call_line(&tool_call.call, columns, !style.tools)];
            if style.tools {
                out.extend(card::lines(&tool_call.call, style, columns));
            } else if let Some(images) = &tool_call.call.images {
                out.extend(pictures(images).into_iter().map(|line| indented(INDENT + 2, line)));
            }
            out
        }
        ItemBody::TodoList { todo_list } => todos(todo_list, columns),
        ItemBody::Artifact { artifact } => this_artifact(artifact, columns),
        ItemBody::Permission { title, options, tool_call, .. } => {
            leave(title.as_ref(), options, tool_call.as_deref(), columns)
        }
        ItemBody::Plan { content, .. } => plan(content, style, columns),
        ItemBody::Question { questions, answers, .. } => {
            question(questions, answers.as_deref(), columns)
        }
        ItemBody::BackgroundTask(task) => background(task, columns),
        ItemBody::Compaction(summary) => compaction(summary, style, columns),
        ItemBody::Notice { kind, text } => notice(kind, text, columns),
        ItemBody::Error { message, code, details, .. } => {
            error(message, code.as_ref(), details.as_ref(), style, columns)
        }
    }
}

fn prompt(item: &Item, text: &str, images: &[Image], style: &Style, columns: usize) -> Vec<Line> {
    let bar = || span(BLUE.bold(), "▌ ");
    let who = if item.parent.is_some() { "Task" } else { "You" };
    let mut head = vec![bar(), span(BLUE.bold(), who)];
    if let Some(time) = item.time.as_ref().and_then(|t| words::clock(t.millis(), &style.zone)) {
        head.push(span(DIM, format!(" · {time}")));
    }
    let text = without_tabs(escape::plain(text).trim_end(), 4);
    let mut said = if text.trim().is_empty() {
        Vec::new()
    } else {
        wrap(&[span(PLAIN, text)], columns.saturating_sub(2))
    };
    if let Some(most) = style.lines {
        said = card::shortened(said, most.saturating_mul(PROMPT));
    }
    said.extend(pictures(images));
    let mut out = if item.continues.is_some() { Vec::new() } else { vec![head] };
    out.extend(said.into_iter().map(|line| std::iter::once(bar()).chain(line).collect::<Line>()));
    out
}

fn thinking(content: &str, hidden: bool, style: &Style, columns: usize) -> Vec<Line> {
    let size = content.chars().count();
    if hidden || content.trim().is_empty() || !style.thinking {
        let words = match size {
            0 => "✻ thought".to_owned(),
            _ => format!("✻ thought, {} characters", words::amount(size as u64)),
        };
        return vec![indented(INDENT, vec![span(DIM, words)])];
    }
    let pen = Pen { italic: true, ..DIM };
    let mut out = vec![vec![span(DIM, "✻ Thinking")]];
    let text = without_tabs(escape::plain(content).trim(), 4);
    let lines = wrap(&[span(pen, text)], columns.saturating_sub(INDENT));
    out.extend(lines.into_iter().map(|line| indented(INDENT, line)));
    out
}

/// The one line of a call: its sign, name, what it is about, and how it went.
pub(super) fn call_line(call: &ToolCall, columns: usize, why: bool) -> Line {
    let line = CallLine::of(call);
    let pen = status_pen(line.status);
    let facts = line.facts.join(" · ");
    let mut out = vec![
        span(PLAIN, " ".repeat(INDENT)),
        span(pen, call::sign(line.status)),
        span(PLAIN, " "),
        span(BOLD, cut(&line.name, columns / 2)),
    ];
    let facts_width = if facts.is_empty() { 0 } else { width(&facts) + 2 };
    let room = columns.saturating_sub(line_width(&out) + 1 + facts_width);
    if !line.about.is_empty() {
        out.push(span(PLAIN, format!(" {}", cut(&line.about, room))));
    }
    let bad = matches!(line.status, ToolStatus::Failed | ToolStatus::Cancelled);
    if !facts.is_empty() {
        out.push(span(if bad { pen } else { DIM }, format!("  {facts}")));
    }
    let room = columns.saturating_sub(line_width(&out) + 2);
    if let Some(why) = line.why.filter(|_| why && room >= 12) {
        out.push(span(pen, format!("  {}", cut(&why, room))));
    }
    out
}

pub(super) fn status_pen(status: ToolStatus) -> Pen {
    match status {
        ToolStatus::Completed => GREEN,
        ToolStatus::Failed => RED,
        ToolStatus::Cancelled => YELLOW,
        ToolStatus::Pending | ToolStatus::InProgress => CYAN,
    }
}

fn todos(list: &TodoList, columns: usize) -> Vec<Line> {
    let mut out = vec![vec![
        span(PLAIN, " ".repeat(INDENT)),
        span(BOLD, "Todos"),
        span(DIM, format!(" · {}", call::progress(list))),
    ]];
    for todo in &list.todos {
        let (pen, text) = match todo.status {
            ToolStatus::InProgress if !todo.active_form.trim().is_empty() => {
                (BOLD, &todo.active_form)
            }
            ToolStatus::InProgress => (BOLD, &todo.content),
            ToolStatus::Pending => (PLAIN, &todo.content),
            _ => (DIM, &todo.content),
        };
        let sign = span(status_pen(todo.status), format!("{} ", call::tick(todo.status)));
        out.extend(hanging(INDENT, sign, span(pen, escape::line(text)), columns));
    }
    out
}

fn this_artifact(artifact: &ArtifactInfo, columns: usize) -> Vec<Line> {
    let mut words = escape::line(&artifact.name);
    for more in [Some(&artifact.path), artifact.preview_url.as_ref()].into_iter().flatten() {
        let more = escape::line(more);
        if !more.is_empty() && more != words {
            words = format!("{words} · {more}");
        }
    }
    let words = format!("{} {words}", escape::line(&artifact.r#type));
    hanging(INDENT, span(CYAN, "◆ "), span(PLAIN, words), columns)
}

fn leave(
    title: Option<&Clean>,
    options: &[Choice],
    about: Option<&ToolItem>,
    columns: usize,
) -> Vec<Line> {
    let title = given(title).map(escape::line).unwrap_or_default();
    let words = format!("Needs leave: {title}");
    let mut out = hanging(INDENT, span(YELLOW.bold(), "? "), span(BOLD, words), columns);
    let exact = about.map(|item| asked::lines(&item.call)).unwrap_or_default();
    if exact.concat() != title {
        out.extend(exact.into_iter().map(|line| indented(INDENT + 4, vec![span(CYAN, line)])));
    }
    for option in options {
        let name = span(PLAIN, escape::line(&option.name));
        out.extend(hanging(INDENT + 2, span(DIM, "○ "), name, columns));
    }
    out
}

fn plan(content: &str, style: &Style, columns: usize) -> Vec<Line> {
    let mut out = vec![vec![span(CYAN.bold(), "┃ "), span(CYAN.bold(), "Plan")]];
    for line in Flow::whole(content, columns.saturating_sub(2), style.colour) {
        out.push(std::iter::once(span(CYAN, "┃ ")).chain(line).collect());
    }
    out
}

fn question(
    questions: &[QuestionPart],
    answers: Option<&[GivenAnswer]>,
    columns: usize,
) -> Vec<Line> {
    let mut out = Vec::new();
    for part in questions {
        let words = span(BOLD, escape::line(&part.question));
        out.extend(hanging(INDENT, span(YELLOW.bold(), "? "), words, columns));
        let answer = answers.into_iter().flatten().find(|a| a.question == part.question);
        let said = answer.map(|a| escape::line(&a.answer));
        let mut is_option = false;
        for option in &part.options {
            let label = escape::line(&option.label);
            let chosen =
                said.as_deref().is_some_and(|s| call::is_chosen(s, &label, part.multi_select));
            is_option |= chosen;
            let note = given(option.description.as_ref()).map(escape::line);
            let words = note.map_or(label.clone(), |note| format!("{label} – {note}"));
            let (sign, pen) =
                if chosen { (span(GREEN, "● "), BOLD) } else { (span(DIM, "○ "), DIM) };
            out.extend(hanging(INDENT + 2, sign, span(pen, words), columns));
        }
        if let Some(said) = said.filter(|s| !is_option && !s.is_empty()) {
            out.extend(hanging(INDENT + 2, span(GREEN, "→ "), span(BOLD, said), columns));
        }
    }
    if answers.is_none() {
        out.push(indented(INDENT + 2, vec![span(YELLOW, "not answered")]));
    }
    out
}

fn background(task: &Background, columns: usize) -> Vec<Line> {
    let words = format!("In the background: {}", call::background(task));
    let sign = span(status_pen(task.status), format!("{} ", call::sign(task.status)));
    hanging(INDENT, sign, span(PLAIN, words), columns)
}

fn compaction(summary: &Summary, style: &Style, columns: usize) -> Vec<Line> {
    let mut out = vec![rule(&call::compaction(summary), columns)];
    if style.thinking && !summary.text.trim().is_empty() {
        out.push(Line::new());
        for line in Flow::whole(&summary.text, columns, style.colour) {
            out.push(line.into_iter().map(|s| span(Pen { dim: true, ..s.pen }, s.text)).collect());
        }
        out.push(Line::new());
        out.push(vec![span(DIM, "─".repeat(columns))]);
    }
    out
}

fn notice(kind: &str, text: &str, columns: usize) -> Vec<Line> {
    let (kind, text) = (escape::line(kind), escape::plain(text));
    let (sign, pen) = match kind.as_str() {
        "interrupted" | "warning" | "retry" => (span(YELLOW, "! "), YELLOW),
        "command" => (span(BLUE.bold(), "❯ "), PLAIN),
        _ => (span(DIM, "· "), DIM),
    };
    let words =
        if text.trim().is_empty() { kind.replace('_', " ") } else { text.trim().to_owned() };
    hanging(INDENT, sign, span(pen, without_tabs(&words, 4)), columns)
}

fn error(
    message: &str,
    code: Option<&Tree<Clean>>,
    details: Option<&Tree<Clean>>,
    style: &Style,
    columns: usize,
) -> Vec<Line> {
    let code = code.map(|c| escape::line(c.json().trim_matches('"'))).filter(|c| c != "null");
    let code = code.map(|c| format!(" {c}")).unwrap_or_default();
    let words = format!("Error{code}: {}", escape::plain(message).trim());
    let sign = span(RED.bold(), "✗ ");
    let mut out = hanging(0, sign, span(RED, without_tabs(&words, 4)), columns);
    if let Some(details) = details.filter(|d| style.tools && d.json() != "null") {
        let text = escape::plain(&call::pretty(details.json()));
        let lines = text.lines().map(|l| indented(4, vec![span(DIM, l)])).collect();
        out.extend(card::shortened(lines, style.lines.unwrap_or(usize::MAX)));
    }
    out
}

/// `[image png, 79 bytes]`, a line each.
pub(super) fn pictures(images: &[Image]) -> Vec<Line> {
    images.iter().map(|i| vec![span(DIM, format!("[{}]", call::image(i)))]).collect()
}

pub(super) fn indented(columns: usize, line: Line) -> Line {
    std::iter::once(span(PLAIN, " ".repeat(columns))).chain(line).collect()
}

/// A text behind a sign, its other lines below the first one's words.
fn hanging(
    indent: usize,
    sign: crate::wrap::Span,
    text: crate::wrap::Span,
    columns: usize,
) -> Vec<Line> {
    let hang = width(&sign.text);
    let mut sign = Some(sign);
    let lines = wrap(&[text], columns.saturating_sub(indent + hang).max(10));
    let first = |line: Line, sign: &mut Option<_>| match sign.take() {
        Some(sign) => indented(indent, std::iter::once(sign).chain(line).collect()),
        None => indented(indent + hang, line),
    };
    lines.into_iter().map(|line| first(line, &mut sign)).collect()
}
