//! Which columns of which table a checksum is of.

/// A checksum of some columns of a table.
pub(super) struct Summed {
    pub(super) table: &'static str,
    /// The schema that has it.
    pub(super) since: u32,
    pub(super) columns: &'static [&'static str],
    pub(super) crc: &'static str,
    /// A column that is counted above the 32 bits of the checksum: statements change it by itself.
    pub(super) above: Option<&'static str>,
    /// What is said of a row that is not as it was written.
    pub(super) what: &'static str,
}

/// A sum of numbers that statements can say: each with what it is multiplied by.
pub(super) struct Counted {
    pub(super) table: &'static str,
    pub(super) terms: &'static [(&'static str, i64)],
    pub(super) more: i64,
    pub(super) sum: &'static str,
    pub(super) what: &'static str,
}

pub(super) const FIRST: u32 = 14;
pub(crate) const SECOND: u32 = 17;

const fn summed(
    (table, since): (&'static str, u32),
    columns: &'static [&'static str],
    crc: &'static str,
    what: &'static str,
) -> Summed {
    Summed { table, since, columns, crc, above: None, what }
}

/// What is said of an entry of the audit log.
pub(crate) const AUDIT: &str = "an entry of the audit log is not as it was written";
const TOKENS: &str = "a count of tokens is not as it was written";
const ACTIVE: &str = "a time of activity is not as it was written";
const READ: &str = "how far packets or a file were read is not as it was written";
const REQUEST: &str = "an answer to a request is not as it was written";
const RUN: &str = "how an agent is run is not as it was written";
const PICTURE: &str = "a picture is not as it was written";
const NAMES: &str = "what a session is called is not as it was written";

/// All checksums of the rows beside the logs.
pub(super) const ALL: [Summed; 28] = [
    summed(("audit", FIRST), &["at", "token", "action", "session", "detail"], "crc", AUDIT),
    summed(("tag", FIRST), &["session", "tag"], "crc", "a tag is not as it was written"),
    summed(
        ("call", FIRST),
        &["key", "name", "at", "ms", "failed"],
        "crc",
        "what is counted of a call is not as it was written",
    ),
    summed(
        ("edit", FIRST),
        &["key", "path", "added", "removed"],
        "crc",
        "a changed file is not as it was written",
    ),
    summed(
        ("usage", FIRST),
        &["id", "input", "output", "cache_read", "cache_write", "cost"],
        "crc",
        TOKENS,
    ),
    summed(("usage", FIRST), &["id", "at"], "at_crc", TOKENS),
    summed(("usage", FIRST), &["id", "model"], "model_crc", TOKENS),
    summed(
        ("meta", SECOND),
        &["key", "value"],
        "crc",
        "a setting of the store is not as it was written",
    ),
    summed(("session", SECOND), &["key", "prompt", "prompt_order"], "prompt_crc", NAMES),
    summed(("session", SECOND), &["key", "native"], "native_crc", NAMES),
    summed(("session", SECOND), &["key", "project"], "project_crc", NAMES),
    summed(("blob", SECOND), &["hash", "mime", "size"], "crc", PICTURE),
    summed(("blob_use", SECOND), &["session", "hash"], "crc", PICTURE),
    summed(("source", SECOND), &["session", "number", "format"], "format_crc", READ),
    summed(("source", SECOND), &["session", "number", "path"], "path_crc", READ),
    Summed {
        table: "source",
        since: SECOND,
        columns: &[
            "session", "number", "node", "size", "changed", "head", "tail", "tail_at", "parent",
            "parser",
        ],
        crc: "file_crc",
        above: Some("gone"),
        what: READ,
    },
    summed(("request", SECOND), &["session", "key", "first", "created"], "crc", REQUEST),
    summed(("request", SECOND), &["session", "key", "answer"], "answer_crc", REQUEST),
    summed(("request", SECOND), &["session", "key", "digest"], "digest_crc", REQUEST),
    summed(
        ("made", SECOND),
        &["token", "maker"],
        "crc",
        "which token made which is not as it was written",
    ),
    summed(
        ("forgotten", SECOND),
        &["label", "at"],
        "crc",
        "the name of a deleted session is not as it was written",
    ),
    summed(
        ("first_answer", SECOND),
        &["session", "answer"],
        "crc",
        "which answer of a session was the first is not as it was written",
    ),
    summed(
        ("damage", SECOND),
        &["session", "first", "last", "name"],
        "crc",
        "what was lost before is not as it was written",
    ),
    summed(
        ("run", SECOND),
        &["session", "agent", "cwd", "native", "mode", "model", "runs", "directories"],
        "crc",
        RUN,
    ),
    summed(("run", SECOND), &["session", "node", "fence"], "lease_crc", RUN),
    summed(("run", SECOND), &["session", "shown"], "shown_crc", RUN),
    summed(
        ("message", SECOND),
        &["session", "number", "key", "digest", "body", "state", "after", "until", "created"],
        "crc",
        "a message to an agent is not as it was written",
    ),
    // Its records are added one by one (`files.rs`).
    summed(
        ("seen", SECOND),
        &["session", "seq", "source"],
        "crc",
        "which records were read is not as it was written",
    ),
];

/// The sums that statements can say.
pub(super) const COUNTED: [Counted; 3] = [
    Counted {
        table: "active",
        terms: &[("ms", 1_048_573), ("hour", 8191), ("session", 127)],
        more: 0,
        sum: "crc",
        what: ACTIVE,
    },
    Counted {
        table: "doomed",
        terms: &[("session", 8191)],
        more: 127,
        sum: "crc",
        what: "which session was deleted is not as it was written",
    },
    Counted {
        table: "usage",
        terms: &[("session", 8191), ("sub", 127), ("kept", 31)],
        more: 1,
        sum: "who",
        what: TOKENS,
    },
];

/// The key of a table by which its rows are found.
pub(super) fn key(table: &str) -> &'static [&'static str] {
    match table {
        "audit" | "call" | "session" | "meta" => &["key"],
        "tag" => &["session", "tag"],
        "edit" => &["key", "path"],
        "blob_use" => &["session", "hash"],
        "source" | "message" => &["session", "number"],
        "request" => &["session", "key"],
        "made" => &["token"],
        "forgotten" => &["label"],
        "first_answer" | "run" => &["session"],
        "damage" => &["session", "first"],
        "seen" => &["session", "seq", "source"],
        _ => &["id"],
    }
}
