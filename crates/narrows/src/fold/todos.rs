//! The todo list of a turn, from plans and from todo tools.

use super::Fold;
use crate::model::change::{Change, ItemPatch};
use crate::model::event::{Event, PlanUpdate};
use crate::model::item::{Item, ItemBody, TodoList};
use crate::model::tool::{Todo, ToolStatus};
use crate::sanitize::Clean;

/// The todo list of the current turn.
#[derive(Debug)]
pub(super) struct OpenTodos {
    id: Clean,
    todos: Vec<Todo>,
}

impl Fold {
    /// Folds a plan into the same list as the todos of a tool.
    pub(super) fn fold_plan(&mut self, event: &Event, plan: &PlanUpdate, out: &mut Vec<Change>) {
        let before = self.open_todos.as_ref().map(|t| t.todos.as_slice()).unwrap_or_default();
        let todos = plan.entries.iter().enumerate().map(|(i, entry)| {
            let mut content = entry.content.clone();
            // Claude sends the active form as the content while it works on an entry.
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
        self.update_todos(event, todos, out);
    }

    /// Updates the list of the turn in place; an update without todos never empties it.
    pub(super) fn update_todos(&mut self, event: &Event, todos: Vec<Todo>, out: &mut Vec<Change>) {
        if todos.is_empty() {
            return;
        }
        let id = self.todo_list_id(event);
        match &mut self.open_todos {
            Some(open) if open.id == id => {
                if open.todos != todos {
                    open.todos.clone_from(&todos);
                    let set = ItemPatch::TodoList(TodoList::new(id.clone(), todos));
                    out.push(Change::Set { id, set });
                }
            }
            _ => {
                let todo_list = TodoList::new(id.clone(), todos.clone());
                self.put_item(event, id.clone(), ItemBody::TodoList { todo_list }, out);
                self.open_todos = Some(OpenTodos { id, todos });
            }
        }
    }

    /// The item id of the turn's list. In a stream without prompts, answers separate the turns.
    fn todo_list_id(&self, event: &Event) -> Clean {
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

    pub(super) fn resume_todos(&mut self, item: &Item) {
        if let ItemBody::TodoList { todo_list } = &item.body {
            let todos = todo_list.todos.clone();
            self.open_todos = Some(OpenTodos { id: item.id.clone(), todos });
        }
    }
}
