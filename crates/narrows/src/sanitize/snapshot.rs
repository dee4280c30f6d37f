//! What is sent whole again as it grows, outside of calls: the plan, and the title of the session.
//!
//! As in a call's fields, what may have begun at the end is left out, and the whole is kept aside: until
//! it comes again, or the turn is answered. Then, and in a title that comes between turns, only what has
//! clearly begun is left out. So it is in commands, modes and unknown packets, as nothing tells when
//! these are complete.

use super::begun::Begun;
use super::clean::Cleaner;
use super::growing::MORE;
use super::text::{Raw, Tree};
use super::tree;
use crate::event::{Body, Event, Info};

#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// The last plan and the last title, where part of them is left out.
    plan: Option<Event<Raw>>,
    title: Option<Event<Raw>>,
    /// The last turn was answered, and no other has begun.
    pub(super) answered: bool,
}

impl Snapshots {
    pub(super) fn is_empty(&self) -> bool {
        self.plan.is_none() && self.title.is_none()
    }

    /// Bytes that are kept aside.
    pub(super) fn weight(&self) -> usize {
        let bytes = |event: &Event<Raw>| match &event.body {
            Body::PlanUpdate(plan) => plan.entries.iter().map(|e| e.content.peek().len() + 1).sum(),
            Body::SessionInfo(info) => info.title.as_ref().map_or(0, |t| t.peek().len() + 1),
            _ => 0,
        };
        self.plan.iter().chain(&self.title).map(bytes).sum()
    }

    /// Leaves out of an event what may have begun at the ends of its texts.
    pub(super) fn take(&mut self, cleaner: &Cleaner, event: &mut Event<Raw>) {
        match &mut event.body {
            Body::UserMessage(_) => self.answered = false,
            Body::PromptResponse(_) => self.answered = true,
            Body::PlanUpdate(plan) => {
                self.plan = None;
                let settled = |text: &Raw| cleaner.settled(text.peek(), MORE, Begun::PERHAPS);
                if plan.entries.iter().all(|entry| settled(&entry.content).is_none()) {
                    return;
                }
                let mut part = plan.clone();
                for entry in &mut part.entries {
                    if let Some(settled) = settled(&entry.content) {
                        entry.content = Raw::new(settled);
                    }
                }
                self.plan = Some(event.clone());
                event.body = Body::PlanUpdate(part);
            }
            Body::Unknown(unknown) => {
                if let Some(part) = unknown.tree.as_ref().and_then(|t| cleaner.mask_tree(t)) {
                    unknown.tree = Some(part);
                }
            }
            // What was cut off is final as it stands, and what is sent again comes whole.
            Body::Compaction(summary) if summary.unfinished => cleaner.mask_end(&mut summary.text),
            Body::SessionInfo(info) => {
                mask_facts(cleaner, info);
                let Some(title) = &mut info.title else { return };
                self.title = None;
                if self.answered {
                    cleaner.mask_end(title);
                    return;
                }
                if let Some(part) = cleaner.settled(title.peek(), MORE, Begun::PERHAPS) {
                    let whole = std::mem::replace(title, Raw::new(part));
                    let whole = Info { title: Some(whole), named: info.named, ..Info::default() };
                    let mut aside = event.clone();
                    aside.body = Body::SessionInfo(Box::new(whole));
                    self.title = Some(aside);
                }
            }
            _ => {}
        }
    }

    /// What is kept aside, but for that in which something to hide has clearly begun.
    pub(super) fn suspend(&mut self, cleaner: &Cleaner) -> impl Iterator<Item = Event<Raw>> {
        let begun = |text: &Raw| cleaner.settled(text.peek(), MORE, Begun::CLEAR).is_some();
        let has_begun = |event: &mut Event<Raw>| match &event.body {
            Body::PlanUpdate(plan) => plan.entries.iter().any(|entry| begun(&entry.content)),
            Body::SessionInfo(info) => info.title.as_ref().is_some_and(begun),
            _ => false,
        };
        let plan = self.plan.take_if(|plan| !has_begun(plan));
        plan.into_iter().chain(self.title.take_if(|title| !has_begun(title)))
    }

    /// What is kept aside, without what has begun: the turn is over.
    pub(super) fn end(&mut self, cleaner: &Cleaner) -> Vec<Event<Raw>> {
        let mut all = self.plan.take().into_iter().chain(self.title.take()).collect::<Vec<_>>();
        for event in &mut all {
            match &mut event.body {
                Body::PlanUpdate(plan) => {
                    plan.entries.iter_mut().for_each(|e| cleaner.mask_end(&mut e.content));
                }
                Body::SessionInfo(info) => {
                    info.title.iter_mut().for_each(|title| cleaner.mask_end(title));
                }
                _ => {}
            }
        }
        all
    }
}

fn mask_facts(cleaner: &Cleaner, info: &mut Info<Raw>) {
    let Info { agent, version, model, mode, status, commands, .. } = info;
    for text in [agent, version, model, mode, status].into_iter().flatten() {
        cleaner.mask_end(text);
    }
    for command in commands.iter_mut().flatten() {
        cleaner.mask_end(&mut command.name);
        command.description.iter_mut().for_each(|text| cleaner.mask_end(text));
    }
}

impl Cleaner {
    /// Leaves out what has clearly begun at the end of a text.
    pub(super) fn mask_end(&self, text: &mut Raw) {
        if let Some(part) = self.settled(text.peek(), MORE, Begun::IN_PART) {
            *text = Raw::new(part);
        }
    }

    /// The same for each string of a tree; nothing when nothing has begun.
    fn mask_tree(&self, tree: &Tree<Raw>) -> Option<Tree<Raw>> {
        tree::hold_back(tree, |text, key| {
            if tree::is_path(key) {
                let begun = self.path_has_begun(text, Begun::IN_PART);
                return begun.then(|| MORE.to_owned());
            }
            self.settled(text, MORE, Begun::IN_PART)
        })
    }
}
