//! Records of the program itself.

use super::attachment::hook_failed;
use super::record::Record;
use super::{Claude, kinds, unknown};
use crate::adapter::Yield;
use crate::adapter::internal::tagged;
use crate::event::{Body, Command, Info, Note, Summary};
use crate::json::Json;
use crate::sanitize::Raw;

/// Commands that are kept of a list.
const MAX_COMMANDS: usize = 512;

/// What was replaced, until the summary that replaces it comes.
#[derive(Debug)]
pub(super) struct Boundary {
    parent: Option<Raw>,
    trigger: Option<String>,
    tokens: Option<u64>,
}

impl Claude {
    pub(super) fn system(
        &mut self,
        r: &Record<'_>,
        object: Json<'_>,
        parent: Option<&Raw>,
        out: &mut Yield,
    ) {
        let subtype = r.subtype.as_deref().unwrap_or_default();
        match subtype {
            "init" => {
                self.begins = true;
                let text = |name: &str| object.text(name).map(Raw::new);
                let info = Info {
                    model: text("model"),
                    mode: text("permissionMode"),
                    commands: commands(object.get("slash_commands")),
                    ..Info::default()
                };
                self.learn(info, out);
            }
            "status" => {
                // What it is doing, or nothing any more.
                let status = object.text("status").unwrap_or_default();
                self.learn(Info { status: Some(Raw::new(status)), ..Info::default() }, out);
            }
            "compact_boundary" | "microcompact_boundary" => {
                self.no_summary(out);
                let about = object.any(&[
                    "compactMetadata",
                    "compact_metadata",
                    "microcompactMetadata",
                    "microcompact_metadata",
                ]);
                let get = |names: &[&str]| about.and_then(|a| a.any(names));
                self.compaction = Some(Boundary {
                    parent: parent.cloned(),
                    trigger: get(&["trigger"]).and_then(Json::owned),
                    tokens: get(&["preTokens", "pre_tokens"]).and_then(Json::u64),
                });
            }
            "api_retry" | "api_error" => retry(object, parent, out),
            "informational" => {
                let level = object.text("level").unwrap_or_else(|| "info".into());
                let text = Raw::new(object.text("content").unwrap_or_default());
                let note = Note { kind: Raw::new(level), text };
                out.push_in(parent.cloned(), Body::Notice(note));
            }
            "local_command" => {
                let text = object.text("content").unwrap_or_default();
                if tagged(&text, "local-command-stdout").is_some() {
                    Self::command_output(&bare_output(&text), out);
                } else {
                    self.words(&text, r.into(), parent, &mut super::user::Said::default(), out);
                }
            }
            "task_notification" => self.task_ended(object, out),
            "hook_response" => {
                let text = |name: &str| object.get(name).and_then(Json::scalar);
                if text("outcome").as_deref() == Some("error") {
                    let why = text("stderr").filter(|t| !t.is_empty()).or_else(|| text("stdout"));
                    let name = text("hook_name").unwrap_or_default();
                    hook_failed(&name, &why.unwrap_or_default(), parent, out);
                } else {
                    out.quiet += 1;
                }
            }
            _ if kinds::is_quiet_system(subtype) => out.quiet += 1,
            _ => unknown(&format!("system:{subtype}"), object, out),
        }
    }

    /// The summary that replaces what came before.
    pub(super) fn summary(&mut self, text: &str, parent: Option<&Raw>, out: &mut Yield) {
        let at = self.compaction.take_if(|b| b.parent.as_ref() == parent);
        let (trigger, tokens_before) = at.map_or((None, None), |b| (b.trigger, b.tokens));
        let (text, trigger) = (Raw::new(text.trim()), trigger.map(Raw::new));
        let summary = Summary { id: None, text, trigger, tokens_before, unfinished: false };
        out.push_in(parent.cloned(), Body::Compaction(Box::new(summary)));
    }

    /// Something else comes: there is no summary.
    pub(super) fn no_summary(&mut self, out: &mut Yield) {
        if let Some(boundary) = &self.compaction {
            let parent = boundary.parent.clone();
            self.summary("", parent.as_ref(), out);
        }
    }

    /// What the session is called, and where its work went.
    pub(super) fn title(&mut self, kind: &str, object: Json<'_>, out: &mut Yield) {
        let names = match kind {
            "summary" => &["summary"][..],
            "custom-title" => &["customTitle"],
            "ai-title" => &["aiTitle"],
            "agent-name" => &["agentName"],
            _ => {
                let Some(url) = object.any(&["prUrl", "url"]).and_then(Json::str) else {
                    return unknown(kind, object, out);
                };
                let note = Note { kind: Raw::new("pull_request"), text: Raw::new(url) };
                return out.push(Body::Notice(note));
            }
        };
        let Some(title) = object.any(names).and_then(Json::str) else {
            return unknown(kind, object, out);
        };
        // A name that somebody gave beats one that was made up.
        self.named |= kind == "custom-title";
        let better = kind == "ai-title" && !self.named;
        if kind == "custom-title" || self.info.title.is_none() || better {
            let title = Some(Raw::new(title));
            self.learn(Info { title, named: self.named, ..Info::default() }, out);
        } else {
            out.quiet += 1;
        }
    }
}

/// The model is asked again. What is printed and what is kept tell it by different names.
fn retry(object: Json<'_>, parent: Option<&Raw>, out: &mut Yield) {
    let number = |names: &[&str]| object.any(names).and_then(Json::u64);
    let status =
        number(&["error_status"]).or_else(|| object.path(&["error", "status"]).and_then(Json::u64));
    let what = status.map_or_else(|| "The connection was cut".to_owned(), |s| format!("Error {s}"));
    let attempt = number(&["attempt", "retryAttempt"]).unwrap_or(0);
    let most = number(&["max_retries", "maxRetries"]).unwrap_or(0);
    let text = Raw::new(format!("{what}, trying again ({attempt} of {most})"));
    out.push_in(parent.cloned(), Body::Notice(Note { kind: Raw::new("retry"), text }));
}

/// The names of commands, or commands with descriptions.
pub(super) fn commands(list: Option<Json<'_>>) -> Option<Vec<Command<Raw>>> {
    let command = |c: Json<'_>| {
        let name = c.str().or_else(|| c.text("name"))?;
        let description = c.text("description").filter(|d| !d.is_empty());
        Some(Command { name: Raw::new(name), description: description.map(Raw::new) })
    };
    list.map(|l| l.items().take(MAX_COMMANDS).filter_map(command).collect())
}

/// What a command printed, out of its tags.
pub(super) fn bare_output(text: &str) -> String {
    let parts = ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"];
    let found: Vec<&str> = parts.iter().filter_map(|tag| tagged(text, tag)).collect();
    if found.is_empty() { text.to_owned() } else { found.join("\n").trim().to_owned() }
}
