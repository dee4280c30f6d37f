//! Sessions as Markdown, which reads well as plain text too.
//!
//! What agents wrote stands as they wrote it, but for raw HTML and pictures of others: whoever opens
//! the file runs nothing and asks nobody. Calls are paragraphs, not lists, so that no text after
//! them becomes a part of them.

mod card;
mod verbatim;

use super::asked;
use super::call::{self, CallLine, given};
use super::escape;
use super::header::Header;
use super::order::{Node, Source, nodes};
use super::parts::Joined;
use super::prose::quoted;
use super::style::Style;
use crate::words;
use narrows::Item;
use narrows::event::{GivenAnswer, QuestionPart};
use narrows::item::{ItemBody, TodoList};
use narrows::tool::{Image, ToolStatus};
use std::io::{self, Write};
use verbatim::{verbatim, words_only};

/// Quotes inside each other.
const MAX_DEPTH: usize = 4;

/// Writes a session.
pub(crate) fn write(
    out: &mut dyn Write,
    header: &Header,
    source: &dyn Source,
    style: &Style,
) -> io::Result<()> {
    let mut head = format!("# {}\n\n", words_only(&header.title()));
    let ids: Vec<String> = header.names().iter().map(|name| quoted(name)).collect();
    let parts = [
        header.who().iter().map(|w| words_only(w)).collect::<Vec<_>>(),
        header.facts(&style.zone).iter().map(|w| words_only(w)).collect(),
        ids,
    ];
    let parts: Vec<String> =
        parts.iter().filter(|p| !p.is_empty()).map(|p| p.join(" · ")).collect();
    head.push_str(&parts.join("  \n"));
    head.push_str("\n\n---");
    out.write_all(head.as_bytes())?;
    let mut before = Before::default();
    nodes(&Joined(source), |node| {
        let mut text = String::new();
        push(&mut text, &node, style, &mut before);
        out.write_all(text.as_bytes())
    })?;
    out.write_all(b"\n")
}

/// What stands before an item.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    depth: usize,
    /// A line, below which another one may stand.
    short: bool,
}

/// Adds an item and what is below it, each level in a quote of its own.
fn push(out: &mut String, node: &Node, style: &Style, before: &mut Before) {
    let mut stack = vec![(node, 0)];
    while let Some((node, depth)) = stack.pop() {
        let body = body(&node.item, style);
        let (bars, short) = ("> ".repeat(depth), is_short(&node.item, style));
        if !body.trim().is_empty() {
            if short && before.short && before.depth == depth {
                out.push_str("  \n");
            } else {
                let shared = "> ".repeat(depth.min(before.depth));
                put!(out, "\n{}\n", shared.trim_end());
            }
            let lines: Vec<String> = body
                .trim_end()
                .lines()
                .map(|line| {
                    if line.is_empty() {
                        bars.trim_end().to_owned()
                    } else {
                        format!("{bars}{line}")
                    }
                })
                .collect();
            out.push_str(&lines.join("\n"));
            *before = Before { depth, short };
        }
        let below = (depth + 1).min(MAX_DEPTH);
        stack.extend(node.children.iter().rev().map(|child| (child, below)));
    }
}

fn is_short(item: &Item, style: &Style) -> bool {
    match &item.body {
        ItemBody::ToolCall { .. } => !style.tools,
        ItemBody::Thinking { hidden, .. } => !style.thinking || *hidden,
        ItemBody::BackgroundTask(_) | ItemBody::Notice { .. } | ItemBody::Artifact { .. } => true,
        _ => false,
    }
}

