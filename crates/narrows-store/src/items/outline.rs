//! The outline of a session: its turns, edited files, todo list and open questions.

use crate::db::{Db, params};
use crate::error::Result;
use crate::items::derived::tool_call_row;
use crate::items::first_prompt::one_line;
use crate::items::overlay::LogOverlay;
use crate::items::select::{ReadLimit, Which, select};
use crate::items::{SessionSnapshot, open_items};
use crate::keys::{event_key, keys, number};
use crate::log::read_all;
use narrows::event::{Body, Response, Usage};
use narrows::item::{ItemBody, TodoList};
use narrows::stored;
use narrows::time::Time;
use narrows::tool::ChangedFile;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// Characters of a prompt in the outline.
const MAX_PROMPT_CHARS: usize = 160;
/// Bytes of prompts that are read at once.
const MAX_PROMPT_BYTES: usize = 16 << 20;
/// Calls whose edits are added up, and files that are returned.
const MAX_EDITING_CALLS: usize = 5000;
const MAX_FILES: usize = 500;
/// Open questions that are returned.
const MAX_QUESTIONS: usize = 50;
/// Ends of turns that are read.
const MAX_TURN_ENDS: usize = 20_000;
/// Ends of turns that are read to find the cost before the first turn.
const MAX_EARLIER_ENDS: usize = 16;

/// The outline of a session.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outline {
    /// The epoch of the log.
    #[serde(skip)]
    pub epoch: String,
    /// The last event the outline reflects; follow the log from here.
    #[serde(skip)]
    pub seq: u64,
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// Whether there are later turns.
    pub more: bool,
    /// Edited files, the last edited first.
    pub files: Vec<FileSum>,
    /// Whether files or edits are missing from the list.
    pub files_cut: bool,
    /// The newest todo list.
    pub todos: Option<TodoList>,
    /// The item ids of unanswered questions.
    pub waiting: Vec<String>,
}

/// A prompt, and how its turn ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The item id of the prompt.
    pub id: String,
    /// The position of the prompt.
    pub order: u64,
    /// The beginning of the prompt on one line.
    pub text: String,
    /// When it was sent.
    pub timestamp: Option<Time>,
    /// Tokens used by the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost of the turn in dollars, as reported by the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long the agent worked, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Why the agent stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

/// A file and the sum of its edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSum {
    /// Relative to the session root.
    pub path: String,
    /// Added lines.
    pub additions: u64,
    /// Deleted lines.
    pub deletions: u64,
    /// The number of calls that edited it.
    pub edits: u64,
    /// The position of the last edit.
    pub order: u64,
}

/// Reads the outline, with at most `limit` turns after the position `after`.
pub(crate) fn outline(
    db: &Db<'_>,
    session: i64,
    after: Option<u64>,
    limit: usize,
) -> Result<Outline> {
    let log = SessionSnapshot::read(db, session)?;
    let (first, last) = keys(session);
    let from = after.map_or(first, |order| event_key(session, order.saturating_add(1)));
    let prompts = &Which::Prompts;
    let read_limit = ReadLimit { items: limit + 1, bytes: MAX_PROMPT_BYTES };
    let (mut found, more) =
        select(db, session, prompts, (from, last + 1), false, read_limit, &log.overlay)?;
    let cut = found.len() > limit || more && found.len() > 1;
    let next = cut.then(|| found.pop()).flatten().map(|row| row.seq);
    let mut turns = Vec::with_capacity(found.len());
    let mut starts = Vec::with_capacity(found.len());
    for row in found {
        let ItemBody::UserMessage { text, .. } = &row.item.body else { continue };
        // An item that continues a long prompt.
        if row.item.continues.is_some() {
            continue;
        }
        starts.push(row.seq);
        turns.push(Turn {
            id: row.item.id.as_str().to_owned(),
            order: row.order,
            text: one_line(text, MAX_PROMPT_CHARS),
            timestamp: row.item.time.clone(),
            usage: None,
            cost_usd: None,
            duration_ms: None,
            stop_reason: None,
        });
    }
    add_turn_ends(db, session, &mut turns, &starts, next)?;
    let lists = &Which::TodoLists;
    let one = ReadLimit::items(1);
    let unmaterialized =
        select(db, session, lists, (first, last + 1), true, one, &log.overlay)?.0.pop();
    let todos = unmaterialized.and_then(|row| match row.item.body {
        ItemBody::TodoList { todo_list } => Some(todo_list),
        _ => None,
    });
    // Requests are answered or withdrawn by their agent. A question read from a file is never
    // withdrawn: it counts only while the source has not ended.
    let open_requests =
        open_items(db, session, &log.overlay)?.into_iter().filter(|item| match &item.body {
            ItemBody::Permission { .. } => true,
            ItemBody::Question { request_id, .. } => request_id.is_some() || !log.ended,
            _ => false,
        });
    let waiting =
        open_requests.map(|item| item.id.as_str().to_owned()).take(MAX_QUESTIONS).collect();
    let (files, files_cut) = files(db, session, &log.overlay)?;
    let (seq, epoch) = (log.seq, log.epoch);
    Ok(Outline { epoch, seq, turns, more: next.is_some(), files, files_cut, todos, waiting })
}

