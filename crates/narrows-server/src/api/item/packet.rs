//! Packets of the view of that name, as front ends of the protocol read them.
//!
//! A field that is told here is always there and of this type; packets may have more fields.

mod parts;

pub use parts::*;

use super::{Artifact, ToolStatus, Usage};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Types of one value: null, an object without fields, an array without entries.
macro_rules! values {
    ($($(#[$about:meta])* $name:ident = $schema:expr;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema
            }
        }

        impl ToSchema for $name {}
    )*};
}

values! {
    /// Null.
    Null = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Null)).into();
    /// An object without fields.
    NoFields = ObjectBuilder::new().max_properties(Some(0)).into();
    /// An array without entries.
    NoEntries = ArrayBuilder::new().items(Place::schema()).max_items(Some(0)).into();
}

/// Words of which one schema allows these.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($word:ident = $text:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, ToSchema)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum $name {
            $(#[schema(rename = $text)] $word,)*
        }
    )*};
}

words! {
    /// What a call does, in the words of these front ends; `toolName` tells more.
    PacketKind {
        Search = "search", Read = "read", Execute = "execute", Edit = "edit", Other = "other",
    }
    /// How far an entry of a list is.
    EntryStatus { Pending = "pending", InProgress = "in_progress", Completed = "completed", }
    /// How important an entry is.
    Priority { High = "high", Medium = "medium", Low = "low", }
    /// What happened to a file.
    PatchAction { Add = "add", Update = "update", Delete = "delete", }
    /// `text`
    TextType { It = "text", }
    /// `tool_call_progress`
    ProgressType { It = "tool_call_progress", }
    /// The name of the update in the protocol.
    MessageUpdate { It = "agent_message_chunk", }
    /// The name of the update in the protocol.
    ThoughtUpdate { It = "agent_thought_chunk", }
    /// The name of the update in the protocol.
    UserUpdate { It = "user_message_chunk", }
    /// The name of the update in the protocol.
    StartUpdate { It = "tool_call", }
    /// The name of the update in the protocol.
    ProgressUpdate { It = "tool_call_update", }
    /// The name of the update in the protocol.
    PlanUpdate { It = "plan", }
    /// Told, not said.
    NoticeUpdate { It = "notice", }
    /// A compaction.
    CompactionUpdate { It = "compaction_update", }
    /// It is over.
    CompactionStatus { It = "completed", }
    /// How much a notice matters.
    Severity { Info = "info", Warning = "warning", Error = "error", }
    /// The status of a call that begins.
    StartStatus { It = "pending", }
    /// Which tool a call uses.
    BashName { It = "bash", }
    /// Which tool a call uses.
    ReadName { It = "read", }
    /// Which tool a call uses.
    SearchName { Glob = "glob", Grep = "grep", WebSearch = "websearch", }
    /// Which tool a call uses.
    WriteName { It = "write", }
    /// Which tool a call uses.
    EditName { It = "edit", }
    /// Which tool a call uses.
    PatchName { It = "apply_patch", }
    /// Which tool a call uses.
    TaskName { It = "task", }
    /// Which tool a call uses.
    TodoName { It = "todowrite", }
    /// Which tool a call uses.
    OtherName {
        WebFetch = "webfetch", Skill = "skill", List = "list", Lsp = "lsp", Question = "question",
        Notebook = "notebook", PlanMode = "plan_mode", Mcp = "mcp", Unknown = "unknown",
    }
}

/// One packet of the view `packets`, and of the stream of a turn.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each holds what it is")]
pub enum Packet {
    AgentMessageChunk(AgentMessageChunkPacket),
    AgentThoughtChunk(AgentThoughtChunkPacket),
    UserMessageChunk(UserMessageChunkPacket),
    ToolCallStart(ToolCallStartPacket),
    ToolCallProgress(Box<ToolCallProgressPacket>),
    AgentPlanUpdate(AgentPlanUpdatePacket),
    PromptResponse(Box<PromptResponsePacket>),
    ArtifactCreated(ArtifactCreatedPacket),
    Notice(NoticePacket),
    CompactionUpdate(CompactionUpdatePacket),
    Error(ErrorPacket),
}

/// Something new of a call, by its tool. `rawOutput` is there when the call has ended, and then has
/// `error` unless the status is `completed`.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each holds what it is")]
pub enum ToolCallProgressPacket {
    Bash(BashProgressPacket),
    Read(ReadProgressPacket),
    Search(SearchProgressPacket),
    Write(WriteProgressPacket),
    Edit(EditProgressPacket),
    Patch(PatchProgressPacket),
    Task(TaskProgressPacket),
    Todo(TodoProgressPacket),
    Other(OtherProgressPacket),
}

