//! The columns that each checksum of a side table covers.

/// The CRC of some columns of a table.
pub(crate) struct ColumnChecksum {
    pub(crate) table: &'static str,
    /// The schema version that introduced it.
    pub(crate) since: u32,
    pub(crate) columns: &'static [&'static str],
    /// The column that stores it.
    pub(crate) checksum: &'static str,
    /// A flag column that is counted above the 32 bits of the CRC, because statements change it
    /// without reading the row.
    pub(crate) flag: Option<&'static str>,
    /// The damage report for a row that does not match.
    pub(crate) mismatch: &'static str,
}

/// A linear sum of integer columns that SQL statements can compute.
pub(crate) struct LinearChecksum {
    pub(crate) table: &'static str,
    /// The columns with their factors.
    pub(crate) terms: &'static [(&'static str, i64)],
    pub(crate) constant: i64,
    /// The column that stores it.
    pub(crate) checksum: &'static str,
    /// The damage report for a row that does not match.
    pub(crate) mismatch: &'static str,
}

/// The schema versions that introduced checksums of side tables.
pub(crate) const FIRST_SCHEMA: u32 = 14;
pub(crate) const SECOND_SCHEMA: u32 = 17;

/// The columns that a token's checksum (`crc`) covers.
pub(crate) const TOKEN_COLUMNS: [&str; 9] =
    ["id", "hash", "kind", "name", "scopes", "sessions", "tags", "created", "expires"];
/// The columns that the checksum of a source checkpoint (`crc`) covers; NULL counts as an empty text.
pub(crate) const SOURCE_COLUMNS: [&str; 10] = [
    "session",
    "number",
    "read",
    "rest",
    "offset",
    "rest_offset",
    "rest_order",
    "last",
    "roots",
    "at",
];

const fn column_checksum(
    (table, since): (&'static str, u32),
    columns: &'static [&'static str],
    checksum: &'static str,
    mismatch: &'static str,
) -> ColumnChecksum {
    ColumnChecksum { table, since, columns, checksum, flag: None, mismatch }
}

/// The damage report for an audit log entry.
pub(crate) const AUDIT_MISMATCH: &str = "an audit log entry does not match its checksum";
/// The damage report for a source checkpoint.
pub(crate) const CHECKPOINT_MISMATCH: &str =
    "a source checkpoint (how far packets or a file were read) does not match its checksum";
/// The damage report for a token.
pub(crate) const TOKEN_MISMATCH: &str =
    "a token does not match its checksum: requests with it are refused";
/// The damage report for an image.
pub(crate) const IMAGE_MISMATCH: &str = "an image does not match its checksum";
/// The damage report for the edited files of a tool call.
pub(crate) const EDIT_MISMATCH: &str = "an edited file does not match its checksum";
const USAGE_MISMATCH: &str = "a token count does not match its checksum";
const ACTIVITY_MISMATCH: &str = "an activity time does not match its checksum";
const REQUEST_MISMATCH: &str = "the response of an idempotent request does not match its checksum";
const RUN_MISMATCH: &str = "the settings of a run do not match their checksum";
const NAMES_MISMATCH: &str =
    "the first prompt, agent session id or project of a session does not match its checksum";

