//! Text outside of calls that agents resend whole as it grows: the plan and the session title.
//!
//! As in tool call fields, a possible partial match at the end is left out and the whole is held:
//! until it is sent again, or the turn ends. After that, and for a title between turns, only
//! evident partial matches are left out. The same holds for commands, modes and unknown packets,
//! because nothing says when these are complete.

use crate::model::event::{Body, Event, SessionUpdate};
use narrows_sanitize::{ELLIPSIS, PartialLevel, Raw, Redactor, Tree, is_path_key};

#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// The last plan and the last title, if a part of them is left out.
    plan: Option<Event<Raw>>,
    title: Option<Event<Raw>>,
    /// The last turn has ended and no other has started.
    pub(super) is_answered: bool,
}

impl Snapshots {
    pub(super) fn is_empty(&self) -> bool {
        self.plan.is_none() && self.title.is_none()
    }

    /// Bytes in held events.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = |event: &Event<Raw>| match &event.body {
            Body::PlanUpdate(plan) => plan.entries.iter().map(|e| e.content.peek().len() + 1).sum(),
            Body::SessionInfo(info) => info.title.as_ref().map_or(0, |t| t.peek().len() + 1),
            _ => 0,
        };
        self.plan.iter().chain(&self.title).map(bytes).sum()
    }

    /// Leaves out possible partial matches at the ends of the event's texts.
    pub(super) fn push(&mut self, redactor: &Redactor, event: &mut Event<Raw>) {
        match &mut event.body {
            Body::UserMessage(_) => self.is_answered = false,
            Body::PromptResponse(_) => self.is_answered = true,
            Body::PlanUpdate(plan) => {
                self.plan = None;
                let without_partial = |text: &Raw| {
                    redactor.without_partial(text.peek(), ELLIPSIS, PartialLevel::POSSIBLE)
                };
                if plan.entries.iter().all(|entry| without_partial(&entry.content).is_none()) {
                    return;
                }
                let mut part = plan.clone();
                for entry in &mut part.entries {
                    if let Some(part) = without_partial(&entry.content) {
                        entry.content = Raw::new(part);
                    }
                }
                self.plan = Some(event.clone());
                event.body = Body::PlanUpdate(part);
            }
            Body::Unknown(unknown) => {
                if let Some(part) = unknown.tree.as_ref().and_then(|t| mask_tree(redactor, t)) {
                    unknown.tree = Some(part);
                }
            }
            // A truncated summary is final; if it is sent again, it comes whole.
            Body::Compaction(summary) if summary.unfinished => {
                mask_end(redactor, &mut summary.text);
            }
            Body::SessionInfo(info) => {
                mask_facts(redactor, info);
                let Some(title) = &mut info.title else { return };
                self.title = None;
                if self.is_answered {
                    mask_end(redactor, title);
                    return;
                }
                if let Some(part) =
                    redactor.without_partial(title.peek(), ELLIPSIS, PartialLevel::POSSIBLE)
                {
                    let whole = std::mem::replace(title, Raw::new(part));
                    let whole = SessionUpdate {
                        title: Some(whole),
                        named: info.named,
                        ..SessionUpdate::default()
                    };
                    let mut held = event.clone();
                    held.body = Body::SessionInfo(Box::new(whole));
                    self.title = Some(held);
                }
            }
            _ => {}
        }
    }

    /// Returns the held events without an evident partial match.
    pub(super) fn release_unless_partial(
        &mut self,
        redactor: &Redactor,
    ) -> impl Iterator<Item = Event<Raw>> {
        let has_partial = |text: &Raw| {
            redactor.without_partial(text.peek(), ELLIPSIS, PartialLevel::EVIDENT).is_some()
        };
        let is_partial = |event: &mut Event<Raw>| match &event.body {
            Body::PlanUpdate(plan) => plan.entries.iter().any(|entry| has_partial(&entry.content)),
            Body::SessionInfo(info) => info.title.as_ref().is_some_and(has_partial),
            _ => false,
        };
        let plan = self.plan.take_if(|plan| !is_partial(plan));
        plan.into_iter().chain(self.title.take_if(|title| !is_partial(title)))
    }

    /// Returns the held events at the end of the turn, without partial matches.
    pub(super) fn end(&mut self, redactor: &Redactor) -> Vec<Event<Raw>> {
        let mut all = self.plan.take().into_iter().chain(self.title.take()).collect::<Vec<_>>();
        for event in &mut all {
            match &mut event.body {
                Body::PlanUpdate(plan) => {
                    plan.entries.iter_mut().for_each(|e| mask_end(redactor, &mut e.content));
                }
                Body::SessionInfo(info) => {
                    info.title.iter_mut().for_each(|title| mask_end(redactor, title));
                }
                _ => {}
            }
        }
        all
    }
}

fn mask_facts(redactor: &Redactor, info: &mut SessionUpdate<Raw>) {
    let SessionUpdate { agent, version, model, mode, status, commands, .. } = info;
    for text in [agent, version, model, mode, status].into_iter().flatten() {
        mask_end(redactor, text);
    }
    for command in commands.iter_mut().flatten() {
        mask_end(redactor, &mut command.name);
        command.description.iter_mut().for_each(|text| mask_end(redactor, text));
    }
}

/// Replaces an evident partial match at the end of a text with an ellipsis.
pub(super) fn mask_end(redactor: &Redactor, text: &mut Raw) {
    if let Some(part) = redactor.without_partial(text.peek(), ELLIPSIS, PartialLevel::SUBSTANTIAL) {
        *text = Raw::new(part);
    }
}

/// The same for each string of a tree; `None` when no string ends in a partial match.
fn mask_tree(redactor: &Redactor, tree: &Tree<Raw>) -> Option<Tree<Raw>> {
    tree.replace_strings(|text, key| {
        if is_path_key(key) {
            let is_partial = redactor.is_partial_path(text, PartialLevel::SUBSTANTIAL);
            return is_partial.then(|| ELLIPSIS.to_owned());
        }
        redactor.without_partial(text, ELLIPSIS, PartialLevel::SUBSTANTIAL)
    })
}
