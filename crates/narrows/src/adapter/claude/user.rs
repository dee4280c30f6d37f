//! Records in the user's role: prompts, tool results, and text that no user typed.

use super::image::image_block;
use super::record::{ClaudeRecord, ContentBlocks};
use super::tasks::without_reminders;
use super::tool_result::has_no_parent_dir;
use super::{ClaudeParser, system, unknown};
use crate::adapter::output::AdapterOutput;
use crate::adapter::synthetic_text::{SyntheticKind, classify, tagged};
use crate::json::Json;
use crate::model::event::{AgentFile, Body, Notice, PromptOrigin, UserMessage};
use crate::model::tool::Image;
use crate::sanitize::Raw;

impl ClaudeParser {
    pub(super) fn user(
        &mut self,
        r: &ClaudeRecord<'_>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        self.turn_started = false;
        self.continue_turn(None, parent);
        let blocks = r.blocks();
        // A record has one structured result: with several results it belongs to none.
        let structured = r.structured_result.filter(|_| blocks.tool_results() == 1);
        let mut input = UserInput::default();
        if let ContentBlocks::Text(text) = blocks {
            self.user_text(&text.str().unwrap_or_default(), r.into(), parent, &mut input, out);
        }
        for block in blocks.iter() {
            match block.text("type").as_deref() {
                Some("tool_result") => {
                    self.emit_input(&mut input, parent, out);
                    self.tool_result(block, structured, r, parent, out);
                }
                Some("text") => {
                    self.user_text(
                        &block.text("text").unwrap_or_default(),
                        r.into(),
                        parent,
                        &mut input,
                        out,
                    );
                }
                Some("image") if !r.is_synthetic => input.add_image(block, out),
                Some("image" | "document") => out.ignore(),
                kind => unknown(&format!("user:{}", kind.unwrap_or("untyped")), block, out),
            }
        }
        if matches!(blocks, ContentBlocks::None) {
            out.ignore();
        }
        self.emit_input(&mut input, parent, out);
    }

    /// Handles one text in the user's role. A typed text may be next to synthetic ones.
    pub(super) fn user_text(
        &mut self,
        text: &str,
        source: TextSource,
        parent: Option<&Raw>,
        input: &mut UserInput,
        out: &mut AdapterOutput,
    ) {
        let note = |kind: &str, text: &str| {
            Body::Notice(Notice { kind: Raw::new(kind), text: Raw::new(text.trim()) })
        };
        match classify(text) {
            _ if source.is_summary => self.summary(text, parent, out),
            Some(SyntheticKind::Compaction) => self.summary(text, parent, out),
            Some(SyntheticKind::TaskNotification) => Self::task_notification_text(text, out),
            _ if source.is_task => Self::task_notification_text(text, out),
            Some(SyntheticKind::Interrupted) => {
                out.push_in(parent.cloned(), note("interrupted", text));
                if source.is_history && parent.is_none() {
                    self.end_turn_early("cancelled", out);
                }
            }
            Some(SyntheticKind::Command) => match command_line(text) {
                Some(line) if is_for_agent(text) => input.add_text(&line),
                Some(line) => out.push_in(parent.cloned(), note("command", &line)),
                None => out.ignore(),
            },
            Some(SyntheticKind::CommandOutput) => {
                Self::command_output(&system::strip_output_tags(text), out)
            }
            Some(SyntheticKind::Context) => out.ignore(),
            None if source.by_program && self.continuation_request(text, parent, out) => {}
            None if source.by_program => match skill_file(text) {
                Some(path) => {
                    let file = AgentFile { path: Raw::new(path), tool_call_id: None };
                    out.push_in(parent.cloned(), Body::SkillFile(Box::new(file)));
                }
                None => out.ignore(),
            },
            None => input.add_text(without_reminders(text)),
        }
    }

    /// Emits the collected input as one message.
    pub(super) fn emit_input(
        &mut self,
        input: &mut UserInput,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        let input = std::mem::take(input);
        if input.text.is_empty() && input.images.is_empty() {
            return;
        }
        if parent.is_none() {
            self.close_compaction(out);
            self.calls_matched_by_prompt.clear();
        }
        // Each prompt is a record of its own: consecutive prompts are not joined.
        let block_id = Some(Raw::new(format!("line-{}", self.line)));
        let body = Body::UserMessage(UserMessage {
            text: Raw::new(input.text),
            images: input.images,
            origin: PromptOrigin::Agent,
            block_id,
            whole: true,
        });
        out.push_in(parent.cloned(), body);
    }
}

/// The source of a text in the user's role.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextSource {
    /// The program wrote it for the model.
    pub(super) by_program: bool,
    /// It is the summary of a compaction.
    pub(super) is_summary: bool,
    /// It is the notification of a background task.
    pub(super) is_task: bool,
    /// It came from a session file.
    pub(super) is_history: bool,
}

impl From<&ClaudeRecord<'_>> for TextSource {
    fn from(r: &ClaudeRecord<'_>) -> Self {
        TextSource {
            by_program: r.is_synthetic,
            is_summary: r.is_summary,
            is_task: is_task_notification(r.origin),
            is_history: r.is_history,
        }
    }
}

/// Whether the origin of a prompt is a background task.
pub(super) fn is_task_notification(origin: Option<Json<'_>>) -> bool {
    origin.and_then(|o| o.text("kind")).as_deref() == Some("task-notification")
}

/// The input of the user in one record.
#[derive(Debug, Default)]
pub(super) struct UserInput {
    text: String,
    images: Vec<Image>,
}

impl UserInput {
    pub(super) fn add_image(&mut self, block: Json<'_>, out: &mut AdapterOutput) {
        match image_block(block, &mut out.blobs) {
            Ok(image) => self.images.push(image),
            Err(substitute) => self.add_text(&substitute),
        }
    }

    pub(super) fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

/// Extracts the command that the user typed from its tags.
fn command_line(text: &str) -> Option<String> {
    if let Some(line) = tagged(text, "bash-input") {
        return Some(format!("! {}", line.trim()));
    }
    let name = tagged(text, "command-name")?.trim();
    let args = tagged(text, "command-args").unwrap_or_default().trim();
    let slash = if name.starts_with('/') { "" } else { "/" };
    Some(format!("{slash}{name} {args}").trim().to_owned())
}

/// Whether a command is a prompt for the model. The tags of such a command start with its message,
/// those of a command that the program executes itself with its name.
fn is_for_agent(text: &str) -> bool {
    text.trim_start().starts_with("<command-message>")
}

/// Returns the file of a skill that the program loaded. Only a record of the program
/// counts, and only a directory below `skills`.
fn skill_file(text: &str) -> Option<String> {
    let dir = text.strip_prefix("Base directory for this skill: ")?.lines().next()?.trim();
    let normalized = dir.replace('\\', "/");
    let is_skill =
        normalized.split('/').any(|part| part == "skills") && has_no_parent_dir(&normalized);
    is_skill.then(|| format!("{}/SKILL.md", normalized.trim_end_matches('/')))
}
