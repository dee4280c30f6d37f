//! What is put before the model beside the conversation. Little of it is part of the transcript.

use super::record::Record;
use super::user::{By, Said, is_task};
use super::{Claude, unknown};
use crate::adapter::{Yield, stops};
use crate::event::{Body, Note};
use crate::json::Json;
use crate::sanitize::Raw;

/// Context for the model.
const CONTEXT: &[&str] = &[
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

impl Claude {
    pub(super) fn attachment(
        &mut self,
        r: &Record<'_>,
        object: Json<'_>,
        parent: Option<&Raw>,
        out: &mut Yield,
    ) {
        let Some(attachment) = r.attachment else { return unknown("attachment", object, out) };
        let kind = attachment.text("type").unwrap_or_default();
        match &*kind {
            // Typed while the agent was busy; no user record is kept of it.
            "queued_command" => {
                let mut said = Said::default();
                let get = |name: &str| attachment.get(name);
                let task = is_task(get("origin")) || is_task(r.origin);
                let program = r.internal || get("isMeta").and_then(Json::bool) == Some(true);
                let by = By { program, summary: false, task, kept: r.kept };
                let prompt = get("prompt");
                if let Some(text) = prompt.and_then(Json::str) {
                    self.words(&text, by, parent, &mut said, out);
                }
                for block in prompt.into_iter().flat_map(Json::items) {
                    match block.text("type").as_deref() {
                        Some("image") if !program => said.show(block, out),
                        _ => {
                            let text = block.text("text").unwrap_or_default();
                            self.words(&text, by, parent, &mut said, out);
                        }
                    }
                }
                self.say(&mut said, parent, out);
            }
            "max_turns_reached" => {
                turns_over(parent, out);
                if r.kept && parent.is_none() {
                    self.kept_stop("max_turns", out);
                }
            }
            kind if kind.starts_with("hook_") && kind.contains("error") => {
                let text = |names: &[&str]| attachment.any(names).and_then(Json::scalar);
                let name = text(&["hookName", "hookEvent"]).unwrap_or_default();
                let why = text(&["stderr", "blockingError", "error", "stdout"]).unwrap_or_default();
                hook_failed(&name, &why, parent, out);
            }
            kind if CONTEXT.contains(&kind) => out.quiet += 1,
            kind => unknown(&format!("attachment:{kind}"), attachment, out),
        }
    }
}

/// The run was cut at the number of turns it was given.
pub(super) fn turns_over(parent: Option<&Raw>, out: &mut Yield) {
    if let Some(note) = stops::mark("max_turns") {
        out.push_in(parent.cloned(), Body::Notice(note));
    }
}

/// A hook went wrong. One that went well is nothing to tell.
pub(super) fn hook_failed(name: &str, why: &str, parent: Option<&Raw>, out: &mut Yield) {
    let text = Raw::new(format!("{name}: {}", why.trim()));
    out.push_in(parent.cloned(), Body::Notice(Note { kind: Raw::new("hook"), text }));
}
