//! Writing encoded appends: one, or a group in the same transaction, each accepted or rejected by
//! itself.

use super::session_update::{self, SessionDelta};
use super::{EncodedAppend, EncodedRow, Request};
use crate::append::Pen;
use crate::append::context::{AppendContext, SessionHead};
use crate::append::item_write;
use crate::blobs;
use crate::checksum;
use crate::checksum::side_tables;
use crate::db::{Db, Param, Value, params};
use crate::durability::log_ends;
use crate::error::{Error, Result};
use crate::ids::now;
use crate::keys::{MAX_SEQ, event_key};
use crate::sessions::stats;
use crate::sources::{checkpoint, files};
use std::collections::BTreeMap;

/// Writes `appends`. Returns for each the new end of its log, or why it was rejected; an error of
/// the database aborts all of them. With `optimistic`, items that are new to the callers are
/// assumed to have no rows, which fails if one of them was evicted from a caller's memory.
pub(crate) fn write_all(
    db: &Db<'_>,
    appends: &[&EncodedAppend],
    optimistic: bool,
) -> Result<Vec<Result<u64>>> {
    let mut context = AppendContext::load(db, appends, optimistic)?;
    let (mut results, mut events) = (Vec::with_capacity(appends.len()), Vec::new());
    let (mut checkpoints, mut sessions) = (Vec::new(), BTreeMap::new());
    let mut active: BTreeMap<(i64, i64), u64> = BTreeMap::new();
    for encoded in appends {
        let session = encoded.append.session;
        results.push(match context.head(session).and_then(|head| validate(head, encoded)) {
            Err(refused) => Err(refused),
            Ok(next) => {
                events.extend(encoded.events.iter().map(|row| (session, row)));
                for (hour, ms) in &encoded.append.active {
                    *active.entry((session, *hour)).or_default() += ms;
                }
                checkpoints.extend(encoded.append.sources.iter().map(|mark| (session, mark)));
                let delta = write_one(db, encoded, next, &mut context)?;
                sessions.entry(session).or_insert_with(SessionDelta::default).add(delta);
                context.advance(session, next, encoded.append.pen);
                Ok(next)
            }
        });
    }
    insert_events(db, &events)?;
    context.flush(db)?;
    checkpoint::put(db, &checkpoints)?;
    add_activity(db, &active)?;
    session_update::apply(db, &sessions, context.expected())?;
    if !db.is_postgres() {
        sessions
            .iter()
            .for_each(|(session, delta)| log_ends::note_log_end(*session, Some(delta.seq)));
    }
    Ok(results)
}

/// Validates an append against the head of its session; returns the end of the log after it.
fn validate(
    head: SessionHead,
    EncodedAppend { append, events, .. }: &EncodedAppend,
) -> Result<u64> {
    let last = head.seq;
    if append.fence.is_some_and(|fence| head.fence != Some(fence)) {
        return Err(Error::Fenced);
    }
    let is_current = append.pen.is_none_or(|pen| pen.knows(head.pen));
    let mut next = last;
    let in_order = events.iter().all(|row| std::mem::replace(&mut next, row.last) + 1 == row.first);
    if last != append.after || !is_current || !in_order {
        return Err(Error::Conflict { last });
    }
    if next > MAX_SEQ {
        return Err(Error::Invalid("the session has the maximum number of events".to_owned()));
    }
    Ok(next)
}

