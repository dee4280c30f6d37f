//! Session updates, by kind.

use super::compaction::notice;
use super::content::{ContentParts, content_parts};
use super::fields::MessageFields;
use super::rpc::{failure, turn_end, unknown};
use super::tool_call::ToolUpdate;
use super::{AcpParser, rpc, session_info};
use crate::adapter::output::AdapterOutput;
use crate::adapter::synthetic_text::{SyntheticKind, classify};
use crate::adapter::tool_input::todo_status;
use crate::json::{Json, Kind};
use crate::model::event::{
    Artifact, ArtifactInfo, Body, Compaction, ErrorEvent, Notice, PlanEntry, PlanUpdate,
    PromptOrigin, TextChunk, UserMessage,
};
use crate::sanitize::Raw;

/// The identity of a text block.
pub(super) type TextBlockKey = (Speaker, Option<Raw>);

/// The author of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

impl AcpParser {
    /// Handles one update; its kind is in `type` or in `sessionUpdate`.
    pub(super) fn update(
        &mut self,
        object: Json<'_>,
        f: &MessageFields<'_>,
        out: &mut AdapterOutput,
    ) {
        if self.pending_surrogate.is_some() && f.content().is_none() {
            self.flush_surrogate(out);
        }
        let by_type = f.kind().and_then(Json::str);
        let by_update = f.session_update().and_then(Json::str);
        let is_known = by_type.as_deref().is_some_and(|k| self.dispatch(k, object, f, out))
            || by_update.as_deref().is_some_and(|k| self.dispatch(k, object, f, out));
        if !is_known {
            let kind = by_type.or(by_update).unwrap_or_else(|| "untyped".into());
            unknown(&kind, object, out);
        }
    }

    /// Handles an update of a known kind; returns false for other kinds.
    fn dispatch(
        &mut self,
        kind: &str,
        object: Json<'_>,
        f: &MessageFields<'_>,
        out: &mut AdapterOutput,
    ) -> bool {
        match kind {
            "agent_message_chunk" => self.chunk(Speaker::Agent, f, false, out),
            "agent_message" => self.chunk(Speaker::Agent, f, true, out),
            "agent_thought_chunk" => self.chunk(Speaker::Thought, f, false, out),
            "agent_thought" => self.chunk(Speaker::Thought, f, true, out),
            "user_message_chunk" => self.chunk(Speaker::User, f, false, out),
            "user_message" | "user" => rpc::prompt(f.content().or(object.get("text")), out),
            "tool_call" | "tool_call_start" => {
                self.tool_call(f, ToolUpdate::Start, out);
            }
            "tool_call_update" | "tool_call_progress" => {
                self.tool_call(f, ToolUpdate::Progress, out);
            }
            "plan" | "agent_plan_update" => plan(object, out),
            "prompt_response" => {
                self.close_compactions(true, out);
                rpc::push_stop_notice(Some(object), out);
                out.push(Body::PromptResponse(Box::new(turn_end(Some(object), None))))
            }
            "artifact_created" => artifact(object, out),
            "error" => out.push(Body::Error(Box::new(failure(object, object.get("details"))))),
            "available_commands_update" => session_info::commands(object, out),
            "current_mode_update" => {
                session_info::mode(object.any(&["currentModeId", "current_mode_id"]), out);
            }
            "config_option_update" => session_info::config(object, out),
            "session_info_update" => {
                let status = object.path(&["_meta", "codex", "threadStatus", "type"]);
                let status = status.and_then(Json::str);
                if let Some(status) = &status {
                    self.codex_failing = status == "systemError";
                }
                session_info::title(object, out);
            }
            "usage_update" => session_info::usage(object, out),
            "notice" => notice(object, f, out),
            "plan_update" => plan_update(object, out),
            // A removed plan stays in the transcript.
            "plan_removed" => out.ignore(),
            kind if kind.starts_with("compaction") => self.compaction_update(kind, object, f, out),
            _ => return false,
        }
        true
    }

