//! Items as HTML.

use super::card;
use super::escape::{base64, text};
use super::{Pictures, prose};
use crate::asked;
use crate::call::{self, given};
use crate::order::Node;
use crate::parts;
use crate::words;
use jiff::tz::TimeZone;
use narrows::Item;
use narrows::event::{GivenAnswer, QuestionPart};
use narrows::item::{ItemBody, TodoList};
use narrows::sanitize::Clean;
use narrows::tool::{Image, ToolStatus};

/// Subagents of subagents that have a place of their own.
const MAX_DEPTH: usize = 8;
/// A picture that is larger is named, not shown.
const MAX_PICTURE: usize = 16 << 20;

/// What items need to know of their page.
pub(super) struct Page<'a> {
    pub(super) pictures: &'a dyn Pictures,
    pub(super) zone: &'a TimeZone,
    /// The last item, if it is a text, and what ends it: it may go on in the next one.
    pub(super) begun: Option<(Clean, &'static str)>,
}

enum Step<'a> {
    Open(&'a Node, usize),
    Close(&'static str),
}

impl Page<'_> {
    /// An item and what is below it. A text may go on in the next one: what ends it waits.
    pub(super) fn node(&mut self, out: &mut String, node: &Node) {
        let mut stack = vec![Step::Open(node, 0)];
        while let Some(step) = stack.pop() {
            let (node, depth) = match step {
                Step::Open(node, depth) => (node, depth),
                Step::Close(tags) => {
                    self.end(out);
                    out.push_str(tags);
                    continue;
                }
            };
            let end = match &self.begun {
                Some((last, end)) if node.item.continues.as_ref() == Some(last) => {
                    let end = *end;
                    self.more(out, &node.item);
                    end
                }
                _ => {
                    self.end(out);
                    self.open(out, &node.item)
                }
            };
            self.begun = None;
            if node.children.is_empty() && parts::text_of(&node.item).is_some() {
                self.begun = Some((node.item.id.clone(), end));
                continue;
            }
            if node.children.is_empty() {
                out.push_str(end);
                continue;
            }
            if depth < MAX_DEPTH {
                out.push_str("<div class=\"sub\">\n");
                stack.push(Step::Close(end));
                stack.push(Step::Close("</div>\n"));
            } else {
                out.push_str(end);
            }
            stack.extend(node.children.iter().rev().map(|child| Step::Open(child, depth + 1)));
        }
    }

    /// Ends a text that did not go on.
    pub(super) fn end(&mut self, out: &mut String) {
        if let Some((_, end)) = self.begun.take() {
            out.push_str(end);
        }
    }

    /// The next part of a text.
    fn more(&self, out: &mut String, item: &Item) {
        match &item.body {
            ItemBody::Text { content, images, .. } => {
                out.push_str(&prose::render(content));
                out.push_str(&self.images(images));
            }
            ItemBody::Thinking { content, .. } => {
                put!(out, "<div class=\"said\">{}</div>\n", text(content.trim_end()));
            }
            ItemBody::UserMessage { text: said, images, .. } => {
                let images = self.images(images);
                put!(out, "<div class=\"said\">{}</div>\n{images}", text(said.trim_end()));
            }
            _ => {}
        }
    }

    /// Begins an item; what ends it is returned, so that its children stand inside.
    fn open(&self, out: &mut String, item: &Item) -> &'static str {
        let id = format!("id=\"item-{}\"", item.order);
        match &item.body {
            ItemBody::UserMessage { text: said, images, .. } => {
                let who = if item.parent.is_some() { "Task" } else { "You" };
                let time = item.time.as_ref().and_then(|t| words::clock(t.millis(), self.zone));
                let time = time.map(|t| format!(" <time>{t}</time>")).unwrap_or_default();
                put!(
                    out,
                    "<section class=\"prompt\" {id}>\n<h2>{who}{time}</h2>\n<div class=\"said\">{}</div>\n{}",
                    text(said.trim_end()),
                    self.images(images)
                );
                "</section>\n"
            }
            ItemBody::Text { content, images, .. } => {
                put!(out, "<div class=\"text\" {id}>\n{}", prose::render(content));
                out.push_str(&self.images(images));
                "</div>\n"
            }
            ItemBody::Thinking { content, .. } => {
                let size = words::amount(content.chars().count() as u64);
                if content.trim().is_empty() {
                    put!(out, "<p class=\"note\" {id}>✻ thought");
                    return "</p>\n";
                }
                put!(
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
                put!(
                    out,
                    "<section class=\"plan\" {id}>\n<h2>Plan</h2>\n{}",
                    prose::render(content)
                );
                "</section>\n"
            }
            ItemBody::Question { questions, answers, .. } => {
                out.push_str(&question(&id, questions, answers.as_deref()));
                "</section>\n"
            }
            ItemBody::Permission { title, options, tool_call, .. } => {
                let title = text(given(title.as_ref()).unwrap_or_default());
                put!(out, "<section class=\"ask\" {id}>\n<h2>Needs leave: {title}</h2>\n");
                let exact = tool_call.as_ref().map(|item| asked::lines(&item.call));
                if let Some(exact) = exact.filter(|lines| !lines.is_empty()) {
                    put!(out, "<pre>{}</pre>\n", text(&exact.join("\n")));
                }
                out.push_str("<ul>\n");
                for option in options {
                    put!(out, "<li>{}</li>\n", text(&option.name));
                }
                out.push_str("</ul>\n<p class=\"note\">not answered</p>\n");
                "</section>\n"
            }
            ItemBody::Compaction(summary) => {
                let words = text(&call::compaction(summary));
                if summary.text.trim().is_empty() {
                    put!(out, "<p class=\"rule\" {id}><span>{words}</span>");
                    return "</p>\n";
                }
                put!(
                    out,
                    "<details class=\"rule\" {id}>\n<summary><span>{words}</span></summary>\n<div class=\"text\">{}</div>\n",
                    prose::render(&summary.text)
                );
                "</details>\n"
            }
            ItemBody::Artifact { .. }
            | ItemBody::BackgroundTask(_)
            | ItemBody::Notice { .. }
            | ItemBody::Error { .. } => line(out, &id, item),
        }
    }

    /// Pictures in the page itself; only kinds that are nothing but pictures.
    fn images(&self, images: &[Image]) -> String {
        let mut out = String::new();
        for image in images {
            let words = text(&call::image(image));
            let kind = match image.mime_type.as_str() {
                "image/png" => Some("png"),
                "image/jpeg" | "image/jpg" => Some("jpeg"),
                "image/gif" => Some("gif"),
                "image/webp" => Some("webp"),
                _ => None,
            };
            let bytes = kind.and_then(|kind| {
                let bytes = self.pictures.picture(image)?;
                (bytes.len() <= MAX_PICTURE).then_some((kind, bytes))
            });
            if let Some((kind, bytes)) = bytes {
                put!(
                    out,
                    "<p class=\"picture\"><img alt=\"{words}\" src=\"data:image/{kind};base64,{}\"></p>\n",
                    base64(&bytes)
                );
            } else {
                put!(out, "<p class=\"note\">[{words}]</p>\n");
            }
        }
        out
    }
}

