//! Claude Code: its live stream (`--output-format stream-json`) and its session files. Both contain
//! the same records with slightly different field names, so one parser handles both and their
//! transcripts cannot diverge. Read next: `record.rs`, then one file per kind of record.

mod assistant;
mod attachment;
mod control;
mod edit_diff;
mod form_differences;
mod image;
mod notebook_diff;
mod record;
mod record_kinds;
mod record_owner;
mod restore;
mod seen_records;
mod session_info;
mod stream_event;
mod suggestion;
mod system;
mod tasks;
mod tool_result;
mod tool_use;
mod truncation;
mod turn_end;
mod usage;
mod user;

pub(crate) use form_differences::FORM_DIFFERENCES;
pub use record_kinds::subagent_launch;
pub(super) use record_kinds::{detect, packet_shape};
pub use seen_records::record_hash;
pub use suggestion::describe_suggestion;
pub(crate) use usage::recorded_usage;

use super::elicitation_form::ElicitationForm;
use super::output::AdapterOutput;
use super::{Format, FormatParser, salvage};
use crate::bounded_map::BoundedMap;
use crate::frame::packets::{ORPHAN_PARENT, Packet};
use crate::json::{Index, Json};
use crate::model::change::Items;
use crate::model::event::{Body, SessionUpdate, UnknownPacket};
use crate::sanitize::{Raw, Tree};
use record::ClaudeRecord;
use record_owner::RecordOwner;

/// The number of calls whose identity is tracked.
const MAX_CALLS: usize = crate::limits::MAX_TRACKED_CALLS;
/// The number of other entries of each sort that are tracked.
const MAX_TRACKED: usize = 1024;

/// The parser of the packets of one session.
#[derive(Debug)]
pub(super) struct ClaudeParser {
    index: Index,
    /// The only session id that is parsed; none parses every session.
    session_filter: Option<String>,
    seen_records: seen_records::SeenRecords,
    line: u64,
    /// The session header so far.
    info: SessionUpdate<Raw>,
    tool_uses: BoundedMap<tool_use::ToolUseState>,
    /// The calls that started subagents, by the subagent's id.
    subagent_calls: BoundedMap<String>,
    /// The unfinished calls whose subagents were identified by their prompt.
    calls_matched_by_prompt: Vec<String>,
    /// The call of the subagent whose records are among the session's own, as in old files.
    sidechain_call: Option<String>,
    blocks: assistant::BlockCounter,
    truncation: truncation::TruncationState,
    held_text: Option<truncation::HeldProgramText>,
    streamed_messages: Vec<stream_event::StreamedMessage>,
    tasks: tasks::Tasks,
    control_requests: BoundedMap<control::PendingControlRequest>,
    /// The elicitation forms of MCP servers, by the id of their request.
    forms: BoundedMap<ElicitationForm>,
    /// The number of forms of this turn without an answer.
    open_forms: u32,
    /// A compaction whose summary has not arrived.
    compaction: Option<system::CompactBoundary>,
    /// The calls whose output was moved to a file, by the name of the file.
    offloaded_files: BoundedMap<String>,
    usage: usage::UsageTracker,
    /// The user gave the session its title.
    has_user_title: bool,
    /// The last record came from a session file.
    is_history: bool,
    /// A record of the session itself, not of a subagent, arrived.
    has_own_record: bool,
    /// A turn has started and no complete message of it has arrived.
    turn_started: bool,
    /// The last record was a message, of which more blocks may follow.
    message_open: bool,
    /// The last message of the turn, once the records of a session file show that it has ended;
    /// empty when the program ended the turn.
    last_message: Option<Box<str>>,
}

impl ClaudeParser {
    pub(super) fn new(session_filter: Option<String>) -> Self {
        ClaudeParser {
            index: Index::default(),
            session_filter,
            seen_records: seen_records::SeenRecords::default(),
            line: 0,
            info: SessionUpdate::default(),
            tool_uses: BoundedMap::new(MAX_CALLS),
            subagent_calls: BoundedMap::new(MAX_TRACKED),
            calls_matched_by_prompt: Vec::new(),
            sidechain_call: None,
            blocks: assistant::BlockCounter::default(),
            truncation: truncation::TruncationState::default(),
            held_text: None,
            streamed_messages: Vec::new(),
            tasks: tasks::Tasks::default(),
            control_requests: BoundedMap::new(MAX_TRACKED),
            forms: BoundedMap::new(MAX_TRACKED),
            open_forms: 0,
            compaction: None,
            offloaded_files: BoundedMap::new(MAX_TRACKED),
            usage: usage::UsageTracker::default(),
            has_user_title: false,
            is_history: false,
            has_own_record: false,
            turn_started: false,
            message_open: false,
            last_message: None,
        }
    }
}

