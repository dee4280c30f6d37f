//! Items: the things a person sees in a transcript.

use crate::model::event::{
    ArtifactInfo, BackgroundTask, Compaction, PermissionOption, PromptOrigin, QuestionPart,
    QuestionResponse,
};
use crate::model::time::Time;
use crate::model::tool::{Image, Todo, ToolCall, ToolOutput, ToolStatus};
use crate::sanitize::{Clean, Tree};
use serde::{Serialize, Serializer};

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Id, the same each time the session is parsed.
    pub id: Clean,
    /// Position in the transcript; the items of a subagent are nested below its call.
    pub order: u64,
    /// The call of the subagent that produced the item.
    pub parent: Option<Clean>,
    /// The item whose text this one continues: a text that is too long for one item is split.
    pub continues: Option<Clean>,
    /// Time of its first event.
    pub time: Option<Time>,
    /// Kind and content.
    pub body: ItemBody,
}

/// Kind and content of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the fields say it")]
pub enum ItemBody {
    #[serde(rename_all = "camelCase")]
    UserMessage {
        text: Clean,
        images: Vec<Image>,
        origin: PromptOrigin,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_id: Option<Clean>,
    },
    #[serde(rename_all = "camelCase")]
    Text {
        content: Clean,
        is_streaming: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_id: Option<Clean>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    #[serde(rename_all = "camelCase")]
    Thinking {
        content: Clean,
        is_streaming: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_id: Option<Clean>,
        /// The agent was thinking and does not show its thoughts.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        hidden: bool,
    },
    #[serde(rename_all = "camelCase")]
    ToolCall {
        tool_call: Box<ToolItem>,
    },
    #[serde(rename_all = "camelCase")]
    TodoList {
        todo_list: TodoList,
    },
    Artifact {
        artifact: ArtifactInfo,
    },
    #[serde(rename_all = "camelCase")]
    Permission {
        request_id: Clean,
        tool_call_id: Clean,
        title: Option<Clean>,
        options: Vec<PermissionOption>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call: Option<Box<ToolItem>>,
    },
    #[serde(rename_all = "camelCase")]
    Plan {
        tool_call_id: Clean,
        content: Clean,
    },
    #[serde(rename_all = "camelCase")]
    Question {
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<Clean>,
        tool_call_id: Clean,
        questions: Vec<QuestionPart>,
        #[serde(skip_serializing_if = "Option::is_none")]
        answers: Option<Vec<QuestionResponse>>,
    },
    BackgroundTask(BackgroundTask),
    Compaction(Compaction),
    Notice {
        kind: Clean,
        text: Clean,
    },
    Error {
        message: Clean,
        code: Option<Tree<Clean>>,
        details: Option<Tree<Clean>>,
        retryable: Option<bool>,
    },
}

/// The content of a tool call item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolItem {
    /// Id of the call.
    pub id: Clean,
    /// The known fields of the call.
    #[serde(flatten)]
    pub call: ToolCall,
}

/// A todo list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct TodoList {
    /// Id of the item.
    pub id: Clean,
    /// The entries.
    pub todos: Vec<Todo>,
    /// Whether an entry is not done.
    pub is_open: bool,
}

impl TodoList {
    pub(crate) fn new(id: Clean, todos: Vec<Todo>) -> Self {
        let is_open = todos.iter().any(|t| !t.status.is_final());
        TodoList { id, todos, is_open }
    }
}

impl Item {
    /// Approximate bytes of its texts.
    pub fn weight(&self) -> usize {
        let length = |text: &Option<Clean>| text.as_ref().map_or(0, |t| t.len());
        let call = match &self.body {
            ItemBody::Text { content, .. }
            | ItemBody::Thinking { content, .. }
            | ItemBody::Plan { content, .. } => return content.len(),
            ItemBody::UserMessage { text, .. } | ItemBody::Notice { text, .. } => {
                return text.len();
            }
            ItemBody::Compaction(summary) => return summary.text.len(),
            ItemBody::BackgroundTask(task) => return length(&task.summary),
            ItemBody::ToolCall { tool_call } => &tool_call.call,
            _ => return 0,
        };
        let output = match &call.output {
            Some(ToolOutput::Whole(text) | ToolOutput::More(text)) => text.len(),
            None => 0,
        };
        let diffs = call.diffs.iter().flatten();
        let diffs = diffs.map(|d| length(&d.old_text) + length(&d.new_text) + length(&d.patch));
        let input = call.input.as_ref().map_or(0, |tree| tree.json().len());
        let texts = [&call.old_content, &call.new_content, &call.task_output, &call.error];
        output + input + diffs.sum::<usize>() + texts.into_iter().map(length).sum::<usize>()
    }

    /// Whether the item is still expected to change: a streaming text, a running call, an
    /// unanswered question, a running background task.
    pub fn is_open(&self) -> bool {
        match &self.body {
            ItemBody::Text { is_streaming, .. } | ItemBody::Thinking { is_streaming, .. } => {
                *is_streaming
            }
            ItemBody::ToolCall { tool_call } => {
                !tool_call.call.status.is_some_and(ToolStatus::is_final)
            }
            ItemBody::Permission { .. } => true,
            ItemBody::Question { answers, .. } => answers.is_none(),
            ItemBody::BackgroundTask(task) => !task.status.is_final(),
            ItemBody::UserMessage { .. }
            | ItemBody::TodoList { .. }
            | ItemBody::Artifact { .. }
            | ItemBody::Plan { .. }
            | ItemBody::Compaction(_)
            | ItemBody::Notice { .. }
            | ItemBody::Error { .. } => false,
        }
    }
}

impl ItemBody {
    /// The item's `type` in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            ItemBody::UserMessage { .. } => "user_message",
            ItemBody::Text { .. } => "text",
            ItemBody::Thinking { .. } => "thinking",
            ItemBody::ToolCall { .. } => "tool_call",
            ItemBody::TodoList { .. } => "todo_list",
            ItemBody::Artifact { .. } => "artifact",
            ItemBody::Permission { .. } => "permission",
            ItemBody::Plan { .. } => "plan",
            ItemBody::Question { .. } => "question",
            ItemBody::BackgroundTask(_) => "background_task",
            ItemBody::Compaction(_) => "compaction",
            ItemBody::Notice { .. } => "notice",
            ItemBody::Error { .. } => "error",
        }
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ItemJson<'a> {
            r#type: &'static str,
            id: &'a Clean,
            order: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent_tool_call_id: Option<&'a Clean>,
            #[serde(skip_serializing_if = "Option::is_none")]
            continues: Option<&'a Clean>,
            timestamp: Option<&'a Time>,
            #[serde(flatten)]
            body: &'a ItemBody,
        }
        ItemJson {
            r#type: self.body.kind(),
            id: &self.id,
            order: self.order,
            parent_tool_call_id: self.parent.as_ref(),
            continues: self.continues.as_ref(),
            timestamp: self.time.as_ref(),
            body: &self.body,
        }
        .serialize(s)
    }
}
