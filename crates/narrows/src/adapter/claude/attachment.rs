//! Attachments: additional context for the model. Few kinds are part of the transcript.

use super::record::ClaudeRecord;
use super::user::{TextSource, UserInput, is_task_notification};
use super::{ClaudeParser, unknown};
use crate::adapter::output::AdapterOutput;
use crate::adapter::stop_notice;
use crate::json::Json;
use crate::model::event::{Body, Notice};
use crate::sanitize::Raw;

/// The kinds of context for the model that are not shown.
const CONTEXT_KINDS: &[&str] = &[
    "agent_listing_delta",
    "agent_mention",
    "already_read_file",
    "async_hook_response",
    "auto_mode",
    "auto_mode_exit",
    "budget_usd",
    "command_permissions",
    "compact_file_reference",
    "companion_intro",
    "context_efficiency",
    "critical_system_reminder",
    "date",
    "date_change",
    "deferred_tools_delta",
    "deferred_tools_record",
    "diagnostics",
    "directory",
    "dynamic_skill",
    "edited_image_file",
    "edited_text_file",
    "environment",
    "file",
    "hook_additional_context",
    "hook_cancelled",
    "hook_permission_decision",
    "hook_success",
    "hook_system_message",
    "invoked_skills",
    "lsp_diagnostics",
    "mcp_instructions_delta",
    "mcp_resource",
    "memory",
    "model",
    "nested_memory",
    "new_directory",
    "new_file",
    "opened_file_in_ide",
    "output_style",
    "output_token_usage",
    "pdf_reference",
    "plan_file_reference",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "prompt_snapshot",
    "relevant_memories",
    "remote_session_change",
    "selected_lines_in_ide",
    "session_context",
    "skill_listing",
    "structured_output",
    "task_progress",
    "task_reminder",
    "task_status",
    "team_context",
    "teammate_mailbox",
    "todo",
    "todo_reminder",
    "token_usage",
    "total_tokens_reminder",
    "ultramemory",
    "verify_plan_reminder",
];

impl ClaudeParser {
    pub(super) fn attachment(
        &mut self,
        r: &ClaudeRecord<'_>,
        object: Json<'_>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        let Some(attachment) = r.attachment else { return unknown("attachment", object, out) };
        let kind = attachment.text("type").unwrap_or_default();
        match &*kind {
            // A prompt typed while the agent was busy; no user record of it exists.
            "queued_command" => {
                let mut input = UserInput::default();
                let get = |name: &str| attachment.get(name);
                let is_task = is_task_notification(get("origin")) || is_task_notification(r.origin);
                let by_program = r.is_synthetic || get("isMeta").and_then(Json::bool) == Some(true);
                let source =
                    TextSource { by_program, is_summary: false, is_task, is_history: r.is_history };
                let prompt = get("prompt");
                if let Some(text) = prompt.and_then(Json::str) {
                    self.user_text(&text, source, parent, &mut input, out);
                }
                for block in prompt.into_iter().flat_map(Json::items) {
                    match block.text("type").as_deref() {
                        Some("image") if !by_program => input.add_image(block, out),
                        _ => {
                            let text = block.text("text").unwrap_or_default();
                            self.user_text(&text, source, parent, &mut input, out);
                        }
                    }
                }
                self.emit_input(&mut input, parent, out);
            }
            "max_turns_reached" => {
                turn_limit_notice(parent, out);
                if r.is_history && parent.is_none() {
                    self.end_turn_early("max_turns", out);
                }
            }
            kind if kind.starts_with("hook_") && kind.contains("error") => {
                let text = |names: &[&str]| attachment.any(names).and_then(Json::scalar);
                let name = text(&["hookName", "hookEvent"]).unwrap_or_default();
                let message =
                    text(&["stderr", "blockingError", "error", "stdout"]).unwrap_or_default();
                hook_error(&name, &message, parent, out);
            }
            kind if CONTEXT_KINDS.contains(&kind) => out.ignore(),
            kind => unknown(&format!("attachment:{kind}"), attachment, out),
        }
    }
}

/// Emits the notice that the turn limit was reached.
pub(super) fn turn_limit_notice(parent: Option<&Raw>, out: &mut AdapterOutput) {
    if let Some(note) = stop_notice::notice_for("max_turns") {
        out.push_in(parent.cloned(), Body::Notice(note));
    }
}

/// Emits the error of a hook. Successful hooks are not shown.
pub(super) fn hook_error(name: &str, message: &str, parent: Option<&Raw>, out: &mut AdapterOutput) {
    let text = Raw::new(format!("{name}: {}", message.trim()));
    out.push_in(parent.cloned(), Body::Notice(Notice { kind: Raw::new("hook"), text }));
}
