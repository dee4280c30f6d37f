//! Changes to items, and the item list they are applied to.

use crate::model::item::{Item, ItemBody, TodoList};
use crate::model::session::SessionInfo;
use crate::model::tool::{Image, ToolCall, ToolName, ToolOutput};
use crate::sanitize::Clean;
use serde::Serialize;
use std::collections::HashMap;

/// One edit of the items of a session. A client only applies changes; it never folds events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// Inserts an item, or replaces it in its old position.
    Put {
        /// The item.
        item: Box<Item>,
    },
    /// Sets a field and leaves the others.
    Set {
        /// Id of the item.
        id: Clean,
        /// The new value.
        #[serde(flatten)]
        set: ItemPatch,
    },
    /// Appends text to a field.
    Append {
        /// Id of the item.
        id: Clean,
        /// `content`, `text` or `rawOutput`.
        field: &'static str,
        /// The text.
        text: Clean,
    },
    /// Removes an item.
    Remove {
        /// Id of the item.
        id: Clean,
    },
    /// Replaces the session header.
    Info {
        /// The header.
        info: Box<SessionInfo>,
    },
}

impl Change {
    /// The id of the changed item; none for the header.
    pub fn item(&self) -> Option<&Clean> {
        match self {
            Change::Put { item } => Some(&item.id),
            Change::Set { id, .. } | Change::Append { id, .. } | Change::Remove { id } => Some(id),
            Change::Info { .. } => None,
        }
    }
}

/// A new value of a field of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ItemPatch {
    /// Whether more text is coming.
    IsStreaming(bool),
    /// The full text.
    Content(Clean),
    /// All images.
    Images(Vec<Image>),
    /// Fields of the call; absent ones keep their values.
    ToolCall(Box<ToolCall>),
    /// The full list.
    TodoList(TodoList),
}

/// The items of a session, maintained by applying changes.
#[derive(Debug, Clone, Default)]
pub struct Items {
    list: Vec<Option<Item>>,
    index_by_id: HashMap<Clean, usize>,
    info: SessionInfo,
    next_order: u64,
    /// Index of the item that changed last: most changes are to the same one.
    last_changed: usize,
}

impl Items {
    /// An empty list.
    pub fn new() -> Self {
        Items::default()
    }

    /// The items of a session in order of arrival, or the newest of them.
    pub fn from_parts(info: SessionInfo, items: impl IntoIterator<Item = Item>) -> Self {
        let mut list = Items { info, ..Items::default() };
        items.into_iter().for_each(|item| list.put(item));
        list
    }

    /// Raises the order of the next item to at least `order`: removed items had orders too.
    pub fn set_next_order(&mut self, order: u64) {
        self.next_order = self.next_order.max(order);
    }

    /// The session header.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The item with this id.
    pub fn get(&self, id: &str) -> Option<&Item> {
        self.index_by_id.get(id).and_then(|at| self.list.get(*at)?.as_ref())
    }

