//! Items as HTML.

use super::card;
use super::escape::text;
use super::{BlobSource, markdown};
use crate::call::{self, non_blank};
use crate::format;
use crate::nesting::ItemTree;
use crate::permission;
use crate::text_parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use narrows::Item;
use narrows::event::{GivenAnswer, QuestionPart};
use narrows::item::{ItemBody, TodoList};
use narrows::sanitize::Clean;
use narrows::tool::{Image, ToolStatus};

/// Nesting levels of subagents that get a section of their own.
const MAX_NESTED_SECTIONS: usize = 8;
/// Larger images are named, not embedded.
const MAX_IMAGE_BYTES: usize = 16 << 20;

/// Writes items and keeps the state between them.
pub(super) struct ItemWriter<'a> {
    pub(super) blobs: &'a dyn BlobSource,
    pub(super) zone: &'a TimeZone,
    /// The last item, if it is a text, and its closing tags: the next item may continue it.
    pub(super) open_text: Option<(Clean, &'static str)>,
}

enum Visit<'a> {
    Open(&'a ItemTree, usize),
    Close(&'static str),
}

impl ItemWriter<'_> {
    /// Writes an item and its descendants. The closing tags of a text wait: the next item may
    /// continue it.
    pub(super) fn write_tree(&mut self, out: &mut String, node: &ItemTree) {
        let mut stack = vec![Visit::Open(node, 0)];
        while let Some(step) = stack.pop() {
            let (node, depth) = match step {
                Visit::Open(node, depth) => (node, depth),
                Visit::Close(tags) => {
                    self.end_text(out);
                    out.push_str(tags);
                    continue;
                }
            };
            let end = match &self.open_text {
                Some((last, end)) if node.item.continues.as_ref() == Some(last) => {
                    let end = *end;
                    self.continue_text(out, &node.item);
                    end
                }
                _ => {
                    self.end_text(out);
                    self.open(out, &node.item)
                }
            };
            self.open_text = None;
            if node.children.is_empty() && text_parts::text_of(&node.item).is_some() {
                self.open_text = Some((node.item.id.clone(), end));
                continue;
            }
            if node.children.is_empty() {
                out.push_str(end);
                continue;
            }
            if depth < MAX_NESTED_SECTIONS {
                out.push_str("<div class=\"sub\">\n");
                stack.push(Visit::Close(end));
                stack.push(Visit::Close("</div>\n"));
            } else {
                out.push_str(end);
            }
            stack.extend(node.children.iter().rev().map(|child| Visit::Open(child, depth + 1)));
        }
    }

    /// Closes a text that no item continued.
    pub(super) fn end_text(&mut self, out: &mut String) {
        if let Some((_, end)) = self.open_text.take() {
            out.push_str(end);
        }
    }

    /// Writes the next part of a text.
    fn continue_text(&self, out: &mut String, item: &Item) {
        match &item.body {
            ItemBody::Text { content, images, .. } => {
                out.push_str(&markdown::render(content));
                out.push_str(&self.images(images));
            }
            ItemBody::Thinking { content, .. } => {
                append!(out, "<div class=\"said\">{}</div>\n", text(content.trim_end()));
            }
            ItemBody::UserMessage { text: message, images, .. } => {
                let images = self.images(images);
                append!(out, "<div class=\"said\">{}</div>\n{images}", text(message.trim_end()));
            }
            _ => {}
        }
    }

    /// Opens an item and returns its closing tags, so that its children stand inside.
    fn open(&self, out: &mut String, item: &Item) -> &'static str {
        let id = format!("id=\"item-{}\"", item.order);
        match &item.body {
            ItemBody::UserMessage { text: message, images, .. } => {
                let author = if item.parent.is_some() { "Task" } else { "You" };
                let time = item.time.as_ref().and_then(|t| format::clock(t.millis(), self.zone));
                let time = time.map(|t| format!(" <time>{t}</time>")).unwrap_or_default();
                append!(
                    out,
                    "<section class=\"prompt\" {id}>\n<h2>{author}{time}</h2>\n<div class=\"said\">{}</div>\n{}",
                    text(message.trim_end()),
                    self.images(images)
                );
                "</section>\n"
            }
            ItemBody::Text { content, images, .. } => {
                append!(out, "<div class=\"text\" {id}>\n{}", markdown::render(content));
                out.push_str(&self.images(images));
                "</div>\n"
            }
            ItemBody::Thinking { content, .. } => {
                let size = format::amount(content.chars().count() as u64);
                if content.trim().is_empty() {
                    append!(out, "<p class=\"note\" {id}>✻ thought");
                    return "</p>\n";
                }
                append!(
                    out,
                    "<details class=\"thought\" {id}>\n<summary>✻ thought, {size} characters</summary>\n<div class=\"said\">{}</div>\n",
                    text(content.trim())
                );
                "</details>\n"
            }
            ItemBody::ToolCall { tool_call } => {
                card::open(out, &id, &tool_call.call);
                let images = tool_call.call.images.as_deref().unwrap_or_default();
                out.push_str(&self.images(images));
                "</details>\n"
            }
            ItemBody::TodoList { todo_list } => {
                out.push_str(&todos(&id, todo_list));
                "</section>\n"
            }
            ItemBody::Plan { content, .. } => {
                append!(
                    out,
                    "<section class=\"plan\" {id}>\n<h2>Plan</h2>\n{}",
                    markdown::render(content)
                );
                "</section>\n"
            }
            ItemBody::Question { questions, answers, .. } => {
                out.push_str(&question(&id, questions, answers.as_deref()));
                "</section>\n"
            }
            ItemBody::Permission { title, options, tool_call, .. } => {
                let title = text(non_blank(title.as_ref()).unwrap_or_default());
                append!(out, "<section class=\"ask\" {id}>\n<h2>Needs leave: {title}</h2>\n");
                let exact_lines =
                    tool_call.as_ref().map(|item| permission::exact_lines(&item.call));
                if let Some(exact_lines) = exact_lines.filter(|lines| !lines.is_empty()) {
                    append!(out, "<pre>{}</pre>\n", text(&exact_lines.join("\n")));
                }
                out.push_str("<ul>\n");
                for option in options {
                    append!(out, "<li>{}</li>\n", text(&option.name));
                }
                out.push_str("</ul>\n<p class=\"note\">not answered</p>\n");
                "</section>\n"
            }
            ItemBody::Compaction(summary) => {
                let label = text(&call::compaction(summary));
                if summary.text.trim().is_empty() {
                    append!(out, "<p class=\"rule\" {id}><span>{label}</span>");
                    return "</p>\n";
                }
                append!(
                    out,
                    "<details class=\"rule\" {id}>\n<summary><span>{label}</span></summary>\n<div class=\"text\">{}</div>\n",
                    markdown::render(&summary.text)
                );
                "</details>\n"
            }
            ItemBody::Artifact { .. }
            | ItemBody::BackgroundTask(_)
            | ItemBody::Notice { .. }
            | ItemBody::Error { .. } => write_line_item(out, &id, item),
        }
    }

    /// Returns images as data URLs; only types that can hold nothing but pixels are embedded.
    fn images(&self, images: &[Image]) -> String {
        let mut out = String::new();
        for image in images {
            let label = text(&call::image(image));
            let kind = match image.mime_type.as_str() {
                "image/png" => Some("png"),
                "image/jpeg" | "image/jpg" => Some("jpeg"),
                "image/gif" => Some("gif"),
                "image/webp" => Some("webp"),
                _ => None,
            };
            let bytes = kind.and_then(|kind| {
                let bytes = self.blobs.image_bytes(image)?;
                (bytes.len() <= MAX_IMAGE_BYTES).then_some((kind, bytes))
            });
            if let Some((kind, bytes)) = bytes {
                append!(
                    out,
                    "<p class=\"picture\"><img alt=\"{label}\" src=\"data:image/{kind};base64,{}\"></p>\n",
                    STANDARD.encode(&bytes)
                );
            } else {
                append!(out, "<p class=\"note\">[{label}]</p>\n");
            }
        }
        out
    }
}

