//! Records in the user's voice: prompts, results, and much that no user typed.

use super::record::{Blocks, Record};
use super::result::stays;
use super::tasks::without_reminders;
use super::{Claude, system};
use crate::adapter::Yield;
use crate::adapter::blob;
use crate::adapter::internal::{Internal, classify, tagged};
use crate::event::{AgentFile, Body, Message, Note, Origin};
use crate::json::Json;
use crate::sanitize::Raw;
use crate::tool::Image;

impl Claude {
    pub(super) fn user(&mut self, r: &Record<'_>, parent: Option<&Raw>, out: &mut Yield) {
        self.begins = false;
        self.turn_goes_on(None, parent);
        let blocks = r.blocks();
        // One value stands beside all results of a record: of several, it is none's.
        let structured = r.structured.filter(|_| blocks.results() == 1);
        let mut said = Said::default();
        if let Blocks::Text(text) = blocks {
            self.words(&text.str().unwrap_or_default(), r.into(), parent, &mut said, out);
        }
        for block in blocks.each() {
            match block.text("type").as_deref() {
                Some("tool_result") => {
                    self.say(&mut said, parent, out);
                    self.result(block, structured, r, parent, out);
                }
                Some("text") => {
                    self.words(
                        &block.text("text").unwrap_or_default(),
                        r.into(),
                        parent,
                        &mut said,
                        out,
                    );
                }
                Some("image") if !r.internal => said.show(block, out),
                Some("image" | "document") => out.quiet += 1,
                kind => super::unknown(&format!("user:{}", kind.unwrap_or("untyped")), block, out),
            }
        }
        if matches!(blocks, Blocks::None) {
            out.quiet += 1;
        }
        self.say(&mut said, parent, out);
    }

    /// Words in the user's voice. Each text is looked at by itself: a typed one may stand beside
    /// others that were added to it.
    pub(super) fn words(
        &mut self,
        text: &str,
        by: By,
        parent: Option<&Raw>,
        said: &mut Said,
        out: &mut Yield,
    ) {
        let note = |kind: &str, text: &str| {
            Body::Notice(Note { kind: Raw::new(kind), text: Raw::new(text.trim()) })
        };
        match classify(text) {
            _ if by.summary => self.summary(text, parent, out),
            Some(Internal::Compaction) => self.summary(text, parent, out),
            Some(Internal::Task) => Self::task_notification(text, out),
            _ if by.task => Self::task_notification(text, out),
            Some(Internal::Interrupted) => {
                out.push_in(parent.cloned(), note("interrupted", text));
                if by.kept && parent.is_none() {
                    self.kept_stop("cancelled", out);
                }
            }
            Some(Internal::Command) => match command(text) {
                Some(line) if is_for_agent(text) => said.add(&line),
                Some(line) => out.push_in(parent.cloned(), note("command", &line)),
                None => out.quiet += 1,
            },
            Some(Internal::CommandOutput) => Self::command_output(&system::bare_output(text), out),
            Some(Internal::Context) => out.quiet += 1,
            None if by.program && self.resumes(text, parent, out) => {}
            None if by.program => match skill_file(text) {
                Some(path) => {
                    let file = AgentFile { path: Raw::new(path), tool_call_id: None };
                    out.push_in(parent.cloned(), Body::SkillFile(Box::new(file)));
                }
                None => out.quiet += 1,
            },
            None => said.add(without_reminders(text)),
        }
    }

    pub(super) fn say(&mut self, said: &mut Said, parent: Option<&Raw>, out: &mut Yield) {
        let said = std::mem::take(said);
        if said.text.is_empty() && said.images.is_empty() {
            return;
        }
        if parent.is_none() {
            self.no_summary(out);
            self.guessed.clear();
        }
        // Each prompt is a record of its own: two in a row are two.
        let block_id = Some(Raw::new(format!("line-{}", self.line)));
        let body = Body::UserMessage(Message {
            text: Raw::new(said.text),
            images: said.images,
            origin: Origin::Agent,
            block_id,
            whole: true,
        });
        out.push_in(parent.cloned(), body);
    }
}

/// Who wrote a text in the user's voice.
#[derive(Debug, Clone, Copy)]
pub(super) struct By {
    /// The program, for the model.
    pub(super) program: bool,
    /// The program, in place of what came before.
    pub(super) summary: bool,
    /// Something in the background that has ended.
    pub(super) task: bool,
    /// It is read from a file.
    pub(super) kept: bool,
}

impl From<&Record<'_>> for By {
    fn from(r: &Record<'_>) -> Self {
        By { program: r.internal, summary: r.summary, task: is_task(r.origin), kept: r.kept }
    }
}

/// Whether a prompt comes from the background.
pub(super) fn is_task(origin: Option<Json<'_>>) -> bool {
    origin.and_then(|o| o.text("kind")).as_deref() == Some("task-notification")
}

/// What the user said in one record.
#[derive(Debug, Default)]
pub(super) struct Said {
    text: String,
    images: Vec<Image>,
}

impl Said {
    pub(super) fn show(&mut self, block: Json<'_>, out: &mut Yield) {
        match blob::claude_image(block, &mut out.blobs) {
            Ok(image) => self.images.push(image),
            Err(words) => self.add(&words),
        }
    }

    pub(super) fn add(&mut self, words: &str) {
        if !self.text.is_empty() && !words.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(words);
    }
}

/// The command that the user typed, out of its tags.
fn command(text: &str) -> Option<String> {
    if let Some(line) = tagged(text, "bash-input") {
        return Some(format!("! {}", line.trim()));
    }
    let name = tagged(text, "command-name")?.trim();
    let args = tagged(text, "command-args").unwrap_or_default().trim();
    let slash = if name.starts_with('/') { "" } else { "/" };
    Some(format!("{slash}{name} {args}").trim().to_owned())
}

/// Whether a command makes the agent work. The program tells those that it carries out itself by their
/// names first, and those that it gives to the model by what it says of them.
fn is_for_agent(text: &str) -> bool {
    text.trim_start().starts_with("<command-message>")
}

/// The file of a skill that the program loaded. Only its own record tells, and only a folder of
/// skills counts.
fn skill_file(text: &str) -> Option<String> {
    let folder = text.strip_prefix("Base directory for this skill: ")?.lines().next()?.trim();
    let plain = folder.replace('\\', "/");
    let inside = plain.split('/').any(|part| part == "skills") && stays(&plain);
    inside.then(|| format!("{}/SKILL.md", plain.trim_end_matches('/')))
}
