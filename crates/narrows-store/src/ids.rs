//! Random ids, and the clock.

use crate::error::{Error, Result};
use std::time::{SystemTime, UNIX_EPOCH};

/// Crockford's base 32, in lower case: no two characters look alike.
const CROCKFORD32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Random bytes of the operating system.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Io("cannot get random bytes".to_owned()))?;
    Ok(bytes)
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(CROCKFORD32[usize::from(*b) % CROCKFORD32.len()])).collect()
}

/// A new id of a session or a token, of 80 random bits.
pub fn new_id() -> Result<String> {
    Ok(encode(&random::<16>()?))
}

/// A new epoch, of 40 random bits.
pub fn new_epoch() -> Result<String> {
    Ok(encode(&random::<8>()?))
}

/// The current time in milliseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Times further ahead than this, in milliseconds, come from a wrong clock.
pub(crate) const MAX_CLOCK_SKEW_MS: i64 = 10 * 60 * 1000;
