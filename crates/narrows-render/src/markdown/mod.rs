//! Transcripts as Markdown that is also readable as plain text.
//!
//! The text of agents is kept, except for raw HTML and remote images: opening the file runs nothing
//! and sends no request. Tool calls are paragraphs, not lists, so that no later text becomes part
//! of them.

mod card;
mod neutralize;

use super::call::{self, CallSummary, non_blank};
use super::escape;
use super::nesting::{ItemSource, ItemTree, for_each_tree};
use super::options::RenderOptions;
use super::permission;
use super::session_header::SessionHeader;
use super::terminal_markdown::quoted;
use super::text_parts::JoinedParts;
use crate::format;
use narrows::Item;
use narrows::event::{GivenAnswer, QuestionPart};
use narrows::item::{ItemBody, TodoList};
use narrows::tool::{Image, ToolStatus};
use neutralize::{escape_inline, neutralize};
use std::io::{self, Write};

/// Nested quotes.
const MAX_QUOTE_DEPTH: usize = 4;

/// Writes a session.
pub(crate) fn write(
    out: &mut dyn Write,
    header: &SessionHeader,
    source: &dyn ItemSource,
    options: &RenderOptions,
) -> io::Result<()> {
    let mut head = format!("# {}\n\n", escape_inline(&header.title()));
    let ids: Vec<String> = header.identifiers().iter().map(|name| quoted(name)).collect();
    let parts = [
        header.agent_details().iter().map(|w| escape_inline(w)).collect::<Vec<_>>(),
        header.statistics(&options.zone).iter().map(|w| escape_inline(w)).collect(),
        ids,
    ];
    let parts: Vec<String> =
        parts.iter().filter(|p| !p.is_empty()).map(|p| p.join(" · ")).collect();
    head.push_str(&parts.join("  \n"));
    head.push_str("\n\n---");
    out.write_all(head.as_bytes())?;
    let mut preceding = PreviousItem::default();
    for_each_tree(&JoinedParts(source), |node| {
        let mut text = String::new();
        push_tree(&mut text, &node, options, &mut preceding);
        out.write_all(text.as_bytes())
    })?;
    out.write_all(b"\n")
}

/// The item before the next one.
#[derive(Debug, Clone, Copy, Default)]
struct PreviousItem {
    depth: usize,
    /// Whether it is one line, which the next one may follow without a gap.
    is_short: bool,
}

