//! The state of one tool call.

use super::{Diff, Image, Location, Output, Permission, Todo, ToolKind, ToolName, ToolStatus, Tri};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// What is known, or newly said, of a call. An absent field leaves what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct ToolCall<T = Clean> {
    /// The tool.
    pub tool_name: ToolName,
    /// What it does.
    pub kind: ToolKind,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// Whether it only writes the todo list.
    pub is_todo: bool,
    /// The agent's own name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<T>,
    /// The agent's own kind, when it is none of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_kind: Option<T>,
    /// The agent's own title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_title: Option<T>,
    /// What is done, in one or two words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<T>,
    /// What it is done to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
    /// The agent's own description of the call; the base of `description`.
    #[serde(skip)]
    pub said: Option<T>,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<T>,
    /// The file, relative to the session root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path: Option<T>,
    /// The pattern of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<T>,
    /// The kind of subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<T>,
    /// The agent's session in which a subagent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_session_id: Option<T>,
    /// All arguments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[serde(deserialize_with = "crate::model::read_back::present")]
    pub input: Option<Tree<T>>,
    // `stored` reads it by itself: a flattened field would take the whole call through a buffer.
    /// What it gave.
    #[serde(flatten, skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub output: Option<Output<T>>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<T>,
    /// The exit code of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether an edit makes a new file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[serde(deserialize_with = "crate::model::read_back::present")]
    pub is_new_file: Option<Tri>,
    /// The first diff's text before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_content: Option<T>,
    /// The first diff's text after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_content: Option<T>,
    /// Every changed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffs: Option<Vec<Diff<T>>>,
    /// The todo list it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<Todo<T>>>,
    /// What a subagent answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_output: Option<T>,
    /// The document in which the agent lays out what it wants to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<T>,
    /// Pictures it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Image>>,
    /// Files it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Location<T>>>,
    /// What the language server said of the files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[serde(deserialize_with = "crate::model::read_back::present")]
    pub diagnostics: Option<Tree<T>>,
    /// Whether the agent cut the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Hits of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// From the first sign of the call to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What was decided about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission<T>>,
}

impl<T> ToolCall<T> {
    /// The same as [`ToolCall::default`].
    pub fn unknown() -> Self {
        ToolCall::default()
    }
}

/// A call of which nothing is known.
impl<T> Default for ToolCall<T> {
    fn default() -> Self {
        ToolCall {
            tool_name: ToolName::Unknown,
            kind: ToolKind::Other,
            status: None,
            is_todo: false,
            name: None,
            raw_kind: None,
            agent_title: None,
            title: None,
            description: None,
            said: None,
            command: None,
            file_path: None,
            pattern: None,
            subagent_type: None,
            child_session_id: None,
            input: None,
            output: None,
            error: None,
            exit_code: None,
            is_new_file: None,
            old_content: None,
            new_content: None,
            diffs: None,
            todos: None,
            task_output: None,
            plan: None,
            images: None,
            locations: None,
            diagnostics: None,
            truncated: None,
            count: None,
            duration_ms: None,
            permission: None,
        }
    }
}