fn body(item: &Item, style: &Style) -> String {
    match &item.body {
        ItemBody::UserMessage { text, images, .. } => prompt(item, text, images, style),
        ItemBody::Text { content, images, .. } => {
            format!("{}\n{}", verbatim(content), pictures(images))
        }
        ItemBody::Thinking { content, hidden, .. } => {
            // Of a thought in parts, the first one says what there is to say.
            if item.continues.is_some() {
                return if style.thinking { quote(&verbatim(content)) } else { String::new() };
            }
            if *hidden || !style.thinking || content.trim().is_empty() {
                let size = words::amount(content.chars().count() as u64);
                return if size == "0" {
                    "*thought*".to_owned()
                } else {
                    format!("*thought, {size} characters*")
                };
            }
            format!("*Thinking*\n\n{}", quote(&verbatim(content)))
        }
        ItemBody::ToolCall { tool_call } => {
            let mut out = call_line(&CallLine::of(&tool_call.call));
            if style.tools {
                out.push_str(&card::body(&tool_call.call));
            } else {
                out.push_str(&pictures(tool_call.call.images.as_deref().unwrap_or_default()));
            }
            out
        }
        ItemBody::TodoList { todo_list } => todos(todo_list),
        ItemBody::Artifact { artifact } => {
            let url = given(artifact.preview_url.as_ref()).map(escape::line);
            let url = url.map(|u| format!(" · {}", quoted(&u))).unwrap_or_default();
            let (kind, name) = (words_only(&artifact.r#type), words_only(&artifact.name));
            format!("◆ {kind} **{name}** · {}{url}", quoted(&escape::line(&artifact.path)))
        }
        ItemBody::Permission { title, options, tool_call, .. } => {
            let title = words_only(given(title.as_ref()).unwrap_or_default());
            let mut out = format!("**Needs leave:** {title}\n\n");
            let exact = tool_call.as_ref().map(|item| asked::lines(&item.call));
            if let Some(exact) = exact.filter(|lines| !lines.is_empty()) {
                put!(out, "{}\n\n", card::fence("", &exact.join("\n")).trim_end());
            }
            for option in options {
                put!(out, "- {}\n", words_only(&option.name));
            }
            out + "\n*not answered*"
        }
        ItemBody::Plan { content, .. } => format!("**Plan**\n\n{}", quote(&verbatim(content))),
        ItemBody::Question { questions, answers, .. } => question(questions, answers.as_deref()),
        ItemBody::BackgroundTask(task) => {
            let words = words_only(&call::background(task));
            format!("{} In the background: {words}", call::sign(task.status))
        }
        ItemBody::Compaction(summary) => {
            let mut out = format!("---\n\n*{}*\n", words_only(&call::compaction(summary)));
            if style.thinking && !summary.text.trim().is_empty() {
                put!(out, "\n{}", quote(&verbatim(&summary.text)));
            }
            out
        }
        ItemBody::Notice { kind, text } => {
            let text = if text.trim().is_empty() { kind } else { text };
            let sign = if kind == "command" { "❯" } else { "·" };
            format!("{sign} {}", words_only(text))
        }
        ItemBody::Error { message, code, details, .. } => {
            let code = code.as_ref().map(|c| escape::line(c.json().trim_matches('"')));
            let code = code.filter(|c| c != "null").map(|c| format!(" {}", quoted(&c)));
            let mut out =
                format!("**✗ Error**{}: {}\n", code.unwrap_or_default(), words_only(message));
            if let Some(details) = details.as_ref().filter(|d| style.tools && d.json() != "null") {
                out.push_str(&card::fence("json", &call::pretty(details.json())));
            }
            out
        }
    }
}

fn prompt(item: &Item, text: &str, images: &[Image], style: &Style) -> String {
    let time = item.time.as_ref().and_then(|t| words::clock(t.millis(), &style.zone));
    let time = time.map(|t| format!(" · {t}")).unwrap_or_default();
    let head =
        if item.parent.is_some() { format!("**Task{time}**") } else { format!("## You{time}") };
    let said = format!("{}\n{}", verbatim(text), pictures(images));
    if item.continues.is_some() {
        return quote(&said);
    }
    format!("{head}\n\n{}", quote(&said))
}

/// `✓ **Read** `notes.md` · 0.8 s`.
fn call_line(line: &CallLine) -> String {
    let name = if line.name == "$" { "$".to_owned() } else { words_only(&line.name) };
    let mut out = format!("{} **{name}**", call::sign(line.status));
    if !line.about.is_empty() {
        out.push(' ');
        out.push_str(&quoted(&line.about));
    }
    for fact in line.facts.iter().chain(&line.why) {
        put!(out, " · {}", words_only(fact));
    }
    out.push('\n');
    out
}

fn todos(list: &TodoList) -> String {
    let mut out = String::from("**Todos**\n\n");
    for todo in &list.todos {
        let tick = if todo.status == ToolStatus::Completed { "x" } else { " " };
        let words = words_only(&todo.content);
        let line = match todo.status {
            ToolStatus::InProgress => format!("- [{tick}] **{words}** (now)\n"),
            ToolStatus::Cancelled | ToolStatus::Failed => {
                format!("- [{tick}] {words} ({})\n", call::status_word(todo.status))
            }
            _ => format!("- [{tick}] {words}\n"),
        };
        out.push_str(&line);
    }
    // A paragraph ends the list: what comes next is no part of it.
    out + &format!("\n*{}*", call::progress(list))
}

fn question(questions: &[QuestionPart], answers: Option<&[GivenAnswer]>) -> String {
    let mut out = String::new();
    for part in questions {
        put!(out, "**{}**\n\n", words_only(&part.question));
        for option in &part.options {
            let note = given(option.description.as_ref()).map(words_only);
            let note = note.map(|n| format!(" – {n}")).unwrap_or_default();
            put!(out, "- {}{note}\n", words_only(&option.label));
        }
        let answer = answers.into_iter().flatten().find(|a| a.question == part.question);
        match answer {
            Some(answer) => put!(out, "\n→ **{}**\n\n", words_only(&answer.answer)),
            None => out.push_str("\n*not answered*\n\n"),
        }
    }
    out
}

fn pictures(images: &[Image]) -> String {
    images.iter().map(|image| format!("\n\\[{}]\n", call::image(image))).collect()
}

fn quote(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().lines() {
        out.push_str(if line.is_empty() { ">" } else { "> " });
        out.push_str(line);
        out.push('\n');
    }
    out
}