/// Appends an item and its descendants, each level in a quote of its own.
fn push_tree(
    out: &mut String,
    node: &ItemTree,
    options: &RenderOptions,
    preceding: &mut PreviousItem,
) {
    let mut stack = vec![(node, 0)];
    while let Some((node, depth)) = stack.pop() {
        let body = body(&node.item, options);
        let (bars, is_short) = ("> ".repeat(depth), is_short(&node.item, options));
        if !body.trim().is_empty() {
            if is_short && preceding.is_short && preceding.depth == depth {
                out.push_str("  \n");
            } else {
                let shared = "> ".repeat(depth.min(preceding.depth));
                append!(out, "\n{}\n", shared.trim_end());
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
            *preceding = PreviousItem { depth, is_short };
        }
        let below = (depth + 1).min(MAX_QUOTE_DEPTH);
        stack.extend(node.children.iter().rev().map(|child| (child, below)));
    }
}

fn is_short(item: &Item, options: &RenderOptions) -> bool {
    match &item.body {
        ItemBody::ToolCall { .. } => !options.tools,
        ItemBody::Thinking { hidden, .. } => !options.thinking || *hidden,
        ItemBody::BackgroundTask(_) | ItemBody::Notice { .. } | ItemBody::Artifact { .. } => true,
        _ => false,
    }
}

fn body(item: &Item, options: &RenderOptions) -> String {
    match &item.body {
        ItemBody::UserMessage { text, images, .. } => prompt(item, text, images, options),
        ItemBody::Text { content, images, .. } => {
            format!("{}\n{}", neutralize(content), image_notes(images))
        }
        ItemBody::Thinking { content, hidden, .. } => {
            // Of thinking in parts, the first part has the summary.
            if item.continues.is_some() {
                return if options.thinking { quote(&neutralize(content)) } else { String::new() };
            }
            if *hidden || !options.thinking || content.trim().is_empty() {
                let size = format::amount(content.chars().count() as u64);
                return if size == "0" {
                    "*thought*".to_owned()
                } else {
                    format!("*thought, {size} characters*")
                };
            }
            format!("*Thinking*\n\n{}", quote(&neutralize(content)))
        }
        ItemBody::ToolCall { tool_call } => {
            let mut out = call_line(&CallSummary::of(&tool_call.call));
            if options.tools {
                out.push_str(&card::body(&tool_call.call));
            } else {
                out.push_str(&image_notes(tool_call.call.images.as_deref().unwrap_or_default()));
            }
            out
        }
        ItemBody::TodoList { todo_list } => todos(todo_list),
        ItemBody::Artifact { artifact } => {
            let url = non_blank(artifact.preview_url.as_ref()).map(escape::line);
            let url = url.map(|u| format!(" · {}", quoted(&u))).unwrap_or_default();
            let (kind, name) = (escape_inline(&artifact.r#type), escape_inline(&artifact.name));
            format!("◆ {kind} **{name}** · {}{url}", quoted(&escape::line(&artifact.path)))
        }
        ItemBody::Permission { title, options, tool_call, .. } => {
            let title = escape_inline(non_blank(title.as_ref()).unwrap_or_default());
            let mut out = format!("**Needs leave:** {title}\n\n");
            let exact_lines = tool_call.as_ref().map(|item| permission::exact_lines(&item.call));
            if let Some(exact_lines) = exact_lines.filter(|lines| !lines.is_empty()) {
                append!(out, "{}\n\n", card::fence("", &exact_lines.join("\n")).trim_end());
            }
            for option in options {
                append!(out, "- {}\n", escape_inline(&option.name));
            }
            out + "\n*not answered*"
        }
        ItemBody::Plan { content, .. } => format!("**Plan**\n\n{}", quote(&neutralize(content))),
        ItemBody::Question { questions, answers, .. } => question(questions, answers.as_deref()),
        ItemBody::BackgroundTask(task) => {
            let content = escape_inline(&call::background_task(task));
            format!("{} In the background: {content}", call::status_glyph(task.status))
        }
        ItemBody::Compaction(summary) => {
            let mut out = format!("---\n\n*{}*\n", escape_inline(&call::compaction(summary)));
            if options.thinking && !summary.text.trim().is_empty() {
                append!(out, "\n{}", quote(&neutralize(&summary.text)));
            }
            out
        }
        ItemBody::Notice { kind, text } => {
            let text = if text.trim().is_empty() { kind } else { text };
            let glyph = if kind == "command" { "❯" } else { "·" };
            format!("{glyph} {}", escape_inline(text))
        }
        ItemBody::Error { message, code, details, .. } => {
            let code = code.as_ref().map(|c| escape::line(c.json().trim_matches('"')));
            let code = code.filter(|c| c != "null").map(|c| format!(" {}", quoted(&c)));
            let mut out =
                format!("**✗ Error**{}: {}\n", code.unwrap_or_default(), escape_inline(message));
            if let Some(details) = details.as_ref().filter(|d| options.tools && d.json() != "null")
            {
                out.push_str(&card::fence("json", &call::pretty(details.json())));
            }
            out
        }
    }
}

fn prompt(item: &Item, text: &str, images: &[Image], options: &RenderOptions) -> String {
    let time = item.time.as_ref().and_then(|t| format::clock(t.millis(), &options.zone));
    let time = time.map(|t| format!(" · {t}")).unwrap_or_default();
    let head =
        if item.parent.is_some() { format!("**Task{time}**") } else { format!("## You{time}") };
    let message = format!("{}\n{}", neutralize(text), image_notes(images));
    if item.continues.is_some() {
        return quote(&message);
    }
    format!("{head}\n\n{}", quote(&message))
}

/// Returns the line of a call: `✓ **Read** `notes.md` · 0.8 s`.
fn call_line(line: &CallSummary) -> String {
    let name = if line.name == "$" { "$".to_owned() } else { escape_inline(&line.name) };
    let mut out = format!("{} **{name}**", call::status_glyph(line.status));
    if !line.subject.is_empty() {
        out.push(' ');
        out.push_str(&quoted(&line.subject));
    }
    for fact in line.details.iter().chain(&line.error) {
        append!(out, " · {}", escape_inline(fact));
    }
    out.push('\n');
    out
}

fn todos(list: &TodoList) -> String {
    let mut out = String::from("**Todos**\n\n");
    for todo in &list.todos {
        let mark = if todo.status == ToolStatus::Completed { "x" } else { " " };
        let content = escape_inline(&todo.content);
        let line = match todo.status {
            ToolStatus::InProgress => format!("- [{mark}] **{content}** (now)\n"),
            ToolStatus::Cancelled | ToolStatus::Failed => {
                format!("- [{mark}] {content} ({})\n", call::status_word(todo.status))
            }
            _ => format!("- [{mark}] {content}\n"),
        };
        out.push_str(&line);
    }
    // A paragraph ends the list, so that the next text is no part of it.
    out + &format!("\n*{}*", call::progress(list))
}

fn question(questions: &[QuestionPart], answers: Option<&[GivenAnswer]>) -> String {
    let mut out = String::new();
    for part in questions {
        append!(out, "**{}**\n\n", escape_inline(&part.question));
        for option in &part.options {
            let note = non_blank(option.description.as_ref()).map(escape_inline);
            let note = note.map(|n| format!(" – {n}")).unwrap_or_default();
            append!(out, "- {}{note}\n", escape_inline(&option.label));
        }
        let answer = answers.into_iter().flatten().find(|a| a.question == part.question);
        match answer {
            Some(answer) => append!(out, "\n→ **{}**\n\n", escape_inline(&answer.answer)),
            None => out.push_str("\n*not answered*\n\n"),
        }
    }
    out
}

fn image_notes(images: &[Image]) -> String {
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
