//! Compactions: the agent shortens what it remembers. Each has an id, and a summary that may stream.

use super::Acp;
use super::content::words;
use super::fields::Fields;
use crate::adapter::Yield;
use crate::event::{Body, Note, Summary};
use crate::json::{Json, Kind};
use crate::recent::Recent;
use crate::sanitize::Raw;
use crate::tool::ToolStatus;

/// Compactions that are remembered, and bytes of a summary.
const MAX_KNOWN: usize = 8;
const MAX_SUMMARY: usize = 256 << 10;
/// How often one is told before its turn ends: each time costs all of its summary.
const MAX_TOLD: u8 = 8;

/// A compaction that was told of.
#[derive(Debug, Default)]
pub(super) struct Compacting {
    /// Its summary so far.
    pub(super) text: String,
    /// It is over, and all of it was told.
    pub(super) done: bool,
    /// How often it was told, whole.
    pub(super) told: u8,
}

/// How a compaction stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Running,
    Completed,
    /// There are words of it, but nothing says that these are all.
    CutOff,
    Failed,
    Cancelled,
}

impl Acp {
    /// `compaction_update`, `compaction_summary_chunk` and the like.
    pub(super) fn compaction(
        &mut self,
        kind: &str,
        object: Json<'_>,
        f: &Fields<'_>,
        out: &mut Yield,
    ) {
        let get = |names: &[&str]| object.any(names);
        let id = get(&["compactionId", "compaction_id", "id"]).and_then(Json::scalar);
        let id = id.unwrap_or_default();
        let is_chunk = kind.ends_with("chunk");
        if is_chunk {
            let more = words(f.content(), out).text;
            self.summarize(&id, |text| text.push_str(&more));
        } else if let Some(given) = get(&["summary", "text", "content"]) {
            let all = words(Some(given), out).text;
            self.summarize(&id, |text| *text = all.to_string());
        } else if object.fields().any(|(key, value)| key == "summary" && value.is_null()) {
            self.summarize(&id, String::clear);
        }
        let (known, new) = self.compacting.open(&id);
        let stands = if is_chunk { None } else { stands(kind, object, &known.text) };
        let stands = stands.unwrap_or(Stands::Running);
        let error = get(&["error", "message"]).and_then(|e| {
            e.owned().or_else(|| e.get("message").and_then(Json::owned)).filter(|e| !e.is_empty())
        });
        let about = (
            get(&["trigger", "reason"]).and_then(Json::owned),
            get(&["tokensBefore", "tokens_before", "preTokens", "pre_tokens"]).and_then(Json::u64),
        );
        self.waiting += u32::from(new && !known.done);
        self.settle(&id, stands, error, about, out);
    }

    /// A compaction, which some agents tell as a call of that title. None when it is another call.
    pub(super) fn compacts(&mut self, id: &str, f: &Fields<'_>, out: &mut Yield) -> Option<String> {
        let known = self.compacting.has(id);
        if !known && !self.is_compaction(id, f) {
            return None;
        }
        let text = words(f.content(), out).text;
        if !text.is_empty() {
            self.summarize(id, |all| *all = text.to_string());
        }
        self.waiting += u32::from(self.compacting.open(id).1);
        let status = f.status().and_then(Json::str).and_then(|s| ToolStatus::parse(&s));
        let stands = match status {
            Some(ToolStatus::Completed) => Stands::Completed,
            Some(ToolStatus::Cancelled) => Stands::Cancelled,
            Some(ToolStatus::Failed) => Stands::Failed,
            _ => Stands::Running,
        };
        self.settle(id, stands, None, (None, None), out);
        Some(id.to_owned())
    }

    fn is_compaction(&self, id: &str, f: &Fields<'_>) -> bool {
        f.title().and_then(Json::str).as_deref() == Some("Compact conversation")
            && f.name().or_else(|| f.tool_name()).is_none()
            && f.meta().is_none_or(|m| m.get("claudeCode").is_none())
            && !self.calls.has(id)
    }

