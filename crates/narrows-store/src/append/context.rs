//! The state that appends need while they are written: heads of sessions, known item rows and
//! pending rows.
//!
//! PostgreSQL loads all of it in one round trip and writes new item rows in bulk, because every
//! statement costs a round trip. SQLite runs in this process: it is queried on demand and writes
//! rows one by one.

use crate::append::EncodedAppend;
use crate::append::Pen;
use crate::append::item_write::{EncodedItemWrite, ItemRowData};
use crate::db::{Db, Param, Pg, Value, params};
use crate::error::{Error, Result};
use crate::items::first_prompt;
use crate::keys::{event_key, number};
use crate::search::index;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The columns of `item`.
const ITEM_COLUMNS: [&str; 10] =
    ["bigint", "bigint", "text", "bigint", "text", "bigint", "bytea", "text", "bigint", "bigint"];

/// Serializes appends to the same session. Rows are locked in key order by every node, so that two
/// nodes cannot deadlock.
const SELECT_HEADS: &str =
    "SELECT key, seq, pen FROM session WHERE key = ANY (?1) ORDER BY key FOR UPDATE";
const SELECT_FENCES: &str = "SELECT session, fence FROM run WHERE session = ANY (?1)";
/// Looks up each id separately: a plan made while the table was small would scan all items of the
/// session.
const SELECT_KEYS: &str = "SELECT a.session, a.id, i.key
     FROM unnest(?1::bigint[], ?2::text[]) AS a (session, id), LATERAL
     (SELECT key FROM item WHERE session = a.session AND id = a.id OFFSET 0) AS i";

/// The head of a session as seen by the transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SessionHead {
    /// The last event of the log.
    pub(crate) seq: u64,
    /// The token of the last writer.
    pub(crate) pen: i64,
    /// The fencing token of the session's run.
    pub(crate) fence: Option<u64>,
}

/// The head of a session that the caller expects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedHead {
    /// The last event of the log.
    pub(crate) seq: u64,
    /// The token that the writer loaded, and the bits that identify this writer; set where several
    /// nodes write.
    pub(crate) pen: Option<(i64, i64)>,
}

impl ExpectedHead {
    /// The expected last event, the loaded token and the writer's bits, as SQL values.
    pub(crate) fn values(&self) -> [Value<'static>; 3] {
        let int = |n: Option<i64>| n.map_or(Value::Null, Value::Int);
        let (before, writer) = self.pen.unzip();
        [int(i64::try_from(self.seq).ok()), int(before), int(writer)]
    }
}

/// What is known about an item's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLookup {
    Unknown,
    Absent,
    Row(i64),
}

/// An item row that is not yet written.
#[derive(Debug)]
struct PendingRow {
    key: i64,
    session: i64,
    top: bool,
    row: Arc<ItemRowData>,
}

/// The state shared by the appends of one transaction.
#[derive(Debug, Default)]
pub(crate) struct AppendContext {
    heads: HashMap<i64, SessionHead>,
    /// Set when nothing was loaded: the heads are verified when the sessions' rows are updated.
    expected: Option<HashMap<i64, ExpectedHead>>,
    /// Sessions in which no item has a parent.
    flat: HashSet<i64>,
    /// Whether new rows are written in bulk.
    in_bulk: bool,
    /// Keys of item rows by session and id; `None` for items known to have no row.
    keys: HashMap<i64, HashMap<String, Option<i64>>>,
    pending: Vec<PendingRow>,
    pending_keys: HashSet<i64>,
    /// Indices of pending rows whose parent did not exist.
    orphans: Vec<usize>,
}

impl AppendContext {
    /// Loads the state that `appends` need.
    pub(crate) fn load(
        db: &Db<'_>,
        appends: &[&EncodedAppend],
        optimistic: bool,
    ) -> Result<AppendContext> {
        let mut context = AppendContext { in_bulk: db.is_postgres(), ..AppendContext::default() };
        for append in appends.iter().map(|encoded| &encoded.append) {
            if append.flat {
                context.flat.insert(append.session);
            }
        }
        match db {
            Db::Sqlite(_) => {
                for append in appends.iter().map(|encoded| &encoded.append) {
                    context.load_session(db, append.session, append.fence.is_some())?;
                }
            }
            Db::Postgres(pg) => context.load_all(pg, appends, optimistic)?,
        }
        Ok(context)
    }

    fn load_session(&mut self, db: &Db<'_>, session: i64, run: bool) -> Result<()> {
        let sql = "SELECT seq, pen FROM session WHERE key = ?1";
        let found = db.query_opt(sql, &params![session], |r| Ok((r.get(0)?, r.get(1)?)))?;
        let Some((seq, pen)) = found else { return Ok(()) };
        let fence = if run {
            let sql = "SELECT fence FROM run WHERE session = ?1";
            db.query_opt(sql, &params![session], |r| r.get(0))?
        } else {
            None
        };
        self.heads.insert(session, SessionHead { seq, pen, fence });
        Ok(())
    }

