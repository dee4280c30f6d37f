//! How nodes wake each other. What is told here is only that there is something to look at: the
//! record itself is in the store. A word that is lost, late or said twice does no harm; whoever waits
//! looks now and then by itself.

use async_nats::{Client, ConnectOptions, Event, Subscriber, connection::State};
use bytes::Bytes;
use futures_util::StreamExt;
use narrows_store::{Error, Result};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Words that wait to be said; what is more is not said.
const MAX_WAITING: usize = 10_000;
/// Words that were heard and not looked at.
const MAX_HEARD: usize = 4096;
/// Bytes of one message, about.
const MAX_MESSAGE: usize = 16 << 10;
/// A server that does not take a message for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// A server that is silent is asked so often whether it is there.
const PING: Duration = Duration::from_secs(3);

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// A session's log goes this far.
    Grew {
        /// The session's key.
        session: i64,
        /// Its last event.
        seq: u64,
    },
    /// Something is asked of a session's agent, or was answered.
    Run {
        /// The session's key.
        session: i64,
    },
    /// Something else changed, or something may have been missed.
    Look,
}

impl Wake {
    fn print(&self, out: &mut String) {
        let _ = match self {
            Wake::Grew { session, seq } => writeln!(out, "g {session} {seq}"),
            Wake::Run { session } => writeln!(out, "r {session}"),
            Wake::Look => writeln!(out, "l"),
        };
    }

    fn parse(line: &str) -> Option<Wake> {
        let mut words = line.split(' ');
        let wake = match words.next()? {
            "g" => Wake::Grew {
                session: words.next()?.parse().ok()?,
                seq: words.next()?.parse().ok()?,
            },
            "r" => Wake::Run { session: words.next()?.parse().ok()? },
            "l" => Wake::Look,
            _ => return None,
        };
        words.next().is_none().then_some(wake)
    }
}

/// How nodes wake each other.
#[derive(Debug, Clone)]
pub enum Bus {
    /// There is one node: who is to be woken is woken directly.
    Local,
    /// Several, over NATS.
    Nats(Arc<Nats>),
}

/// A connection to NATS.
#[derive(Debug)]
pub struct Nats {
    client: Client,
    subject: String,
    waiting: Mutex<Waiting>,
    more: Notify,
}

/// What is to be said: of each session, how far it goes; and the rest.
#[derive(Debug, Default)]
struct Waiting {
    grew: HashMap<i64, u64>,
    rest: Vec<Wake>,
}

impl Bus {
    /// Connects to NATS; returns what other nodes say. Nodes with the same `key` hear each other. A
    /// server that is not there now is waited for in the background.
    pub async fn connect(url: &str, key: &[u8]) -> Result<(Bus, mpsc::Receiver<Wake>)> {
        let (heard, hear) = mpsc::channel(MAX_HEARD);
        let again = heard.clone();
        let options = ConnectOptions::new()
            .name("narrows")
            .no_echo()
            .ping_interval(PING)
            .connection_timeout(Duration::from_secs(5))
            .retry_on_initial_connect()
            .reconnect_delay_callback(|tries| {
                Duration::from_millis(50 * u64::try_from(tries.min(20)).unwrap_or(20))
            })
            .event_callback(move |event| {
                let again = again.clone();
                async move {
                    match event {
                        // Whatever was said meanwhile was not heard.
                        Event::Connected => {
                            tracing::info!("NATS is there");
                            let _ = again.try_send(Wake::Look);
                        }
                        Event::Disconnected => tracing::warn!("NATS is away"),
                        _ => {}
                    }
                }
            });
        let bad = |_| Error::Invalid("the address of NATS cannot be read".to_owned());
        let servers: Vec<async_nats::ServerAddr> =
            url.split(',').map(str::parse).collect::<std::result::Result<_, _>>().map_err(bad)?;
        let failed = |e: String| Error::Unavailable(format!("NATS: {e}"));
        let client = options.connect(servers).await.map_err(|e| failed(e.kind().to_string()))?;
        // Nodes of another store on the same server are not heard.
        let name: String = Sha256::digest(key).iter().take(6).map(|b| format!("{b:02x}")).collect();
        let subject = format!("narrows.{name}.wake");
        let said = client.subscribe(subject.clone()).await;
        let said = said.map_err(|_| failed("it cannot be listened to".to_owned()))?;
        tokio::spawn(listen(said, heard));
        let nats = Nats { client, subject, waiting: Mutex::default(), more: Notify::new() };
        let nats = Arc::new(nats);
        tokio::spawn(speak(Arc::downgrade(&nats)));
        Ok((Bus::Nats(nats), hear))
    }

    /// Tells other nodes, soon; never waits.
    pub fn tell(&self, wake: Wake) {
        let Bus::Nats(nats) = self else { return };
        {
            let mut waiting = nats.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.grew.len() + waiting.rest.len() >= MAX_WAITING {
                return;
            }
            match wake {
                Wake::Grew { session, seq } => {
                    let last = waiting.grew.entry(session).or_default();
                    *last = seq.max(*last);
                }
                wake if waiting.rest.contains(&wake) => {}
                wake => waiting.rest.push(wake),
            }
        }
        nats.more.notify_one();
    }

    /// Whether other nodes can be told now.
    pub fn is_up(&self) -> bool {
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

/// Says what waits, until nobody can say more.
async fn speak(nats: std::sync::Weak<Nats>) {
    while let Some(nats) = nats.upgrade() {
        // The end is looked for now and then.
        let _ = tokio::time::timeout(PATIENCE, nats.more.notified()).await;
        let waiting =
            std::mem::take(&mut *nats.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        // To nobody: it would be said long after.
        if nats.client.connection_state() != State::Connected {
            continue;
        }
        let grew = waiting.grew.into_iter().map(|(session, seq)| Wake::Grew { session, seq });
        let mut text = String::new();
        let mut all = waiting.rest.into_iter().chain(grew).peekable();
        while let Some(wake) = all.next() {
            wake.print(&mut text);
            if all.peek().is_none() || text.len() >= MAX_MESSAGE {
                let said = nats.client.publish(nats.subject.clone(), Bytes::from(text));
                let _ = tokio::time::timeout(PATIENCE, said).await;
                text = String::new();
            }
        }
    }
}

async fn listen(mut said: Subscriber, heard: mpsc::Sender<Wake>) {
    while let Some(message) = said.next().await {
        let Ok(text) = std::str::from_utf8(&message.payload) else { continue };
        for wake in text.lines().filter_map(Wake::parse) {
            if heard.send(wake).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        for wake in [Wake::Grew { session: 7, seq: 12 }, Wake::Run { session: 3 }, Wake::Look] {
            let mut text = String::new();
            wake.print(&mut text);
            assert_eq!(Wake::parse(text.trim_end()), Some(wake));
        }
        for line in ["", "g", "g 1", "g 1 x", "g 1 2 3", "hello", "l 1"] {
            assert_eq!(Wake::parse(line), None, "{line}");
        }
    }
}
