//! Changes to items, and the items they make.

use crate::model::item::{Item, ItemBody, TodoList};
use crate::model::session::SessionInfo;
use crate::model::tool::{Image, Output, ToolCall, ToolName};
use crate::sanitize::Clean;
use serde::Serialize;
use std::collections::HashMap;

/// One edit of a session's items. A reader only applies these; nobody folds twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// A new item, or a new version of one; a known item keeps its place.
    Put {
        /// The item, whole.
        item: Box<Item>,
    },
    /// New values of some fields; the others stay.
    Set {
        /// The item.
        id: Clean,
        /// The values.
        #[serde(flatten)]
        set: Set,
    },
    /// More text at the end of a field.
    Append {
        /// The item.
        id: Clean,
        /// `content`, `text` or `rawOutput`.
        field: &'static str,
        /// The text.
        text: Clean,
    },
    /// The item is gone.
    Remove {
        /// The item.
        id: Clean,
    },
    /// The session's header.
    Info {
        /// The header, whole.
        info: Box<SessionInfo>,
    },
}

impl Change {
    /// The item that it is about; none for the header.
    pub fn item(&self) -> Option<&Clean> {
        match self {
            Change::Put { item } => Some(&item.id),
            Change::Set { id, .. } | Change::Append { id, .. } | Change::Remove { id } => Some(id),
            Change::Info { .. } => None,
        }
    }
}

/// New values of an item's fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Set {
    /// Whether more text is coming.
    IsStreaming(bool),
    /// The text, anew.
    Content(Clean),
    /// The pictures, anew.
    Images(Vec<Image>),
    /// Fields of the call; absent ones stay.
    ToolCall(Box<ToolCall>),
    /// The list, anew.
    TodoList(TodoList),
}

/// The items of a session, kept up by changes.
#[derive(Debug, Clone, Default)]
pub struct Items {
    list: Vec<Option<Item>>,
    places: HashMap<Clean, usize>,
    info: SessionInfo,
    next_order: u64,
    /// The place of the item that changed last: most changes are to the same one.
    last: usize,
}

impl Items {
    /// No items.
    pub fn new() -> Self {
        Items::default()
    }

    /// The items of a session, in the order they came, or the last of them.
    pub fn from_parts(info: SessionInfo, items: impl IntoIterator<Item = Item>) -> Self {
        let mut all = Items { info, ..Items::default() };
        items.into_iter().for_each(|item| all.put(item));
        all
    }

    /// Items that are gone had orders too: the next item gets this one, or a higher one if there is
    /// an item that has it.
    pub fn set_next_order(&mut self, order: u64) {
        self.next_order = self.next_order.max(order);
    }

    /// The session's header.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The item of this id.
    pub fn get(&self, id: &str) -> Option<&Item> {
        self.places.get(id).and_then(|at| self.list.get(*at)?.as_ref())
    }

    /// The items in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = &Item> {
        self.list.iter().flatten()
    }

    /// The order of the next item, counting those that are gone.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Takes one change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Put { item } => self.put(*item),
            Change::Set { ref id, .. } | Change::Append { ref id, .. } => {
                if let Some(item) = self.item(id) {
                    item.change(change);
                }
            }
            Change::Remove { id } => {
                if let Some(at) = self.places.remove(&id) {
                    self.list[at] = None;
                }
            }
            Change::Info { info } => self.info = *info,
        }
    }

    /// The source is over: nothing streams any more.
    pub fn settle(&mut self) {
        for item in self.list.iter_mut().flatten() {
            set_fields(&mut item.body, Set::IsStreaming(false));
        }
    }

    fn item(&mut self, id: &str) -> Option<&mut Item> {
        let hot = self.list.get(self.last).and_then(Option::as_ref).is_some_and(|i| &*i.id == id);
        if !hot {
            self.last = *self.places.get(id)?;
        }
        self.list.get_mut(self.last)?.as_mut()
    }

    fn put(&mut self, item: Item) {
        self.next_order = self.next_order.max(item.order + 1);
        if let Some(old) = self.item(&item.id) {
            old.replace(item);
            return;
        }
        self.places.insert(item.id.clone(), self.list.len());
        self.list.push(Some(item));
    }

    /// The items as they are shown: in order, those of a subagent below their call.
    pub fn ordered(&self) -> Vec<&Item> {
        let mut children: HashMap<&str, Vec<&Item>> = HashMap::new();
        let mut top: Vec<&Item> = Vec::new();
        for item in self.list.iter().flatten() {
            match &item.parent {
                Some(parent) if self.places.contains_key(parent) && *parent != item.id => {
                    children.entry(parent).or_default().push(item);
                }
                _ => top.push(item),
            }
        }
        let mut out = Vec::with_capacity(self.list.len());
        let mut stack: Vec<&Item> = top.into_iter().rev().collect();
        while let Some(item) = stack.pop() {
            out.push(item);
            // Taken out, so that a circle of calls ends.
            if let Some(list) = children.remove(item.id.as_str()) {
                stack.extend(list.into_iter().rev());
            }
        }
        // What only names each other as parent stands at the end rather than nowhere.
        let mut lost: Vec<&Item> = children.into_values().flatten().collect();
        lost.sort_by_key(|item| item.order);
        out.extend(lost);
        out
    }
}

impl Item {
    /// Takes a change of this item; those of others, and its removal, are not for it to take.
    pub fn apply(&mut self, change: Change) {
        if change.item() == Some(&self.id) {
            self.change(change);
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Put { item } => self.replace(*item),
            Change::Set { set, .. } => set_fields(&mut self.body, set),
            Change::Append { field, text, .. } => append(&mut self.body, field, text),
            Change::Remove { .. } | Change::Info { .. } => {}
        }
    }

    /// A new version keeps the place of the old one.
    fn replace(&mut self, new: Item) {
        *self = Item { order: self.order, ..new };
    }
}

fn append(body: &mut ItemBody, name: &str, more: Clean) {
    let target = match body {
        ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. } => content,
        ItemBody::UserMessage { text, .. } => text,
        ItemBody::ToolCall { tool_call } if name == "rawOutput" => {
            match tool_call.call.output.get_or_insert_with(|| Output::Whole(Clean::default())) {
                Output::Whole(text) | Output::More(text) => text,
            }
        }
        _ => return,
    };
    if target.is_empty() {
        *target = more;
    } else {
        target.push(&more);
    }
}

fn set_fields(body: &mut ItemBody, set: Set) {
    match (body, set) {
        (
            ItemBody::Text { is_streaming, .. } | ItemBody::Thinking { is_streaming, .. },
            Set::IsStreaming(now),
        ) => *is_streaming = now,
        (
            ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. },
            Set::Content(now),
        ) => *content = now,
        (ItemBody::UserMessage { text, .. }, Set::Content(now)) => *text = now,
        (ItemBody::Plan { content, .. }, Set::Content(now)) => *content = now,
        (
            ItemBody::Text { images, .. } | ItemBody::UserMessage { images, .. },
            Set::Images(now),
        ) => *images = now,
        (ItemBody::ToolCall { tool_call }, Set::ToolCall(mut news)) => {
            let call = &mut tool_call.call;
            if news.tool_name != ToolName::Unknown {
                call.tool_name = news.tool_name;
            }
            call.kind = news.kind;
            call.is_todo = news.is_todo;
            if let Some(output) = news.output.take() {
                call.output = Some(output);
            }
            let _ = call.merge(*news);
        }
        (ItemBody::TodoList { todo_list }, Set::TodoList(now)) => *todo_list = now,
        _ => {}
    }
}
