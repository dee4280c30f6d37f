//! What is known of one tool call.

use super::{ToolKind, ToolName, ToolStatus};
use crate::sanitize::{Clean, Tree};
use serde::{Serialize, Serializer};

/// Yes, no, or nobody has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Tri {
    Unknown,
    Yes,
    No,
}

impl Serialize for Tri {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Tri::Unknown => s.serialize_none(),
            Tri::Yes => s.serialize_bool(true),
            Tri::No => s.serialize_bool(false),
        }
    }
}

#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for Tri {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match Option::<bool>::deserialize(d)? {
            None => Tri::Unknown,
            Some(true) => Tri::Yes,
            Some(false) => Tri::No,
        })
    }
}

/// The output of a call: all of it, or what comes after the part already given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Output<T = Clean> {
    /// Replaces what there was.
    #[serde(rename = "rawOutput")]
    Whole(T),
    /// Goes on where the last one ended.
    #[serde(rename = "rawOutputAppend")]
    More(T),
}

/// Whether the texts of a diff are whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scope {
    File,
    Hunk,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DiffAction {
    Add,
    Update,
    Delete,
    Move,
}

/// One changed file of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Diff<T = Clean> {
    /// Relative to the session root.
    pub path: T,
    /// The text before; none when nobody told.
    pub old_text: Option<T>,
    /// The text after; none when the file is gone.
    pub new_text: Option<T>,
    /// What the texts are.
    pub scope: Scope,
    /// What happened, where somebody told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DiffAction>,
    /// Lines added, where somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additions: Option<u64>,
    /// Lines removed, where somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// The change as a unified diff, where the texts are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<T>,
    /// The changed lines, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<Hunk<T>>>,
}

impl<T> Diff<T> {
    /// A change of the file at `path` of which nothing is known.
    pub fn of(path: T, scope: Scope) -> Self {
        Diff {
            path,
            old_text: None,
            new_text: None,
            scope,
            action: None,
            additions: None,
            deletions: None,
            patch: None,
            hunks: None,
        }
    }
}

/// Changed lines of a file, with some around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Hunk<T = Clean> {
    /// The first line before the change, from 1.
    pub old_start: u64,
    /// How many lines it had.
    pub old_lines: u64,
    /// The first line after the change, from 1.
    pub new_start: u64,
    /// How many lines it has.
    pub new_lines: u64,
    /// The lines, each after a blank, a `-` or a `+`.
    pub lines: Vec<T>,
}

/// One entry of a todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Todo<T = Clean> {
    /// What is to be done.
    pub content: T,
    /// `pending`, `in_progress` or `completed`; agents' `cancelled` stays.
    pub status: ToolStatus,
    /// The same while it is being done.
    pub active_form: T,
    /// `high`, `medium` or `low`, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<T>,
    /// Its id, where entries have one that is not their place in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<T>,
}

/// A place that a call touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Location<T = Clean> {
    /// Relative to the session root.
    pub path: T,
    /// The line, from 1.
    pub line: Option<u64>,
}

/// A picture: its bytes travel as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The SHA-256 of the bytes, in hexadecimal.
    pub blob: String,
    /// `image/png` and the like.
    pub mime_type: String,
    /// Length in bytes.
    pub size: u64,
}

/// What somebody decided about a call that needed leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Permission<T = Clean> {
    /// `allowed`, `rejected` or `cancelled`.
    pub decision: T,
    /// The option that was chosen, by its name where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<T>,
    /// How long the call waited for it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "stored", serde(default))]
    pub waited_ms: Option<u64>,
}

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
    #[serde(deserialize_with = "crate::stored::given")]
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
    #[serde(deserialize_with = "crate::stored::given")]
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
    #[serde(deserialize_with = "crate::stored::given")]
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
    /// A call of which nothing is known.
    pub fn unknown() -> Self {
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

/// Which fields an event brought that were not known before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fresh(u32);

/// The fields that merge alike: a new value replaces the old one. Light ones are told in every
/// event of the call, heavy ones when they change and at the end.
macro_rules! merged {
    (light $($light:ident)*; heavy $($heavy:ident)*) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, reason = "the fields' own names")]
        enum Bit { $($light,)* $($heavy,)* tool, output, count_of_bits }

        impl ToolCall<Clean> {
            /// Takes over what `news` says; tells what changed. Not the output and the identity.
            pub(crate) fn merge(&mut self, news: ToolCall<Clean>) -> Fresh {
                let mut fresh = 0;
                $(if news.$light.is_some() && self.$light != news.$light {
                    self.$light = news.$light;
                    fresh |= 1 << Bit::$light as u32;
                })*
                $(if news.$heavy.is_some() && self.$heavy != news.$heavy {
                    self.$heavy = news.$heavy;
                    fresh |= 1 << Bit::$heavy as u32;
                })*
                Fresh(fresh)
            }

            /// A copy with every light field and those heavy ones that are fresh.
            pub(crate) fn told(&self, fresh: Fresh) -> ToolCall<Clean> {
                let mut out = self.identity();
                $(out.$light.clone_from(&self.$light);)*
                $(if fresh.has(Bit::$heavy) { out.$heavy.clone_from(&self.$heavy); })*
                out
            }

            /// A copy with the fresh fields alone.
            pub(crate) fn only(&self, fresh: Fresh) -> ToolCall<Clean> {
                let mut out = self.identity();
                $(if fresh.has(Bit::$light) { out.$light.clone_from(&self.$light); })*
                $(if fresh.has(Bit::$heavy) { out.$heavy.clone_from(&self.$heavy); })*
                out
            }

            /// Forgets the heavy fields.
            pub(crate) fn forget_heavy(&mut self) {
                $(self.$heavy = None;)*
                self.output = None;
            }
        }
    };
}

merged! {
    light status name raw_kind agent_title title description said command file_path pattern
        subagent_type child_session_id exit_code is_new_file truncated count duration_ms permission;
    heavy input error old_content new_content diffs todos task_output plan images locations diagnostics
}

const _: () = assert!((Bit::count_of_bits as u32) < 32);

impl ToolCall<Clean> {
    /// What the call is about to do: what somebody who gives leave must know.
    pub(crate) fn asked(&self) -> ToolCall<Clean> {
        let mut out = self.told(Fresh::default());
        out.plan.clone_from(&self.plan);
        out.input.clone_from(&self.input);
        out.diffs.clone_from(&self.diffs);
        out
    }

    fn identity(&self) -> ToolCall<Clean> {
        let mut out = ToolCall::unknown();
        out.tool_name = self.tool_name;
        out.kind = self.kind;
        out.is_todo = self.is_todo;
        out
    }
}

impl Fresh {
    fn has(self, bit: Bit) -> bool {
        self.0 & (1 << bit as u32) != 0
    }

    /// Nothing new.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn tool(&mut self) {
        self.0 |= 1 << Bit::tool as u32;
    }

    pub(crate) fn output(&mut self) {
        self.0 |= 1 << Bit::output as u32;
    }

    pub(crate) fn without_output(self) -> Fresh {
        Fresh(self.0 & !(1 << Bit::output as u32))
    }

    pub(crate) fn has_output(self) -> bool {
        self.has(Bit::output)
    }

    pub(crate) fn or(self, other: Fresh) -> Fresh {
        Fresh(self.0 | other.0)
    }
}
