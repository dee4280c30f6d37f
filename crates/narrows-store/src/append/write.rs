//! Writing encoded appends: one, or a group in the same transaction, each accepted or rejected by
//! itself.

use super::session_update::{self, Growth};
use super::{Ready, Request, Row};
use crate::append::Pen;
use crate::append::context::{Batch, Head};
use crate::append::item_write;
use crate::beside;
use crate::blobs;
use crate::db::{Db, Param, Value, params};
use crate::durable;
use crate::error::{Error, Result};
use crate::ids::now;
use crate::keys::{MAX_SEQ, event_key};
use crate::sessions::stats;
use crate::sources::{checkpoint, files};
use crate::sum;
use std::collections::BTreeMap;

/// Writes `appends`. Returns for each the new end of its log, or why it was rejected; an error of
/// the database aborts all of them. With `optimistic`, items that are new to the callers are
/// assumed to have no rows, which fails if one of them was evicted from a caller's memory.
pub(crate) fn all(db: &Db<'_>, appends: &[&Ready], trust: bool) -> Result<Vec<Result<u64>>> {
    let mut batch = Batch::look(db, appends, trust)?;
    let (mut made, mut events) = (Vec::with_capacity(appends.len()), Vec::new());
    let (mut marks, mut sessions) = (Vec::new(), BTreeMap::new());
    let mut active: BTreeMap<(i64, i64), u64> = BTreeMap::new();
    for ready in appends {
        let session = ready.append.session;
        made.push(match batch.head(session).and_then(|head| check(head, ready)) {
            Err(refused) => Err(refused),
            Ok(next) => {
                events.extend(ready.events.iter().map(|row| (session, row)));
                for (hour, ms) in &ready.append.active {
                    *active.entry((session, *hour)).or_default() += ms;
                }
                marks.extend(ready.append.sources.iter().map(|mark| (session, mark)));
                let growth = one(db, ready, next, &mut batch)?;
                sessions.entry(session).or_insert_with(Growth::default).add(growth);
                batch.went_on(session, next, ready.append.pen);
                Ok(next)
            }
        });
    }
    insert(db, &events)?;
    batch.write(db)?;
    checkpoint::keep(db, &marks)?;
    keep_active(db, &active)?;
    session_update::keep(db, &sessions, batch.expected())?;
    if !db.is_postgres() {
        sessions.iter().for_each(|(session, growth)| durable::wrote(*session, Some(growth.seq)));
    }
    Ok(made)
}

/// Validates an append against the head of its session; returns the end of the log after it.
fn check(head: Head, Ready { append, events, .. }: &Ready) -> Result<u64> {
    let last = head.seq;
    if append.fence.is_some_and(|fence| head.fence != Some(fence)) {
        return Err(Error::Fenced);
    }
    let known = append.pen.is_none_or(|pen| pen.knows(head.pen));
    let mut next = last;
    let in_order = events.iter().all(|row| std::mem::replace(&mut next, row.last) + 1 == row.first);
    if last != append.after || !known || !in_order {
        return Err(Error::Conflict { last });
    }
    if next > MAX_SEQ {
        return Err(Error::Invalid("the session is too long".to_owned()));
    }
    Ok(next)
}

/// Writes everything of an append but its events; returns the changes of the session's row.
fn one<'a>(db: &Db<'_>, ready: &'a Ready, next: u64, batch: &mut Batch) -> Result<Growth<'a>> {
    let Ready { append, items, bytes, .. } = ready;
    let (session, last) = (append.session, append.after);
    let more = item_write::write(db, session, items, batch)?;
    for blob in &append.blobs {
        blobs::keep(db, session, blob)?;
    }
    if let Some(Request { key, first, answer, digest }) = &append.request {
        let (digest, created) = (digest.map(|digest| digest.bytes()), now());
        // A digest begins with the length of the body: one of a shorter prefix must not replace it.
        db.later(
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
                sum::of(&params![session, key, first, created]),
                sum::of(&params![session, key, answer]),
                sum::of(&params![session, key, digest])
            ],
        )?;
    }
    for row in &append.usage {
        stats::keep_usage(db, session, row)?;
    }
    if let Some(message) = &append.first_answer {
        stats::keep_first(db, session, message)?;
    }
    if !append.seen.is_empty() {
        files::keep_seen(db, session, next, &append.seen)?;
    }
    if let Some(loose) = &append.loose {
        files::keep_loose(db, session, loose)?;
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
    Ok(Growth {
        seq: next,
        settled: append.settled,
        next_order: append.next_order,
        bytes: *bytes,
        ended: append.ended,
        heard: append.heard,
        waiting: append.waiting,
        more,
        first,
        newest,
        pen: append.pen.map(Pen::mark),
        facts: append.facts.iter().collect(),
    })
}

/// Adds the milliseconds of activity.
fn keep_active(db: &Db<'_>, active: &BTreeMap<(i64, i64), u64>) -> Result<()> {
    let sums: Vec<i64> =
        active.iter().map(|((s, hour), ms)| beside::active_sum(*s, *hour, *ms)).collect();
    let rows = active.iter().zip(&sums);
    let rows =
        rows.map(|(((s, hour), ms), sum)| [s.value(), hour.value(), ms.value(), sum.value()]);
    let add = "ON CONFLICT (session, hour) DO UPDATE SET ms = active.ms + excluded.ms,
         crc = active.crc + excluded.ms * 1048573";
    db.insert("active", ["bigint", "bigint", "bigint", "bigint"], rows.collect(), add)
}

/// Inserts the events.
fn insert(db: &Db<'_>, events: &[(i64, &Row)]) -> Result<()> {
    let mut rows = Vec::with_capacity(events.len());
    for (session, row) in events {
        let parts = match &row.kept {
            Ok(packed) => [packed.value(), Value::Null, Value::Null],
            Err(parts) => {
                let [event, changes, activity] = parts.each_ref().map(|part| text(part.as_deref()));
                [event?, changes?, activity?]
            }
        };
        let [event, changes, activity] = parts;
        let key = event_key(*session, row.last);
        let sum = sum::event(key, &row.kind, [&event, &changes, &activity].map(bytes));
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
    text.map(Value::Text).map_err(|_| Error::Invalid("an event is not text".to_owned()))
}
