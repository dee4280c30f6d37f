//! What the installation is: its key for marks, and where work that goes on has come to.

use crate::damage::{self, Damage};
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::names::random;
use crate::sum;

/// The key for marks, and the same once more: another key would make other marks, and nobody would see it.
const KEY: &str = "mark_key";
const AGAIN: &str = "mark_key_again";
/// What is said of them.
const KEY_DAMAGED: &str = "the key for marks of secrets is not as it was written";

/// Keeps a value.
pub(crate) fn put(db: &Db<'_>, key: &str, value: &Value<'_>) -> Result<()> {
    db.later(
        "INSERT INTO meta (key, value, crc) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc",
        &params![key, value, sum::of(&[Value::Text(key), value.clone()])],
    )
}

/// Keeps a value if there is none.
pub(crate) fn put_first(db: &Db<'_>, key: &str, value: &Value<'_>) -> Result<()> {
    db.execute(
        "INSERT INTO meta (key, value, crc) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        &params![key, value, sum::of(&[Value::Text(key), value.clone()])],
    )
    .map(|_| ())
}

/// A key as it stands there, and whether it is known to be what was written.
fn key_at(db: &Db<'_>, key: &str) -> Result<Option<([u8; 32], bool)>> {
    let sql = "SELECT key, value, crc FROM meta WHERE key = ?1";
    let found = db.optional(sql, &params![key], |r| {
        let sound = sum::row_holds(r, &[0, 1], 2)?;
        // One of another length is none.
        Ok(r.get::<[u8; 32]>(1).ok().map(|value| (value, sound)))
    })?;
    Ok(found.flatten())
}

/// The installation's key for the marks of secrets, which is made at first. Of the two that are kept the
/// one that is as it was written counts; that the other is not is told by whoever looks.
pub(crate) fn mark_key(db: &Db<'_>) -> Result<[u8; 32]> {
    let [first, again] = [key_at(db, KEY)?, key_at(db, AGAIN)?];
    let key = match (first, again) {
        (Some((key, true)), _) | (_, Some((key, true))) => key,
        // It is said; to open nothing would be worse.
        (Some((key, _)), _) | (_, Some((key, _))) => key,
        (None, None) => random()?,
    };
    for name in [KEY, AGAIN] {
        put_first(db, name, &Value::Bytes(&key))?;
    }
    // Another node may have been faster.
    match key_at(db, KEY)? {
        Some((kept, true)) => Ok(kept),
        _ => Ok(key),
    }
}

/// Looks whether the two keys are the same.
pub(crate) fn look(db: &Db<'_>) -> Result<()> {
    let keys = [key_at(db, KEY)?, key_at(db, AGAIN)?];
    let same = match keys {
        [Some((first, one)), Some((again, other))] => first == again && one && other,
        // A store that nobody has opened to write since it was made has none.
        [first, again] => first.is_none() && again.is_none(),
    };
    if !same {
        damage::found(Damage::other(KEY_DAMAGED));
    }
    Ok(())
}