    fn summarize(&mut self, id: &str, change: impl FnOnce(&mut String)) {
        let (known, new) = self.compacting.open(id);
        // What comes after its end is told when there is an end again.
        self.waiting += u32::from(std::mem::take(&mut known.done) || new);
        change(&mut known.text);
        if known.text.len() > MAX_SUMMARY {
            let end = (0..=MAX_SUMMARY).rev().find(|at| known.text.is_char_boundary(*at));
            known.text.truncate(end.unwrap_or(0));
            known.text.push('…');
        }
    }

    /// Tells what came of a compaction, when something did.
    fn settle(
        &mut self,
        id: &str,
        stands: Stands,
        error: Option<String>,
        (trigger, tokens_before): (Option<String>, Option<u64>),
        out: &mut Yield,
    ) {
        if stands == Stands::Running {
            out.quiet += 1;
            return;
        }
        let (known, _) = self.compacting.open(id);
        let summed_up = matches!(stands, Stands::Completed | Stands::CutOff);
        if summed_up && known.told >= MAX_TOLD {
            out.quiet += 1;
            return;
        }
        known.told += 1;
        if !std::mem::replace(&mut known.done, true) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        let text = Raw::new(known.text.trim());
        if summed_up {
            let id = Some(id).filter(|id| !id.is_empty()).map(Raw::new);
            let trigger = trigger.map(Raw::new);
            let unfinished = stands == Stands::CutOff;
            let summary = Summary { id, text, trigger, tokens_before, unfinished };
            out.push(Body::Compaction(Box::new(summary)));
        } else {
            let (kind, words) = match stands {
                Stands::Cancelled => ("info", "The compaction of the conversation was cancelled."),
                _ => ("warning", "The conversation could not be compacted."),
            };
            let text = Raw::new(error.unwrap_or_else(|| words.to_owned()));
            out.push(Body::Notice(Note { kind: Raw::new(kind), text }));
        }
        // Without an id, the next one is another.
        if id.is_empty() || !summed_up {
            self.compacting.take(id);
        }
    }

    /// The turn is over: what was not compacted by now will not be. At the end of the input alone,
    /// only a summary that was not told yet is.
    pub(super) fn end_compactions(&mut self, turn: bool, out: &mut Yield) {
        for id in self.compacting.keys(|known| !known.done) {
            let has_words = self.compacting.get(&id).is_some_and(|k| !k.text.trim().is_empty());
            if !turn && !has_words {
                continue;
            }
            let stands = if has_words { Stands::CutOff } else { Stands::Cancelled };
            self.compacting.open(&id).0.told = 0;
            self.settle(&id, stands, None, (None, None), out);
        }
    }
}

pub(super) fn none_yet() -> Recent<Compacting> {
    Recent::new(MAX_KNOWN)
}

/// What an update says of how its compaction stands.
fn stands(kind: &str, object: Json<'_>, summary: &str) -> Option<Stands> {
    let status = object.any(&["status", "state", "phase"]).and_then(Json::str);
    let is = |ends: &[&str]| match &status {
        Some(status) => ends.contains(&status.as_ref()),
        None => ends.iter().any(|end| kind.ends_with(end)),
    };
    if is(&["failed", "error"]) {
        Some(Stands::Failed)
    } else if is(&["cancelled", "canceled"]) {
        Some(Stands::Cancelled)
    } else if is(&["end", "ended", "complete", "completed", "done", "finished"]) {
        Some(Stands::Completed)
    } else if status.is_none() && !summary.is_empty() {
        Some(Stands::CutOff)
    } else {
        status.map(|_| Stands::Running)
    }
}

/// Something that the agent's program says, not the model.
pub(super) fn notice(object: Json<'_>, f: &Fields<'_>, out: &mut Yield) {
    let part = |names: &[&str]| {
        object.any(names).filter(|t| t.kind() == Kind::String).and_then(Json::owned)
    };
    let said = words(f.content(), out).text.to_string();
    let parts = [part(&["title"]), Some(said), part(&["description"]), part(&["message", "text"])];
    let parts = parts.into_iter().flatten().filter(|p| !p.trim().is_empty());
    let text = parts.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        out.quiet += 1;
        return;
    }
    let kind = object.any(&["severity", "level", "kind"]).and_then(Json::owned);
    let kind = Raw::new(kind.unwrap_or_else(|| "info".to_owned()));
    out.push(Body::Notice(Note { kind, text: Raw::new(text) }));
}
