//! Requests and packets that came before: what is known of them, and whether what comes now goes on there.

use super::live::Live;
use super::{Answer, Reading};
use narrows_store::{Error, KeptRequest, Result, Session, Store};

/// Sees whether what comes goes on where the pipeline is, which knows the packets up to `known`.
pub(super) fn place_it(
    live: &mut Live,
    reading: &Reading,
    first: Option<u64>,
    known: u64,
) -> Result<()> {
    if reading.lost {
        live.only(&[]);
        return Ok(());
    }
    // Lines that say where they stand are looked at one by one.
    if reading.wrapped || reading.placed {
        return Ok(());
    }
    live.check_place(first, known)
}

/// Names the request that must be sent again, where requests have names.
pub(super) async fn with_key(store: &Store, session: &Session, error: Error) -> Error {
    let Error::Resend { acknowledged, .. } = error else { return error };
    // Those without a packet have the place of the one that comes after them.
    let asked = store.request_at(session.key, acknowledged + 1).await.unwrap_or_default();
    let holds = |(_, answer): &(String, Option<String>)| {
        let answer = answer.as_deref().and_then(|a| serde_json::from_str::<Answer>(a).ok());
        answer.is_none_or(|answer| answer.read > acknowledged)
    };
    Error::Resend { acknowledged, key: asked.into_iter().find(holds).map(|(key, _)| key) }
}

/// A request of the same key that came before.
pub(super) async fn asked_before(
    store: &Store,
    session: &Session,
    reading: &Reading,
) -> Result<Option<KeptRequest>> {
    match &reading.key {
        Some(key) => store.request(session.key, key).await,
        None => Ok(None),
    }
}
