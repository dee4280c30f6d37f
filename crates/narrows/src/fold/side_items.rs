//! What goes on beside the conversation: questions to the user, tasks in the background.

use super::Fold;
use crate::model::change::Change;
use crate::model::event::{Background, Event, Question, QuestionAnswer};
use crate::model::item::{Item, ItemBody};
use crate::sanitize::Clean;

impl Fold {
    /// A task stands where it began; what is known of it grows.
    pub(super) fn background(&mut self, event: &Event, news: &Background, out: &mut Vec<Change>) {
        let id = Clean::concat(&[&Clean::literal("task-"), &news.task_id]);
        self.beside(event, &id, out, |known| {
            let mut task = news.clone();
            if let Some(ItemBody::BackgroundTask(old)) = known {
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

    pub(super) fn question(&mut self, event: &Event, news: &Question, out: &mut Vec<Change>) {
        self.beside(event, &question_item(&news.tool_call_id), out, |known| {
            let (request, given) = match known {
                Some(ItemBody::Question { request_id, answers, .. }) => (request_id, answers),
                _ => (None, None),
            };
            ItemBody::Question {
                request_id: news.request_id.clone().or(request),
                tool_call_id: news.tool_call_id.clone(),
                questions: news.questions.clone(),
                answers: given,
            }
        });
    }

    pub(super) fn question_answer(&mut self, news: &QuestionAnswer, out: &mut Vec<Change>) {
        let known = self.beside.get_mut(&question_item(&news.tool_call_id));
        let Some(item) = known.and_then(Option::as_mut) else { return };
        if let ItemBody::Question { answers, .. } = &mut item.body
            && answers.as_ref() != Some(&news.answers)
            && (answers.is_none() || !news.answers.is_empty())
        {
            *answers = Some(news.answers.clone());
            out.push(Change::Put { item: Box::new(item.clone()) });
        }
    }

    /// Makes an item, or a new version of it in its old place.
    pub(super) fn beside(
        &mut self,
        event: &Event,
        id: &Clean,
        out: &mut Vec<Change>,
        body: impl FnOnce(Option<ItemBody>) -> ItemBody,
    ) {
        let known = self.beside.open(id).0.take();
        let Some(mut item) = known else {
            let from = out.len();
            self.put(event, id.clone(), body(None), out);
            if let Some(Change::Put { item }) = out.get(from) {
                *self.beside.open(id).0 = Some((**item).clone());
            }
            return;
        };
        let new = body(Some(item.body.clone()));
        if new != item.body {
            item.body = new;
            out.push(Change::Put { item: Box::new(item.clone()) });
        }
        *self.beside.open(id).0 = Some(item);
    }

    pub(super) fn resume_beside(&mut self, item: &Item) {
        let comes_again = match &item.body {
            ItemBody::Question { .. } | ItemBody::BackgroundTask(_) => true,
            ItemBody::Artifact { .. } => true,
            ItemBody::Compaction(summary) => summary.id.is_some(),
            _ => false,
        };
        if comes_again {
            *self.beside.open_shared(&item.id).0 = Some(item.clone());
        }
    }
}

fn question_item(call: &Clean) -> Clean {
    Clean::concat(&[&Clean::literal("question-"), call])
}
