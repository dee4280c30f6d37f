//! The lines of one item.

use super::stream::MarkdownStream;
use super::{card, rule};
use crate::ansi_style::{BLUE, BOLD, CYAN, DIM, GREEN, PLAIN, RED, TextStyle, YELLOW};
use crate::call::{self, CallSummary, non_blank};
use crate::escape;
use crate::format;
use crate::options::RenderOptions;
use crate::permission;
use crate::wrap::{StyledLine, cut, line_width, span, width, without_tabs, wrap};
use narrows::Item;
use narrows::event::{ArtifactInfo, Background, Choice, GivenAnswer, QuestionPart, Summary};
use narrows::item::{ItemBody, TodoList, ToolItem};
use narrows::sanitize::{Clean, Tree};
use narrows::tool::{Image, ToolCall, ToolStatus};

/// Columns that short lines are indented.
pub(super) const INDENT_COLUMNS: usize = 2;
/// A prompt may have this many times the lines of an output.
const PROMPT_LINES_FACTOR: usize = 4;

/// Returns whether an item is one short line that follows its neighbors without a gap.
pub(super) fn is_compact(item: &Item, options: &RenderOptions) -> bool {
    match &item.body {
        ItemBody::ToolCall { .. } => !options.tools,
        ItemBody::Thinking { hidden, .. } => !options.thinking || *hidden,
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

/// Returns the lines of an item that is `columns` wide.
pub(super) fn lines(item: &Item, options: &RenderOptions, columns: usize) -> Vec<StyledLine> {
    match &item.body {
        ItemBody::UserMessage { text, images, .. } => prompt(item, text, images, options, columns),
        ItemBody::Text { content, images, .. } => {
            let mut out = MarkdownStream::render_all(content, columns, options.colour);
            out.extend(image_lines(images));
            out
        }
        // Of thinking in parts, the first part has the summary.
        ItemBody::Thinking { .. } if item.continues.is_some() && !options.thinking => Vec::new(),
        ItemBody::Thinking { content, hidden, .. } => thinking(content, *hidden, options, columns),
        ItemBody::ToolCall { tool_call } => {
            let mut out = vec![call_line(&tool_call.call, columns, !options.tools)];
            if options.tools {
                out.extend(card::lines(&tool_call.call, options, columns));
            } else if let Some(images) = &tool_call.call.images {
                out.extend(
                    image_lines(images).into_iter().map(|line| indented(INDENT_COLUMNS + 2, line)),
                );
            }
            out
        }
        ItemBody::TodoList { todo_list } => todos(todo_list, columns),
        ItemBody::Artifact { artifact } => artifact_lines(artifact, columns),
        ItemBody::Permission { title, options, tool_call, .. } => {
            permission_lines(title.as_ref(), options, tool_call.as_deref(), columns)
        }
        ItemBody::Plan { content, .. } => plan(content, options, columns),
        ItemBody::Question { questions, answers, .. } => {
            question(questions, answers.as_deref(), columns)
        }
        ItemBody::BackgroundTask(task) => background(task, columns),
        ItemBody::Compaction(summary) => compaction(summary, options, columns),
        ItemBody::Notice { kind, text } => notice(kind, text, columns),
        ItemBody::Error { message, code, details, .. } => {
            error(message, code.as_ref(), details.as_ref(), options, columns)
        }
    }
}

fn prompt(
    item: &Item,
    text: &str,
    images: &[Image],
    options: &RenderOptions,
    columns: usize,
) -> Vec<StyledLine> {
    let bar = || span(BLUE.bold(), "▌ ");
    let author = if item.parent.is_some() { "Task" } else { "You" };
    let mut head = vec![bar(), span(BLUE.bold(), author)];
    if let Some(time) = item.time.as_ref().and_then(|t| format::clock(t.millis(), &options.zone)) {
        head.push(span(DIM, format!(" · {time}")));
    }
    let text = without_tabs(escape::plain(text).trim_end(), 4);
    let mut text_lines = if text.trim().is_empty() {
        Vec::new()
    } else {
        wrap(&[span(PLAIN, text)], columns.saturating_sub(2))
    };
    if let Some(max_lines) = options.lines {
        text_lines = card::shortened(text_lines, max_lines.saturating_mul(PROMPT_LINES_FACTOR));
    }
    text_lines.extend(image_lines(images));
    let mut out = if item.continues.is_some() { Vec::new() } else { vec![head] };
    out.extend(
        text_lines
            .into_iter()
            .map(|line| std::iter::once(bar()).chain(line).collect::<StyledLine>()),
    );
    out
}

fn thinking(
    content: &str,
    hidden: bool,
    options: &RenderOptions,
    columns: usize,
) -> Vec<StyledLine> {
    let size = content.chars().count();
    if hidden || content.trim().is_empty() || !options.thinking {
        let label = match size {
            0 => "✻ thought".to_owned(),
            _ => format!("✻ thought, {} characters", format::amount(size as u64)),
        };
        return vec![indented(INDENT_COLUMNS, vec![span(DIM, label)])];
    }
    let style = TextStyle { italic: true, ..DIM };
    let mut out = vec![vec![span(DIM, "✻ Thinking")]];
    let text = without_tabs(escape::plain(content).trim(), 4);
    let lines = wrap(&[span(style, text)], columns.saturating_sub(INDENT_COLUMNS));
    out.extend(lines.into_iter().map(|line| indented(INDENT_COLUMNS, line)));
    out
}

/// Returns the line of a call: its status, name, subject and details.
pub(super) fn call_line(call: &ToolCall, columns: usize, with_error: bool) -> StyledLine {
    let summary = CallSummary::of(call);
    let style = status_style(summary.status);
    let details = summary.details.join(" · ");
    let mut out = vec![
        span(PLAIN, " ".repeat(INDENT_COLUMNS)),
        span(style, call::status_glyph(summary.status)),
        span(PLAIN, " "),
        span(BOLD, cut(&summary.name, columns / 2)),
    ];
    let details_width = if details.is_empty() { 0 } else { width(&details) + 2 };
    let columns_left = columns.saturating_sub(line_width(&out) + 1 + details_width);
    if !summary.subject.is_empty() {
        out.push(span(PLAIN, format!(" {}", cut(&summary.subject, columns_left))));
    }
    let is_failure = matches!(summary.status, ToolStatus::Failed | ToolStatus::Cancelled);
    if !details.is_empty() {
        out.push(span(if is_failure { style } else { DIM }, format!("  {details}")));
    }
    let columns_left = columns.saturating_sub(line_width(&out) + 2);
    if let Some(error) = summary.error.filter(|_| with_error && columns_left >= 12) {
        out.push(span(style, format!("  {}", cut(&error, columns_left))));
    }
    out
}

pub(super) fn status_style(status: ToolStatus) -> TextStyle {
    match status {
        ToolStatus::Completed => GREEN,
        ToolStatus::Failed => RED,
        ToolStatus::Cancelled => YELLOW,
        ToolStatus::Pending | ToolStatus::InProgress => CYAN,
    }
}

fn todos(list: &TodoList, columns: usize) -> Vec<StyledLine> {
    let mut out = vec![vec![
        span(PLAIN, " ".repeat(INDENT_COLUMNS)),
        span(BOLD, "Todos"),
        span(DIM, format!(" · {}", call::progress(list))),
    ]];
    for todo in &list.todos {
        let (style, text) = match todo.status {
            ToolStatus::InProgress if !todo.active_form.trim().is_empty() => {
                (BOLD, &todo.active_form)
            }
            ToolStatus::InProgress => (BOLD, &todo.content),
            ToolStatus::Pending => (PLAIN, &todo.content),
            _ => (DIM, &todo.content),
        };
        let glyph =
            span(status_style(todo.status), format!("{} ", call::checkbox_glyph(todo.status)));
        out.extend(hanging(INDENT_COLUMNS, glyph, span(style, escape::line(text)), columns));
    }
    out
}

fn artifact_lines(artifact: &ArtifactInfo, columns: usize) -> Vec<StyledLine> {
    let mut label = escape::line(&artifact.name);
    for more in [Some(&artifact.path), artifact.preview_url.as_ref()].into_iter().flatten() {
        let more = escape::line(more);
        if !more.is_empty() && more != label {
            label = format!("{label} · {more}");
        }
    }
    let label = format!("{} {label}", escape::line(&artifact.r#type));
    hanging(INDENT_COLUMNS, span(CYAN, "◆ "), span(PLAIN, label), columns)
}

fn permission_lines(
    title: Option<&Clean>,
    options: &[Choice],
    tool_call: Option<&ToolItem>,
    columns: usize,
) -> Vec<StyledLine> {
    let title = non_blank(title).map(escape::line).unwrap_or_default();
    let label = format!("Needs leave: {title}");
    let mut out = hanging(INDENT_COLUMNS, span(YELLOW.bold(), "? "), span(BOLD, label), columns);
    let exact_lines = tool_call.map(|item| permission::exact_lines(&item.call)).unwrap_or_default();
    if exact_lines.concat() != title {
        out.extend(
            exact_lines
                .into_iter()
                .map(|line| indented(INDENT_COLUMNS + 4, vec![span(CYAN, line)])),
        );
    }
    for option in options {
        let name = span(PLAIN, escape::line(&option.name));
        out.extend(hanging(INDENT_COLUMNS + 2, span(DIM, "○ "), name, columns));
    }
    out
}

fn plan(content: &str, options: &RenderOptions, columns: usize) -> Vec<StyledLine> {
    let mut out = vec![vec![span(CYAN.bold(), "┃ "), span(CYAN.bold(), "Plan")]];
    for line in MarkdownStream::render_all(content, columns.saturating_sub(2), options.colour) {
        out.push(std::iter::once(span(CYAN, "┃ ")).chain(line).collect());
    }
    out
}

fn question(
    questions: &[QuestionPart],
    answers: Option<&[GivenAnswer]>,
    columns: usize,
) -> Vec<StyledLine> {
    let mut out = Vec::new();
    for part in questions {
        let label = span(BOLD, escape::line(&part.question));
        out.extend(hanging(INDENT_COLUMNS, span(YELLOW.bold(), "? "), label, columns));
        let answer = answers.into_iter().flatten().find(|a| a.question == part.question);
        let answer_text = answer.map(|a| escape::line(&a.answer));
        let mut answer_is_option = false;
        for option in &part.options {
            let label = escape::line(&option.label);
            let chosen = answer_text
                .as_deref()
                .is_some_and(|s| call::is_selected(s, &label, part.multi_select));
            answer_is_option |= chosen;
            let note = non_blank(option.description.as_ref()).map(escape::line);
            let label = note.map_or(label.clone(), |note| format!("{label} – {note}"));
            let (glyph, style) =
                if chosen { (span(GREEN, "● "), BOLD) } else { (span(DIM, "○ "), DIM) };
            out.extend(hanging(INDENT_COLUMNS + 2, glyph, span(style, label), columns));
        }
        if let Some(answer_text) = answer_text.filter(|s| !answer_is_option && !s.is_empty()) {
            out.extend(hanging(
                INDENT_COLUMNS + 2,
                span(GREEN, "→ "),
                span(BOLD, answer_text),
                columns,
            ));
        }
    }
    if answers.is_none() {
        out.push(indented(INDENT_COLUMNS + 2, vec![span(YELLOW, "not answered")]));
    }
    out
}

fn background(task: &Background, columns: usize) -> Vec<StyledLine> {
    let label = format!("In the background: {}", call::background_task(task));
    let glyph = span(status_style(task.status), format!("{} ", call::status_glyph(task.status)));
    hanging(INDENT_COLUMNS, glyph, span(PLAIN, label), columns)
}

fn compaction(summary: &Summary, options: &RenderOptions, columns: usize) -> Vec<StyledLine> {
    let mut out = vec![rule(&call::compaction(summary), columns)];
    if options.thinking && !summary.text.trim().is_empty() {
        out.push(StyledLine::new());
        for line in MarkdownStream::render_all(&summary.text, columns, options.colour) {
            out.push(
                line.into_iter().map(|s| span(TextStyle { dim: true, ..s.pen }, s.text)).collect(),
            );
        }
        out.push(StyledLine::new());
        out.push(vec![span(DIM, "─".repeat(columns))]);
    }
    out
}

fn notice(kind: &str, text: &str, columns: usize) -> Vec<StyledLine> {
    let (kind, text) = (escape::line(kind), escape::plain(text));
    let (glyph, style) = match kind.as_str() {
        "interrupted" | "warning" | "retry" => (span(YELLOW, "! "), YELLOW),
        "command" => (span(BLUE.bold(), "❯ "), PLAIN),
        _ => (span(DIM, "· "), DIM),
    };
    let label =
        if text.trim().is_empty() { kind.replace('_', " ") } else { text.trim().to_owned() };
    hanging(INDENT_COLUMNS, glyph, span(style, without_tabs(&label, 4)), columns)
}

fn error(
    message: &str,
    code: Option<&Tree<Clean>>,
    details: Option<&Tree<Clean>>,
    options: &RenderOptions,
    columns: usize,
) -> Vec<StyledLine> {
    let code = code.map(|c| escape::line(c.json().trim_matches('"'))).filter(|c| c != "null");
    let code = code.map(|c| format!(" {c}")).unwrap_or_default();
    let label = format!("Error{code}: {}", escape::plain(message).trim());
    let glyph = span(RED.bold(), "✗ ");
    let mut out = hanging(0, glyph, span(RED, without_tabs(&label, 4)), columns);
    if let Some(details) = details.filter(|d| options.tools && d.json() != "null") {
        let text = escape::plain(&call::pretty(details.json()));
        let lines = text.lines().map(|l| indented(4, vec![span(DIM, l)])).collect();
        out.extend(card::shortened(lines, options.lines.unwrap_or(usize::MAX)));
    }
    out
}

/// Returns `[image png, 79 bytes]` for each image.
pub(super) fn image_lines(images: &[Image]) -> Vec<StyledLine> {
    images.iter().map(|i| vec![span(DIM, format!("[{}]", call::image(i)))]).collect()
}

pub(super) fn indented(columns: usize, line: StyledLine) -> StyledLine {
    std::iter::once(span(PLAIN, " ".repeat(columns))).chain(line).collect()
}

/// Returns a text behind a glyph, with its further lines aligned to the first.
fn hanging(
    indent: usize,
    glyph: crate::wrap::StyledSpan,
    text: crate::wrap::StyledSpan,
    columns: usize,
) -> Vec<StyledLine> {
    let hang = width(&glyph.text);
    let mut glyph = Some(glyph);
    let lines = wrap(&[text], columns.saturating_sub(indent + hang).max(10));
    let first = |line: StyledLine, glyph: &mut Option<_>| match glyph.take() {
        Some(glyph) => indented(indent, std::iter::once(glyph).chain(line).collect()),
        None => indented(indent + hang, line),
    };
    lines.into_iter().map(|line| first(line, &mut glyph)).collect()
}