/// Writes everything of an append but its events; returns the changes of the session's row.
fn write_one<'a>(
    db: &Db<'_>,
    encoded: &'a EncodedAppend,
    next: u64,
    context: &mut AppendContext,
) -> Result<SessionDelta<'a>> {
    let EncodedAppend { append, items, bytes, .. } = encoded;
    let (session, last) = (append.session, append.after);
    let counters = item_write::write_items(db, session, items, context)?;
    for blob in &append.blobs {
        blobs::put(db, session, blob)?;
    }
    if let Some(Request { key, first, answer, digest }) = &append.request {
        let (digest, created) = (digest.map(|digest| digest.bytes()), now());
        // A digest begins with the length of the body: one of a shorter prefix must not replace it.
        db.execute_pipelined(
            "INSERT INTO request (session, key, first, answer, created, digest, crc, answer_crc, digest_crc)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (session, key) DO UPDATE SET
             answer = coalesce(excluded.answer, request.answer),
             answer_crc = CASE WHEN excluded.answer IS NULL THEN request.answer_crc
             ELSE excluded.answer_crc END,
             digest = CASE WHEN request.digest > excluded.digest THEN request.digest
             ELSE coalesce(excluded.digest, request.digest) END,
             digest_crc = CASE WHEN request.digest > excluded.digest OR excluded.digest IS NULL
             THEN request.digest_crc ELSE excluded.digest_crc END",
            &params![
                session,
                key,
                first,
                answer,
                created,
                digest,
                checksum::of_values(&params![session, key, first, created]),
                checksum::of_values(&params![session, key, answer]),
                checksum::of_values(&params![session, key, digest])
            ],
        )?;
    }
    for row in &append.usage {
        stats::put_usage(db, session, row)?;
    }
    if let Some(message) = &append.first_answer {
        stats::put_first_answer(db, session, message)?;
    }
    if !append.seen.is_empty() {
        files::append_seen_records(db, session, next, &append.seen)?;
    }
    if let Some(loose) = &append.loose {
        files::set_uncheckpointed_records(db, session, loose)?;
    }
    // The age of a session is that of its events. A session without event times is as old as its
    // rows.
    let (first, newest) = match append.times {
        // An agent's clock may be ahead: no session is newer than now.
        Some((first, newest)) => (Some(first), Some(newest.min(now()))),
        // Events without a time, such as those of a discovered file, must not make an old session
        // look new.
        None => (None, (next > last && last == 0).then(now)),
    };
    Ok(SessionDelta {
        seq: next,
        settled: append.settled,
        next_order: append.next_order,
        bytes: *bytes,
        ended: append.ended,
        received_at: append.heard,
        open_requests: append.waiting,
        counters,
        first,
        newest,
        token: append.pen.map(Pen::mark),
        headers: append.facts.iter().collect(),
    })
}

/// Adds the milliseconds of activity.
fn add_activity(db: &Db<'_>, active: &BTreeMap<(i64, i64), u64>) -> Result<()> {
    let sums: Vec<i64> =
        active.iter().map(|((s, hour), ms)| side_tables::of_activity(*s, *hour, *ms)).collect();
    let rows = active.iter().zip(&sums);
    let rows =
        rows.map(|(((s, hour), ms), sum)| [s.value(), hour.value(), ms.value(), sum.value()]);
    let add = "ON CONFLICT (session, hour) DO UPDATE SET ms = active.ms + excluded.ms,
         crc = active.crc + excluded.ms * 1048573";
    db.insert("active", ["bigint", "bigint", "bigint", "bigint"], rows.collect(), add)
}

/// Inserts the events.
fn insert_events(db: &Db<'_>, events: &[(i64, &EncodedRow)]) -> Result<()> {
    let mut rows = Vec::with_capacity(events.len());
    for (session, row) in events {
        let parts = match &row.payload {
            Ok(compressed) => [compressed.value(), Value::Null, Value::Null],
            Err(parts) => {
                let [event, changes, activity] = parts.each_ref().map(|part| text(part.as_deref()));
                [event?, changes?, activity?]
            }
        };
        let [event, changes, activity] = parts;
        let key = event_key(*session, row.last);
        let sum = checksum::of_event_row(key, &row.kind, [&event, &changes, &activity].map(bytes));
        rows.push([Value::Int(key), row.kind.value(), event, changes, activity, Value::Int(sum)]);
    }
    db.insert("event", ["bigint", "text", "bytea", "bytea", "bytea", "bigint"], rows, "")
}

fn bytes<'a>(value: &Value<'a>) -> Option<&'a [u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(part: Option<&[u8]>) -> Result<Value<'_>> {
    let Some(bytes) = part else { return Ok(Value::Null) };
    let text = std::str::from_utf8(bytes);
    text.map(Value::Text).map_err(|_| Error::Invalid("an event is not UTF-8".to_owned()))
}
