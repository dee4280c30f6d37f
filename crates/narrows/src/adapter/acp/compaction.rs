//! Compactions: the agent replaces its context by a summary. Each has an id, and a summary that may
//! stream.

use super::AcpParser;
use super::content::content_parts;
use super::fields::MessageFields;
use crate::adapter::output::AdapterOutput;
use crate::bounded_map::BoundedMap;
use crate::json::{Json, Kind};
use crate::model::event::{Body, Compaction, Notice};
use crate::model::tool::ToolStatus;
use crate::sanitize::Raw;

/// The number of compactions that are tracked.
const MAX_COMPACTIONS: usize = 8;
/// The length of a summary in bytes.
const MAX_SUMMARY_BYTES: usize = 256 << 10;
/// How often one compaction is emitted before its turn ends: each event contains the full summary.
const MAX_EMITTED: u8 = 8;

/// A compaction of which at least one update arrived.
#[derive(Debug, Default)]
pub(super) struct CompactionState {
    /// The summary so far.
    pub(super) text: String,
    /// It has ended, and all of it was emitted.
    pub(super) done: bool,
    /// How often it was emitted as completed.
    pub(super) emitted: u8,
}

/// The status of a compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompactionStatus {
    Running,
    Completed,
    /// It has a summary, but nothing says that the summary is complete.
    CutOff,
    Failed,
    Cancelled,
}

impl AcpParser {
    /// Handles `compaction_update`, `compaction_summary_chunk` and similar updates.
    pub(super) fn compaction_update(
        &mut self,
        kind: &str,
        object: Json<'_>,
        f: &MessageFields<'_>,
        out: &mut AdapterOutput,
    ) {
        let get = |names: &[&str]| object.any(names);
        let id = get(&["compactionId", "compaction_id", "id"]).and_then(Json::scalar);
        let id = id.unwrap_or_default();
        let is_chunk = kind.ends_with("chunk");
        if is_chunk {
            let chunk = content_parts(f.content(), out).text;
            self.edit_summary(&id, |text| text.push_str(&chunk));
        } else if let Some(content) = get(&["summary", "text", "content"]) {
            let full = content_parts(Some(content), out).text;
            self.edit_summary(&id, |text| *text = full.to_string());
        } else if object.fields().any(|(key, value)| key == "summary" && value.is_null()) {
            self.edit_summary(&id, String::clear);
        }
        let (known, is_new) = self.compactions.get_or_insert(&id);
        let status = if is_chunk { None } else { parse_status(kind, object, &known.text) };
        let status = status.unwrap_or(CompactionStatus::Running);
        let error = get(&["error", "message"]).and_then(|e| {
            e.owned().or_else(|| e.get("message").and_then(Json::owned)).filter(|e| !e.is_empty())
        });
        let metadata = (
            get(&["trigger", "reason"]).and_then(Json::owned),
            get(&["tokensBefore", "tokens_before", "preTokens", "pre_tokens"]).and_then(Json::u64),
        );
        self.open_requests += u32::from(is_new && !known.done);
        self.emit_compaction(&id, status, error, metadata, out);
    }

    /// Handles a compaction that an agent reports as a tool call of that title; none when the call is
    /// another one.
    pub(super) fn compaction_call(
        &mut self,
        id: &str,
        f: &MessageFields<'_>,
        out: &mut AdapterOutput,
    ) -> Option<String> {
        let is_tracked = self.compactions.contains_key(id);
        if !is_tracked && !self.is_compaction_call(id, f) {
            return None;
        }
        let text = content_parts(f.content(), out).text;
        if !text.is_empty() {
            self.edit_summary(id, |summary| *summary = text.to_string());
        }
        self.open_requests += u32::from(self.compactions.get_or_insert(id).1);
        let call_status = f.status().and_then(Json::str).and_then(|s| ToolStatus::parse(&s));
        let status = match call_status {
            Some(ToolStatus::Completed) => CompactionStatus::Completed,
            Some(ToolStatus::Cancelled) => CompactionStatus::Cancelled,
            Some(ToolStatus::Failed) => CompactionStatus::Failed,
            _ => CompactionStatus::Running,
        };
        self.emit_compaction(id, status, None, (None, None), out);
        Some(id.to_owned())
    }

    fn is_compaction_call(&self, id: &str, f: &MessageFields<'_>) -> bool {
        f.title().and_then(Json::str).as_deref() == Some("Compact conversation")
            && f.name().or_else(|| f.tool_name()).is_none()
            && f.meta().is_none_or(|m| m.get("claudeCode").is_none())
            && !self.tool_calls.contains_key(id)
    }

