//! The order in which a session is read: what a subagent did stands below its call.
//!
//! Items come in the order in which they began, so those of several subagents at work are mixed.
//! A first pass over them notes only which call has children, and where the last one stands; the
//! second holds back what must wait until a call has all of them.

use narrows::Item;
use narrows::item::ItemBody;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;

/// Items that are held back at most: then a call is told with the children it has so far.
const MAX_HELD: usize = 20_000;
/// And so many bytes of their texts.
const MAX_BYTES: usize = 64 << 20;

/// Items that can be read several times, in order.
pub(crate) trait Source {
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()>;
}

/// An item with everything that was done below it.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) item: Item,
    pub(crate) children: Vec<Node>,
}

/// Which calls have children, and the order of the last item below each.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// By the id of the outermost call.
    last: HashMap<String, u64>,
    /// The outermost call of each call that has children.
    outermost: HashMap<String, String>,
}

impl Parents {
    /// The first pass.
    pub(crate) fn read(source: &dyn Source) -> io::Result<Parents> {
        let mut parents = Parents::default();
        // Which call a call was made by; calls without a parent need no place.
        let mut above: HashMap<String, String> = HashMap::new();
        source.items(&mut |item| {
            let Some(parent) = &item.parent else { return Ok(()) };
            let root = above.get(parent.as_str()).cloned().unwrap_or_else(|| parent.to_string());
            if let ItemBody::ToolCall { tool_call } = &item.body
                && tool_call.id != root.as_str()
            {
                above.insert(tool_call.id.to_string(), root.clone());
            }
            parents.last.insert(root.clone(), item.order);
            if !parents.outermost.contains_key(parent.as_str()) {
                parents.outermost.insert(parent.to_string(), root);
            }
            Ok(())
        })?;
        Ok(parents)
    }
}

/// Gives the outermost items to `each`, in order, with everything below them.
pub(crate) fn nodes(
    source: &dyn Source,
    mut each: impl FnMut(Node) -> io::Result<()>,
) -> io::Result<()> {
    let parents = Parents::read(source)?;
    let mut held: VecDeque<Node> = VecDeque::new();
    let (mut count, mut bytes) = (0, 0);
    source.items(&mut |item| {
        let order = item.order;
        count += 1;
        bytes += item.weight();
        let root = item
            .parent
            .as_ref()
            .map(|p| parents.outermost.get(p.as_str()).map_or_else(|| p.to_string(), Clone::clone));
        let place = root.and_then(|root| held.iter_mut().rev().find(|n| is_call(&n.item, &root)));
        let node = Node { item, children: Vec::new() };
        match place {
            Some(above) => adopt(above, node),
            None => held.push_back(node),
        }
        while let Some(first) = held.front() {
            let waits = call_id(&first.item)
                .and_then(|id| parents.last.get(id))
                .is_some_and(|last| *last > order);
            if waits && count < MAX_HELD && bytes < MAX_BYTES {
                break;
            }
            if let Some(node) = held.pop_front() {
                let (items, texts) = size(&node);
                count = count.saturating_sub(items);
                bytes = bytes.saturating_sub(texts);
                each(node)?;
            }
        }
        Ok(())
    })?;
    held.into_iter().try_for_each(each)
}

/// Gives every item to `each`, those of a subagent after their call.
pub(crate) fn ordered(
    source: &dyn Source,
    mut each: impl FnMut(&Item) -> io::Result<()>,
) -> io::Result<()> {
    nodes(source, |node| {
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

/// Puts a node below its call, which is the node or somewhere below it.
fn adopt(above: &mut Node, node: Node) {
    let Some(parent) = node.item.parent.clone() else { return above.children.push(node) };
    let mut place = above;
    // Its call is most often the last one; a path is looked for level by level.
    loop {
        if is_call(&place.item, &parent) {
            break;
        }
        let Some(next) = place.children.iter().rposition(|c| holds(c, &parent)) else { break };
        place = &mut place.children[next];
    }
    place.children.push(node);
}

/// Whether a call is the node or below it.
fn holds(node: &Node, id: &str) -> bool {
    let mut stack = vec![node];
    while let Some(node) = stack.pop() {
        if is_call(&node.item, id) {
            return true;
        }
        stack.extend(&node.children);
    }
    false
}

/// How many items a node has, and how many bytes of text.
fn size(node: &Node) -> (usize, usize) {
    let mut stack = vec![node];
    let (mut count, mut bytes) = (0, 0);
    while let Some(node) = stack.pop() {
        count += 1;
        bytes += node.item.weight();
        stack.extend(&node.children);
    }
    (count, bytes)
}
