//! Checksums of the rows outside the logs: tags, usage, tool calls, edited files, the audit log,
//! sources, requests, runs, settings, and the parts of a session's row that its header checksum does
//! not cover. The columns are listed in [`super::columns`].

use super::Checksum;
use super::columns::{COLUMN_CHECKSUMS, ColumnChecksum, LINEAR_CHECKSUMS, LinearChecksum};
use crate::db::{Row, Value};

/// The SQL condition of pending deletions that match their checksum ([`of_pending_delete`]).
pub(crate) const PENDING_DELETE_MATCHES: &str = "(crc IS NULL OR crc = session * 8191 + 127)";
/// The addend of a set flag (`ColumnChecksum::flag`).
pub(crate) const FLAG: i64 = 1 << 32;

/// The checksum of an hour of activity. Statements add to it.
pub(crate) fn of_activity(session: i64, hour: i64, ms: u64) -> i64 {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX).wrapping_mul(1_048_573);
    ms.wrapping_add(hour.wrapping_mul(8191)).wrapping_add(session.wrapping_mul(127))
}

/// The checksum of a pending session deletion.
pub(crate) fn of_pending_delete(session: i64) -> i64 {
    session.wrapping_mul(8191).wrapping_add(127)
}

/// The checksum of the owner of a token count, and of whether the count is final.
pub(crate) fn of_usage_owner(session: i64, is_subagent: bool, is_final: bool) -> i64 {
    let flags = i64::from(is_subagent) * 127 + i64::from(is_final) * 31;
    session.wrapping_mul(8191).wrapping_add(flags + 1)
}

/// The SQL of the visibility checksum of a session: the session that is listed in its place, and whether
/// it is excluded.
pub(crate) fn visibility_sql(copy_of: &str, excluded: &str) -> String {
    format!("(coalesce({copy_of}, 0) * 8191 + {excluded} * 524287 + 1)")
}

/// The sum of the checksums of 8-byte record ids: appending records adds theirs.
pub(crate) fn of_records(records: &[u8]) -> i64 {
    records.chunks(8).map(|record| i64::from(crc32fast::hash(record))).sum()
}

/// The checksum of some columns; none if one of them cannot be read.
pub(crate) fn of_columns<'a>(
    spec: &ColumnChecksum,
    get: impl Fn(&str) -> Option<Value<'a>>,
) -> Option<i64> {
    let mut checksum = Checksum::default();
    for name in spec.columns {
        checksum.add(&get(name)?);
    }
    let extra = match (spec.flag, spec.table) {
        (Some(flag), _) => match get(flag)? {
            Value::Int(n) => n.wrapping_mul(FLAG),
            _ => return None,
        },
        (None, "seen") => match get("records")? {
            Value::Bytes(records) => of_records(records),
            _ => return None,
        },
        _ => 0,
    };
    Some(checksum.finish().wrapping_add(extra))
}

fn linear<'a>(spec: &LinearChecksum, get: impl Fn(&str) -> Option<Value<'a>>) -> Option<i64> {
    spec.terms.iter().try_fold(spec.constant, |sum, (name, factor)| match get(name)? {
        Value::Int(n) => Some(sum.wrapping_add(n.wrapping_mul(*factor))),
        _ => None,
    })
}

/// Replaces NULL by the empty text, as the checksum of a source checkpoint does.
pub(crate) fn or_empty(value: Value<'_>) -> Value<'_> {
    if value == Value::Null { Value::Text("") } else { value }
}

/// Whether a row matches all its checksums; none if it has no checksum.
pub(crate) fn verify<'a>(table: &str, get: impl Fn(&str) -> Value<'a>) -> Option<bool> {
    let (mut verdict, readable) = (None, |name: &str| Some(get(name)));
    let mut compare = |stored: Value<'a>, computed: Option<i64>| match stored {
        Value::Null => {}
        Value::Int(stored) => verdict = Some(verdict.unwrap_or(true) && Some(stored) == computed),
        _ => verdict = Some(false),
    };
    for spec in COLUMN_CHECKSUMS.iter().filter(|spec| spec.table == table) {
        compare(get(spec.checksum), of_columns(spec, readable));
    }
    for spec in LINEAR_CHECKSUMS.iter().filter(|spec| spec.table == table) {
        compare(get(spec.checksum), linear(spec, readable));
    }
    verdict
}

/// Whether a row contradicts none of its checksums. `at` gives the index of a column.
pub(crate) fn row_matches(table: &str, row: &Row<'_>, at: impl Fn(&str) -> usize) -> bool {
    let failed = std::cell::Cell::new(false);
    let get = |name: &str| {
        row.value(at(name)).unwrap_or_else(|_| {
            failed.set(true);
            Value::Null
        })
    };
    verify(table, get).unwrap_or(true) && !failed.get()
}

/// All columns of a table that its checksums cover, and the checksums.
pub(crate) fn covered_columns(table: &str) -> Vec<&'static str> {
    let mut all = Vec::new();
    let mut add = |name: &'static str| {
        if !all.contains(&name) {
            all.push(name);
        }
    };
    for spec in COLUMN_CHECKSUMS.iter().filter(|spec| spec.table == table) {
        let names = spec.columns.iter().chain([&spec.checksum]).chain(spec.flag.as_ref());
        names.for_each(|name| add(name));
    }
    for spec in LINEAR_CHECKSUMS.iter().filter(|spec| spec.table == table) {
        spec.terms.iter().map(|(name, _)| name).chain([&spec.checksum]).for_each(|name| add(name));
    }
    if table == "seen" {
        add("records");
    }
    all
}

/// The damage report for a row of a table that does not match.
pub(crate) fn mismatch(table: &str) -> &'static str {
    let columns = COLUMN_CHECKSUMS.iter().map(|spec| (spec.table, spec.mismatch));
    let linear = LINEAR_CHECKSUMS.iter().map(|spec| (spec.table, spec.mismatch));
    columns.chain(linear).find(|(name, _)| *name == table).map_or("", |(_, mismatch)| mismatch)
}
