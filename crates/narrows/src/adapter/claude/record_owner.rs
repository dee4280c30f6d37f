//! Determines whether a record belongs to the session or to a subagent.

use super::ClaudeParser;
use super::record::{ClaudeRecord, ContentBlocks};
use crate::frame::packets::ORPHAN_PARENT;
use crate::json::Json;
use crate::sanitize::Raw;

/// The owner of a record.
pub(super) enum RecordOwner {
    Session,
    /// The subagent that this tool call started.
    Subagent(Raw),
    /// A subagent that no tool call started.
    Orphan,
}

impl ClaudeParser {
    /// Returns the owner of a record. `file_parent` is the call whose subagent's file contains it.
    pub(super) fn owner(&mut self, r: &ClaudeRecord<'_>, file_parent: Option<&str>) -> RecordOwner {
        match file_parent {
            Some(ORPHAN_PARENT) => return RecordOwner::Orphan,
            Some(call) => return RecordOwner::Subagent(Raw::new(call)),
            None => {}
        }
        if let Some(call) = r.parent.and_then(Json::str) {
            return RecordOwner::Subagent(Raw::new(call));
        }
        if !r.is_sidechain {
            self.has_own_record = true;
            return RecordOwner::Session;
        }
        let agent = r.agent.and_then(Json::str);
        if let Some(call) = agent.as_ref().and_then(|a| self.subagent_calls.get_mut(a)) {
            return RecordOwner::Subagent(Raw::new(call.as_str()));
        }
        // Old versions store the records of a subagent among the session's own; only the prompt
        // identifies the call that started it.
        if r.kind.as_deref() == Some("user")
            && let ContentBlocks::Text(text) = r.blocks()
            && let Some(prompt) = text.str()
            && let Some(call) = self.tasks.take_call_of_prompt(&prompt)
        {
            if let Some(agent) = agent {
                self.subagent_calls.get_or_insert(&agent).0.clone_from(&call);
                self.calls_matched_by_prompt.push(call.clone());
                return RecordOwner::Subagent(Raw::new(call));
            }
            self.sidechain_call = Some(call);
        }
        match &self.sidechain_call {
            Some(call) if agent.is_none() => RecordOwner::Subagent(Raw::new(call.as_str())),
            // The file of an orphan subagent alone is a session of its own.
            _ if self.has_own_record => RecordOwner::Orphan,
            _ => RecordOwner::Session,
        }
    }
}
