//! Lines that say where they come from: for sessions that lie in several files.

use base64::Engine;
use serde::{Deserialize, Serialize};

/// One line of another source, or the text of an output that lies in a file of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrapped {
    /// Which file of the session; 0 is the main one.
    #[serde(default, skip_serializing_if = "is_main")]
    pub source: u32,
    /// The line's number in its file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Where the line begins in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The call whose subagent wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<String>,
    /// The line in base64, where it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// The name of a file that holds the output of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What stands in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The length of a line that is too long to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_main(source: &u32) -> bool {
    *source == 0
}

impl Wrapped {
    /// Wraps a line.
    pub fn line(source: u32, line: u64, offset: u64, parent: Option<&str>, bytes: &[u8]) -> Self {
        let mut wrapped = Wrapped {
            source,
            line: Some(line),
            offset: Some(offset),
            parent: parent.map(str::to_owned),
            ..Wrapped::default()
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => wrapped.packet = Some(text.to_owned()),
            Err(_) => {
                wrapped.bytes = Some(base64::engine::general_purpose::STANDARD.encode(bytes));
            }
        }
        wrapped
    }

    /// The line's bytes.
    pub(super) fn content(&self) -> Option<Vec<u8>> {
        match (&self.packet, &self.bytes) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(bytes)) => base64::engine::general_purpose::STANDARD.decode(bytes).ok(),
            (None, None) => None,
        }
    }
}
