//! Nests the items of subagents below the calls that started them.
//!
//! Items come in the order in which they began, so the items of concurrent subagents are mixed. A
//! first pass records which calls have descendants and where the last one stands; the second pass
//! buffers items until a call has all of its descendants.

use narrows::Item;
use narrows::item::ItemBody;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;

/// Buffered items; beyond this, a call is emitted with the children it has so far.
const MAX_BUFFERED_ITEMS: usize = 20_000;
/// Buffered bytes of their texts; beyond this, the same holds.
const MAX_BUFFERED_BYTES: usize = 64 << 20;

/// Items in order that can be read several times.
pub trait ItemSource {
    /// Passes the items to `each` and stops at its first error.
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()>;
}

/// An item and its descendants.
#[derive(Debug, Clone)]
pub(crate) struct ItemTree {
    pub(crate) item: Item,
    pub(crate) children: Vec<ItemTree>,
}

/// The calls that have children, and the order of the last descendant of each outermost call.
#[derive(Debug, Default)]
pub(crate) struct ParentIndex {
    /// By the id of the outermost call.
    last_descendant: HashMap<String, u64>,
    /// The outermost call above each call that has children.
    outermost: HashMap<String, String>,
}

impl ParentIndex {
    /// Runs the first pass.
    pub(crate) fn build(source: &dyn ItemSource) -> io::Result<ParentIndex> {
        let mut parents = ParentIndex::default();
        // The outermost call above each nested call.
        let mut above: HashMap<String, String> = HashMap::new();
        source.items(&mut |item| {
            let Some(parent) = &item.parent else { return Ok(()) };
            let root = above.get(parent.as_str()).cloned().unwrap_or_else(|| parent.to_string());
            if let ItemBody::ToolCall { tool_call } = &item.body
                && tool_call.id != root.as_str()
            {
                above.insert(tool_call.id.to_string(), root.clone());
            }
            parents.last_descendant.insert(root.clone(), item.order);
            if !parents.outermost.contains_key(parent.as_str()) {
                parents.outermost.insert(parent.to_string(), root);
            }
            Ok(())
        })?;
        Ok(parents)
    }
}

/// Passes the outermost items to `each`, in order, with their descendants.
pub(crate) fn for_each_tree(
    source: &dyn ItemSource,
    mut each: impl FnMut(ItemTree) -> io::Result<()>,
) -> io::Result<()> {
    let parents = ParentIndex::build(source)?;
    let mut buffered: VecDeque<ItemTree> = VecDeque::new();
    let (mut count, mut bytes) = (0, 0);
    source.items(&mut |item| {
        let order = item.order;
        count += 1;
        bytes += item.weight();
        let root = item
            .parent
            .as_ref()
            .map(|p| parents.outermost.get(p.as_str()).map_or_else(|| p.to_string(), Clone::clone));
        let target =
            root.and_then(|root| buffered.iter_mut().rev().find(|n| is_call(&n.item, &root)));
        let node = ItemTree { item, children: Vec::new() };
        match target {
            Some(root) => insert_child(root, node),
            None => buffered.push_back(node),
        }
        while let Some(first) = buffered.front() {
            let awaits_children = call_id(&first.item)
                .and_then(|id| parents.last_descendant.get(id))
                .is_some_and(|last| *last > order);
            if awaits_children && count < MAX_BUFFERED_ITEMS && bytes < MAX_BUFFERED_BYTES {
                break;
            }
            if let Some(node) = buffered.pop_front() {
                let (items, texts) = measure(&node);
                count = count.saturating_sub(items);
                bytes = bytes.saturating_sub(texts);
                each(node)?;
            }
        }
        Ok(())
    })?;
    buffered.into_iter().try_for_each(each)
}

/// Passes every item to `each`, those of a subagent after their call.
pub(crate) fn for_each_item(
    source: &dyn ItemSource,
    mut each: impl FnMut(&Item) -> io::Result<()>,
) -> io::Result<()> {
    for_each_tree(source, |node| {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            each(&node.item)?;
            stack.extend(node.children.into_iter().rev());
        }
        Ok(())
    })
}

fn call_id(item: &Item) -> Option<&str> {
    match &item.body {
        ItemBody::ToolCall { tool_call } => Some(tool_call.id.as_str()),
        _ => None,
    }
}

fn is_call(item: &Item, id: &str) -> bool {
    call_id(item) == Some(id)
}

/// Inserts a node below its call, which is `root` or one of its descendants.
fn insert_child(root: &mut ItemTree, node: ItemTree) {
    let Some(parent) = node.item.parent.clone() else { return root.children.push(node) };
    let mut target = root;
    // The call is usually the last one; the path is searched level by level.
    loop {
        if is_call(&target.item, &parent) {
            break;
        }
        let Some(next) = target.children.iter().rposition(|c| contains_call(c, &parent)) else {
            break;
        };
        target = &mut target.children[next];
    }
    target.children.push(node);
}

/// Returns whether a call is the node or one of its descendants.
fn contains_call(node: &ItemTree, id: &str) -> bool {
    let mut stack = vec![node];
    while let Some(node) = stack.pop() {
        if is_call(&node.item, id) {
            return true;
        }
        stack.extend(&node.children);
    }
    false
}

/// Returns the number of items of a node and the bytes of their texts.
fn measure(node: &ItemTree) -> (usize, usize) {
    let mut stack = vec![node];
    let (mut count, mut bytes) = (0, 0);
    while let Some(node) = stack.pop() {
        count += 1;
        bytes += node.item.weight();
        stack.extend(&node.children);
    }
    (count, bytes)
}
