//! The bus by which nodes wake each other. A message carries no content: the log is in the store. A
//! message that is lost, late or duplicated does no harm, because each node also polls the store
//! (`cluster_sync`).

use async_nats::{Client, ConnectOptions, Event, Subscriber, connection::State};
use bytes::Bytes;
use futures_util::StreamExt;
use narrows_store::{Error, Result};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Messages that wait to be published; more are dropped.
const MAX_QUEUED_MESSAGES: usize = 10_000;
/// Received messages that this node has not handled yet.
const RECEIVE_BUFFER_COUNT: usize = 4096;
/// Approximate size of one published payload, in bytes.
const MAX_PAYLOAD_BYTES: usize = 16 << 10;
/// How long a publish may take before the payload is dropped.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a silent NATS server is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A message of the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// A session's log has grown.
    LogGrew {
        /// The session's key.
        session: i64,
        /// The seq of its last event.
        seq: u64,
    },
    /// A request for a session's run was enqueued or answered.
    Run {
        /// The session's key.
        session: i64,
    },
    /// Something else changed, or messages may have been missed: poll the store.
    Poll,
}

impl Wake {
    fn encode(&self, out: &mut String) {
        let _ = match self {
            Wake::LogGrew { session, seq } => writeln!(out, "g {session} {seq}"),
            Wake::Run { session } => writeln!(out, "r {session}"),
            Wake::Poll => writeln!(out, "l"),
        };
    }

    fn parse(line: &str) -> Option<Wake> {
        let mut words = line.split(' ');
        let wake = match words.next()? {
            "g" => Wake::LogGrew {
                session: words.next()?.parse().ok()?,
                seq: words.next()?.parse().ok()?,
            },
            "r" => Wake::Run { session: words.next()?.parse().ok()? },
            "l" => Wake::Poll,
            _ => return None,
        };
        words.next().is_none().then_some(wake)
    }
}

/// The bus of a cluster.
#[derive(Debug, Clone)]
pub enum Bus {
    /// A single node: subscribers are woken directly.
    Local,
    /// Several nodes over NATS.
    Nats(Arc<Nats>),
}

/// A connection to NATS.
#[derive(Debug)]
pub struct Nats {
    client: Client,
    subject: String,
    outbox: Mutex<Outbox>,
    queued: Notify,
}

/// Messages to publish: the newest seq of each session, and the others without duplicates.
#[derive(Debug, Default)]
struct Outbox {
    grown: HashMap<i64, u64>,
    others: Vec<Wake>,
}

impl Bus {
    /// Connects to NATS and returns the messages of other nodes. Nodes with the same `key` share a
    /// subject. A server that is unreachable now is retried in the background.
    pub async fn connect(url: &str, key: &[u8]) -> Result<(Bus, mpsc::Receiver<Wake>)> {
        let (sender, receiver) = mpsc::channel(RECEIVE_BUFFER_COUNT);
        let on_reconnect = sender.clone();
        let options = ConnectOptions::new()
            .name("narrows")
            .no_echo()
            .ping_interval(PING_INTERVAL)
            .connection_timeout(CONNECT_TIMEOUT)
            .retry_on_initial_connect()
            .reconnect_delay_callback(|tries| {
                Duration::from_millis(50 * u64::try_from(tries.min(20)).unwrap_or(20))
            })
            .event_callback(move |event| {
                let on_reconnect = on_reconnect.clone();
                async move {
                    match event {
                        // Messages that were published meanwhile did not arrive.
                        Event::Connected => {
                            tracing::info!("connected to NATS");
                            let _ = on_reconnect.try_send(Wake::Poll);
                        }
                        Event::Disconnected => tracing::warn!("disconnected from NATS"),
                        _ => {}
                    }
                }
            });
        let invalid = |_| Error::Invalid("cannot parse the NATS address".to_owned());
        let servers: Vec<async_nats::ServerAddr> = url
            .split(',')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()
            .map_err(invalid)?;
        let failed = |e: String| Error::Unavailable(format!("NATS: {e}"));
        let client = options.connect(servers).await.map_err(|e| failed(e.kind().to_string()))?;
        // Nodes of another store on the same server have another subject.
        let name: String = Sha256::digest(key).iter().take(6).map(|b| format!("{b:02x}")).collect();
        let subject = format!("narrows.{name}.wake");
        let subscriber = client.subscribe(subject.clone()).await;
        let subscriber = subscriber.map_err(|_| failed("cannot subscribe".to_owned()))?;
        tokio::spawn(subscriber_task(subscriber, sender));
        let nats = Nats { client, subject, outbox: Mutex::default(), queued: Notify::new() };
        let nats = Arc::new(nats);
        tokio::spawn(publisher_task(Arc::downgrade(&nats)));
        Ok((Bus::Nats(nats), receiver))
    }

