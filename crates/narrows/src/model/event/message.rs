//! Payloads of prompts and of streamed text.

use crate::model::tool::Image;
use crate::sanitize::Clean;
use serde::Serialize;

/// What somebody asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Message<T = Clean> {
    /// What was typed.
    pub text: T,
    /// Pictures sent along.
    pub images: Vec<Image>,
    /// Who reports it.
    pub origin: Origin,
    /// Pieces with the same id are one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
    /// The whole message at once.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not", default)]
    pub whole: bool,
}

/// Who reports a prompt: an agent may repeat what its client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Origin {
    Client,
    Agent,
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Chunk<T = Clean> {
    /// The piece.
    pub text: T,
    /// Pictures in the answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub images: Vec<Image>,
    /// Pieces with the same id are one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
    /// The whole text at once: it replaces what was streamed of it.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not", default)]
    pub whole: bool,
    /// The block has an id of its own: its pieces and its whole text are one thing, whatever comes
    /// between them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub keyed: bool,
    /// The agent thought here and does not show what.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hidden: bool,
}

impl<T: Default> Default for Chunk<T> {
    fn default() -> Self {
        Chunk {
            text: T::default(),
            images: Vec::new(),
            block_id: None,
            whole: false,
            keyed: false,
            hidden: false,
        }
    }
}