    fn chunk(
        &mut self,
        speaker: Speaker,
        f: &MessageFields<'_>,
        whole: bool,
        out: &mut AdapterOutput,
    ) {
        let mut parts = content_parts(f.content(), out);
        let block_id = f.message_id().and_then(Json::scalar).map(|id| self.shared_block_id(&id));
        if self.pending_surrogate.is_some() || parts.last_string.is_some_and(Json::escaped) {
            self.join_surrogates((speaker, block_id.as_ref()), &mut parts);
        }
        if parts.text.is_empty() && parts.images.is_empty() {
            out.ignore();
            return;
        }
        if self.emit_special_text(speaker, f, &parts.text, out) {
            return;
        }
        let text = Raw::new(parts.text);
        let images = parts.images;
        let parent = f.meta().and_then(|m| m.path(&["claudeCode", "parentToolUseId"]));
        let parent = parent.and_then(Json::str).map(Raw::new);
        let chunk = |text| {
            let (images, block_id) = (images.clone(), block_id.clone());
            TextChunk { text, images, block_id, whole, ..TextChunk::default() }
        };
        let body = match speaker {
            Speaker::Agent => Body::TextChunk(chunk(text)),
            Speaker::Thought => Body::ThinkingChunk(chunk(text)),
            Speaker::User => {
                let (origin, whole) = (PromptOrigin::Agent, false);
                Body::UserMessage(UserMessage { text, images, origin, block_id, whole })
            }
        };
        out.push_in(parent, body);
    }

    /// Emits a high surrogate whose low surrogate did not arrive, as U+FFFD.
    pub(super) fn flush_surrogate(&mut self, out: &mut AdapterOutput) {
        let Some((_, (speaker, block_id))) = self.pending_surrogate.take() else {
            return;
        };
        let text = Raw::new("\u{FFFD}");
        let chunk = TextChunk { text, block_id, ..TextChunk::default() };
        match speaker {
            Speaker::Agent => out.push(Body::TextChunk(chunk)),
            Speaker::Thought => out.push(Body::ThinkingChunk(chunk)),
            Speaker::User => {}
        }
    }

    /// Returns the id of a text block. Most chunks share the id of the previous one.
    fn shared_block_id(&mut self, id: &str) -> Raw {
        if self.last_block.peek() != id {
            self.last_block = Raw::new(id);
        }
        self.last_block.clone()
    }

    /// Handles synthetic text of the user and notices in the text of the agent; returns false for
    /// ordinary text.
    fn emit_special_text(
        &mut self,
        speaker: Speaker,
        f: &MessageFields<'_>,
        text: &str,
        out: &mut AdapterOutput,
    ) -> bool {
        let note =
            |kind: &str| Body::Notice(Notice { kind: Raw::new(kind), text: Raw::new(text.trim()) });
        match speaker {
            Speaker::User if !is_for_user(f.content()) => out.ignore(),
            Speaker::User => match classify(text) {
                Some(SyntheticKind::Interrupted) => out.push(note("interrupted")),
                Some(SyntheticKind::Compaction) => {
                    let text = Raw::new(text.trim());
                    out.push(Body::Compaction(Box::new(Compaction {
                        unfinished: false,
                        id: None,
                        text,
                        trigger: None,
                        tokens_before: None,
                    })));
                }
                Some(
                    SyntheticKind::Context
                    | SyntheticKind::TaskNotification
                    | SyntheticKind::Command
                    | SyntheticKind::CommandOutput,
                ) => out.ignore(),
                None => return false,
            },
            Speaker::Agent => {
                // Gemini reports its mode as text.
                if let Some(mode) = text.strip_prefix("[MODE_UPDATE] ") {
                    let info = crate::model::event::SessionUpdate {
                        mode: Some(Raw::new(mode.trim())),
                        ..Default::default()
                    };
                    out.push(Body::SessionInfo(Box::new(info)));
                    return true;
                }
                // Codex has no error update: it reports a failure as text without an id.
                if f.message_id().is_none() {
                    if std::mem::take(&mut self.codex_failing) {
                        let message = Raw::new(text.trim());
                        let (code, details, retryable) = (None, None, None);
                        let failure =
                            ErrorEvent { message, code, details, retryable, is_end: false };
                        out.push(Body::Error(Box::new(failure)));
                        return true;
                    }
                    if text.starts_with("Warning: ") && text.ends_with("\n\n") {
                        out.push(note("warning"));
                        return true;
                    }
                }
                let level = f.meta().and_then(|m| m.path(&["claudeCode", "level"]));
                let Some(level) = level.and_then(Json::str) else {
                    return false;
                };
                out.push(note(&level));
            }
            Speaker::Thought => return false,
        }
        true
    }

