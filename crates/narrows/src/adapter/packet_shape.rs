//! The kind and the objects of a packet, as the drift check compares them with the known fields.
//! Each format describes its own packets; nothing here is parsed for content.

use super::{acp, claude};
use crate::json::Json;
use std::borrow::Cow;

/// The kind of a packet and its objects.
pub(crate) struct PacketShape<'a> {
    /// The kind, such as `update:tool_call` or `system:init`.
    pub(crate) kind: String,
    /// The objects whose fields belong to the kind, with their paths in the packet; the packet
    /// itself has an empty path.
    pub(crate) objects: Vec<(Cow<'static, str>, Json<'a>)>,
}

impl<'a> PacketShape<'a> {
    /// Describes a packet; none for bookkeeping, whose fields are not checked.
    pub(crate) fn read(object: Json<'a>) -> Option<Self> {
        acp::packet_shape(object).or_else(|| claude::packet_shape(object))
    }

    /// Creates a shape of which only the kind is checked.
    pub(super) fn of_kind(kind: impl Into<String>) -> Self {
        PacketShape { kind: kind.into(), objects: Vec::new() }
    }
}

/// The longest kind, field or version in bytes; a longer one is data, not a name.
const MAX_NAME_BYTES: usize = 64;

/// The name of a kind in a packet. A string that does not look like a name is not shown.
pub(super) fn kind_name(json: Option<Json<'_>>) -> Cow<'_, str> {
    match json.and_then(Json::str) {
        Some(text) if is_name(&text.replace('/', "_")) => text,
        Some(_) => "(odd)".into(),
        None => "(untyped)".into(),
    }
}

/// Whether a text looks like the name of a kind, a field or a version.
pub(crate) fn is_name(text: &str) -> bool {
    let is_name_byte = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'$' | b'.');
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(is_name_byte)
}