    /// Sends all queries before it reads the first response.
    fn load_all(&mut self, pg: &Pg, appends: &[&EncodedAppend], optimistic: bool) -> Result<()> {
        if optimistic && self.assume_expected(appends) {
            return Ok(());
        }
        let list = |of: &mut dyn Iterator<Item = i64>| Value::List(of.map(Value::Int).collect());
        let sessions = list(&mut appends.iter().map(|encoded| encoded.append.session));
        let heads = pg.send_query(SELECT_HEADS, &[sessions])?;
        let run = appends.iter().filter(|encoded| encoded.append.fence.is_some());
        let run = list(&mut run.map(|encoded| encoded.append.session));
        let fences = match &run {
            Value::List(none) if none.is_empty() => None,
            _ => Some(pg.send_query(SELECT_FENCES, &[run])?),
        };
        let mut queried = HashSet::new();
        for EncodedAppend { append, items, .. } in appends {
            let known = self.keys.entry(append.session).or_default();
            for write in items {
                let (id, parent) = ids_to_look_up(write);
                let is_new_row = match write {
                    EncodedItemWrite::Put(row) => {
                        optimistic && append.new_from.is_some_and(|n| row.order >= n)
                    }
                    _ => false,
                };
                let ids = [id].into_iter().filter(|_| !is_new_row).chain(parent);
                queried.extend(ids.clone().map(|id| (append.session, id)));
                for id in [id].into_iter().chain(parent) {
                    known.entry(id.to_owned()).or_default();
                }
            }
        }
        let (sessions, ids): (Vec<_>, Vec<_>) =
            queried.iter().map(|(session, id)| (session.value(), id.value())).unzip();
        let keys = if ids.is_empty() {
            None
        } else {
            Some(pg.send_query(SELECT_KEYS, &[Value::List(sessions), Value::List(ids)])?)
        };
        for (session, seq, pen) in
            pg.query_responses(heads, |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?
        {
            self.heads.insert(session, SessionHead { seq, pen, fence: None });
        }
        if let Some(fences) = fences {
            for (session, fence) in pg.query_responses(fences, |r| Ok((r.get(0)?, r.get(1)?)))? {
                self.heads.entry(session).or_default().fence = fence;
            }
        }
        if let Some(keys) = keys {
            for (session, id, key) in
                pg.query_responses(keys, |r| Ok((r.get(0)?, r.get(1)?, r.get::<i64>(2)?)))?
            {
                self.keys.entry(session).or_default().insert(id, Some(key));
            }
        }
        Ok(())
    }

    /// Skips loading if the callers' expectations suffice: the transaction then waits only for its
    /// commit.
    fn assume_expected(&mut self, appends: &[&EncodedAppend]) -> bool {
        let all_new = |encoded: &&EncodedAppend| {
            let from = encoded.append.new_from.unwrap_or(u64::MAX);
            let writes_new_row = |write: &EncodedItemWrite| match write {
                EncodedItemWrite::Put(row) => row.order >= from && row.parent.is_none(),
                EncodedItemWrite::Patch { .. } | EncodedItemWrite::Remove { .. } => false,
            };
            encoded.append.fence.is_none() && encoded.items.iter().all(writes_new_row)
        };
        if !appends.iter().all(all_new) {
            return false;
        }
        let mut expected = HashMap::new();
        for EncodedAppend { append, .. } in appends {
            // Only the first append of a session is verified; later ones follow it within the
            // transaction.
            if self.heads.contains_key(&append.session) {
                continue;
            }
            let pen = append.pen.map(Pen::parts);
            expected.insert(append.session, ExpectedHead { seq: append.after, pen });
            let pen = append.pen.map_or(0, Pen::mark);
            self.heads.insert(append.session, SessionHead { seq: append.after, pen, fence: None });
        }
        self.expected = Some(expected);
        for EncodedAppend { append, items, .. } in appends {
            let known = self.keys.entry(append.session).or_default();
            known.extend(items.iter().map(|write| (ids_to_look_up(write).0.to_owned(), None)));
        }
        true
    }

    /// The heads to verify on update, if nothing was loaded.
    pub(crate) fn expected(&self) -> Option<&HashMap<i64, ExpectedHead>> {
        self.expected.as_ref()
    }

    /// The head of a session.
    pub(crate) fn head(&self, session: i64) -> Result<SessionHead> {
        self.heads.get(&session).copied().ok_or(Error::NotFound("session"))
    }

    /// Advances the head of a session after an append.
    pub(crate) fn advance(&mut self, session: i64, seq: u64, pen: Option<Pen>) {
        if let Some(head) = self.heads.get_mut(&session) {
            (head.seq, head.pen) = (seq, pen.map_or(head.pen, Pen::mark));
        }
    }

    /// Whether new rows are written in bulk.
    pub(crate) fn writes_in_bulk(&self) -> bool {
        self.in_bulk
    }

    /// Looks up what is known about an item's row.
    pub(crate) fn lookup(&self, session: i64, id: &str) -> RowLookup {
        match self.keys.get(&session).and_then(|ids| ids.get(id)) {
            None => RowLookup::Unknown,
            Some(None) => RowLookup::Absent,
            Some(Some(key)) => RowLookup::Row(*key),
        }
    }

    /// Whether the row with this key is still pending.
    pub(crate) fn is_pending(&self, key: i64) -> bool {
        self.pending_keys.contains(&key)
    }

    /// Adds a row that does not exist yet.
    pub(crate) fn push(&mut self, session: i64, row: Arc<ItemRowData>, top: bool) {
        let key = event_key(session, row.order);
        self.record_row(session, &row.id, key);
        self.pending_keys.insert(key);
        if can_have_children(&row) {
            for at in &self.orphans {
                let Some(orphan) = self.pending.get_mut(*at) else { continue };
                let is_child = orphan.row.parent.as_deref() == Some(&row.id);
                orphan.top = orphan.top && !(is_child && orphan.session == session);
            }
        }
        if top && row.parent.is_some() {
            self.orphans.push(self.pending.len());
        }
        self.pending.push(PendingRow { key, session, top, row });
    }

    /// Records a row that was written directly.
    pub(crate) fn record_row(&mut self, session: i64, id: &str, key: i64) {
        if self.in_bulk {
            self.keys.entry(session).or_default().insert(id.to_owned(), Some(key));
        }
    }

    /// Records the removal of an item's row.
    pub(crate) fn record_removal(&mut self, session: i64, id: &str) {
        if self.in_bulk {
            self.keys.entry(session).or_default().insert(id.to_owned(), None);
        }
    }

    /// Writes the pending rows, so that later queries see them.
    pub(crate) fn flush(&mut self, db: &Db<'_>) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_keys.clear();
        self.orphans.clear();
        if pending.is_empty() {
            return Ok(());
        }
        let rows = pending.iter().map(|PendingRow { key, session, top, row }| {
            [
                key.value(),
                session.value(),
                row.id.value(),
                row.seq.value(),
                row.kind.value(),
                row.open.value(),
                row.body.value(),
                row.parent.value(),
                top.value(),
                Value::Int(row.sum(*key, row.body.bytes()).with_level(*top)),
            ]
        });
        db.insert("item", ITEM_COLUMNS, rows.collect(), "")?;
        let unindexed = pending.iter().filter(|pending| pending.row.tokens.is_none());
        let unindexed = unindexed.map(|pending| [pending.key.value()]).collect();
        db.insert("fresh", ["bigint"], unindexed, "ON CONFLICT DO NOTHING")?;
        for PendingRow { key, session, row, .. } in &pending {
            if let Some(tokens) = &row.tokens {
                index::put(db, *key, tokens)?;
            }
            if let Some(prompt) = &row.prompt {
                first_prompt::put(db, *session, number(*key), prompt)?;
            }
        }
        adopt_children(db, pending.iter().filter(|pending| !self.flat.contains(&pending.session)))?;
        write_tool_calls(db, &pending)
    }
}

/// Whether other items may be children of this row. A top-level call cannot be part of a cycle.
fn can_have_children(row: &ItemRowData) -> bool {
    row.kind == "tool_call" && row.parent.is_none()
}

/// Moves items that were written before their parent below it.
fn adopt_children<'a>(db: &Db<'_>, pending: impl Iterator<Item = &'a PendingRow>) -> Result<()> {
    let calls = pending.filter(|pending| can_have_children(&pending.row));
    // The partial index of these items is nearly always empty.
    db.update(
        "UPDATE item SET top = 0, crc = item.crc & 4294967295 FROM {v} WHERE item.session = v.session AND item.parent = v.id
         AND item.top = 1 AND item.parent IS NOT NULL",
        [("session", "bigint"), ("id", "text")],
        calls.map(|pending| [pending.session.value(), pending.row.id.value()]).collect(),
        false,
    )
}

