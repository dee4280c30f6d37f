//! What packets hold: texts, arguments and results of calls.

use super::{EntryStatus, Null, PatchAction, Priority, TextType};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Shapes whose fields keep the names that these front ends look for.
macro_rules! named {
    ($($(#[$about:meta])* $name:ident {
        $($(#[$must_about:meta])* $must:ident: $must_type:ty,)*
        $(; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*)?
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, ToSchema)]
        pub struct $name {
            $($(#[$must_about])* #[schema(required = true)] pub $must: $must_type,)*
            $($($(#[$may_about])* #[schema(required = false)] pub $may: $may_type,)*)?
        }
    )*};
}

/// What calls give: the shapes of one kind of tool, and what all have.
macro_rules! outputs {
    ($($(#[$about:meta])* $name:ident $(($($(#[$more_about:meta])* $more:ident: $more_type:ty,)*))?, $notes:ident {
        $($(#[$must_about:meta])* $must:ident: $must_type:ty,)*
        $(; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*)?
    })*) => {
        named! {$(
            $(#[$about])*
            $name {
                /// In words.
                output: String,
                /// More about it.
                metadata: $notes,
                ;
                /// Why it failed: there unless the call has completed.
                error: String,
                $($($(#[$more_about])* $more: $more_type,)*)?
            }

            /// More about what a call gave.
            $notes {
                /// Whether the agent cut the output.
                truncated: bool,
                $($(#[$must_about])* $must: $must_type,)*
                ;
                /// The exit code of a command; there when it has completed.
                exit: i64,
                $($($(#[$may_about])* $may: $may_type,)*)?
            }
        )*}
    };
}

outputs! {
    /// What a command gave.
    BashOutput, BashNotes {
        /// The same as `output` beside it.
        output: String,
        /// What it was for.
        description: String,
    }
    /// What a file holds.
    ReadOutput (
        /// Empty, for a file without text.
        content: String,
    ), ReadNotes {
        /// How it begins.
        preview: String,
    }
    /// What was found.
    SearchOutput, SearchNotes {
        /// How much.
        count: u64,
    }
    /// What became of a file.
    WriteOutput, WriteNotes {
        /// What the language server said, by file.
        diagnostics: BTreeMap<String, Value>,
        /// The file, relative to the session root.
        filepath: String,
        /// Whether it was there before.
        exists: bool,
    }
    /// What became of several files.
    PatchOutput, PatchNotes {
        /// What the language server said, by file.
        diagnostics: BTreeMap<String, Value>,
        /// The first file, relative to the session root.
        filepath: String,
        /// Whether it was there before.
        exists: bool,
        /// All of them, as a unified diff.
        diff: String,
        /// Each of them.
        files: Vec<PatchedFile>,
    }
    /// What a list became.
    TodoOutput, TodoNotes {
        /// The list.
        todos: Vec<TodoEntry>,
    }
    /// What any other tool gave.
    OtherOutput (
        /// Empty, for a file without text.
        content: String,
    ), OtherNotes {
        ;
        /// The same as `output` beside it, for a command.
        output: String,
        /// What a command was for.
        description: String,
        /// How a file begins.
        preview: String,
        /// How much was found.
        count: u64,
        /// What the language server said, by file.
        diagnostics: BTreeMap<String, Value>,
        /// The file, relative to the session root.
        filepath: String,
        /// Whether the file was there before.
        exists: bool,
    }
}

named! {
    /// Arguments of a command.
    BashInput {
        /// The command line.
        command: String,
        /// What it is for.
        description: String,
    }

    /// Arguments of a search.
    SearchInput {
        /// What is looked for.
        pattern: String,
        ;
        /// Where.
        path: String,
    }

    /// Arguments of a change.
    EditInput {
        /// The file, relative to the session root.
        #[schema(rename = "filePath")]
        file_path: String,
        /// The text before.
        old_string: String,
        /// The text after.
        new_string: String,
    }

    /// Arguments of a subagent.
    TaskInput {
        /// What it is asked.
        prompt: String,
        /// The same in a few words.
        description: String,
        /// What kind of subagent.
        subagent_type: String,
    }

    /// Arguments of a list.
    TodoInput {
        /// The list, whole.
        todos: Vec<TodoEntry>,
    }

    /// A text.
    TextContent {
        #[schema(inline)]
        r#type: TextType,
        /// The words.
        text: String,
        #[schema(inline)]
        annotations: Null,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// One entry of a plan.
    PlanPacketEntry {
        /// What is to be done.
        content: String,
        /// How far it is.
        status: EntryStatus,
        /// How important it is.
        priority: Priority,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// A place that a call touches.
    Place {
        /// Relative to the session root.
        path: String,
        /// The line, from 1.
        line: Option<u64>,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }
}

shapes! {
    /// Arguments of reading.
    ReadInput {
        /// The file, relative to the session root.
        file_path: String,
    }

    /// Arguments of writing.
    WriteInput {
        /// The file, relative to the session root.
        file_path: String,
        /// What is written.
        content: String,
    }

    /// Arguments of a patch.
    PatchInput {
        /// The patch.
        patch_text: String,
    }

    /// One entry of a list of what is to be done.
    TodoEntry {
        /// What is to be done.
        content: String,
        /// How far it is.
        status: EntryStatus,
        /// The same while it is being done.
        active_form: String,
        ;
        /// `high`, `medium` or `low`, where the agent tells.
        priority: String,
    }

    /// A file that a patch changed.
    PatchedFile {
        /// Relative to the session root.
        file_path: String,
        /// The same.
        relative_path: String,
        /// What happened.
        r#type: PatchAction,
        /// The change as a unified diff.
        diff: String,
        /// The text before.
        before: String,
        /// The text after.
        after: String,
        /// Lines added.
        additions: u64,
        /// Lines removed.
        deletions: u64,
    }

    /// A text that a call gave.
    TextBlock = r#type: TextBlockWord "content" {
        /// The text.
        content: TextContent,
        #[schema(inline, rename = "_meta")]
        meta: Null,
    }

    /// A file that a call changed.
    DiffBlock = r#type: DiffBlockWord "diff" {
        /// Relative to the session root.
        path: String,
        /// The text after.
        new_text: String,
        #[schema(inline, rename = "_meta")]
        meta: Null,
        ;
        /// The text before: empty for a new file, missing where nobody told.
        old_text: String,
    }
}

/// What a call gave, to be shown.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each holds what it is")]
pub enum ContentBlock {
    Text(TextBlock),
    Diff(DiffBlock),
}