impl FormatParser for ClaudeParser {
    fn format(&self) -> Format {
        Format::ClaudeStream
    }

    fn push(&mut self, packet: &Packet<'_>, out: &mut AdapterOutput) {
        self.line = packet.position.line;
        if record_kinds::is_bookkeeping_line(packet.bytes) {
            out.ignore();
            return;
        }
        let arrived = out.time.clone();
        let mut index = std::mem::take(&mut self.index);
        salvage::for_each_object(&mut index, packet, out, |object, out| {
            out.time.clone_from(&arrived);
            // The envelope of a recorder.
            let inner = object.get("msg").filter(|m| m.get("type").is_some());
            self.record(inner.unwrap_or(object), packet.parent, out);
        });
        self.index = index;
    }

    fn finish(&mut self, out: &mut AdapterOutput) {
        self.close_compaction(out);
        self.release_held_text(out);
    }

    fn restore(&mut self, items: &Items, since: u64) {
        self.restore_from_items(items, since);
    }

    fn is_quiescent(&self) -> bool {
        self.has_no_open_state()
    }

    fn take_seen_records(&mut self) -> Vec<u64> {
        self.seen_records.take_new()
    }

    fn restore_seen_records(&mut self, hashes: &mut dyn Iterator<Item = u64>) {
        for hash in hashes {
            self.seen_records.restore(hash);
        }
    }

    fn finish_replay(&mut self) {
        self.blocks.finish_replay();
    }

    fn is_history(&self) -> bool {
        self.is_history
    }

    fn push_offloaded(&mut self, name: &str, text: &str, out: &mut AdapterOutput) {
        self.offloaded_output(name, text, out);
    }
}

impl ClaudeParser {
    /// Parses one record; `file_parent` is the call whose subagent's file contains it.
    fn record(&mut self, object: Json<'_>, file_parent: Option<&str>, out: &mut AdapterOutput) {
        let r = ClaudeRecord::read(object);
        if let (Some(filter), Some(session)) = (&self.session_filter, r.session.and_then(Json::str))
            && !session.is_empty()
            && *filter != *session
        {
            out.ignore();
            return;
        }
        // An orphan's record does not count as seen: it may be repeated as that of a call's subagent.
        if file_parent != Some(ORPHAN_PARENT)
            && let Some(uuid) = r.uuid.and_then(Json::str)
            && !self.seen_records.insert(&uuid)
        {
            out.ignore();
            return;
        }
        self.is_history = r.is_history;
        let own_time = r.time.clone().map(|time| time.arrived_with(out.time.as_ref()));
        // A stored record without a time is older than its arrival.
        out.time = own_time.or(out.time.take().filter(|_| !r.is_history));
        let kind = r.kind.as_deref().unwrap_or_default();
        if record_kinds::is_bookkeeping(kind) {
            out.ignore();
            return;
        }
        let parent = match self.owner(&r, file_parent) {
            RecordOwner::Subagent(call) => Some(call),
            RecordOwner::Session => None,
            RecordOwner::Orphan => return self.orphan(&r, out),
        };
        self.resolve_held_text(&r, object, out);
        self.read_context(&r, parent.is_some(), out);
        if kind != "stream_event" {
            self.message_open = kind == "assistant";
        }
        match kind {
            "assistant" => self.assistant(&r, object, parent, out),
            "user" => self.user(&r, parent.as_ref(), out),
            "system" => self.system(&r, object, parent.as_ref(), out),
            "result" => {
                self.open_forms = 0;
                self.result(&r, object, out);
            }
            "stream_event" => self.stream_event(&r, parent.as_ref(), out),
            "attachment" => self.attachment(&r, object, parent.as_ref(), out),
            "control_request" | "control_response" | "control_cancel_request" => {
                self.control(kind, &r, object, out);
            }
            "cost-state" => self.cost_state(object, out),
            "summary" | "custom-title" | "ai-title" | "agent-name" | "pr-link" => {
                self.title(kind, object, out);
            }
            _ => unknown(if kind.is_empty() { "untyped" } else { kind }, object, out),
        }
    }
}

/// Emits a record of an unknown kind.
fn unknown(kind: &str, object: Json<'_>, out: &mut AdapterOutput) {
    let tree = Some(Tree::checked(object.raw()));
    out.push(Body::Unknown(UnknownPacket { kind: Raw::new(kind), tree }));
}