    fn edit_summary(&mut self, id: &str, edit: impl FnOnce(&mut String)) {
        let (known, is_new) = self.compactions.get_or_insert(id);
        // An edit after the end is emitted with the next end.
        self.open_requests += u32::from(std::mem::take(&mut known.done) || is_new);
        edit(&mut known.text);
        if known.text.len() > MAX_SUMMARY_BYTES {
            let end = (0..=MAX_SUMMARY_BYTES).rev().find(|at| known.text.is_char_boundary(*at));
            known.text.truncate(end.unwrap_or(0));
            known.text.push('…');
        }
    }

    /// Emits the result of a compaction, once there is one.
    fn emit_compaction(
        &mut self,
        id: &str,
        status: CompactionStatus,
        error: Option<String>,
        (trigger, tokens_before): (Option<String>, Option<u64>),
        out: &mut AdapterOutput,
    ) {
        if status == CompactionStatus::Running {
            out.ignore();
            return;
        }
        let (known, _) = self.compactions.get_or_insert(id);
        let has_summary = matches!(status, CompactionStatus::Completed | CompactionStatus::CutOff);
        if has_summary && known.emitted >= MAX_EMITTED {
            out.ignore();
            return;
        }
        known.emitted += 1;
        if !std::mem::replace(&mut known.done, true) {
            self.open_requests = self.open_requests.saturating_sub(1);
        }
        let text = Raw::new(known.text.trim());
        if has_summary {
            let id = Some(id).filter(|id| !id.is_empty()).map(Raw::new);
            let trigger = trigger.map(Raw::new);
            let unfinished = status == CompactionStatus::CutOff;
            let summary = Compaction { id, text, trigger, tokens_before, unfinished };
            out.push(Body::Compaction(Box::new(summary)));
        } else {
            let (kind, message) = match status {
                CompactionStatus::Cancelled => {
                    ("info", "The compaction of the conversation was cancelled.")
                }
                _ => ("warning", "The conversation could not be compacted."),
            };
            let text = Raw::new(error.unwrap_or_else(|| message.to_owned()));
            out.push(Body::Notice(Notice { kind: Raw::new(kind), text }));
        }
        // The next compaction without an id is another one.
        if id.is_empty() || !has_summary {
            self.compactions.remove(id);
        }
    }

    /// Closes the open compactions at the end of a turn. At the end of the input only those with a
    /// summary are emitted.
    pub(super) fn close_compactions(&mut self, turn_ended: bool, out: &mut AdapterOutput) {
        for id in self.compactions.keys_where(|known| !known.done) {
            let known = self.compactions.get(&id);
            let has_summary = known.is_some_and(|k| !k.text.trim().is_empty());
            if !turn_ended && !has_summary {
                continue;
            }
            let status =
                if has_summary { CompactionStatus::CutOff } else { CompactionStatus::Cancelled };
            self.compactions.get_or_insert(&id).0.emitted = 0;
            self.emit_compaction(&id, status, None, (None, None), out);
        }
    }
}

pub(super) fn no_compactions() -> BoundedMap<CompactionState> {
    BoundedMap::new(MAX_COMPACTIONS)
}

/// Parses the status of a compaction from an update.
fn parse_status(kind: &str, object: Json<'_>, summary: &str) -> Option<CompactionStatus> {
    let status = object.any(&["status", "state", "phase"]).and_then(Json::str);
    let is = |words: &[&str]| match &status {
        Some(status) => words.contains(&status.as_ref()),
        None => words.iter().any(|word| kind.ends_with(word)),
    };
    if is(&["failed", "error"]) {
        Some(CompactionStatus::Failed)
    } else if is(&["cancelled", "canceled"]) {
        Some(CompactionStatus::Cancelled)
    } else if is(&["end", "ended", "complete", "completed", "done", "finished"]) {
        Some(CompactionStatus::Completed)
    } else if status.is_none() && !summary.is_empty() {
        Some(CompactionStatus::CutOff)
    } else {
        status.map(|_| CompactionStatus::Running)
    }
}

/// Emits a notice of the agent's program, which is not text of the model.
pub(super) fn notice(object: Json<'_>, f: &MessageFields<'_>, out: &mut AdapterOutput) {
    let part = |names: &[&str]| {
        object.any(names).filter(|t| t.kind() == Kind::String).and_then(Json::owned)
    };
    let content = content_parts(f.content(), out).text.to_string();
    let parts =
        [part(&["title"]), Some(content), part(&["description"]), part(&["message", "text"])];
    let parts = parts.into_iter().flatten().filter(|p| !p.trim().is_empty());
    let text = parts.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        out.ignore();
        return;
    }
    let kind = object.any(&["severity", "level", "kind"]).and_then(Json::owned);
    let kind = Raw::new(kind.unwrap_or_else(|| "info".to_owned()));
    out.push(Body::Notice(Notice { kind, text: Raw::new(text) }));
}