    /// Publishes a message to other nodes soon; never waits.
    pub fn tell(&self, wake: Wake) {
        let Bus::Nats(nats) = self else { return };
        {
            let mut outbox = nats.outbox.lock().unwrap_or_else(PoisonError::into_inner);
            if outbox.grown.len() + outbox.others.len() >= MAX_QUEUED_MESSAGES {
                return;
            }
            match wake {
                Wake::LogGrew { session, seq } => {
                    let last = outbox.grown.entry(session).or_default();
                    *last = seq.max(*last);
                }
                wake if outbox.others.contains(&wake) => {}
                wake => outbox.others.push(wake),
            }
        }
        nats.queued.notify_one();
    }

    /// Whether messages reach other nodes now.
    pub fn is_connected(&self) -> bool {
        match self {
            Bus::Local => true,
            Bus::Nats(nats) => nats.client.connection_state() == State::Connected,
        }
    }

    /// Whether there may be other nodes.
    pub fn is_shared(&self) -> bool {
        matches!(self, Bus::Nats(_))
    }
}

/// Publishes queued messages until the bus is dropped.
async fn publisher_task(nats: Weak<Nats>) {
    while let Some(nats) = nats.upgrade() {
        // The timeout makes the loop notice that the bus was dropped.
        let _ = tokio::time::timeout(PUBLISH_TIMEOUT, nats.queued.notified()).await;
        let outbox =
            std::mem::take(&mut *nats.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        // The client would deliver the messages long after; on reconnect all nodes poll anyway.
        if nats.client.connection_state() != State::Connected {
            continue;
        }
        let grown = outbox.grown.into_iter().map(|(session, seq)| Wake::LogGrew { session, seq });
        let mut payload = String::new();
        let mut messages = outbox.others.into_iter().chain(grown).peekable();
        while let Some(wake) = messages.next() {
            wake.encode(&mut payload);
            if messages.peek().is_none() || payload.len() >= MAX_PAYLOAD_BYTES {
                let publish = nats.client.publish(nats.subject.clone(), Bytes::from(payload));
                let _ = tokio::time::timeout(PUBLISH_TIMEOUT, publish).await;
                payload = String::new();
            }
        }
    }
}

async fn subscriber_task(mut subscriber: Subscriber, sender: mpsc::Sender<Wake>) {
    while let Some(message) = subscriber.next().await {
        let Ok(text) = std::str::from_utf8(&message.payload) else { continue };
        for wake in text.lines().filter_map(Wake::parse) {
            if sender.send(wake).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_round_trips_through_its_encoding() {
        for wake in [Wake::LogGrew { session: 7, seq: 12 }, Wake::Run { session: 3 }, Wake::Poll] {
            let mut text = String::new();
            wake.encode(&mut text);
            assert_eq!(Wake::parse(text.trim_end()), Some(wake));
        }
        for line in ["", "g", "g 1", "g 1 x", "g 1 2 3", "hello", "l 1"] {
            assert_eq!(Wake::parse(line), None, "{line}");
        }
    }
}
