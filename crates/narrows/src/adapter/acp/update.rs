//! Updates of a session, by kind.

use super::compaction::notice;
use super::content::{Words, words};
use super::fields::Fields;
use super::rpc::{failure, response, unknown};
use super::tool::Said;
use super::{Acp, info, rpc};
use crate::adapter::Yield;
use crate::adapter::input::todo_status;
use crate::adapter::internal::{Internal, classify};
use crate::event::{
    Artifact, ArtifactInfo, Body, Chunk, Failure, Message, Note, Origin, Plan, PlanEntry, Summary,
};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;

/// What tells text blocks apart.
pub(super) type BlockKey = (Speaker, Option<Raw>);

/// Whose text a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

impl Acp {
    /// One update: the type is found by `type`, else by `sessionUpdate`.
    pub(super) fn update(&mut self, object: Json<'_>, f: &Fields<'_>, out: &mut Yield) {
        if self.half.is_some() && f.content().is_none() {
            self.lone_half(out);
        }
        let by_type = f.kind().and_then(Json::str);
        let by_update = f.session_update().and_then(Json::str);
        let known = by_type.as_deref().is_some_and(|k| self.dispatch(k, object, f, out))
            || by_update.as_deref().is_some_and(|k| self.dispatch(k, object, f, out));
        if !known {
            let kind = by_type.or(by_update).unwrap_or_else(|| "untyped".into());
            unknown(&kind, object, out);
        }
    }

    /// Reads an update of a known kind; tells whether the kind is known.
    fn dispatch(&mut self, kind: &str, object: Json<'_>, f: &Fields<'_>, out: &mut Yield) -> bool {
        match kind {
            "agent_message_chunk" => self.chunk(Speaker::Agent, f, false, out),
            "agent_message" => self.chunk(Speaker::Agent, f, true, out),
            "agent_thought_chunk" => self.chunk(Speaker::Thought, f, false, out),
            "agent_thought" => self.chunk(Speaker::Thought, f, true, out),
            "user_message_chunk" => self.chunk(Speaker::User, f, false, out),
            "user_message" | "user" => rpc::prompt(f.content().or(object.get("text")), out),
            "tool_call" | "tool_call_start" => {
                self.tool(f, Said::Start, out);
            }
            "tool_call_update" | "tool_call_progress" => {
                self.tool(f, Said::Progress, out);
            }
            "plan" | "agent_plan_update" => plan(object, out),
            "prompt_response" => {
                self.end_compactions(true, out);
                rpc::cut_off(Some(object), out);
                out.push(Body::PromptResponse(Box::new(response(Some(object), None))))
            }
            "artifact_created" => artifact(object, out),
            "error" => out.push(Body::Error(Box::new(failure(object, object.get("details"))))),
            "available_commands_update" => info::commands(object, out),
            "current_mode_update" => {
                info::mode(object.any(&["currentModeId", "current_mode_id"]), out);
            }
            "config_option_update" => info::config(object, out),
            "session_info_update" => {
                let status = object.path(&["_meta", "codex", "threadStatus", "type"]);
                let status = status.and_then(Json::str);
                if let Some(status) = &status {
                    self.failing = status == "systemError";
                }
                info::title(object, out);
            }
            "usage_update" => info::usage(object, out),
            "notice" => notice(object, f, out),
            "plan_update" => plan_update(object, out),
            // What was planned stays in the transcript.
            "plan_removed" => out.quiet += 1,
            kind if kind.starts_with("compaction") => self.compaction(kind, object, f, out),
            _ => return false,
        }
        true
    }

    fn chunk(&mut self, speaker: Speaker, f: &Fields<'_>, whole: bool, out: &mut Yield) {
        let mut words = words(f.content(), out);
        let block_id = f.message_id().and_then(Json::scalar).map(|id| self.block_id(&id));
        if self.half.is_some() || words.last.is_some_and(Json::escaped) {
            self.join_halves((speaker, block_id.as_ref()), &mut words);
        }
        if words.text.is_empty() && words.images.is_empty() {
            out.quiet += 1;
            return;
        }
        if self.is_aside(speaker, f, &words.text, out) {
            return;
        }
        let text = Raw::new(words.text);
        let images = words.images;
        let parent = f.meta().and_then(|m| m.path(&["claudeCode", "parentToolUseId"]));
        let parent = parent.and_then(Json::str).map(Raw::new);
        let chunk = |text| {
            let (images, block_id) = (images.clone(), block_id.clone());
            Chunk { text, images, block_id, whole, ..Chunk::default() }
        };
        let body = match speaker {
            Speaker::Agent => Body::TextChunk(chunk(text)),
            Speaker::Thought => Body::ThinkingChunk(chunk(text)),
            Speaker::User => {
                let (origin, whole) = (Origin::Agent, false);
                Body::UserMessage(Message { text, images, origin, block_id, whole })
            }
        };
        out.push_in(parent, body);
    }

    /// The first half of a character whose second half will not come.
    pub(super) fn lone_half(&mut self, out: &mut Yield) {
        let Some((_, (speaker, block_id))) = self.half.take() else {
            return;
        };
        let text = Raw::new("\u{FFFD}");
        let chunk = Chunk { text, block_id, ..Chunk::default() };
        match speaker {
            Speaker::Agent => out.push(Body::TextChunk(chunk)),
            Speaker::Thought => out.push(Body::ThinkingChunk(chunk)),
            Speaker::User => {}
        }
    }