/// Opens an item of one line and returns its closing tag.
fn write_line_item(out: &mut String, id: &str, item: &Item) -> &'static str {
    match &item.body {
        ItemBody::Artifact { artifact } => {
            let url = non_blank(artifact.preview_url.as_ref());
            let url = url.map(|u| format!(" · {}", text(u))).unwrap_or_default();
            append!(
                out,
                "<p class=\"line\" {id}>◆ {} <strong>{}</strong> · <code>{}</code>{url}",
                text(&artifact.r#type),
                text(&artifact.name),
                text(&artifact.path)
            );
        }
        ItemBody::BackgroundTask(task) => append!(
            out,
            "<p class=\"line\" {id}><span class=\"{}\">{}</span> In the background: {}",
            card::status_class(task.status),
            call::status_glyph(task.status),
            text(&call::background_task(task))
        ),
        ItemBody::Notice { kind, text: message } => {
            let message = if message.trim().is_empty() { kind } else { message };
            append!(out, "<p class=\"note\" {id}>{}", text(message.trim()));
        }
        ItemBody::Error { message, code, details, .. } => {
            let code = code.as_ref().map(|c| c.json().trim_matches('"')).filter(|c| *c != "null");
            let code = code.map(|c| format!(" {}", text(c))).unwrap_or_default();
            append!(
                out,
                "<section class=\"error\" {id}>\n<h2>✗ Error{code}</h2>\n<div class=\"said\">{}</div>\n",
                text(message.trim())
            );
            if let Some(details) = details.as_ref().filter(|d| d.json() != "null") {
                append!(out, "<pre>{}</pre>\n", text(&call::pretty(details.json())));
            }
            return "</section>\n";
        }
        _ => return "",
    }
    "</p>\n"
}

