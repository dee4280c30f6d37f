//! The shapes of items, changes and packets, as the OpenAPI document tells them.
//!
//! They only describe: what travels is printed by the core, which knows nothing of the document.
//! `tests/typed.rs` holds the two together.

/// Shapes with fields that are always there and fields that may be missing. A field that is an
/// `Option` may be null. A shape with a word has it in the field of that name.
macro_rules! shapes {
    ($($(#[$about:meta])* $name:ident $(= $tag:ident: $word:ident $text:literal)? {
        $($(#[$must_about:meta])* $must:ident: $must_type:ty,)*
        $(; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*)?
    })*) => {$(
        $(
            #[doc = concat!("`", $text, "`")]
            #[derive(Debug, Clone, Copy, utoipa::ToSchema)]
            #[allow(missing_docs, reason = "one word")]
            pub enum $word {
                #[schema(rename = $text)]
                It,
            }
        )?

        $(#[$about])*
        #[derive(Debug, Clone, utoipa::ToSchema)]
        #[schema(rename_all = "camelCase")]
        pub struct $name {
            $(
                // Words about it would make a sum of two schemas of it.
                #[schema(inline)]
                pub $tag: $word,
            )?
            $($(#[$must_about])* #[schema(required = true)] pub $must: $must_type,)*
            $($($(#[$may_about])* #[schema(required = false)] pub $may: $may_type,)*)?
        }
    )*};
}

mod call;
mod change;
mod info;
mod packet;

pub use call::*;
pub use change::*;
pub use info::*;
pub use packet::*;

use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// One thing on the screen.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each holds what it is")]
pub enum Item {
    UserMessage(UserMessageItem),
    Text(TextItem),
    Thinking(ThinkingItem),
    ToolCall(Box<ToolCallItem>),
    TodoList(TodoListItem),
    Artifact(ArtifactItem),
    Permission(Box<PermissionItem>),
    Plan(PlanItem),
    Question(QuestionItem),
    BackgroundTask(BackgroundTaskItem),
    Compaction(CompactionItem),
    Notice(NoticeItem),
    Error(ErrorItem),
}

/// Items: what all of them have, and what each kind has besides.
macro_rules! items {
    ($($(#[$about:meta])* $name:ident = $word:ident $text:literal {
        $($(#[$must_about:meta])* $must:ident: $must_type:ty,)*
        $(; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*)?
    })*) => {
        shapes! {$(
            $(#[$about])* $name = r#type: $word $text {
                /// Stable over reruns.
                id: String,
                /// Items are shown in this order, those of a subagent below their call.
                order: u64,
                /// When it began.
                timestamp: Option<String>,
                $($(#[$must_about])* $must: $must_type,)*
                ;
                /// The call of the subagent that did this.
                parent_tool_call_id: String,
                /// The item whose text goes on in this one. A text that is too long for one item is
                /// several items, each with the next part of it: shown as one.
                continues: String,
                /// Texts that were cut, by path (`toolCall.rawOutput`, `questions.0.question`), and
                /// how many characters they have. The item itself has them whole.
                clipped: BTreeMap<String, u64>,
                $($($(#[$may_about])* $may: $may_type,)*)?
            }
        )*}
    };
}

items! {
    /// What somebody asked.
    UserMessageItem = UserMessageWord "user_message" {
        /// What was typed.
        text: String,
        /// Pictures sent along.
        images: Vec<Image>,
        /// Who reports it.
        origin: MessageOrigin,
        ;
        /// Pieces with the same id are one message.
        block_id: String,
    }

    /// What the agent said.
    TextItem = TextWord "text" {
        /// Markdown.
        content: String,
        /// Whether more is coming.
        is_streaming: bool,
        ;
        /// Pieces with the same id are one text.
        block_id: String,
        /// Pictures in the answer.
        images: Vec<Image>,
    }

    /// What the agent thought.
    ThinkingItem = ThinkingWord "thinking" {
        /// Markdown.
        content: String,
        /// Whether more is coming.
        is_streaming: bool,
        ;
        /// Pieces with the same id are one text.
        block_id: String,
        /// The agent thought here and does not show what.
        hidden: bool,
    }

    /// A tool card.
    ToolCallItem = ToolCallWord "tool_call" {
        /// The call.
        tool_call: ToolCall,
    }

    /// A checklist.
    TodoListItem = TodoListWord "todo_list" {
        /// The list.
        todo_list: TodoList,
    }

    /// Something to open.
    ArtifactItem = ArtifactWord "artifact" {
        /// The artifact.
        artifact: Artifact,
    }

    /// A question for leave. It goes when it is answered.
    PermissionItem = PermissionWord "permission" {
        /// The question.
        request_id: String,
        /// The call it is about.
        tool_call_id: String,
        /// What is asked for, in one line: a command, a file, or the agent's words.
        title: Option<String>,
        /// The answers on offer.
        options: Vec<Choice>,
        ;
        /// What the call is about to do, to the letter: its command, diffs, plan or arguments.
        tool_call: ToolCall,
    }

    /// The document in which the agent lays out what it wants to do.
    PlanItem = PlanWord "plan" {
        /// The call that presents it.
        tool_call_id: String,
        /// Markdown.
        content: String,
    }

    /// Questions to the user.
    QuestionItem = QuestionWord "question" {
        /// The call that asks.
        tool_call_id: String,
        /// What is asked.
        questions: Vec<QuestionPart>,
        ;
        /// The request to answer; none where nobody can answer any more.
        request_id: String,
        /// What the user answered; none while it is open.
        answers: Vec<GivenAnswer>,
    }

    /// Work that goes on beside the conversation.
    BackgroundTaskItem = BackgroundTaskWord "background_task" {
        /// The task.
        task_id: String,
        /// How far it is.
        status: ToolStatus,
        ;
        /// The call that began it.
        tool_call_id: String,
        /// What it does.
        description: String,
        /// What came of it.
        summary: String,
    }

    /// The agent summed up what came before.
    CompactionItem = CompactionWord "compaction" {
        /// The words.
        text: String,
        ;
        /// `manual` or `auto`.
        trigger: String,
        /// Tokens in the context before.
        tokens_before: u64,
        /// The agent's own id of it.
        compaction_id: String,
    }

    /// Something the user should know.
    NoticeItem = NoticeWord "notice" {
        /// `interrupted`, `retry`, `warning` …
        kind: String,
        /// The words.
        text: String,
    }

    /// Something failed.
    ErrorItem = ErrorWord "error" {
        /// What, in words.
        message: String,
        /// A number or a word, as the source has it.
        code: Value,
        /// More about it.
        details: Value,
        /// Whether trying again may help; null when nobody knows.
        retryable: Option<bool>,
    }
}

/// Who reports a prompt: an agent may repeat what its client sent.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum MessageOrigin {
    Client,
    Agent,
}

shapes! {
    /// A checklist.
    TodoList {
        /// The item's id.
        id: String,
        /// What is to be done.
        todos: Vec<Todo>,
        /// Whether something of it is still to be done.
        is_open: bool,
    }

    /// One answer on offer to a question for leave.
    Choice {
        /// Its id.
        option_id: String,
        /// Its words.
        name: String,
        /// `allow_once`, `allow_always`, `reject_once`, `reject_always`.
        kind: String,
    }

    /// One question to the user.
    QuestionPart {
        /// Its words.
        question: String,
        /// The answers on offer.
        options: Vec<QuestionOption>,
        /// Whether several may be chosen.
        multi_select: bool,
        ;
        /// A word for it.
        header: String,
        /// The field of a form that the answer fills in: answers are given by it.
        name: String,
        /// What an answer has to be: `number`, `integer`, `date`, `email` …; `url` is an address to visit.
        format: String,
        /// What is suggested as the answer.
        default: String,
        /// Whether it may be left without an answer.
        optional: bool,
    }

    /// One answer on offer.
    QuestionOption {
        /// Its words.
        label: String,
        ;
        /// What it means.
        description: String,
    }

    /// One answer.
    GivenAnswer {
        /// The question's words.
        question: String,
        /// What was chosen or typed.
        answer: String,
    }
}

/// Something to open. Its fields keep the names of the packets they come from.
#[derive(Debug, Clone, ToSchema)]
pub struct Artifact {
    /// Its id.
    pub id: String,
    /// `file`, `image`, `web_app`, `nextjs_app` or the agent's own word.
    pub r#type: String,
    /// Its name.
    pub name: String,
    /// Relative to the session root.
    pub path: String,
    /// Where it can be looked at.
    #[schema(required = true)]
    pub preview_url: Option<String>,
}
