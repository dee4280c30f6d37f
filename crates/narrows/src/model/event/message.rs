//! Payloads of prompts and of streamed text.

use crate::model::tool::Image;
use crate::sanitize::Clean;
use serde::Serialize;

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct UserMessage<T = Clean> {
    /// Text of the prompt.
    pub text: T,
    /// Attached images.
    pub images: Vec<Image>,
    /// Sender of the packet.
    pub origin: PromptOrigin,
    /// Chunks with the same id are one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
    /// This is the full message, not a chunk.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not", default)]
    pub whole: bool,
}

/// Sender of a prompt: an agent may repeat the prompt that its client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PromptOrigin {
    Client,
    Agent,
}

/// A chunk of text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct TextChunk<T = Clean> {
    /// Text of the chunk.
    pub text: T,
    /// Images in the answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub images: Vec<Image>,
    /// Chunks with the same id are one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
    /// This is the full text: it replaces the chunks streamed before.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not", default)]
    pub whole: bool,
    /// `block_id` is an id of the agent: all chunks with it and the full text are one block,
    /// whatever comes in between.
    #[serde(rename = "keyed", skip_serializing_if = "std::ops::Not::not", default)]
    pub has_block_id: bool,
    /// The agent was thinking and does not show its thoughts.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hidden: bool,
}

impl<T: Default> Default for TextChunk<T> {
    fn default() -> Self {
        TextChunk {
            text: T::default(),
            images: Vec::new(),
            block_id: None,
            whole: false,
            has_block_id: false,
            hidden: false,
        }
    }
}