fn todos(id: &str, list: &TodoList) -> String {
    let mut out = format!(
        "<section class=\"todos\" {id}>\n<h2>Todos <span class=\"facts\">{}</span></h2>\n<ul>\n",
        call::progress(list)
    );
    for todo in &list.todos {
        let class = match todo.status {
            ToolStatus::Completed => "done",
            ToolStatus::InProgress => "now",
            ToolStatus::Pending => "open",
            ToolStatus::Failed | ToolStatus::Cancelled => "gone",
        };
        append!(
            out,
            "<li class=\"{class}\"><span class=\"tick\">{}</span> {}</li>\n",
            call::checkbox_glyph(todo.status),
            text(&todo.content)
        );
    }
    out + "</ul>\n"
}

fn question(id: &str, questions: &[QuestionPart], answers: Option<&[GivenAnswer]>) -> String {
    let mut out = format!("<section class=\"ask\" {id}>\n");
    for part in questions {
        append!(out, "<h2>{}</h2>\n<ul>\n", text(&part.question));
        let answer = answers.into_iter().flatten().find(|a| a.question == part.question);
        let mut answer_is_option = false;
        for option in &part.options {
            let chosen = answer
                .is_some_and(|a| call::is_selected(&a.answer, &option.label, part.multi_select));
            answer_is_option |= chosen;
            let note = non_blank(option.description.as_ref()).map(|n| format!(" – {}", text(n)));
            let (class, glyph) = if chosen { ("chosen", "●") } else { ("other", "○") };
            append!(
                out,
                "<li class=\"{class}\"><span class=\"tick\">{glyph}</span> {}{}</li>\n",
                text(&option.label),
                note.unwrap_or_default()
            );
        }
        out.push_str("</ul>\n");
        match answer {
            Some(answer) if !answer_is_option => {
                append!(out, "<p>→ <strong>{}</strong></p>\n", text(&answer.answer));
            }
            Some(_) => {}
            None => out.push_str("<p class=\"note\">not answered</p>\n"),
        }
    }
    out
}
