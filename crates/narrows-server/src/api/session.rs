//! Sessions: creation, lists, tags, deletion by age or size.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// A session to be made.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The caller's own name for it, up to 200 characters: the same label gives the same session.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub label: Option<String>,
    /// Words to find it by: up to 32, of up to 100 characters without line breaks.
    #[serde(default)]
    #[schema(max_items = 32)]
    pub tags: Vec<String>,
}

/// Tags to add and to take away.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TagChange {
    /// Tags that it gets.
    #[serde(default)]
    pub add_tags: Vec<String>,
    /// Tags that it loses.
    #[serde(default)]
    pub remove_tags: Vec<String>,
}

/// A session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The caller's own name for it.
    pub label: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Follow its log from here.
    pub cursor: String,
    /// Events so far.
    pub events: u64,
    /// Items so far.
    pub items: u64,
    /// Bytes of its log.
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Milliseconds since 1970: when something of it arrived last while its agent worked, else by the dates
    /// that were kept with it.
    pub updated_at: i64,
    /// When something of it arrived last, in milliseconds since 1970 by the clock of the server.
    pub heard_at: i64,
    /// Whether nothing more is expected: its source said so, or is silent for long. It is false again
    /// when the session goes on. The status of a session that has ended is never `running`.
    pub ended: bool,
    /// Whether something goes on in it: its agent works, or waits for an answer.
    pub live: bool,
    /// Requests of its agent that wait for an answer.
    pub waiting: u64,
    /// Agent, model, title, status, tokens.
    #[schema(value_type = crate::api::item::SessionInfo)]
    pub info: Value,
    /// The last name of the folder in which the agent works.
    pub project: Option<String>,
    /// The agent's own id of the session.
    pub native_id: Option<String>,
    /// Whether the agent's own file is still there, where the session was read from one.
    pub file_exists: Option<bool>,
    /// How the first prompt begins, on one line: a title where there is none.
    pub prompt: Option<String>,
    /// Calls of tools that are over.
    pub calls: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// The session that is listed in the place of this one. An agent's own file and what was recorded
    /// of it tell the same: lists and searches have one of them.
    pub copy_of: Option<String>,
    /// Whether it began as a copy of another session: the two have their first turns in common.
    #[serde(default)]
    pub fork: bool,
    /// That session: of several, the one that changed first. The one that changed last is taken for the copy.
    #[serde(default)]
    pub fork_of: Option<String>,
}

/// One page of sessions, those first that changed last.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Give it as `after` for the next page.
    pub next: Option<String>,
}

/// Which sessions are listed.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionQuery {
    /// With all of these tags, commas between.
    pub tags: Option<String>,
    /// Of agents with this in their name.
    pub agent: Option<String>,
    /// With this label.
    pub label: Option<String>,
    /// `idle`, `running` or `failed`.
    pub status: Option<String>,
    /// With this in the name of their project.
    pub project: Option<String>,
    /// With this in their title, first prompt or label.
    pub text: Option<String>,
    /// Changed at or after this time, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Changed before this time.
    pub until: Option<i64>,
    /// Where the page before ended.
    pub after: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
}

/// What is kept; the rest is deleted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Prune {
    /// Delete sessions that have not changed for so many milliseconds.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub max_age_ms: Option<i64>,
    /// Delete the oldest sessions beyond so many bytes of logs.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Only sessions with this tag.
    #[serde(default)]
    pub tag: Option<String>,
    /// Never sessions with one of these tags.
    #[serde(default)]
    pub keep_tags: Vec<String>,
    /// Only tell.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was deleted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Pruned {
    /// The sessions.
    pub sessions: Vec<String>,
    /// Bytes of their logs.
    pub bytes: u64,
}
