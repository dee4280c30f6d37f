//! The input and the output of a tool call.

use super::item::{image_lines, indented};
use super::stream::MarkdownStream;
use crate::ansi_style::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, TextStyle};
use crate::call::{self, CallSummary, non_blank};
use crate::diff::{self, DiffLineKind};
use crate::escape;
use crate::format;
use crate::options::RenderOptions;
use crate::wrap::{StyledLine, cut, span, width, without_tabs, wrap};
use narrows::tool::{Diff, ToolCall, ToolKind};

const INDENT_COLUMNS: usize = 6;
/// Columns between tab stops in terminal output.
const TAB_COLUMNS: usize = 8;
/// Longer lines are cut: they are data, not text.
const MAX_LINE_COLUMNS: usize = 2000;

pub(super) fn lines(call: &ToolCall, options: &RenderOptions, columns: usize) -> Vec<StyledLine> {
    let max_lines = options.lines.unwrap_or(usize::MAX);
    let columns_left = columns.saturating_sub(INDENT_COLUMNS);
    let mut out = Vec::new();
    let mut push =
        |lines: Vec<StyledLine>| out.extend(lines.into_iter().map(|l| indented(INDENT_COLUMNS, l)));

    if let Some(command) = non_blank(call.command.as_ref()) {
        let subject = CallSummary::of(call).subject;
        if width(&subject) + 12 > columns || command.trim().contains('\n') {
            push(shortened(command_lines(command), max_lines));
        }
        if let Some(description) = non_blank(call.description.as_ref())
            .filter(|d| call.title.as_deref() != Some(*d) && *d != command)
        {
            push(wrap(&[span(DIM, escape::line(description))], columns_left));
        }
    }
    // A flag that is off carries no information.
    for argument in call::arguments(call).into_iter().filter(|a| a.value != "false") {
        push(shortened(argument_lines(&argument, columns_left), max_lines));
    }
    let diffs = call.diffs.as_deref().unwrap_or_default();
    for diff in diffs {
        let path_is_shown = diffs.len() == 1 && call.file_path.as_ref() == Some(&diff.path);
        push(shortened(diff_lines(call, diff, path_is_shown), max_lines.saturating_mul(2)));
    }
    if let Some(text) = call::output(call) {
        let tab = if call.kind == ToolKind::Execute { TAB_COLUMNS } else { 4 };
        let mut lines = output_lines(text, tab);
        if !call::is_data(call) {
            lines = lines.iter().flat_map(|line| wrap(line, columns_left)).collect();
        }
        push(shortened(lines, max_lines));
        if call.truncated == Some(true) {
            push(vec![vec![span(DIM, "… cut by the agent")]]);
        }
    }
    if let Some(answer) = non_blank(call.task_output.as_ref()) {
        push(shortened(
            MarkdownStream::render_all(answer, columns_left, options.colour),
            max_lines.saturating_mul(2),
        ));
    }
    if let Some(error) = non_blank(call.error.as_ref()) {
        let text = without_tabs(escape::plain(error).trim(), TAB_COLUMNS);
        push(shortened(wrap(&[span(RED, text)], columns_left), max_lines));
    }
    if let Some(images) = &call.images {
        push(image_lines(images));
    }
    if let Some(diagnostics) =
        call.diagnostics.as_ref().filter(|d| !matches!(d.json(), "null" | "{}" | "[]"))
    {
        let text = escape::plain(&call::pretty(diagnostics.json()));
        push(shortened(text.lines().map(|l| vec![span(DIM, l)]).collect(), max_lines));
    }
    out
}

/// Returns the lines of an argument: its value next to its name if it fits, else below.
fn argument_lines(argument: &call::Argument, columns: usize) -> Vec<StyledLine> {
    let name = format!("{}: ", escape::line(&argument.name));
    let value = escape::plain(&argument.value);
    let value = value.trim_end();
    if !value.contains('\n') && width(&name) + width(value) <= columns {
        return vec![vec![span(DIM, name), span(PLAIN, without_tabs(value, TAB_COLUMNS))]];
    }
    let mut out = vec![vec![span(DIM, name.trim_end())]];
    let lines = wrap(&[span(PLAIN, without_tabs(value, 4))], columns.saturating_sub(2));
    out.extend(lines.into_iter().map(|line| indented(2, line)));
    out
}

fn command_lines(text: &str) -> Vec<StyledLine> {
    let text = without_tabs(escape::plain(text).trim(), 4);
    text.lines().map(|line| vec![span(CYAN, truncated(line))]).collect()
}

/// Returns the lines of a diff; `path_is_shown` omits the path that the call line has already.
fn diff_lines(call: &ToolCall, diff: &Diff, path_is_shown: bool) -> Vec<StyledLine> {
    let action = diff::action(call, diff);
    let mut out = Vec::new();
    if !path_is_shown {
        out.push(vec![
            span(BOLD, escape::line(&diff.path)),
            span(DIM, action.map(|w| format!("  {w}")).unwrap_or_default()),
        ]);
    } else if let Some(action) = action {
        out.push(vec![span(DIM, action)]);
    }
    for line in diff::unified_lines(diff) {
        let style = match line.kind {
            DiffLineKind::HunkHeader => CYAN,
            DiffLineKind::Context => DIM,
            DiffLineKind::Added => GREEN,
            DiffLineKind::Removed => RED,
        };
        out.push(vec![span(style, truncated(&without_tabs(&line.text, 4)))]);
    }
    out
}

/// Returns the lines of terminal output, with its colors.
fn output_lines(text: &str, tab: usize) -> Vec<StyledLine> {
    let text = text.trim_end();
    let mut out = Vec::new();
    for spans in escape::styled_lines(text) {
        // Tab stops count from the start of the line, across all its spans.
        let whole: String = spans.iter().map(|r| r.text.as_str()).collect();
        let mut line: StyledLine = Vec::new();
        if whole.contains('\t') {
            let mut shown = String::new();
            for run in &spans {
                let before = without_tabs(&shown, tab).len();
                shown.push_str(&run.text);
                let now = without_tabs(&shown, tab);
                line.push(span(dim_default(run.pen), truncated(&now[before..])));
            }
        } else {
            line.extend(spans.iter().map(|r| span(dim_default(r.pen), truncated(&r.text))));
        }
        out.push(line);
    }
    out
}

/// Dims output that has no color of its own.
fn dim_default(style: TextStyle) -> TextStyle {
    if style == PLAIN { DIM } else { style }
}

fn truncated(line: &str) -> String {
    if line.len() <= MAX_LINE_COLUMNS { line.to_owned() } else { cut(line, MAX_LINE_COLUMNS) }
}

/// Hides the middle of more than `max_lines` lines and says how many are hidden.
pub(super) fn shortened(mut lines: Vec<StyledLine>, max_lines: usize) -> Vec<StyledLine> {
    // A single line is never hidden: the note would take as much space.
    if lines.len() <= max_lines.saturating_add(1) {
        return lines;
    }
    let (head, tail) = (max_lines.div_ceil(2), max_lines / 2);
    let hidden = lines.len() - head - tail;
    let label = format!("⋮ {} hidden", format::count(hidden, "line"));
    lines.splice(head..head + hidden, [vec![span(DIM, label)]]);
    lines
}
