//! Adapters parse the packets of a format into raw events: a folder for each family of formats.
//!
//! To add a format: a variant of [`Format`], a folder, and a line in `parser`, in `detect.rs` and in
//! `packet_shape.rs`.
//!
//! An adapter never fails and never shows text: a packet that cannot be parsed is a
//! [`Malformed`](crate::model::event::Malformed) event, one of an unknown kind an
//! [`UnknownPacket`](crate::model::event::UnknownPacket) event. Its state is bounded. It knows nothing of redaction and
//! of the fold. Read next: `format.rs`, then the `mod.rs` of a
//! format.

mod acp;
mod blob;
mod claude;
mod detect;
mod elicitation_form;
mod format;
mod output;
mod packet_shape;
mod salvage;
mod side;
mod stop_notice;
mod synthetic_text;
mod tool_input;
mod unsupported;

pub use blob::Blob;
pub(crate) use claude::FORM_DIFFERENCES;
pub(crate) use claude::recorded_usage;
pub use claude::{describe_suggestion, record_hash, subagent_launch};
#[doc(hidden)]
pub use claude::{
    describe_suggestion as suggested, record_hash as record_of, subagent_launch as launched,
};
pub use format::{Format, UnknownFormat};
pub use output::AdapterOutput;
pub(crate) use packet_shape::{PacketShape, is_name};
pub use side::Side;
pub use unsupported::looks_like;

use crate::frame::packets::Packet;
use crate::model::change::Items;

/// The parser of one family of formats. Its state belongs to one session.
trait FormatParser: std::fmt::Debug + Send + Sync {
    /// The format of the packets; formats that share a parser report one of them.
    fn format(&self) -> Format;

    /// Parses one packet.
    fn push(&mut self, packet: &Packet<'_>, out: &mut AdapterOutput);

    /// Ends the input.
    fn finish(&mut self, out: &mut AdapterOutput);

    /// Restores the state from the items before the order `since`; the packets of later items are
    /// parsed again.
    fn restore(&mut self, items: &Items, since: u64);

    /// Whether no message is half parsed, so that a restored parser would continue equally.
    fn is_quiescent(&self) -> bool;

    /// Returns the hashes of the record ids parsed since the last call, for formats that have such
    /// ids.
    fn take_seen_records(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Marks records as parsed before.
    fn restore_seen_records(&mut self, _hashes: &mut dyn Iterator<Item = u64>) {}

    /// Ends the replay of packets that were parsed before; the next packet is new.
    fn finish_replay(&mut self) {}

    /// Whether the last packet came from a session file, whose records have times of their own.
    fn is_history(&self) -> bool {
        false
    }

    /// Accepts the text of the file `name`, to which the agent moved the output of a tool call.
    fn push_offloaded(&mut self, _name: &str, _text: &str, _out: &mut AdapterOutput) {}
}

/// Creates the parser of `format`. Packets of an undetected format are parsed as ACP.
fn parser(format: Format, session_filter: Option<String>) -> Box<dyn FormatParser> {
    match format {
        Format::Acp | Format::Auto => Box::<acp::AcpParser>::default(),
        Format::ClaudeStream | Format::ClaudeHistory => {
            Box::new(claude::ClaudeParser::new(session_filter))
        }
    }
}

/// Parses the packets of one session, in a given or a detected format.
#[derive(Debug)]
pub struct Adapter {
    parser: Box<dyn FormatParser>,
    /// The format is not known yet: the first packet that identifies it decides.
    undetected: bool,
    /// The session id to which the parser of the detected format is restricted.
    session_filter: Option<String>,
}

impl Adapter {
    /// Creates an adapter for `format`. With a `session_filter`, records that carry another session
    /// id are ignored.
    pub fn new(format: Format, session_filter: Option<String>) -> Self {
        Adapter {
            parser: parser(format, session_filter.clone()),
            undetected: format == Format::Auto,
            session_filter,
        }
    }

    /// Ends the input.
    pub fn finish(&mut self, out: &mut AdapterOutput) {
        self.parser.finish(out);
    }

    /// Parses one packet.
    pub fn push(&mut self, packet: &Packet<'_>, out: &mut AdapterOutput) {
        out.time = packet.arrived.cloned();
        if self.undetected
            && let Some(format) = detect::detect(packet.bytes)
        {
            *self = Adapter::new(format, self.session_filter.take());
        }
        self.parser.push(packet, out);
    }

    /// Restores the calls and questions of a session from its items; the packets of items from the
    /// order `since` on are parsed again.
    pub(crate) fn restore(&mut self, items: &Items, since: u64) {
        self.parser.restore(items, since);
    }

    /// Returns the hashes of the record ids parsed since the last call.
    pub(crate) fn take_seen_records(&mut self) -> Vec<u64> {
        self.parser.take_seen_records()
    }

    /// Marks records as parsed before.
    pub(crate) fn restore_seen_records(&mut self, mut hashes: impl Iterator<Item = u64>) {
        self.parser.restore_seen_records(&mut hashes);
    }

    /// Ends the replay of packets that were parsed before; the next packet is new.
    pub(crate) fn finish_replay(&mut self) {
        self.parser.finish_replay();
    }

    /// Whether no message is half parsed.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.parser.is_quiescent()
    }

    /// Whether the last packet came from a session file, whose records have times of their own.
    pub(crate) fn is_history(&self) -> bool {
        self.parser.is_history()
    }

    /// The format of the packets. Both formats of Claude Code are [`Format::ClaudeStream`].
    pub(crate) fn format(&self) -> Format {
        if self.undetected { Format::Auto } else { self.parser.format() }
    }

    /// Accepts the text of the file `name`, to which the agent moved the output of a tool call.
    pub fn push_offloaded(&mut self, name: &str, text: &str, out: &mut AdapterOutput) {
        self.parser.push_offloaded(name, text, out);
    }
}