/// Items of one line.
fn line(out: &mut String, id: &str, item: &Item) -> &'static str {
    match &item.body {
        ItemBody::Artifact { artifact } => {
            let url = given(artifact.preview_url.as_ref());
            let url = url.map(|u| format!(" · {}", text(u))).unwrap_or_default();
            put!(
                out,
                "<p class=\"line\" {id}>◆ {} <strong>{}</strong> · <code>{}</code>{url}",
                text(&artifact.r#type),
                text(&artifact.name),
                text(&artifact.path)
            );
        }
        ItemBody::BackgroundTask(task) => put!(
            out,
            "<p class=\"line\" {id}><span class=\"{}\">{}</span> In the background: {}",
            card::class(task.status),
            call::sign(task.status),
            text(&call::background(task))
        ),
        ItemBody::Notice { kind, text: said } => {
            let said = if said.trim().is_empty() { kind } else { said };
            put!(out, "<p class=\"note\" {id}>{}", text(said.trim()));
        }
        ItemBody::Error { message, code, details, .. } => {
            let code = code.as_ref().map(|c| c.json().trim_matches('"')).filter(|c| *c != "null");
            let code = code.map(|c| format!(" {}", text(c))).unwrap_or_default();
            put!(
                out,
                "<section class=\"error\" {id}>\n<h2>✗ Error{code}</h2>\n<div class=\"said\">{}</div>\n",
                text(message.trim())
            );
            if let Some(details) = details.as_ref().filter(|d| d.json() != "null") {
                put!(out, "<pre>{}</pre>\n", text(&call::pretty(details.json())));
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
        put!(
            out,
            "<li class=\"{class}\"><span class=\"tick\">{}</span> {}</li>\n",
            call::tick(todo.status),
            text(&todo.content)
        );
    }
    out + "</ul>\n"
}

fn question(id: &str, questions: &[QuestionPart], answers: Option<&[GivenAnswer]>) -> String {
    let mut out = format!("<section class=\"ask\" {id}>\n");
    for part in questions {
        put!(out, "<h2>{}</h2>\n<ul>\n", text(&part.question));
        let answer = answers.into_iter().flatten().find(|a| a.question == part.question);
        let mut is_option = false;
        for option in &part.options {
            let chosen = answer
                .is_some_and(|a| call::is_chosen(&a.answer, &option.label, part.multi_select));
            is_option |= chosen;
            let note = given(option.description.as_ref()).map(|n| format!(" – {}", text(n)));
            let (class, sign) = if chosen { ("chosen", "●") } else { ("other", "○") };
            put!(
                out,
                "<li class=\"{class}\"><span class=\"tick\">{sign}</span> {}{}</li>\n",
                text(&option.label),
                note.unwrap_or_default()
            );
        }
        out.push_str("</ul>\n");
        match answer {
            Some(answer) if !is_option => {
                put!(out, "<p>→ <strong>{}</strong></p>\n", text(&answer.answer));
            }
            Some(_) => {}
            None => out.push_str("<p class=\"note\">not answered</p>\n"),
        }
    }
    out
}
