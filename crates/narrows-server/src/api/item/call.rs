//! Tool calls.

use serde_json::Value;
use utoipa::ToSchema;

/// Which tool a call uses.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolName {
    Glob,
    Grep,
    Read,
    Write,
    Edit,
    Bash,
    Task,
    TodoWrite,
    WebFetch,
    WebSearch,
    #[schema(rename = "apply_patch")]
    ApplyPatch,
    Skill,
    List,
    Lsp,
    Question,
    Notebook,
    #[schema(rename = "plan_mode")]
    PlanMode,
    Mcp,
    Unknown,
}

/// What a call does, in one of few words.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolKind {
    Search,
    Read,
    Execute,
    Edit,
    Task,
    Other,
    Delete,
    Move,
    Think,
    Fetch,
    SwitchMode,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

/// What was decided about a call that needed leave.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PermissionDecision {
    Allowed,
    Rejected,
    Cancelled,
}

/// Whether the texts of a diff are whole files.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DiffScope {
    File,
    Hunk,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DiffAction {
    Add,
    Update,
    Delete,
    Move,
}

shapes! {
    /// One changed file of a call.
    Diff {
        /// Relative to the session root.
        path: String,
        /// The text before; null when nobody told.
        old_text: Option<String>,
        /// The text after; null when the file is gone.
        new_text: Option<String>,
        /// What the texts are.
        scope: DiffScope,
        ;
        /// What happened, where somebody told.
        action: DiffAction,
        /// Lines added, where somebody counted.
        additions: u64,
        /// Lines removed, where somebody counted.
        deletions: u64,
        /// The change as a unified diff, where the texts are missing.
        patch: String,
        /// The changed lines, where the agent tells.
        hunks: Vec<Hunk>,
    }

    /// Changed lines of a file, with some around them.
    Hunk {
        /// The first line before the change, from 1.
        old_start: u64,
        /// How many lines it had.
        old_lines: u64,
        /// The first line after the change, from 1.
        new_start: u64,
        /// How many lines it has.
        new_lines: u64,
        /// The lines, each after a blank, a `-` or a `+`.
        lines: Vec<String>,
    }

    /// One entry of a todo list.
    Todo {
        /// What is to be done.
        content: String,
        /// How far it is.
        status: ToolStatus,
        /// The same while it is being done.
        active_form: String,
        ;
        /// `high`, `medium` or `low`, where the agent tells.
        priority: String,
        /// Its id, where entries have one that is not their place in the list.
        id: String,
    }

    /// A place that a call touches.
    Location {
        /// Relative to the session root.
        path: String,
        /// The line, from 1.
        line: Option<u64>,
    }

    /// A picture: its bytes are at `/api/sessions/{id}/blobs/{hash}`.
    Image {
        /// The SHA-256 of the bytes, in hexadecimal.
        blob: String,
        /// `image/png` and the like.
        mime_type: String,
        /// Length in bytes.
        size: u64,
    }

    /// What somebody decided about a call that needed leave.
    Permission {
        /// What.
        decision: PermissionDecision,
        ;
        /// The option that was chosen, by its name where that is known.
        option: String,
        /// How long the call waited for it, in milliseconds; it is no part of `durationMs`.
        waited_ms: u64,
    }
}

/// A call as its card has it, and news of one, in which some fields are left out.
macro_rules! calls {
    ($($(#[$always_about:meta])* $always:ident: $always_type:ty,)*
        ; $($(#[$card_about:meta])* $card:ident: $card_type:ty,)*
        ; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*) => {
        shapes! {
            /// What is known of a call.
            ToolCall {
                /// The call.
                id: String,
                $($(#[$always_about])* $always: $always_type,)*
                $($(#[$card_about])* $card: $card_type,)*
                ;
                $($(#[$may_about])* $may: $may_type,)*
            }

            /// What is new of a call. An absent field leaves what is known.
            ToolCallNews {
                $($(#[$always_about])* $always: $always_type,)*
                ;
                $($(#[$card_about])* $card: $card_type,)*
                $($(#[$may_about])* $may: $may_type,)*
            }
        }
    };
}

calls! {
    /// The tool.
    tool_name: ToolName,
    /// What it does.
    kind: ToolKind,
    /// Whether it only writes the todo list.
    is_todo: bool,
    ;
    /// How far it is.
    status: ToolStatus,
    /// What is done, in one or two words.
    title: String,
    /// What it is done to.
    description: String,
    /// The command line; empty where there is none.
    command: String,
    /// The file, relative to the session root; empty where there is none.
    file_path: String,
    ;
    /// The agent's own name of the tool.
    name: String,
    /// The agent's own kind, when it is none of ours.
    raw_kind: String,
    /// The agent's own title.
    agent_title: String,
    /// The pattern of a search.
    pattern: String,
    /// The kind of subagent.
    subagent_type: String,
    /// The agent's session in which a subagent works.
    child_session_id: String,
    /// All arguments.
    input: Value,
    /// What it gave.
    raw_output: String,
    /// Why it failed.
    error: String,
    /// The exit code of a command.
    exit_code: i64,
    /// Whether an edit makes a new file; null when nobody has said.
    is_new_file: Option<bool>,
    /// The first diff's text before.
    old_content: String,
    /// The first diff's text after.
    new_content: String,
    /// Every changed file.
    diffs: Vec<Diff>,
    /// The todo list it writes.
    todos: Vec<Todo>,
    /// What a subagent answered.
    task_output: String,
    /// The document in which the agent lays out what it wants to do.
    plan: String,
    /// Pictures it gave.
    images: Vec<Image>,
    /// Files it touches.
    locations: Vec<Location>,
    /// What the language server said of the files.
    diagnostics: Value,
    /// Whether the agent cut the output.
    truncated: bool,
    /// Hits of a search.
    count: u64,
    /// From the first sign of the call to its end.
    duration_ms: u64,
    /// What was decided about it.
    permission: Permission,
}
