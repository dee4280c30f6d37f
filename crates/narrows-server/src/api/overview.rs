//! The shapes of what is told at a glance: of a session, of all sessions, of where they come from.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Which turns of an outline.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutlineQuery {
    /// Those after this order.
    pub after: Option<u64>,
    /// How many; 1000, if nothing is said.
    #[param(minimum = 1, maximum = 5000)]
    pub limit: Option<usize>,
}

/// A session at a glance.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outline {
    /// Follow the log from here.
    pub cursor: String,
    /// What was asked, in order; prompts of subagents are left out.
    pub turns: Vec<Turn>,
    /// Whether there are turns after these.
    pub more: bool,
    /// Files that calls changed, also those of subagents, the last one first.
    pub files: Vec<FileSum>,
    /// Whether files are left out, or changes that are too long ago to be added up.
    pub files_cut: bool,
    /// The last todo list, but for those of subagents.
    #[schema(value_type = Option<crate::api::item::TodoList>)]
    pub todos: Option<Value>,
    /// The items of questions that nobody has answered; none when the session's source is over.
    pub waiting: Vec<String>,
}

/// What was asked, and what the agent told when it had answered.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The item of the prompt.
    pub id: String,
    /// Its place.
    pub order: u64,
    /// How it begins, on one line.
    pub text: String,
    /// When it was.
    pub timestamp: Option<String>,
    /// What the turn used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = crate::api::item::Usage, nullable = false)]
    pub usage: Option<Value>,
    /// Dollars that the turn cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cost_usd: Option<f64>,
    /// Milliseconds that the agent worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duration_ms: Option<u64>,
    /// Why the agent stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stop_reason: Option<String>,
}

/// A file, and what all calls together changed in it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FileSum {
    /// Relative to the session root.
    pub path: String,
    /// Lines that came.
    pub additions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Calls that changed it.
    pub edits: u64,
    /// The last item that did.
    pub order: u64,
}

/// What sessions have in common, and how many have it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Facets {
    /// Agents, those with the most sessions first.
    pub agents: Vec<Facet>,
    /// The last names of the folders in which agents work, those with the most sessions first.
    pub projects: Vec<Facet>,
    /// Sessions in which something is going on, and was within the last ten minutes.
    pub live: u64,
    /// All sessions.
    pub total: u64,
}

/// A name, and how many sessions have it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Facet {
    /// The name.
    pub name: String,
    /// The sessions.
    pub count: u64,
}

/// Where sessions are read from on the server's machine.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Sources {
    /// Whether they are read as they grow.
    pub following: bool,
    /// The folders; none for a token that sees only some sessions.
    pub folders: Vec<SourceFolder>,
    /// How far reading is; null when nothing waits to be read.
    pub indexing: Option<Indexing>,
}

/// A folder in which an agent keeps its sessions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SourceFolder {
    /// The agent.
    pub agent: String,
    /// The folder: the home directory is `~`, of any other place only the last two names are told.
    pub path: String,
    /// Whether it is there.
    pub exists: bool,
}

/// How far reading is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Indexing {
    /// Sessions that were read.
    pub done: u64,
    /// Sessions that are to be read, with those.
    pub total: u64,
}