/// The ids that must be looked up to write an item: its own and its parent's.
fn ids_to_look_up(write: &EncodedItemWrite) -> (&str, Option<&str>) {
    match write {
        EncodedItemWrite::Put(row) => (&row.id, row.parent.as_deref()),
        EncodedItemWrite::Patch { id, .. } | EncodedItemWrite::Remove { id } => (id, None),
    }
}

/// Writes the tool call rows of new items, and the files the calls edited.
fn write_tool_calls(db: &Db<'_>, pending: &[PendingRow]) -> Result<()> {
    let (mut calls, mut edits) = (Vec::new(), BTreeMap::new());
    for PendingRow { key, row, .. } in pending {
        let Some(call) = &row.call else { continue };
        let [name, at, ms, failed] = params![call.name, call.at, call.ms, call.failed];
        calls.push([key.value(), name, at, ms, failed]);
        for file in &call.files {
            let [path, added, removed] = params![file.path, file.added, file.removed];
            edits.insert((key, &file.path), [key.value(), path, added, removed]);
        }
    }
    db.insert("call", ["bigint", "text", "bigint", "bigint", "bigint"], calls, "")?;
    let edits = edits.into_values().collect();
    db.insert("edit", ["bigint", "text", "bigint", "bigint"], edits, "")
}
