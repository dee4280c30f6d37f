//! Records of the program: initialization, status, compactions, notices, titles.

use super::attachment::hook_error;
use super::record::ClaudeRecord;
use super::record_kinds::is_hidden_system;
use super::user::UserInput;
use super::{ClaudeParser, unknown};
use crate::adapter::output::AdapterOutput;
use crate::adapter::synthetic_text::tagged;
use crate::json::Json;
use crate::model::event::{Body, Compaction, Notice, SessionUpdate, SlashCommand};
use crate::sanitize::Raw;

/// The number of commands that are read from a list.
const MAX_COMMANDS: usize = 512;

/// A compaction whose summary has not arrived.
#[derive(Debug)]
pub(super) struct CompactBoundary {
    parent: Option<Raw>,
    trigger: Option<String>,
    tokens: Option<u64>,
}

impl ClaudeParser {
    pub(super) fn system(
        &mut self,
        r: &ClaudeRecord<'_>,
        object: Json<'_>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        let subtype = r.subtype.as_deref().unwrap_or_default();
        match subtype {
            "init" => {
                self.turn_started = true;
                let text = |name: &str| object.text(name).map(Raw::new);
                let info = SessionUpdate {
                    model: text("model"),
                    mode: text("permissionMode"),
                    commands: commands(object.get("slash_commands")),
                    ..SessionUpdate::default()
                };
                self.update_info(info, out);
            }
            "status" => {
                // The activity of the program; absent when it is idle.
                let status = object.text("status").unwrap_or_default();
                self.update_info(
                    SessionUpdate { status: Some(Raw::new(status)), ..SessionUpdate::default() },
                    out,
                );
            }
            "compact_boundary" | "microcompact_boundary" => {
                self.close_compaction(out);
                let metadata = object.any(&[
                    "compactMetadata",
                    "compact_metadata",
                    "microcompactMetadata",
                    "microcompact_metadata",
                ]);
                let get = |names: &[&str]| metadata.and_then(|m| m.any(names));
                self.compaction = Some(CompactBoundary {
                    parent: parent.cloned(),
                    trigger: get(&["trigger"]).and_then(Json::owned),
                    tokens: get(&["preTokens", "pre_tokens"]).and_then(Json::u64),
                });
            }
            "api_retry" | "api_error" => retry_notice(object, parent, out),
            "informational" => {
                let level = object.text("level").unwrap_or_else(|| "info".into());
                let text = Raw::new(object.text("content").unwrap_or_default());
                let note = Notice { kind: Raw::new(level), text };
                out.push_in(parent.cloned(), Body::Notice(note));
            }
            "local_command" => {
                let text = object.text("content").unwrap_or_default();
                if tagged(&text, "local-command-stdout").is_some() {
                    Self::command_output(&strip_output_tags(&text), out);
                } else {
                    self.user_text(&text, r.into(), parent, &mut UserInput::default(), out);
                }
            }
            "task_notification" => self.task_notification_record(object, out),
            "hook_response" => {
                let text = |name: &str| object.get(name).and_then(Json::scalar);
                if text("outcome").as_deref() == Some("error") {
                    let message =
                        text("stderr").filter(|t| !t.is_empty()).or_else(|| text("stdout"));
                    let name = text("hook_name").unwrap_or_default();
                    hook_error(&name, &message.unwrap_or_default(), parent, out);
                } else {
                    out.ignore();
                }
            }
            _ if is_hidden_system(subtype) => out.ignore(),
            _ => unknown(&format!("system:{subtype}"), object, out),
        }
    }

    /// Emits a compaction with its summary.
    pub(super) fn summary(&mut self, text: &str, parent: Option<&Raw>, out: &mut AdapterOutput) {
        let boundary = self.compaction.take_if(|b| b.parent.as_ref() == parent);
        let (trigger, tokens_before) = boundary.map_or((None, None), |b| (b.trigger, b.tokens));
        let (text, trigger) = (Raw::new(text.trim()), trigger.map(Raw::new));
        let summary = Compaction { id: None, text, trigger, tokens_before, unfinished: false };
        out.push_in(parent.cloned(), Body::Compaction(Box::new(summary)));
    }

    /// Emits a compaction without a summary when another record follows.
    pub(super) fn close_compaction(&mut self, out: &mut AdapterOutput) {
        if let Some(boundary) = &self.compaction {
            let parent = boundary.parent.clone();
            self.summary("", parent.as_ref(), out);
        }
    }

    /// Handles the title of the session and its pull requests.
    pub(super) fn title(&mut self, kind: &str, object: Json<'_>, out: &mut AdapterOutput) {
        let names = match kind {
            "summary" => &["summary"][..],
            "custom-title" => &["customTitle"],
            "ai-title" => &["aiTitle"],
            "agent-name" => &["agentName"],
            _ => {
                let Some(url) = object.any(&["prUrl", "url"]).and_then(Json::str) else {
                    return unknown(kind, object, out);
                };
                let note = Notice { kind: Raw::new("pull_request"), text: Raw::new(url) };
                return out.push(Body::Notice(note));
            }
        };
        let Some(title) = object.any(names).and_then(Json::str) else {
            return unknown(kind, object, out);
        };
        // A title by the user takes precedence over a generated one.
        self.has_user_title |= kind == "custom-title";
        let is_better = kind == "ai-title" && !self.has_user_title;
        if kind == "custom-title" || self.info.title.is_none() || is_better {
            let title = Some(Raw::new(title));
            self.update_info(
                SessionUpdate { title, named: self.has_user_title, ..SessionUpdate::default() },
                out,
            );
        } else {
            out.ignore();
        }
    }
}

/// Emits a notice that the request to the model is retried. The two forms spell the fields
/// differently.
fn retry_notice(object: Json<'_>, parent: Option<&Raw>, out: &mut AdapterOutput) {
    let number = |names: &[&str]| object.any(names).and_then(Json::u64);
    let status =
        number(&["error_status"]).or_else(|| object.path(&["error", "status"]).and_then(Json::u64));
    let cause =
        status.map_or_else(|| "The connection was cut".to_owned(), |s| format!("Error {s}"));
    let attempt = number(&["attempt", "retryAttempt"]).unwrap_or(0);
    let max_attempts = number(&["max_retries", "maxRetries"]).unwrap_or(0);
    let text = Raw::new(format!("{cause}, trying again ({attempt} of {max_attempts})"));
    out.push_in(parent.cloned(), Body::Notice(Notice { kind: Raw::new("retry"), text }));
}

/// Parses a list of command names, or of commands with descriptions.
pub(super) fn commands(list: Option<Json<'_>>) -> Option<Vec<SlashCommand<Raw>>> {
    let command = |c: Json<'_>| {
        let name = c.str().or_else(|| c.text("name"))?;
        let description = c.text("description").filter(|d| !d.is_empty());
        Some(SlashCommand { name: Raw::new(name), description: description.map(Raw::new) })
    };
    list.map(|l| l.items().take(MAX_COMMANDS).filter_map(command).collect())
}

/// Extracts the output of a command from its tags.
pub(super) fn strip_output_tags(text: &str) -> String {
    let tags = ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"];
    let outputs: Vec<&str> = tags.iter().filter_map(|tag| tagged(text, tag)).collect();
    if outputs.is_empty() { text.to_owned() } else { outputs.join("\n").trim().to_owned() }
}
