//! Packets with the name of their source, for sessions that span several files.

use base64::Engine;
use serde::{Deserialize, Serialize};

/// A packet of one source of a session, or the text of a tool output in a file of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceEnvelope {
    /// The source: the number of the file in its session, 0 for the main one.
    #[serde(default, skip_serializing_if = "is_main")]
    pub source: u32,
    /// The number of the line in its file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The byte offset of the line in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The tool call whose subagent wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The line, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<String>,
    /// The line in base64, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// The name of a file with the output of a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The text of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The length in bytes of a line that is too long to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_main(source: &u32) -> bool {
    *source == 0
}

impl SourceEnvelope {
    /// An envelope for a line.
    pub fn line(source: u32, line: u64, offset: u64, parent: Option<&str>, bytes: &[u8]) -> Self {
        let mut envelope = SourceEnvelope {
            source,
            line: Some(line),
            offset: Some(offset),
            parent: parent.map(str::to_owned),
            ..SourceEnvelope::default()
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => envelope.packet = Some(text.to_owned()),
            Err(_) => {
                envelope.bytes = Some(base64::engine::general_purpose::STANDARD.encode(bytes));
            }
        }
        envelope
    }

    /// The bytes of the line.
    pub(super) fn content(&self) -> Option<Vec<u8>> {
        match (&self.packet, &self.bytes) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(bytes)) => base64::engine::general_purpose::STANDARD.decode(bytes).ok(),
            (None, None) => None,
        }
    }
}
