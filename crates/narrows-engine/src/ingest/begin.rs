//! The start of a request: was it sent before, is the writer in memory current, and do its packets follow
//! those that were read? A request that repeats an answered one gets the same receipt.

use super::body_digest::BodyCheck;
use super::options::{IngestOptions, IngestReceipt};
use super::request::IngestRequest;
use super::session_writer::SessionWriter;
use super::{Ingest, WriterGuard};
use narrows_store::{BodyDigest, Error, KeptRequest, Result, Session, Store};

/// The stored state of an earlier request with the same idempotency key.
#[derive(Debug, Default)]
struct EarlierRequest {
    /// The number of its first packet; without an earlier request, that of the options.
    first: Option<u64>,
    /// Its receipt, if it was answered.
    receipt: Option<IngestReceipt>,
    /// The digest of the part of its body that was stored.
    body: Option<BodyDigest>,
    /// There was one.
    exists: bool,
}

impl EarlierRequest {
    async fn load(store: &Store, session: &Session, options: &IngestOptions) -> Result<Self> {
        Ok(match find_request(store, session, options).await? {
            Some(KeptRequest { first, answer, digest }) => EarlierRequest {
                first: Some(first),
                receipt: answer.and_then(|json| serde_json::from_str(&json).ok()),
                body: digest,
                exists: true,
            },
            None => EarlierRequest { first: options.first, ..EarlierRequest::default() },
        })
    }
}

impl IngestRequest {
    pub(super) async fn begin(
        ingest: &Ingest,
        guard: WriterGuard,
        session: &Session,
        options: IngestOptions,
    ) -> Result<IngestRequest> {
        match IngestRequest::begin_locked(ingest, guard, session, options).await {
            Err(error) => Err(add_resend_key(&ingest.inner.store, session, error).await),
            request => request,
        }
    }

    async fn begin_locked(
        ingest: &Ingest,
        mut guard: WriterGuard,
        session: &Session,
        options: IngestOptions,
    ) -> Result<IngestRequest> {
        if let Some(writer) = guard.as_mut() {
            // An earlier request was cancelled before its appends were durable. It may be this very one.
            writer.await_in_flight().await;
        }
        let earlier = load_writer(ingest, &mut guard, session, &options).await?;
        if let Some(writer) = guard.as_mut() {
            writer.set_request(&options);
        }
        let main = guard.as_ref().map(|writer| writer.sources.main()).unwrap_or_default();
        let (mut receipt, mut replayed_receipt) = (earlier.receipt, None);
        if main.is_replaying() && receipt.as_ref().is_some_and(|r| r.read > main.pushed) {
            // The request was answered, but text that it held back is lost: it is read once more.
            replayed_receipt = receipt.take();
        }
        let answered = receipt.is_some() || replayed_receipt.is_some();
        let body = options.key.as_ref().map(|_| Box::new(BodyCheck::new(earlier.body, answered)));
        let base = base_packet(main.read, earlier.first)?;
        Ok(IngestRequest::new(ingest, guard, options, base, receipt, replayed_receipt, body))
    }
}

/// The number of the packet before the request's first one, after `read` packets.
fn base_packet(read: u64, first: Option<u64>) -> Result<u64> {
    let next = read + 1;
    match first {
        None => Ok(read),
        Some(first) if first == 0 || first > next => Err(Error::Invalid(format!(
            "expected packet {next}, got {first}; resend from packet {next}"
        ))),
        Some(first) => Ok(first - 1),
    }
}

/// Loads the writer of a session unless the one in memory is current, and checks that the request's
/// packets follow those that it has.
async fn load_writer(
    ingest: &Ingest,
    guard: &mut WriterGuard,
    session: &Session,
    options: &IngestOptions,
) -> Result<EarlierRequest> {
    let store = &ingest.inner.store;
    loop {
        let earlier = EarlierRequest::load(store, session, options).await?;
        if is_current(store, guard, session, options).await? {
            if let Some(writer) = guard.as_mut() {
                let pushed = writer.sources.main().pushed;
                check_position(writer, options, earlier.first, pushed)?;
            }
            return Ok(earlier);
        }
        // Packets that were read before are sent again: the pipeline must parse them again.
        let replay = options.wrapped || options.placed || options.lost || earlier.first.is_some();
        let redaction = &ingest.inner.redaction;
        let mut writer = SessionWriter::load(store, redaction, session, options, replay).await?;
        // Another node may have stored this very request after the first lookup and before the session
        // was loaded. What it stores from now on conflicts with the append of this request.
        if !earlier.exists && find_request(store, session, options).await?.is_some() {
            **guard = None;
            continue;
        }
        let checkpoint = writer.sources.main().checkpoint;
        check_position(&mut writer, options, earlier.first, checkpoint)?;
        **guard = Some(writer);
        return Ok(earlier);
    }
}

/// Whether the writer in memory has everything that the store has.
async fn is_current(
    store: &Store,
    guard: &mut WriterGuard,
    session: &Session,
    options: &IngestOptions,
) -> Result<bool> {
    if guard.as_ref().is_none_or(SessionWriter::is_poisoned) {
        return Ok(false);
    }
    if !store.is_shared() || options.trust {
        return Ok(true);
    }
    let now = store.session(&session.id).await?;
    Ok(guard.as_ref().is_some_and(|writer| !writer.is_stale(&now)))
}

/// Checks that the packets of a request follow `pushed`, the last packet that the writer has.
fn check_position(
    writer: &mut SessionWriter,
    options: &IngestOptions,
    first: Option<u64>,
    pushed: u64,
) -> Result<()> {
    if options.lost {
        writer.limit_sources(&[]);
        return Ok(());
    }
    // Packets with their own positions are checked one by one.
    if options.wrapped || options.placed {
        return Ok(());
    }
    writer.sources.check_position(first, pushed)
}

/// Adds the idempotency key of the request that must be sent again, if it had one.
async fn add_resend_key(store: &Store, session: &Session, error: Error) -> Error {
    let Error::Resend { acknowledged, .. } = error else { return error };
    // Requests without a packet have the position of the packet that follows them.
    let requests = store.request_at(session.key, acknowledged + 1).await.unwrap_or_default();
    let has_packets = |(_, answer): &(String, Option<String>)| {
        let receipt = answer.as_deref().and_then(|a| serde_json::from_str::<IngestReceipt>(a).ok());
        receipt.is_none_or(|receipt| receipt.read > acknowledged)
    };
    Error::Resend { acknowledged, key: requests.into_iter().find(has_packets).map(|(key, _)| key) }
}

/// The earlier request with the same idempotency key.
async fn find_request(
    store: &Store,
    session: &Session,
    options: &IngestOptions,
) -> Result<Option<KeptRequest>> {
    match &options.key {
        Some(key) => store.request(session.key, key).await,
        None => Ok(None),
    }
}
