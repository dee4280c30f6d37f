//! Prompts, plans and the ends of turns.

use super::Fold;
use crate::model::change::{Change, Set};
use crate::model::event::{Event, Info, Plan, Response};
use crate::model::item::{Item, ItemBody, TodoList};
use crate::model::session::Status;
use crate::model::time::Time;
use crate::model::tool::{Todo, ToolStatus};
use crate::sanitize::Clean;

/// The todo list of the turn.
#[derive(Debug)]
pub(super) struct OpenTodo {
    id: Clean,
    todos: Vec<Todo>,
}

impl Fold {
    pub(super) fn begin_turn(&mut self) {
        self.news = true;
        self.info.turns += 1;
        self.info.answered = false;
        self.info.status = Status::Running;
        self.info.error = None;
    }

    /// The agent has answered. That is not always the last thing of its turn: what comes late
    /// still lands in it.
    pub(super) fn answered(&mut self, event: &Event, response: &Response, out: &mut Vec<Change>) {
        if !response.failed {
            self.info.status = Status::Idle;
        }
        self.info.ended = true;
        self.info.cost_usd = response.cost_usd.or(self.info.cost_usd);
        if let Some(usage) = response.usage.as_ref().filter(|_| response.settles) {
            self.info.count(|ledger| ledger.turn(usage));
        }
        // Work in the background may still wait for an answer; what was cancelled does not.
        let withdrawn = response.stop_reason.as_deref() == Some("cancelled");
        self.end_turn(event, withdrawn, out);
    }

    pub(super) fn end_turn(&mut self, event: &Event, withdrawn: bool, out: &mut Vec<Change>) {
        self.news = true;
        self.info.answers += 1;
        self.info.answered = true;
        self.info.answered_at = event.time.as_ref().map(Time::millis);
        self.prompt = None;
        self.settle_text(out);
        self.close_keyed(usize::MAX, out);
        self.drop_asks(out, |_| withdrawn);
    }

    /// What is new about the session.
    pub(super) fn learn(&mut self, info: &Info) {
        self.news = true;
        let to = &mut self.info;
        let take = |to: &mut Option<Clean>, from: &Option<Clean>| {
            if from.is_some() {
                to.clone_from(from);
            }
        };
        take(&mut to.agent, &info.agent);
        take(&mut to.version, &info.version);
        take(&mut to.model, &info.model);
        take(&mut to.mode, &info.mode);
        take(&mut to.title, &info.title);
        take(&mut to.cwd, &info.cwd);
        take(&mut to.native_id, &info.native_id);
        to.named |= info.named;
    }

    /// A plan is the same list as the todos of a tool.
    pub(super) fn plan(&mut self, event: &Event, plan: &Plan, out: &mut Vec<Change>) {
        let before = self.todo.as_ref().map(|t| t.todos.as_slice()).unwrap_or_default();
        let todos = plan.entries.iter().enumerate().map(|(i, entry)| {
            let mut content = entry.content.clone();
            // Claude puts the active form in the place of the content while it works on an entry.
            if entry.status == ToolStatus::InProgress
                && before.len() == plan.entries.len()
                && let Some(old) = before.get(i)
                && !old.status.is_final()
            {
                content = old.content.clone();
            }
            Todo {
                content,
                status: entry.status,
                active_form: entry.content.clone(),
                priority: entry.priority.clone(),
                id: None,
            }
        });
        let todos = todos.collect();
        self.todos(event, todos, out);
    }

    /// One list a turn, updated in place; an update without todos never empties it.
    pub(super) fn todos(&mut self, event: &Event, todos: Vec<Todo>, out: &mut Vec<Change>) {
        if todos.is_empty() {
            return;
        }
        let id = self.todo_id(event);
        match &mut self.todo {
            Some(open) if open.id == id => {
                if open.todos != todos {
                    open.todos.clone_from(&todos);
                    let set = Set::TodoList(TodoList::new(id.clone(), todos));
                    out.push(Change::Set { id, set });
                }
            }
            _ => {
                let todo_list = TodoList::new(id.clone(), todos.clone());
                self.put(event, id.clone(), ItemBody::TodoList { todo_list }, out);
                self.todo = Some(OpenTodo { id, todos });
            }
        }
    }

    /// The name of the turn's list. Where prompts are not seen, answers part the turns.
    fn todo_id(&self, event: &Event) -> Clean {
        let (kind, turn) = match self.info.turns {
            0 => ("todos-0.", self.info.answers),
            turn => ("todos-", turn),
        };
        let mut id = Clean::concat(&[&Clean::literal(kind), &Clean::number(turn)]);
        // A subagent has a list of its own.
        if let Some(parent) = &event.parent {
            id.push(&Clean::literal("-"));
            id.push(parent);
        }
        id
    }

    pub(super) fn resume_todo(&mut self, item: &Item) {
        if let ItemBody::TodoList { todo_list } = &item.body {
            self.todo = Some(OpenTodo { id: item.id.clone(), todos: todo_list.todos.clone() });
        }
    }
}
