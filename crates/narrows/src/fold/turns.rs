//! Starts and ends of turns, and the session header.

use super::Fold;
use crate::model::change::Change;
use crate::model::event::{ErrorEvent, Event, SessionUpdate, TurnEnd, UsageUpdate};
use crate::model::item::ItemBody;
use crate::model::session::SessionStatus;
use crate::model::time::Time;
use crate::sanitize::Clean;

impl Fold {
    pub(super) fn start_turn(&mut self) {
        self.header_dirty = true;
        self.info.turns += 1;
        self.info.answered = false;
        self.info.status = SessionStatus::Running;
        self.info.error = None;
    }

    /// The agent answered the prompt. That is not always the last event of its turn: late events
    /// still belong to it.
    pub(super) fn fold_turn_end(
        &mut self,
        event: &Event,
        response: &TurnEnd,
        out: &mut Vec<Change>,
    ) {
        if !response.failed {
            self.info.status = SessionStatus::Idle;
        }
        // An error has ended the turn already; its usage follows.
        let again = self.info.answered
            && !self.info.ended
            && self.info.status == SessionStatus::Failed
            && response.failed;
        self.info.answers -= u64::from(again);
        self.info.ended = true;
        self.info.cost_usd = response.cost_usd.or(self.info.cost_usd);
        if let Some(usage) = response.usage.as_ref().filter(|_| response.usage_is_exact) {
            self.info.record_usage(|ledger| ledger.end_turn(usage));
        }
        // Background work may still wait for a permission; a cancelled turn withdraws its requests.
        let withdrawn = response.stop_reason.as_deref() == Some("cancelled");
        self.end_turn(event, withdrawn, out);
    }

    pub(super) fn fold_error(&mut self, event: &Event, error: &ErrorEvent, out: &mut Vec<Change>) {
        let id = self.item_id("error", event);
        let body = ItemBody::Error {
            message: error.message.clone(),
            code: error.code.clone(),
            details: error.details.clone(),
            retryable: error.retryable,
        };
        self.put_item(event, id, body, out);
        // The error of a subagent is handled by its caller.
        if event.parent.is_none() {
            self.info.status = SessionStatus::Failed;
            self.info.ended = false;
            self.info.error = Some(error.message.clone());
            self.end_turn(event, error.is_end, out);
        }
    }

    fn end_turn(&mut self, event: &Event, withdrawn: bool, out: &mut Vec<Change>) {
        self.header_dirty = true;
        self.info.answers += 1;
        self.info.answered = true;
        self.info.answered_at = event.time.as_ref().map(Time::millis);
        self.last_prompt = None;
        self.close_text_at_answer(out);
        self.close_blocks(usize::MAX, out);
        self.close_permissions(out, |_| withdrawn);
    }

    pub(super) fn fold_usage(&mut self, event: &Event, usage: &UsageUpdate) {
        // The context of a subagent is not that of the session.
        if event.parent.is_none() {
            let info = &mut self.info;
            info.context_used = usage.used.or(info.context_used);
            info.context_size = usage.size.or(info.context_size);
            info.cost_usd = usage.cost_usd.or(info.cost_usd);
            self.header_dirty = true;
        }
        if let Some(answer) = &usage.answer {
            self.info.record_usage(|ledger| ledger.add(answer, event.parent.is_some()));
            self.header_dirty = true;
        }
    }

    /// Copies the present fields of an update into the header.
    pub(super) fn update_header(&mut self, update: &SessionUpdate) {
        self.header_dirty = true;
        let info = &mut self.info;
        let set = |field: &mut Option<Clean>, value: &Option<Clean>| {
            if value.is_some() {
                field.clone_from(value);
            }
        };
        set(&mut info.agent, &update.agent);
        set(&mut info.version, &update.version);
        set(&mut info.model, &update.model);
        set(&mut info.mode, &update.mode);
        set(&mut info.title, &update.title);
        set(&mut info.cwd, &update.cwd);
        set(&mut info.native_id, &update.native_id);
        info.named |= update.named;
    }
}
