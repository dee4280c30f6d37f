//! Names that nobody can guess, and the time.

use crate::error::{Error, Result};
use std::time::{SystemTime, UNIX_EPOCH};

/// Letters that are not taken for each other; small ones only.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Random bytes of the system.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Io("no random numbers".to_owned()))?;
    Ok(bytes)
}

fn spell(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(LETTERS[usize::from(*b) % LETTERS.len()])).collect()
}

/// A new id of a session or a token: 80 random bits.
pub fn new_id() -> Result<String> {
    Ok(spell(&random::<16>()?))
}

/// A new epoch: 40 random bits.
pub fn new_epoch() -> Result<String> {
    Ok(spell(&random::<8>()?))
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time that is further ahead than this was told by a clock that was wrong.
pub(crate) const AHEAD_MS: i64 = 10 * 60 * 1000;