    /// The id of a text block. Most chunks belong to the block of the one before.
    fn block_id(&mut self, id: &str) -> Raw {
        if self.last_block.peek() != id {
            self.last_block = Raw::new(id);
        }
        self.last_block.clone()
    }

    /// Text that is not what it stands for: internal text, and notices in the agent's voice.
    fn is_aside(&mut self, speaker: Speaker, f: &Fields<'_>, text: &str, out: &mut Yield) -> bool {
        let note =
            |kind: &str| Body::Notice(Note { kind: Raw::new(kind), text: Raw::new(text.trim()) });
        match speaker {
            Speaker::User if !is_for_user(f.content()) => out.quiet += 1,
            Speaker::User => match classify(text) {
                Some(Internal::Interrupted) => out.push(note("interrupted")),
                Some(Internal::Compaction) => {
                    let text = Raw::new(text.trim());
                    out.push(Body::Compaction(Box::new(Summary {
                        unfinished: false,
                        id: None,
                        text,
                        trigger: None,
                        tokens_before: None,
                    })));
                }
                Some(
                    Internal::Context
                    | Internal::Task
                    | Internal::Command
                    | Internal::CommandOutput,
                ) => out.quiet += 1,
                None => return false,
            },
            Speaker::Agent => {
                // Gemini tells the mode in its own voice.
                if let Some(mode) = text.strip_prefix("[MODE_UPDATE] ") {
                    let info = crate::event::Info {
                        mode: Some(Raw::new(mode.trim())),
                        ..Default::default()
                    };
                    out.push(Body::SessionInfo(Box::new(info)));
                    return true;
                }
                // Codex has no error of its own: it says what failed, in a text without an id.
                if f.message_id().is_none() {
                    if std::mem::take(&mut self.failing) {
                        let message = Raw::new(text.trim());
                        let (code, details, retryable) = (None, None, None);
                        let failure = Failure { message, code, details, retryable, is_end: false };
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

    /// Mends a character whose two halves came in two chunks.
    fn join_halves(&mut self, key: (Speaker, Option<&Raw>), words: &mut Words<'_>) {
        let raw = words.last.filter(|j| j.escaped()).map(Json::raw);
        if let Some((high, of)) = self.half.take() {
            let low = raw.and_then(|raw| unit_at(raw, 0)).filter(|u| (0xDC00..=0xDFFF).contains(u));
            let same = of.0 == key.0 && of.1.as_ref() == key.1;
            let whole = low
                .filter(|_| same)
                .and_then(|low| char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)));
            let bad = char::REPLACEMENT_CHARACTER;
            let rest = words.text.strip_prefix(bad).filter(|_| whole.is_some());
            // A half that stays alone is shown as what it is: no character.
            words.text =
                ecow::eco_format!("{}{}", whole.unwrap_or(bad), rest.unwrap_or(&words.text));
        }
        let Some(raw) = raw else { return };
        let slashes =
            |at: usize| raw.as_bytes()[..at].iter().rev().take_while(|c| **c == b'\\').count();
        if let Some(at) = raw.len().checked_sub(6)
            && let Some(high @ 0xD800..=0xDBFF) = unit_at(raw, at)
            && slashes(at) % 2 == 0
            && words.text.ends_with(char::REPLACEMENT_CHARACTER)
        {
            words.text.pop();
            self.half = Some((high, (key.0, key.1.cloned())));
        }
    }
}

/// Whether a packet of this kind can be nothing but one of a back end that relays the protocol.
/// `user`, `error`, `plan` and the like are words of other agents too.
pub(in crate::adapter) fn is_own_update(kind: &str) -> bool {
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

/// Whether content is meant for the user's eyes too.
fn is_for_user(content: Option<Json<'_>>) -> bool {
    let audience = content.and_then(|c| c.path(&["annotations", "audience"]));
    audience.is_none_or(|list| list.items().any(|who| who.str().as_deref() == Some("user")))
}

/// The code unit of a `\u` escape at `at`.
fn unit_at(raw: &str, at: usize) -> Option<u32> {
    let hex = raw.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(hex, 16).ok()
}

/// A plan by its id: a list, else a text or a file that a person reads.
fn plan_update(object: Json<'_>, out: &mut Yield) {
    let given = object.get("plan").filter(|p| p.kind() == Kind::Object).unwrap_or(object);
    if given.get("entries").is_some() {
        return plan(given, out);
    }
    match given.any(&["content", "uri"]).and_then(Json::owned).filter(|t| !t.is_empty()) {
        Some(text) => {
            out.push(Body::Notice(Note { kind: Raw::new("plan"), text: Raw::new(text) }));
        }
        None => out.quiet += 1,
    }
}

fn plan(object: Json<'_>, out: &mut Yield) {
    let entries = object.get("entries").into_iter().flat_map(Json::items);
    let entries = entries.filter(|e| e.kind() == Kind::Object).map(|e| PlanEntry {
        content: Raw::new(e.text("content").unwrap_or_default()),
        status: todo_status(e.text("status").as_deref()),
        priority: e.text("priority").map(Raw::new),
    });
    out.push(Body::PlanUpdate(Plan { entries: entries.collect() }));
}

fn artifact(object: Json<'_>, out: &mut Yield) {
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
