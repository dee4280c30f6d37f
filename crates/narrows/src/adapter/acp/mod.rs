//! The Agent Client Protocol: the JSON-RPC lines of an agent or of both directions, the lines
//! `{ts, dir, run, msg}` of a recorder, the packets of a back end that relays them (live), and the
//! database rows in which it stores them.
//!
//! The discriminator is matched here and not by a closed union: an unknown kind is an event, never
//! an error. Read next: `rpc.rs` for requests, `update.rs` for session updates.

mod compaction;
mod content;
mod diffs;
mod elicitation;
mod envelope;
mod fields;
mod permission;
mod restore;
mod rpc;
mod session_info;
mod tool_call;
mod tool_output;
mod update;

pub(super) use envelope::{EnvelopeKeys, packet_shape};

use super::elicitation_form::ElicitationForm;
use super::output::AdapterOutput;
use super::{Format, FormatParser, salvage};
use crate::bounded_map::BoundedMap;
use crate::frame::packets::Packet;
use crate::json::{Index, Json, Kind};
use crate::model::change::Items;
use crate::model::time::Time;
use crate::sanitize::Raw;
use fields::MessageFields;
use tool_call::ToolIdentity;

/// The number of calls whose identity is tracked.
const MAX_CALLS: usize = crate::limits::MAX_TRACKED_CALLS;
/// The number of requests of each sort that are tracked until their response.
const MAX_PENDING: usize = 1024;

/// The keys that a recorder writes in place of a message, with their meaning.
const MESSAGE_SUBSTITUTES: [(&str, &str); 3] =
    [("text", "not a message"), ("long", "line too long"), ("lost", "not recorded")];

/// The sender of a message, if the recorder knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageSender {
    Client,
    Agent,
    Unknown,
}

/// The parser of the packets of one session.
#[derive(Debug)]
pub(super) struct AcpParser {
    index: Index,
    tool_calls: BoundedMap<ToolIdentity>,
    /// The agent process, if the recorder knows it: each numbers its requests from the start.
    process: Option<Box<str>>,
    /// The unique name of the request that the message is, or is about: agents reuse ids.
    request_name: Option<Box<str>>,
    /// The requests of the client, by id.
    client_requests: BoundedMap<rpc::ClientRequest>,
    /// The permission requests of the agent, by id.
    permissions: BoundedMap<permission::PendingPermission>,
    /// The elicitation requests of the agent, by id.
    forms: BoundedMap<ElicitationForm>,
    /// The other requests of the agent, whose responses are not part of the transcript.
    other_requests: BoundedMap<()>,
    /// The high surrogate of a pair that was split over two chunks, and its text block.
    pending_surrogate: Option<(u32, update::TextBlockKey)>,
    /// The id of the last text block.
    last_block: Raw,
    /// The compactions, by id.
    compactions: BoundedMap<compaction::CompactionState>,
    /// Codex reported a failure; its message follows as text.
    codex_failing: bool,
    /// The number of open requests of this turn, other than the prompt.
    open_requests: u32,
    /// The time of the open prompt before a restart.
    prompt_time: Option<Time>,
    /// A prompt was open before a restart; the id of its request is not known.
    has_restored_prompt: bool,
    line: u64,
}

impl Default for AcpParser {
    fn default() -> Self {
        AcpParser {
            index: Index::default(),
            tool_calls: BoundedMap::new(MAX_CALLS),
            process: None,
            request_name: None,
            client_requests: BoundedMap::new(MAX_PENDING),
            permissions: BoundedMap::new(MAX_PENDING),
            forms: BoundedMap::new(MAX_PENDING),
            other_requests: BoundedMap::new(MAX_PENDING),
            pending_surrogate: None,
            last_block: Raw::default(),
            compactions: compaction::no_compactions(),
            codex_failing: false,
            open_requests: 0,
            prompt_time: None,
            has_restored_prompt: false,
            line: 0,
        }
    }
}

impl FormatParser for AcpParser {
    fn format(&self) -> Format {
        Format::Acp
    }

    fn push(&mut self, packet: &Packet<'_>, out: &mut AdapterOutput) {
        self.line = packet.position.line;
        let mut index = std::mem::take(&mut self.index);
        salvage::for_each_object(&mut index, packet, out, |object, out| {
            self.object(object, packet, out);
        });
        self.index = index;
    }

    fn finish(&mut self, out: &mut AdapterOutput) {
        self.flush_surrogate(out);
        self.close_compactions(false, out);
    }

    fn restore(&mut self, items: &Items, since: u64) {
        self.restore_from_items(items, since);
    }

