//! The shapes that travel, as the OpenAPI document tells them.

pub use crate::intake::Answer as PacketAnswer;
use crate::stream::View;
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
    #[schema(value_type = crate::api_item::SessionInfo)]
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

/// How packets are read.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct PacketQuery {
    /// `acp`, `claude-stream`, `claude-history`, or `auto` to find out by looking.
    pub format: Option<String>,
    /// The place of the first packet, from 1; else they come after those that were read. Packets
    /// that were read before are passed over.
    #[param(minimum = 1)]
    pub first: Option<u64>,
    /// Whether the session is over with the last packet.
    pub end: Option<bool>,
    /// With `end`: the agent's process has exited, so calls that wait for an answer are cancelled.
    pub exited: Option<bool>,
    /// `now`: packets without a time get that of their arrival, and the session is as new as they are;
    /// `none`: they get none, and the session has their dates, as for what was recorded before.
    #[param(inline)]
    pub arrived: Option<crate::intake::Arrival>,
    /// Whether each line is an object that says which file and line it comes from.
    pub wrapped: Option<bool>,
    /// Root directories to hide, one a line; they are shown as `.`.
    pub root: Option<String>,
}

/// How far the packets of a session were read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PacketState {
    /// Its sources; most have one.
    pub sources: Vec<SourceState>,
}

/// How far one source was read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SourceState {
    /// Its number; 0 is the main one.
    pub number: u32,
    /// The place of the last packet that was read.
    pub read: u64,
    /// The place of the last packet none of whose text is held back: send again what comes after.
    pub acknowledged: u64,
}

/// Which items.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ItemQuery {
    /// Those before this order; without `before`, `from` and `around`, the last ones.
    pub before: Option<u64>,
    /// Those from this order on.
    pub from: Option<u64>,
    /// Those around this order.
    pub around: Option<u64>,
    /// Only those at top level: what has no `parentToolCallId`, or names a call that is not there.
    /// Whether there are more before and after counts only these.
    pub top: Option<bool>,
    /// Only those right below this call; not together with `top`.
    pub parent: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
    /// Characters of a text after which it is cut, at least 32; 0 for all.
    pub preview: Option<usize>,
}

/// Some items of a session, in their order.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemPage {
    /// The items. One whose texts were cut has `clipped`: the paths of the texts, and their lengths.
    #[schema(value_type = Vec<crate::api_item::Item>)]
    pub items: Vec<Value>,
    /// Follow the log from here: changes up to here are in the items.
    pub cursor: String,
    /// Whether there are items before these.
    pub before: bool,
    /// Whether there are items after these.
    pub after: bool,
    /// Agent, model, title, status, tokens.
    #[schema(value_type = crate::api_item::SessionInfo)]
    pub info: Value,
    /// Whether the session's source said that nothing more comes.
    pub ended: bool,
    /// All items that the session has.
    pub total: u64,
    /// The order of the next item to come.
    pub next_order: u64,
}

/// What is followed.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// The view; items, if nothing is said.
    #[param(inline)]
    pub view: Option<View>,
    /// The cursor to go on from, `end` for what is new, nothing for the start. `Last-Event-ID` beats it.
    pub after: Option<String>,
    /// Only what events of these types give, commas between; not for activity.
    pub types: Option<String>,
    /// Activity: leave out calls with `false`.
    #[serde(rename = "includeToolCalls")]
    pub include_tool_calls: Option<bool>,
    /// Activity: leave out results with `false`.
    #[serde(rename = "includeToolResults")]
    pub include_tool_results: Option<bool>,
    /// Activity: leave out what the agent says with `false`.
    #[serde(rename = "includeOutput")]
    pub include_output: Option<bool>,
    /// Activity: leave out files with `false`.
    #[serde(rename = "includeFileChanges")]
    pub include_file_changes: Option<bool>,
    /// Activity: leave out progress with `false`.
    #[serde(rename = "includeProgress")]
    pub include_progress: Option<bool>,
}

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

/// A token to be made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewTokenBody {
    /// What it is called, up to 100 characters.
    pub name: String,
    /// `read`, `write`, `run`, `approve`, `admin`.
    pub scopes: Vec<String>,
    /// Only these sessions.
    #[serde(default)]
    pub sessions: Option<Vec<String>>,
    /// Only sessions with one of these tags.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Seconds that it lasts.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub ttl_seconds: Option<u64>,
}

/// A token and its secret, which is told this once.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// Its id, to revoke it.
    pub id: String,
    /// The secret.
    pub token: String,
}

/// A token, without its secret.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// `owner`, `made` or `browser`.
    pub kind: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// Only these sessions.
    pub sessions: Option<Vec<String>>,
    /// Only sessions with one of these tags.
    pub tags: Option<Vec<String>>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When it ends.
    pub expires_at: Option<i64>,
}

impl From<narrows_store::Token> for TokenInfo {
    fn from(token: narrows_store::Token) -> Self {
        TokenInfo {
            id: token.id,
            name: token.name,
            kind: token.kind.name().to_owned(),
            scopes: token.scopes.iter().map(|s| s.name().to_owned()).collect(),
            sessions: token.sight.sessions,
            tags: token.sight.tags,
            created_at: token.created,
            expires_at: token.expires,
        }
    }
}

/// All tokens.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Oldest first.
    pub tokens: Vec<TokenInfo>,
}

/// A ticket from the printed address.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The ticket; it works once.
    pub ticket: String,
}

/// A way into the browser that works once.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// The part of the address after its host.
    pub path: String,
}

/// What the caller may do.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The token's id.
    pub token: String,
    /// What it allows.
    pub scopes: Vec<String>,
}

/// A browser that was let in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedIn {
    /// Its token, told this once.
    pub token: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: i64,
}

/// A ticket for one request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestTicket {
    /// Goes into the address, as `ticket=…`.
    pub ticket: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: i64,
}

/// Whether the process answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Live {
    /// `ok`.
    pub status: String,
}

/// Whether the server works.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `degraded` while the store cannot be written, something in it cannot be read, or other
    /// nodes cannot be told.
    pub status: String,
    /// The version.
    pub version: String,
    /// `ok`, or `down` while nodes cannot wake each other; only where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Places of the store that cannot be read, where there are some: the log and `narrows doctor` say
    /// which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<u64>,
    /// How far the first look at the whole store since the start is, while it is under way: until then,
    /// `ok` says that no damage is known so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checking: Option<Checking>,
    /// Why the store cannot be written, in words, while it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a look at the whole store is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Checking {
    /// Sessions that were looked at.
    pub done: u64,
    /// Sessions that there are; 0 before they were counted.
    pub all: u64,
}

/// What was done that cannot be undone.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The newest first.
    pub actions: Vec<AuditEntry>,
}

/// One such thing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number; give it as `before` for those before it.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The token.
    pub token: String,
    /// What was done.
    pub action: String,
    /// To which session.
    pub session: Option<String>,
    /// What else is to be known.
    pub detail: Option<String>,
}

/// Which part of the audit log.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Those before this number.
    pub before: Option<i64>,
    /// How many.
    #[param(minimum = 1, maximum = 500)]
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
