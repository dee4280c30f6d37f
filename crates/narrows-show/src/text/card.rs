//! What a call was given and what it gave.

use super::flow::Flow;
use super::item::{indented, pictures};
use crate::call::{self, CallLine, given};
use crate::diff::{self, Mark};
use crate::escape;
use crate::pen::{BOLD, CYAN, DIM, GREEN, PLAIN, Pen, RED};
use crate::style::Style;
use crate::words;
use crate::wrap::{Line, cut, span, width, without_tabs, wrap};
use narrows::tool::{Diff, ToolCall, ToolKind};

const INDENT: usize = 6;
/// Tabs in what a terminal printed.
const TAB: usize = 8;
/// Longer lines are cut: they are data, not text.
const MAX_LINE: usize = 2000;

pub(super) fn lines(call: &ToolCall, style: &Style, columns: usize) -> Vec<Line> {
    let most = style.lines.unwrap_or(usize::MAX);
    let room = columns.saturating_sub(INDENT);
    let mut out = Vec::new();
    let mut put = |lines: Vec<Line>| out.extend(lines.into_iter().map(|l| indented(INDENT, l)));

    if let Some(command) = given(call.command.as_ref()) {
        let about = CallLine::of(call).about;
        if width(&about) + 12 > columns || command.trim().contains('\n') {
            put(shortened(code(command), most));
        }
        if let Some(said) = given(call.description.as_ref())
            .filter(|d| call.title.as_deref() != Some(*d) && *d != command)
        {
            put(wrap(&[span(DIM, escape::line(said))], room));
        }
    }
    // Flags that are off say nothing.
    for argument in call::arguments(call).into_iter().filter(|a| a.value != "false") {
        put(shortened(told(&argument, room), most));
    }
    let diffs = call.diffs.as_deref().unwrap_or_default();
    for diff in diffs {
        let named = diffs.len() == 1 && call.file_path.as_ref() == Some(&diff.path);
        put(shortened(changed(call, diff, named), most.saturating_mul(2)));
    }
    if let Some(text) = call::output(call) {
        let tab = if call.kind == ToolKind::Execute { TAB } else { 4 };
        let mut lines = printed(text, tab);
        if !call::is_data(call) {
            lines = lines.iter().flat_map(|line| wrap(line, room)).collect();
        }
        put(shortened(lines, most));
        if call.truncated == Some(true) {
            put(vec![vec![span(DIM, "… cut by the agent")]]);
        }
    }
    if let Some(answer) = given(call.task_output.as_ref()) {
        put(shortened(Flow::whole(answer, room, style.colour), most.saturating_mul(2)));
    }
    if let Some(error) = given(call.error.as_ref()) {
        let text = without_tabs(escape::plain(error).trim(), TAB);
        put(shortened(wrap(&[span(RED, text)], room), most));
    }
    if let Some(images) = &call.images {
        put(pictures(images));
    }
    if let Some(found) =
        call.diagnostics.as_ref().filter(|d| !matches!(d.json(), "null" | "{}" | "[]"))
    {
        let text = escape::plain(&call::pretty(found.json()));
        put(shortened(text.lines().map(|l| vec![span(DIM, l)]).collect(), most));
    }
    out
}

/// An argument: its name, and its value beside or below it.
fn told(argument: &call::Argument, columns: usize) -> Vec<Line> {
    let name = format!("{}: ", escape::line(&argument.name));
    let value = escape::plain(&argument.value);
    let value = value.trim_end();
    if !value.contains('\n') && width(&name) + width(value) <= columns {
        return vec![vec![span(DIM, name), span(PLAIN, without_tabs(value, TAB))]];
    }
    let mut out = vec![vec![span(DIM, name.trim_end())]];
    let lines = wrap(&[span(PLAIN, without_tabs(value, 4))], columns.saturating_sub(2));
    out.extend(lines.into_iter().map(|line| indented(2, line)));
    out
}

fn code(text: &str) -> Vec<Line> {
    let text = without_tabs(escape::plain(text).trim(), 4);
    text.lines().map(|line| vec![span(CYAN, limited(line))]).collect()
}

/// A changed file; its name is left out where the call's line has it.
fn changed(call: &ToolCall, diff: &Diff, named: bool) -> Vec<Line> {
    let what = diff::action(call, diff);
    let mut out = Vec::new();
    if !named {
        out.push(vec![
            span(BOLD, escape::line(&diff.path)),
            span(DIM, what.map(|w| format!("  {w}")).unwrap_or_default()),
        ]);
    } else if let Some(what) = what {
        out.push(vec![span(DIM, what)]);
    }
    for line in diff::of(diff) {
        let pen = match line.mark {
            Mark::Place => CYAN,
            Mark::Same => DIM,
            Mark::Added => GREEN,
            Mark::Removed => RED,
        };
        out.push(vec![span(pen, limited(&without_tabs(&line.text, 4)))]);
    }
    out
}

/// What a terminal printed, with its colours.
fn printed(text: &str, tab: usize) -> Vec<Line> {
    let text = text.trim_end();
    let mut out = Vec::new();
    for runs in escape::lines(text) {
        // Tabs count from the beginning of the line, over all its colours.
        let whole: String = runs.iter().map(|r| r.text.as_str()).collect();
        let mut line: Line = Vec::new();
        if whole.contains('\t') {
            let mut said = String::new();
            for run in &runs {
                let before = without_tabs(&said, tab).len();
                said.push_str(&run.text);
                let now = without_tabs(&said, tab);
                line.push(span(shade(run.pen), limited(&now[before..])));
            }
        } else {
            line.extend(runs.iter().map(|r| span(shade(r.pen), limited(&r.text))));
        }
        out.push(line);
    }
    out
}

/// Output without a colour of its own steps back a little.
fn shade(pen: Pen) -> Pen {
    if pen == PLAIN { DIM } else { pen }
}

fn limited(line: &str) -> String {
    if line.len() <= MAX_LINE { line.to_owned() } else { cut(line, MAX_LINE) }
}

/// The first and the last of many lines, and how many are between.
pub(super) fn shortened(mut lines: Vec<Line>, most: usize) -> Vec<Line> {
    // One line is not hidden: saying so would take as much room.
    if lines.len() <= most.saturating_add(1) {
        return lines;
    }
    let (head, tail) = (most.div_ceil(2), most / 2);
    let hidden = lines.len() - head - tail;
    let words = format!("⋮ {} hidden", words::count(hidden, "line"));
    lines.splice(head..head + hidden, [vec![span(DIM, words)]]);
    lines
}