    /// Joins a surrogate pair that was split over two chunks.
    fn join_surrogates(&mut self, key: (Speaker, Option<&Raw>), parts: &mut ContentParts<'_>) {
        let raw = parts.last_string.filter(|j| j.escaped()).map(Json::raw);
        if let Some((high, pending)) = self.pending_surrogate.take() {
            let low =
                raw.and_then(|raw| code_unit_at(raw, 0)).filter(|u| (0xDC00..=0xDFFF).contains(u));
            let is_same_block = pending.0 == key.0 && pending.1.as_ref() == key.1;
            let joined = low
                .filter(|_| is_same_block)
                .and_then(|low| char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)));
            let invalid = char::REPLACEMENT_CHARACTER;
            let rest = parts.text.strip_prefix(invalid).filter(|_| joined.is_some());
            // A surrogate that stays alone is shown as U+FFFD.
            parts.text =
                ecow::eco_format!("{}{}", joined.unwrap_or(invalid), rest.unwrap_or(&parts.text));
        }
        let Some(raw) = raw else { return };
        let backslashes =
            |at: usize| raw.as_bytes()[..at].iter().rev().take_while(|c| **c == b'\\').count();
        if let Some(at) = raw.len().checked_sub(6)
            && let Some(high @ 0xD800..=0xDBFF) = code_unit_at(raw, at)
            && backslashes(at) % 2 == 0
            && parts.text.ends_with(char::REPLACEMENT_CHARACTER)
        {
            parts.text.pop();
            self.pending_surrogate = Some((high, (key.0, key.1.cloned())));
        }
    }
}

/// Whether only ACP has an update of this kind. Other agents have `user`, `error`, `plan` and the
/// like too.
pub(super) fn is_own_update(kind: &str) -> bool {
    matches!(
        kind,
        "agent_message_chunk"
            | "agent_thought_chunk"
            | "user_message_chunk"
            | "tool_call_start"
            | "tool_call_update"
            | "tool_call_progress"
            | "agent_plan_update"
            | "prompt_response"
            | "artifact_created"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update"
            | "usage_update"
    )
}

/// Whether the user is in the audience of the content.
fn is_for_user(content: Option<Json<'_>>) -> bool {
    let audience = content.and_then(|c| c.path(&["annotations", "audience"]));
    audience.is_none_or(|list| list.items().any(|role| role.str().as_deref() == Some("user")))
}

/// Returns the code unit of the `\u` escape at `at`.
fn code_unit_at(raw: &str, at: usize) -> Option<u32> {
    let hex = raw.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(hex, 16).ok()
}

/// Emits a plan that has an id: a list of entries, a text or a file.
fn plan_update(object: Json<'_>, out: &mut AdapterOutput) {
    let content = object.get("plan").filter(|p| p.kind() == Kind::Object).unwrap_or(object);
    if content.get("entries").is_some() {
        return plan(content, out);
    }
    match content.any(&["content", "uri"]).and_then(Json::owned).filter(|t| !t.is_empty()) {
        Some(text) => {
            out.push(Body::Notice(Notice { kind: Raw::new("plan"), text: Raw::new(text) }));
        }
        None => out.ignore(),
    }
}

fn plan(object: Json<'_>, out: &mut AdapterOutput) {
    let entries = object.get("entries").into_iter().flat_map(Json::items);
    let entries = entries.filter(|e| e.kind() == Kind::Object).map(|e| PlanEntry {
        content: Raw::new(e.text("content").unwrap_or_default()),
        status: todo_status(e.text("status").as_deref()),
        priority: e.text("priority").map(Raw::new),
    });
    out.push(Body::PlanUpdate(PlanUpdate { entries: entries.collect() }));
}

fn artifact(object: Json<'_>, out: &mut AdapterOutput) {
    let artifact = object.get("artifact");
    let get = |names: &[&str]| artifact.and_then(|a| a.any(names)).and_then(Json::scalar);
    let text = |names: &[&str]| Raw::new(get(names).unwrap_or_default());
    out.push(Body::ArtifactCreated(Box::new(Artifact {
        artifact: ArtifactInfo {
            id: text(&["id"]),
            r#type: text(&["type"]),
            name: text(&["name"]),
            path: text(&["path"]),
            preview_url: get(&["preview_url", "previewUrl"])
                .filter(|u| !u.is_empty())
                .map(Raw::new),
        },
    })));
}