    fn is_quiescent(&self) -> bool {
        self.has_no_open_state()
    }
}

impl AcpParser {
    /// Handles one object: removes the envelope around the message.
    fn object(&mut self, object: Json<'_>, packet: &Packet<'_>, out: &mut AdapterOutput) {
        let f = MessageFields::read(object);
        if let Some(time) = f.time().and_then(Json::str).and_then(|t| Time::parse(&t)) {
            out.time = Some(time.arrived_with(out.time.as_ref()));
        }
        if let Some(msg) = f.msg().filter(|m| m.kind() == Kind::Object) {
            let sender = match f.dir().and_then(Json::str).as_deref() {
                Some("agent->client") => MessageSender::Agent,
                Some("client->agent") => MessageSender::Client,
                _ => MessageSender::Unknown,
            };
            self.enter_process(f.run(), out);
            self.request_name = f.request().and_then(Json::str).map(|name| name.as_ref().into());
            self.message(msg, &MessageFields::read(msg), sender, out);
            self.request_name = None;
            return;
        }
        if f.run().is_some() && f.dir().is_some() {
            // The recorder could not record the message.
            let substitute =
                MESSAGE_SUBSTITUTES.into_iter().find(|(key, _)| object.get(key).is_some());
            if let Some((_, reason)) = substitute {
                return out.malformed(packet, reason, 0);
            }
        }
        if let Some(stored) = f.stored() {
            return self.stored_row(object, stored, out);
        }
        self.message(object, &f, MessageSender::Unknown, out);
    }

    /// Drops the open requests when another agent process starts: it responds to none of them.
    fn enter_process(&mut self, process: Option<Json<'_>>, out: &mut AdapterOutput) {
        let process = process.and_then(Json::scalar);
        if process.as_deref() == self.process.as_deref() {
            return;
        }
        self.flush_surrogate(out);
        self.codex_failing = false;
        self.open_requests = 0;
        let prefix = process.as_deref().map(|process| format!("{process}."));
        let is_gone = |id: &str| prefix.as_ref().is_none_or(|prefix| !id.starts_with(prefix));
        self.cancel_permissions(is_gone, out);
        // Before the first process all requests are restored ones, which may be its own.
        if self.process.is_some() {
            self.client_requests = BoundedMap::new(MAX_PENDING);
            self.forms = BoundedMap::new(MAX_PENDING);
            self.other_requests = BoundedMap::new(MAX_PENDING);
            self.prompt_time = None;
            self.has_restored_prompt = false;
        }
        self.process = process.map(|process| process.as_ref().into());
    }

    fn message(
        &mut self,
        object: Json<'_>,
        f: &MessageFields<'_>,
        sender: MessageSender,
        out: &mut AdapterOutput,
    ) {
        if let Some(method) = f.method().and_then(Json::str) {
            return self.request(&method, object, f, sender, out);
        }
        // A store of messages may omit the method when all of them have the same.
        let in_params = || f.params().and_then(|p| p.get("update"));
        if let Some(update) = f.update().or_else(in_params).filter(|u| u.kind() == Kind::Object) {
            return self.update(update, &MessageFields::read(update), out);
        }
        let is_response =
            f.result().is_some() || f.error().is_some_and(|e| e.kind() == Kind::Object);
        // A response may have neither a result nor an error.
        let is_response = is_response
            || sender == MessageSender::Agent
                && f.error().is_none()
                && (self.has_restored_prompt || self.is_client_request(f));
        if f.kind().is_none() && f.session_update().is_none() && f.id().is_some() && is_response {
            return self.response(object, f, sender, out);
        }
        self.update(object, f, out);
    }

    /// Handles a database row, which contains the packet in its metadata.
    fn stored_row(&mut self, row: Json<'_>, stored: Json<'_>, out: &mut AdapterOutput) {
        let times = [stored.any(&["timestamp", "ts"]), row.any(&["created_at", "createdAt"])];
        let time = times.into_iter().flatten().filter_map(Json::str).find_map(|t| Time::parse(&t));
        let time = time.map(|time| time.arrived_with(out.time.as_ref()));
        out.time = time.or(out.time.take());
        let role = row.any(&["type", "role"]).and_then(Json::str);
        let f = MessageFields::read(stored);
        if role.as_deref() == Some("user") {
            let content = f.content().or_else(|| row.any(&["content", "text", "message"]));
            rpc::prompt(content, out);
            return;
        }
        self.message(stored, &f, MessageSender::Unknown, out);
    }
}