/// Packets: what all of them have, and what each kind has besides.
macro_rules! packets {
    ($($(#[$about:meta])* $name:ident = $word:ident $text:literal {
        $($(#[$must_about:meta])* $must:ident: $must_type:ty,)*
        $(; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*)?
    })*) => {
        shapes! {$(
            $(#[$about])* $name = r#type: $word $text {
                /// When; null only where the sender asked for no times.
                timestamp: Option<String>,
                $($(#[$must_about])* $must: $must_type,)*
                ;
                /// The call of the subagent that did this.
                parent_tool_call_id: String,
                $($($(#[$may_about])* $may: $may_type,)*)?
            }
        )*}
    };
}

packets! {
    /// More of what the agent says.
    AgentMessageChunkPacket = AgentMessageChunkWord "agent_message_chunk" {
        #[schema(inline)]
        session_update: MessageUpdate,
        /// The piece; pieces are joined as they come.
        content: TextContent,
        #[schema(inline, rename = "_meta")]
        meta: Null,
        ;
        /// Pieces with the same id are one message.
        message_id: String,
    }

    /// More of what the agent thinks.
    AgentThoughtChunkPacket = AgentThoughtChunkWord "agent_thought_chunk" {
        #[schema(inline)]
        session_update: ThoughtUpdate,
        /// The piece; pieces are joined as they come.
        content: TextContent,
        #[schema(inline, rename = "_meta")]
        meta: Null,
        ;
        /// Pieces with the same id are one text.
        message_id: String,
    }

    /// More of what somebody asked.
    UserMessageChunkPacket = UserMessageChunkWord "user_message_chunk" {
        #[schema(inline)]
        session_update: UserUpdate,
        /// The piece; pieces are joined as they come.
        content: TextContent,
        #[schema(inline, rename = "_meta")]
        meta: Null,
        ;
        /// Pieces with the same id are one message.
        message_id: String,
    }

    /// A call begins: once for each, before anything else is told of it.
    ToolCallStartPacket = ToolCallStartWord "tool_call_start" {
        #[schema(inline)]
        session_update: StartUpdate,
        /// The call.
        tool_call_id: String,
        /// The name of the tool.
        title: String,
        /// Which tool.
        tool_name: super::ToolName,
        /// What it does.
        kind: PacketKind,
        #[schema(inline)]
        status: StartStatus,
        #[schema(inline)]
        raw_input: NoFields,
        #[schema(inline)]
        raw_output: Null,
        #[schema(inline)]
        content: Null,
        #[schema(inline)]
        locations: NoEntries,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// The agent's plan, whole.
    AgentPlanUpdatePacket = AgentPlanUpdateWord "agent_plan_update" {
        #[schema(inline)]
        session_update: PlanUpdate,
        /// What is to be done.
        entries: Vec<PlanPacketEntry>,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// The turn is over. One that failed ends with `error` instead.
    PromptResponsePacket = PromptResponseWord "prompt_response" {
        /// `end_turn`, `max_tokens`, `cancelled` …, as the agent says.
        stop_reason: String,
        /// What the turn used, where the agent tells.
        usage: Option<Usage>,
        #[schema(inline, rename = "_meta")]
        meta: NoFields,
    }

    /// Something was made that a person may want to open.
    ArtifactCreatedPacket = ArtifactCreatedWord "artifact_created" {
        /// What.
        artifact: Artifact,
    }

    /// Something that the agent's program says, not the model.
    NoticePacket = NoticePacketWord "notice" {
        #[schema(inline)]
        session_update: NoticeUpdate,
        /// How much it matters.
        severity: Severity,
        /// `interrupted`, `retry`, `warning` …, as items have it.
        kind: String,
        /// The words.
        title: String,
        #[schema(inline)]
        description: Null,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// The agent summed up what came before. One that is told again stands for the one before it.
    CompactionUpdatePacket = CompactionUpdateWord "compaction_update" {
        #[schema(inline)]
        session_update: CompactionUpdate,
        /// Which.
        compaction_id: String,
        #[schema(inline)]
        status: CompactionStatus,
        /// What it kept, to be shown.
        summary: Vec<TextContent>,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// The turn failed, and is over.
    ErrorPacket = ErrorPacketWord "error" {
        /// What, in words.
        message: String,
        /// A number; one that is a word is in `details.code`.
        code: Option<f64>,
        /// More about it.
        details: Option<BTreeMap<String, Value>>,
    }
}

/// Progress of a call: what all of them have, and the shapes of one tool.
macro_rules! progress {
    ($($(#[$about:meta])* $name:ident: $tool:ty, $input:ty, $output:ty;)*) => {
        shapes! {$(
            $(#[$about])*
            $name {
                #[schema(inline)]
                r#type: ProgressType,
                #[schema(inline)]
                session_update: ProgressUpdate,
                /// When; null only where the sender asked for no times.
                timestamp: Option<String>,
                /// The call.
                tool_call_id: String,
                /// The agent's own title, else the tool's name.
                title: String,
                #[schema(inline)]
                tool_name: $tool,
                /// What it does.
                kind: PacketKind,
                /// How far it is.
                status: ToolStatus,
                /// The arguments: the agent's own, and these.
                raw_input: $input,
                /// What it gave; null until it has ended.
                raw_output: Option<$output>,
                /// What it gave, to be shown.
                content: Option<Vec<ContentBlock>>,
                /// Files it touches.
                locations: Option<Vec<Place>>,
                #[schema(inline, rename = "_meta")]
                meta: Null,
                ;
                /// The call of the subagent that did this.
                parent_tool_call_id: String,
            }
        )*}
    };
}

progress! {
    /// A command.
    BashProgressPacket: BashName, BashInput, BashOutput;
    /// A file that is read.
    ReadProgressPacket: ReadName, ReadInput, ReadOutput;
    /// A search.
    SearchProgressPacket: SearchName, SearchInput, SearchOutput;
    /// A file that is written.
    WriteProgressPacket: WriteName, WriteInput, WriteOutput;
    /// A file that is changed.
    EditProgressPacket: EditName, EditInput, WriteOutput;
    /// Files that are changed by a patch.
    PatchProgressPacket: PatchName, PatchInput, PatchOutput;
    /// A subagent.
    TaskProgressPacket: TaskName, TaskInput, OtherOutput;
    /// A list of what is to be done.
    TodoProgressPacket: TodoName, TodoInput, TodoOutput;
    /// Any other tool.
    OtherProgressPacket: OtherName, BTreeMap<String, Value>, OtherOutput;
}
