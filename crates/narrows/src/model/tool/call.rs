//! The state of one tool call.

use super::{
    Diff, Image, Location, Permission, Todo, ToolKind, ToolName, ToolOutput, ToolStatus, TriState,
};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// The known fields of a call, or those that an event updates. An absent field keeps its old value.
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
    /// Kind of the action.
    pub kind: ToolKind,
    /// Progress of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// Whether the call only writes the todo list.
    pub is_todo: bool,
    /// The agent's own name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<T>,
    /// The agent's own kind, if it is not a [`ToolKind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_kind: Option<T>,
    /// The agent's own title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_title: Option<T>,
    /// Title: the action in one or two words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<T>,
    /// Description: the object of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
    /// The agent's own description of the call, from which `description` is derived.
    #[serde(skip)]
    pub said: Option<T>,
    /// Command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<T>,
    /// File, relative to the session root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path: Option<T>,
    /// Search pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<T>,
    /// Type of the subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<T>,
    /// The agent's session in which a subagent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_session_id: Option<T>,
    /// All arguments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[serde(deserialize_with = "crate::model::read_back::present")]
    pub input: Option<Tree<T>>,
    // `persisted` reads this field by itself: serde buffers the whole object for a flattened field.
    /// Output.
    #[serde(flatten, skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub output: Option<ToolOutput<T>>,
    /// Error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<T>,
    /// Exit code of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether an edit creates the file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[serde(deserialize_with = "crate::model::read_back::present")]
    pub is_new_file: Option<TriState>,
    /// Old text of the first diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_content: Option<T>,
    /// New text of the first diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_content: Option<T>,
    /// Every changed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffs: Option<Vec<Diff<T>>>,
    /// The todo list that the call writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<Todo<T>>>,
    /// Answer of a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_output: Option<T>,
    /// Document with the plan that the agent presents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<T>,
    /// Images in the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Image>>,
    /// Files that the call touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Location<T>>>,
    /// Diagnostics of the language server for the files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[serde(deserialize_with = "crate::model::read_back::present")]
    pub diagnostics: Option<Tree<T>>,
    /// Whether the agent cut the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Number of search results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Time from the first event of the call to its end, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Decision on its permission request.
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
