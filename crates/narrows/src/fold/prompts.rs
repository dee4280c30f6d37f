//! Prompts, and their echo by the agent.

use super::Fold;
use super::text_items::{TextItems, prompt_body};
use crate::model::change::{Change, ItemPatch};
use crate::model::event::{Event, PromptOrigin, UserMessage};
use crate::model::tool::Image;
use crate::sanitize::Clean;

/// The last prompt, until another item follows it.
#[derive(Debug)]
pub(super) struct LastPrompt {
    pub(super) items: TextItems,
    pub(super) block_id: Option<Clean>,
    pub(super) parent: Option<Clean>,
    pub(super) origin: PromptOrigin,
    /// The text, if a client sent it: the agent may repeat it.
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

impl Fold {
    /// Folds a prompt. Drops the echo of one that a client sent.
    pub(super) fn fold_prompt(
        &mut self,
        event: &Event,
        message: &UserMessage,
        out: &mut Vec<Change>,
    ) {
        if message.origin == PromptOrigin::Agent
            && let Some(mut last) = self.last_prompt.take()
        {
            let is_echo = last.origin == PromptOrigin::Client
                && last.text.contains(message.text.as_str())
                && message.images.iter().all(|i| last.images.contains(i));
            let continues = last.origin == PromptOrigin::Agent
                && last.block_id == message.block_id
                && last.parent == event.parent;
            if !is_echo && continues {
                let make = |text, _| prompt_body(message, text, false);
                if self.append_text(event, &mut last.items, "text", &message.text, &make, out) {
                    last.images.clear();
                    self.last_started = Some(last.items.clone());
                }
                if !message.images.is_empty() {
                    last.images.extend(message.images.iter().cloned());
                    let (id, images) = (last.items.last_id(), last.images.clone());
                    out.push(Change::Set { id, set: ItemPatch::Images(images) });
                }
            }
            self.last_prompt = Some(last);
            if is_echo || continues {
                return;
            }
        }
        if self.append_held_back("user", event, "text", &message.text, out) {
            return;
        }
        // The prompt of a subagent starts no turn of the session.
        if event.parent.is_none() {
            self.start_turn();
        }
        let id = self.item_id("user", event);
        let make = |text, is_last| prompt_body(message, text, is_last);
        let items = self.put_text(event, id, &message.text, &make, out);
        self.last_started = Some(items.clone());
        self.last_prompt = Some(LastPrompt {
            items,
            block_id: message.block_id.clone(),
            parent: event.parent.clone(),
            origin: message.origin,
            text: text_to_echo(&message.text, message.origin),
            images: message.images.clone(),
        });
    }
}

/// The text that an agent could repeat: only what a client sent.
pub(super) fn text_to_echo(text: &Clean, origin: PromptOrigin) -> String {
    if origin == PromptOrigin::Client { text.to_string() } else { String::new() }
}
