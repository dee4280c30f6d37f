//! Title and description of a call, derived from its fields.

use super::{ToolCall, ToolKind, ToolName, TriState, display_title, tool_by_name};
use crate::sanitize::Clean;

const SUBAGENT: &str = "Running subagent";
const COMMAND: &str = "Running command";

impl ToolCall {
    /// The title and the description, from what is known by now.
    pub(crate) fn derived_labels(&self) -> ToolCall {
        let is_new = self.is_new_file.unwrap_or(TriState::Unknown);
        let title = display_title(self.tool_name, self.kind, is_new);
        let non_empty = |text: &Option<Clean>| text.clone().filter(|t| !t.is_empty());
        // A title that is the name of the tool describes nothing.
        let is_name =
            |t: &Clean| tool_by_name(t, Some(self.kind)).is_some_and(|n| n != ToolName::Mcp);
        let agent_title = || non_empty(&self.agent_title).filter(|t| !is_name(t));
        let agent_words = || non_empty(&self.said);
        let description = match (self.tool_name, self.kind) {
            (ToolName::Task, _) => agent_words().or(Some(Clean::literal(SUBAGENT))),
            (_, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => {
                non_empty(&self.file_path).or_else(agent_title)
            }
            (ToolName::Mcp, _) => agent_words().or_else(agent_title),
            (_, ToolKind::Execute) => agent_words().or(Some(Clean::literal(COMMAND))),
            (_, ToolKind::Search) => non_empty(&self.pattern).or_else(agent_title),
            (ToolName::TodoWrite, _) => None,
            _ => agent_words().or_else(agent_title),
        };
        let is_new_file = (self.kind == ToolKind::Edit).then_some(is_new);
        ToolCall {
            title: Some(Clean::literal(title)),
            description: Some(description.unwrap_or_else(|| Clean::literal(title))),
            is_new_file,
            ..ToolCall::default()
        }
    }

    /// The agent's own description of the call, recovered from [`ToolCall::description`] after a
    /// restart; the inverse of [`ToolCall::derived_labels`].
    pub(crate) fn original_description(&self) -> Option<Clean> {
        if self.said.is_some() {
            return self.said.clone();
        }
        let is_title =
            |d: &Clean| Some(d) == self.agent_title.as_ref() || Some(d) == self.title.as_ref();
        let is_derived = |d: &Clean| match (self.tool_name, self.kind) {
            (ToolName::Task, _) => *d == SUBAGENT,
            (_, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => true,
            (ToolName::Mcp, _) => is_title(d),
            (_, ToolKind::Execute) => *d == COMMAND,
            (_, ToolKind::Search) | (ToolName::TodoWrite, _) => true,
            _ => is_title(d),
        };
        self.description.clone().filter(|d| !d.is_empty() && !is_derived(d))
    }
}