/// Adds to each turn the responses between its prompt and the next one. `starts` are the events of
/// the prompts, `next` that of the first prompt after them.
fn add_turn_ends(
    db: &Db<'_>,
    session: i64,
    turns: &mut [Turn],
    starts: &[u64],
    next: Option<u64>,
) -> Result<()> {
    let Some(first) = starts.first() else { return Ok(()) };
    let (low, high) = keys(session);
    let from = event_key(session, *first);
    let mut cost = turn_ends(db, (low - 1, from), true, MAX_EARLIER_ENDS)?
        .into_iter()
        .find_map(|(_, response)| response.cost_usd);
    let until = next.map_or(high + 1, |seq| event_key(session, seq));
    let mut at = 0;
    for (seq, response) in turn_ends(db, (from, until), false, MAX_TURN_ENDS)? {
        while starts.get(at + 1).is_some_and(|start| *start < seq) {
            at += 1;
        }
        if let Some(turn) = turns.get_mut(at) {
            add_turn_end(turn, response, &mut cost);
        }
    }
    Ok(())
}

/// The ends of turns between two keys.
fn turn_ends(
    db: &Db<'_>,
    (after, until): (i64, i64),
    backwards: bool,
    limit: usize,
) -> Result<Vec<(u64, Response)>> {
    let order = if backwards { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT key, kind, event, changes, activity, crc FROM event INDEXED BY event_end
         WHERE kind = 'prompt_response' AND key > ?1 AND key < ?2 ORDER BY key {order} LIMIT ?3"
    );
    let mut out = Vec::new();
    db.query_each(&sql, &params![after, until, limit], |row| {
        for row in read_all(row)? {
            let event = std::str::from_utf8(&row.event).ok().and_then(|e| stored::event(e).ok());
            if let Some(event) = event.filter(|e| e.parent.is_none())
                && let Body::PromptResponse(response) = event.body
            {
                out.push((row.seq, *response));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(out)
}

/// Adds a response to its turn. A turn may have several: background tasks wake the agent again.
fn add_turn_end(turn: &mut Turn, response: Response, before: &mut Option<f64>) {
    if let Some(used) = &response.usage {
        let usage = turn.usage.get_or_insert_default();
        for (sum, more) in [
            (&mut usage.input_tokens, used.input_tokens),
            (&mut usage.output_tokens, used.output_tokens),
            (&mut usage.total_tokens, used.total_tokens),
            (&mut usage.cached_read_tokens, used.cached_read_tokens),
            (&mut usage.cached_write_tokens, used.cached_write_tokens),
            (&mut usage.cached_write_5m_tokens, used.cached_write_5m_tokens),
            (&mut usage.cached_write_1h_tokens, used.cached_write_1h_tokens),
            (&mut usage.thought_tokens, used.thought_tokens),
        ] {
            *sum = add_counts(*sum, more);
        }
    }
    if let Some(cost) = response.cost_usd {
        // Agents report the accumulated cost of the session; a restarted counter begins at zero.
        let more = before.filter(|before| cost >= *before).map_or(cost, |before| cost - before);
        *turn.cost_usd.get_or_insert(0.0) += more;
        *before = Some(cost);
    }
    turn.duration_ms = add_counts(turn.duration_ms, response.duration_ms);
    if let Some(stop) = response.stop_reason {
        turn.stop_reason = Some(stop.as_str().to_owned());
    }
}

fn add_counts(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (sum, more) {
        (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
        (sum, more) => sum.or(more),
    }
}

/// The edited files, and whether the list is incomplete.
fn files(db: &Db<'_>, session: i64, overlay: &LogOverlay) -> Result<(Vec<FileSum>, bool)> {
    const SQL: &str = "SELECT key, path, added, removed FROM edit
         WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC, path";
    // For calls with unmaterialized changes, the log overlay has the edits.
    let mut unmaterialized = BTreeMap::new();
    for item in overlay.changed(db, session)? {
        let call = tool_call_row(&item).filter(|_| !item.is_open());
        unmaterialized
            .insert(event_key(session, item.order), call.map_or_else(Vec::new, |c| c.files));
    }
    let (first, last) = keys(session);
    let mut totals = FileTotals::default();
    db.query_each(SQL, &params![first, last], |row| {
        let key: i64 = row.get(0)?;
        while let Some((above, files)) =
            unmaterialized.last_key_value().filter(|(at, _)| **at > key)
        {
            files.iter().for_each(|file| totals.add(*above, file));
            unmaterialized.pop_last();
        }
        if unmaterialized.contains_key(&key) {
            return Ok(ControlFlow::Continue(()));
        }
        let (path, added, removed) = (row.get(1)?, row.get(2)?, row.get(3)?);
        totals.add(key, &ChangedFile { path, added, removed });
        Ok(if totals.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    for (key, files) in unmaterialized.iter().rev() {
        files.iter().for_each(|file| totals.add(*key, file));
    }
    Ok((totals.files, totals.cut))
}

/// Adds up edits, the last call first.
#[derive(Default)]
struct FileTotals {
    files: Vec<FileSum>,
    places: HashMap<String, usize>,
    calls: usize,
    call: Option<i64>,
    cut: bool,
}

impl FileTotals {
    fn is_full(&self) -> bool {
        self.calls > MAX_EDITING_CALLS
    }

    fn add(&mut self, key: i64, file: &ChangedFile) {
        if self.call != Some(key) {
            self.calls += 1;
            self.call = Some(key);
        }
        if self.is_full() {
            self.cut = true;
            return;
        }
        let ChangedFile { path, added, removed } = file;
        if let Some(sum) = self.places.get(path).and_then(|at| self.files.get_mut(*at)) {
            sum.additions += added;
            sum.deletions += removed;
            sum.edits += 1;
        } else if self.files.len() == MAX_FILES {
            self.cut = true;
        } else {
            self.places.insert(path.clone(), self.files.len());
            self.files.push(FileSum {
                path: path.clone(),
                additions: *added,
                deletions: *removed,
                edits: 1,
                order: number(key),
            });
        }
    }
}
