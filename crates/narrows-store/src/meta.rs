//! Key-value settings of the installation (table `meta`), and its redaction key.

use crate::checksum;
use crate::damage;
use crate::damage::Damage;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::ids::random;

/// The redaction key, stored twice: with a damaged key, placeholders would change unnoticed.
const REDACTION_KEY: &str = "mark_key";
const REDACTION_KEY_COPY: &str = "mark_key_again";

/// Sets a value.
pub(crate) fn set(db: &Db<'_>, key: &str, value: &Value<'_>) -> Result<()> {
    db.execute_pipelined(
        "INSERT INTO meta (key, value, crc) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc",
        &params![key, value, checksum::of_values(&[Value::Text(key), value.clone()])],
    )
}

/// Sets a value if the key has none.
pub(crate) fn set_if_absent(db: &Db<'_>, key: &str, value: &Value<'_>) -> Result<()> {
    db.execute(
        "INSERT INTO meta (key, value, crc) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        &params![key, value, checksum::of_values(&[Value::Text(key), value.clone()])],
    )
    .map(|_| ())
}

/// Reads one copy of the redaction key, and whether it matches its checksum.
fn read_key(db: &Db<'_>, name: &str) -> Result<Option<([u8; 32], bool)>> {
    let sql = "SELECT key, value, crc FROM meta WHERE key = ?1";
    let key = db.query_opt(sql, &params![name], |r| {
        let matches = checksum::row_matches(r, &[0, 1], 2)?;
        // A key of another length counts as missing.
        Ok(r.get::<[u8; 32]>(1).ok().map(|key| (key, matches)))
    })?;
    Ok(key.flatten())
}

/// The key that redaction placeholders are hashed with; generates it on first use. Prefers a copy that
/// matches its checksum; a mismatch of the other is reported by [`check_redaction_key`].
pub(crate) fn redaction_key(db: &Db<'_>) -> Result<[u8; 32]> {
    let [first, copy] = [read_key(db, REDACTION_KEY)?, read_key(db, REDACTION_KEY_COPY)?];
    let key = match (first, copy) {
        (Some((key, true)), _) | (_, Some((key, true))) => key,
        // The check reports this damage; not opening the store would be worse.
        (Some((key, _)), _) | (_, Some((key, _))) => key,
        (None, None) => random()?,
    };
    for name in [REDACTION_KEY, REDACTION_KEY_COPY] {
        set_if_absent(db, name, &Value::Bytes(&key))?;
    }
    // Another node may have inserted its key first.
    match read_key(db, REDACTION_KEY)? {
        Some((stored, true)) => Ok(stored),
        _ => Ok(key),
    }
}

/// Completes the two copies of the redaction key where one exists.
pub(crate) fn duplicate_redaction_key(db: &Db<'_>) -> Result<()> {
    if db.exists("SELECT 1 FROM meta WHERE key LIKE 'mark_key%'", &[])? {
        redaction_key(db)?;
    }
    Ok(())
}

/// Reports damage unless both copies of the redaction key are intact and equal.
pub(crate) fn check_redaction_key(db: &Db<'_>) -> Result<()> {
    let is_intact = match [read_key(db, REDACTION_KEY)?, read_key(db, REDACTION_KEY_COPY)?] {
        [Some((first, first_matches)), Some((copy, copy_matches))] => {
            first == copy && first_matches && copy_matches
        }
        // A store that was never opened for writing has no key yet.
        [first, copy] => first.is_none() && copy.is_none(),
    };
    if !is_intact {
        damage::report(Damage::other("the redaction key does not match its checksum"));
    }
    Ok(())
}
