//! Items that are updated in place apart from the conversation: questions, background tasks, artifacts
//! and compactions.

use super::Fold;
use crate::model::change::Change;
use crate::model::event::{
    ArtifactInfo, BackgroundTask, Compaction, Event, Question, QuestionAnswer,
};
use crate::model::item::{Item, ItemBody};
use crate::sanitize::Clean;

impl Fold {
    pub(super) fn fold_artifact(
        &mut self,
        event: &Event,
        artifact: &ArtifactInfo,
        out: &mut Vec<Change>,
    ) {
        let id = match artifact.id.as_str() {
            "" => self.item_id("artifact", event),
            _ => Clean::concat(&[&Clean::literal("artifact-"), &artifact.id]),
        };
        let artifact = artifact.clone();
        self.put_or_update(event, &id, out, |_| ItemBody::Artifact { artifact });
    }

    pub(super) fn fold_compaction(
        &mut self,
        event: &Event,
        compaction: &Compaction,
        out: &mut Vec<Change>,
    ) {
        let body = ItemBody::Compaction(compaction.clone());
        match &compaction.id {
            Some(id) => {
                let id = Clean::concat(&[&Clean::literal("compaction-"), id]);
                self.put_or_update(event, &id, out, |_| body);
            }
            None => self.put_item(event, self.item_id("compaction", event), body, out),
        }
    }

    /// Puts a background task at its start, and merges later updates into it.
    pub(super) fn fold_background_task(
        &mut self,
        event: &Event,
        update: &BackgroundTask,
        out: &mut Vec<Change>,
    ) {
        let id = Clean::concat(&[&Clean::literal("task-"), &update.task_id]);
        self.put_or_update(event, &id, out, |old| {
            let mut task = update.clone();
            if let Some(ItemBody::BackgroundTask(old)) = old {
                task.tool_call_id = task.tool_call_id.or(old.tool_call_id);
                task.description = task.description.or(old.description);
                task.summary = task.summary.or(old.summary);
                if old.status.rank() > task.status.rank() {
                    task.status = old.status;
                }
            }
            ItemBody::BackgroundTask(task)
        });
    }

    pub(super) fn fold_question(
        &mut self,
        event: &Event,
        update: &Question,
        out: &mut Vec<Change>,
    ) {
        self.put_or_update(event, &question_item_id(&update.tool_call_id), out, |old| {
            let (old_request, answers) = match old {
                Some(ItemBody::Question { request_id, answers, .. }) => (request_id, answers),
                _ => (None, None),
            };
            ItemBody::Question {
                request_id: update.request_id.clone().or(old_request),
                tool_call_id: update.tool_call_id.clone(),
                questions: update.questions.clone(),
                answers,
            }
        });
    }

    pub(super) fn fold_question_answer(&mut self, update: &QuestionAnswer, out: &mut Vec<Change>) {
        let item = self.side_items.get_mut(&question_item_id(&update.tool_call_id));
        let Some(item) = item.and_then(Option::as_mut) else { return };
        if let ItemBody::Question { answers, .. } = &mut item.body
            && answers.as_ref() != Some(&update.answers)
            && (answers.is_none() || !update.answers.is_empty())
        {
            *answers = Some(update.answers.clone());
            out.push(Change::Put { item: Box::new(item.clone()) });
        }
    }

    /// Puts an item, or a new version of it in its old place.
    fn put_or_update(
        &mut self,
        event: &Event,
        id: &Clean,
        out: &mut Vec<Change>,
        body: impl FnOnce(Option<ItemBody>) -> ItemBody,
    ) {
        let old = self.side_items.get_or_insert(id).0.take();
        let Some(mut item) = old else {
            let from = out.len();
            self.put_item(event, id.clone(), body(None), out);
            if let Some(Change::Put { item }) = out.get(from) {
                *self.side_items.get_or_insert(id).0 = Some((**item).clone());
            }
            return;
        };
        let new = body(Some(item.body.clone()));
        if new != item.body {
            item.body = new;
            out.push(Change::Put { item: Box::new(item.clone()) });
        }
        *self.side_items.get_or_insert(id).0 = Some(item);
    }

    pub(super) fn resume_side_item(&mut self, item: &Item) {
        let can_update = match &item.body {
            ItemBody::Question { .. } | ItemBody::BackgroundTask(_) | ItemBody::Artifact { .. } => {
                true
            }
            ItemBody::Compaction(compaction) => compaction.id.is_some(),
            _ => false,
        };
        if can_update {
            *self.side_items.get_or_insert_shared(&item.id).0 = Some(item.clone());
        }
    }
}

fn question_item_id(call: &Clean) -> Clean {
    Clean::concat(&[&Clean::literal("question-"), call])
}