/// The CRCs of all side tables.
pub(crate) const COLUMN_CHECKSUMS: [ColumnChecksum; 28] = [
    column_checksum(
        ("audit", FIRST_SCHEMA),
        &["at", "token", "action", "session", "detail"],
        "crc",
        AUDIT_MISMATCH,
    ),
    column_checksum(
        ("tag", FIRST_SCHEMA),
        &["session", "tag"],
        "crc",
        "a tag does not match its checksum",
    ),
    column_checksum(
        ("call", FIRST_SCHEMA),
        &["key", "name", "at", "ms", "failed"],
        "crc",
        "the statistics of a tool call do not match their checksum",
    ),
    column_checksum(
        ("edit", FIRST_SCHEMA),
        &["key", "path", "added", "removed"],
        "crc",
        EDIT_MISMATCH,
    ),
    column_checksum(
        ("usage", FIRST_SCHEMA),
        &["id", "input", "output", "cache_read", "cache_write", "cost"],
        "crc",
        USAGE_MISMATCH,
    ),
    column_checksum(("usage", FIRST_SCHEMA), &["id", "at"], "at_crc", USAGE_MISMATCH),
    column_checksum(("usage", FIRST_SCHEMA), &["id", "model"], "model_crc", USAGE_MISMATCH),
    column_checksum(
        ("meta", SECOND_SCHEMA),
        &["key", "value"],
        "crc",
        "a store setting does not match its checksum",
    ),
    column_checksum(
        ("session", SECOND_SCHEMA),
        &["key", "prompt", "prompt_order"],
        "prompt_crc",
        NAMES_MISMATCH,
    ),
    column_checksum(("session", SECOND_SCHEMA), &["key", "native"], "native_crc", NAMES_MISMATCH),
    column_checksum(("session", SECOND_SCHEMA), &["key", "project"], "project_crc", NAMES_MISMATCH),
    column_checksum(("blob", SECOND_SCHEMA), &["hash", "mime", "size"], "crc", IMAGE_MISMATCH),
    column_checksum(("blob_use", SECOND_SCHEMA), &["session", "hash"], "crc", IMAGE_MISMATCH),
    column_checksum(
        ("source", SECOND_SCHEMA),
        &["session", "number", "format"],
        "format_crc",
        CHECKPOINT_MISMATCH,
    ),
    column_checksum(
        ("source", SECOND_SCHEMA),
        &["session", "number", "path"],
        "path_crc",
        CHECKPOINT_MISMATCH,
    ),
    ColumnChecksum {
        table: "source",
        since: SECOND_SCHEMA,
        columns: &[
            "session", "number", "node", "size", "changed", "head", "tail", "tail_at", "parent",
            "parser",
        ],
        checksum: "file_crc",
        flag: Some("gone"),
        mismatch: CHECKPOINT_MISMATCH,
    },
    column_checksum(
        ("request", SECOND_SCHEMA),
        &["session", "key", "first", "created"],
        "crc",
        REQUEST_MISMATCH,
    ),
    column_checksum(
        ("request", SECOND_SCHEMA),
        &["session", "key", "answer"],
        "answer_crc",
        REQUEST_MISMATCH,
    ),
    column_checksum(
        ("request", SECOND_SCHEMA),
        &["session", "key", "digest"],
        "digest_crc",
        REQUEST_MISMATCH,
    ),
    column_checksum(
        ("made", SECOND_SCHEMA),
        &["token", "maker"],
        "crc",
        "the parent of a token does not match its checksum",
    ),
    column_checksum(
        ("forgotten", SECOND_SCHEMA),
        &["label", "at"],
        "crc",
        "the tombstone of a session label does not match its checksum",
    ),
    column_checksum(
        ("first_answer", SECOND_SCHEMA),
        &["session", "answer"],
        "crc",
        "the first answer of a session does not match its checksum",
    ),
    column_checksum(
        ("damage", SECOND_SCHEMA),
        &["session", "first", "last", "name"],
        "crc",
        "an earlier loss report does not match its checksum",
    ),
    column_checksum(
        ("run", SECOND_SCHEMA),
        &["session", "agent", "cwd", "native", "mode", "model", "runs", "directories"],
        "crc",
        RUN_MISMATCH,
    ),
    column_checksum(
        ("run", SECOND_SCHEMA),
        &["session", "node", "fence"],
        "lease_crc",
        RUN_MISMATCH,
    ),
    column_checksum(("run", SECOND_SCHEMA), &["session", "shown"], "shown_crc", RUN_MISMATCH),
    column_checksum(
        ("message", SECOND_SCHEMA),
        &["session", "number", "key", "digest", "body", "state", "after", "until", "created"],
        "crc",
        "a queued message does not match its checksum",
    ),
    // The checksums of its records are added one by one (`side_tables::of_records`).
    column_checksum(
        ("seen", SECOND_SCHEMA),
        &["session", "seq", "source"],
        "crc",
        "the list of read records does not match its checksum",
    ),
];

/// The linear sums of all side tables.
pub(crate) const LINEAR_CHECKSUMS: [LinearChecksum; 3] = [
    LinearChecksum {
        table: "active",
        terms: &[("ms", 1_048_573), ("hour", 8191), ("session", 127)],
        constant: 0,
        checksum: "crc",
        mismatch: ACTIVITY_MISMATCH,
    },
    LinearChecksum {
        table: "doomed",
        terms: &[("session", 8191)],
        constant: 127,
        checksum: "crc",
        mismatch: "a pending session deletion does not match its checksum",
    },
    LinearChecksum {
        table: "usage",
        terms: &[("session", 8191), ("sub", 127), ("kept", 31)],
        constant: 1,
        checksum: "who",
        mismatch: USAGE_MISMATCH,
    },
];

/// The columns that identify a row of a table.
pub(crate) fn key_columns(table: &str) -> &'static [&'static str] {
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