    /// The items in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Item> {
        self.list.iter().flatten()
    }

    /// The order of the next item, counting removed items.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Applies one change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Put { item } => self.put(*item),
            Change::Set { ref id, .. } | Change::Append { ref id, .. } => {
                if let Some(item) = self.item_mut(id) {
                    item.apply_own(change);
                }
            }
            Change::Remove { id } => {
                if let Some(at) = self.index_by_id.remove(&id) {
                    self.list[at] = None;
                }
            }
            Change::Info { info } => self.info = *info,
        }
    }

    /// Marks all texts as no longer streaming, at the end of the source.
    pub fn settle(&mut self) {
        for item in self.list.iter_mut().flatten() {
            apply_patch(&mut item.body, ItemPatch::IsStreaming(false));
        }
    }

    fn item_mut(&mut self, id: &str) -> Option<&mut Item> {
        let is_last =
            self.list.get(self.last_changed).and_then(Option::as_ref).is_some_and(|i| &*i.id == id);
        if !is_last {
            self.last_changed = *self.index_by_id.get(id)?;
        }
        self.list.get_mut(self.last_changed)?.as_mut()
    }

    fn put(&mut self, item: Item) {
        self.next_order = self.next_order.max(item.order + 1);
        if let Some(old) = self.item_mut(&item.id) {
            old.replace(item);
            return;
        }
        self.index_by_id.insert(item.id.clone(), self.list.len());
        self.list.push(Some(item));
    }

    /// The items in display order, those of a subagent below their call.
    pub fn ordered(&self) -> Vec<&Item> {
        let mut children: HashMap<&str, Vec<&Item>> = HashMap::new();
        let mut top: Vec<&Item> = Vec::new();
        for item in self.list.iter().flatten() {
            match &item.parent {
                Some(parent) if self.index_by_id.contains_key(parent) && *parent != item.id => {
                    children.entry(parent).or_default().push(item);
                }
                _ => top.push(item),
            }
        }
        let mut out = Vec::with_capacity(self.list.len());
        let mut stack: Vec<&Item> = top.into_iter().rev().collect();
        while let Some(item) = stack.pop() {
            out.push(item);
            // Removed from the map, so that a cycle of parents terminates.
            if let Some(list) = children.remove(item.id.as_str()) {
                stack.extend(list.into_iter().rev());
            }
        }
        // Items in a cycle of parents come last instead of being lost.
        let mut cyclic: Vec<&Item> = children.into_values().flatten().collect();
        cyclic.sort_by_key(|item| item.order);
        out.extend(cyclic);
        out
    }
}

impl Item {
    /// Applies a change of this item; ignores those of others and removals.
    pub fn apply(&mut self, change: Change) {
        if change.item() == Some(&self.id) {
            self.apply_own(change);
        }
    }

    fn apply_own(&mut self, change: Change) {
        match change {
            Change::Put { item } => self.replace(*item),
            Change::Set { set, .. } => apply_patch(&mut self.body, set),
            Change::Append { field, text, .. } => append_to(&mut self.body, field, text),
            Change::Remove { .. } | Change::Info { .. } => {}
        }
    }

    /// Replaces the item but keeps its order.
    fn replace(&mut self, new: Item) {
        *self = Item { order: self.order, ..new };
    }
}

fn append_to(body: &mut ItemBody, name: &str, more: Clean) {
    let target = match body {
        ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. } => content,
        ItemBody::UserMessage { text, .. } => text,
        ItemBody::ToolCall { tool_call } if name == "rawOutput" => {
            match tool_call.call.output.get_or_insert_with(|| ToolOutput::Whole(Clean::default())) {
                ToolOutput::Whole(text) | ToolOutput::More(text) => text,
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

fn apply_patch(body: &mut ItemBody, set: ItemPatch) {
    match (body, set) {
        (
            ItemBody::Text { is_streaming, .. } | ItemBody::Thinking { is_streaming, .. },
            ItemPatch::IsStreaming(value),
        ) => *is_streaming = value,
        (
            ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. },
            ItemPatch::Content(value),
        ) => *content = value,
        (ItemBody::UserMessage { text, .. }, ItemPatch::Content(value)) => *text = value,
        (ItemBody::Plan { content, .. }, ItemPatch::Content(value)) => *content = value,
        (
            ItemBody::Text { images, .. } | ItemBody::UserMessage { images, .. },
            ItemPatch::Images(value),
        ) => *images = value,
        (ItemBody::ToolCall { tool_call }, ItemPatch::ToolCall(mut patch)) => {
            let call = &mut tool_call.call;
            if patch.tool_name != ToolName::Unknown {
                call.tool_name = patch.tool_name;
            }
            call.kind = patch.kind;
            call.is_todo = patch.is_todo;
            if let Some(output) = patch.output.take() {
                call.output = Some(output);
            }
            let _ = call.merge(*patch);
        }
        (ItemBody::TodoList { todo_list }, ItemPatch::TodoList(value)) => *todo_list = value,
        _ => {}
    }
}

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::ItemPatch as Set;
