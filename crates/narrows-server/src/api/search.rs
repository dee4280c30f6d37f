//! Full-text search.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What is searched.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// Words, or phrases in quotes. All must stand in the item, in any case, also within words.
    pub q: String,
    /// Only in this session.
    pub session: Option<String>,
    /// Only in sessions of this agent.
    pub agent: Option<String>,
    /// Only in sessions of projects with this in their name.
    pub project: Option<String>,
    /// Only in sessions that changed at or after this time, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Only in sessions that changed before this time.
    pub until: Option<i64>,
    /// Where the page before ended.
    pub after: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<usize>,
}

/// One page of hits, newest sessions first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<Hit>,
    /// Give it as `after` for the next page.
    pub next: Option<String>,
}

/// An item in which everything was found.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The session.
    pub session_id: String,
    /// What it is about: its title, else how its first prompt begins.
    pub title: Option<String>,
    /// The caller's own name for it.
    pub label: Option<String>,
    /// The item.
    pub item_id: String,
    /// Its type.
    pub r#type: String,
    /// Its place in the session.
    pub order: u64,
    /// When it was.
    pub timestamp: Option<String>,
    /// The field in which the first term stands.
    pub field: String,
    /// What stands there; hits are marked.
    pub parts: Vec<HitPart>,
    /// Whether the session began as a copy of another one.
    #[serde(default)]
    pub fork: bool,
}

/// A piece of a hit's text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HitPart {
    /// The text.
    pub text: String,
    /// Whether it is what was looked for.
    pub hit: bool,
}
