//! A server from its start to its end.

use crate::auth::{Throttle, Tickets, Tokens, new_secret};
use crate::config::ServeConfig;
use crate::metrics::Metrics;
use crate::state::{AppState, NodeCaches, Parts, Written};
use crate::{listen, routes};
use narrows::Secrets;
use narrows_engine::discovery::spool::Spools;
use narrows_engine::discovery::{Follower, Progress, list_once};
use narrows_engine::ingest::{Hidden, Intake};
use narrows_engine::live::{Bus, ClusterSync, Hub, Wake};
use narrows_engine::run::Runs;
use narrows_store::{ADDRESS_FILE, Options, Store, TOKEN_FILE, write_private};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Where a running server can be reached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerAddress {
    /// `http://127.0.0.1:7878`.
    pub url: String,
    /// The process.
    pub pid: u32,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    app: AppState,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    tidying: JoinHandle<()>,
    spools: JoinHandle<()>,
    follower: Option<Follower>,
    address: SocketAddr,
}

impl Server {
    /// Opens the store and begins to listen.
    pub async fn start(mut config: ServeConfig, hidden: RedactionOptions) -> io::Result<Server> {
        config.check().map_err(io::Error::other)?;
        let acceptor = match &config.tls {
            Some((cert, key)) => Some(listen::tls(cert, key)?),
            None => None,
        };
        let store = open_store(&config).await?;
        let listener = TcpListener::bind(config.bind).await.map_err(|e| {
            io::Error::new(e.kind(), format!("cannot listen on {}: {e}", config.bind))
        })?;
        let address = listener.local_addr()?;
        config.bind = address;
        let secret = owner_secret(&config.data)?;
        let limits = &config.limits;
        let tokens = Tokens::load(store.clone(), limits.streams_per_token, limits.streams).await;
        let tokens = tokens.map_err(io::Error::other)?;
        tokens.keep_owner(&secret).await.map_err(io::Error::other)?;
        let RedactionOptions { paths, mut secrets } = hidden;
        secrets.add_known(&secret);
        secrets.set_key(store.mark_key());
        let hidden = Hidden { paths, secrets: Arc::new(secrets) };
        let (bus, heard) = open_bus(&config, &store).await?;
        let hub = Hub::with_bus(store.clone(), bus);
        let intake = Intake::new(store.clone(), hub.clone(), hidden);
        let runs = Runs::new(store.clone(), intake.clone(), hub.clone(), config.run.clone());
        runs.settle().await;
        let written = Written::default();
        let cluster = if store.is_shared() {
            let (tokens, runs, written) = (tokens.clone(), runs.clone(), written.clone());
            let caches = NodeCaches { tokens, runs, written };
            Some(ClusterSync::new(&hub, caches).await.map_err(io::Error::other)?)
        } else {
            None
        };
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let at = ServerAddress { url: format!("{scheme}://{address}"), pid: std::process::id() };
        let at = serde_json::to_vec(&at).map_err(io::Error::other)?;
        write_private(&config.data.join(ADDRESS_FILE), &at)?;
        let tickets = Tickets::new(&store);
        let app = AppState::new(Parts {
            store,
            hub,
            intake,
            tokens,
            tickets,
            throttle: Throttle::default(),
            runs,
            exports: Arc::new(Semaphore::new(config.limits.exports)),
            config,
            metrics: Metrics::new(),
            written,
            reading: OnceLock::new(),
        });
        list_once(&app.store, &app.intake, &app.hub, None).await;
        let stop = CancellationToken::new();
        let router = routes::router(&app);
        let serving =
            tokio::spawn(listen::serve(listener, acceptor, router, app.clone(), stop.clone()));
        let tidying = tokio::spawn(tidy(app.clone(), stop.clone()));
        tokio::spawn(look_over(app.store.clone(), stop.clone()));
        if let Some(cluster) = cluster {
            tokio::spawn(cluster.run(heard, stop.clone()));
        }
        let spools =
            Spools::new(&app.config.data, app.store.clone(), app.intake.clone(), app.hub.clone())
                // Recorders do not send by TLS.
                .with_live(app.config.tls.is_some());
        let spools = tokio::spawn(spools.follow(stop.clone()));
        let follower = app.config.sources.clone().map(|options| {
            Follower::start(app.store.clone(), app.intake.clone(), app.hub.clone(), options)
        });
        if let Some(follower) = &follower {
            let _ = app.reading.set(Arc::clone(follower.progress()));
        }
        Ok(Server { app, stop, serving, tidying, spools, follower, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How far reading the sessions of this machine is.
    pub fn progress(&self) -> Option<&Arc<Progress>> {
        self.follower.as_ref().map(Follower::progress)
    }

    /// Its parts.
    pub fn app(&self) -> &AppState {
        &self.app
    }

    /// An address for a browser, which works once.
    pub async fn ticket_url(&self) -> io::Result<String> {
        let all = narrows_store::Scopes::all();
        let ticket = self.app.tickets.make(all, narrows_store::Sight::default()).await;
        let ticket = ticket.map_err(io::Error::other)?;
        let scheme = if self.app.config.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}/#ticket={ticket}", self.address))
    }

    /// Ends it: streams are told, what is held back is kept, the data directory is given free.
    pub async fn stop(self) {
        // Agents first: whoever follows them is told how they ended.
        self.app.runs.close().await;
        self.app.hub.close();
        self.stop.cancel();
        let _ = self.serving.await;
        let _ = self.tidying.await;
        let _ = self.spools.await;
        if let Some(follower) = self.follower {
            follower.stop().await;
        }
        self.app.intake.close().await;
        let _ = std::fs::remove_file(self.app.config.data.join(ADDRESS_FILE));
        self.app.store.close().await;
    }
}

/// The store: in the data directory, or shared with other nodes.
async fn open_store(config: &ServeConfig) -> io::Result<Store> {
    let (data, shared) = (config.data.clone(), config.store.clone());
    let options = Options { max_bytes: config.limits.store_bytes, ..Options::default() };
    let open = move || match shared {
        Some(url) => Store::connect(&data, &url),
        None => Store::open(&data, &options),
    };
    tokio::task::spawn_blocking(open).await.map_err(io::Error::other)?.map_err(io::Error::other)
}

/// How other nodes are told, and what they tell.
async fn open_bus(config: &ServeConfig, store: &Store) -> io::Result<(Bus, Receiver<Wake>)> {
    match &config.bus {
        Some(url) => Bus::connect(url, &store.mark_key()).await.map_err(io::Error::other),
        None => Ok((Bus::Local, tokio::sync::mpsc::channel(1).1)),
    }
}

/// What is hidden in every session, before the installation's own key is set.
#[derive(Debug, Default)]
pub struct RedactionOptions {
    /// Paths.
    pub paths: narrows::Paths,
    /// Secrets.
    pub secrets: Secrets,
}

/// The owner's secret: made at the first start, then read.
pub fn owner_secret(data: &Path) -> io::Result<String> {
    let path = data.join(TOKEN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => {
            let secret = new_secret().map_err(io::Error::other)?;
            write_private(&path, secret.as_bytes())?;
            Ok(secret)
        }
    }
}

/// The whole store is looked at once a day, without haste.
const LOOK_OVER: Duration = Duration::from_hours(24);
const BETWEEN: Duration = Duration::from_millis(50);

/// Looks whether everything can still be read; what cannot be is in the log and in `/healthz`.
async fn look_over(store: Store, stop: CancellationToken) {
    store.looks();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            // The store says itself what it found.
            _ = store.check(LOOK_OVER, BETWEEN) => {}
        }
        store.looked();
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_OVER) => {}
        }
    }
}

/// Seconds after which a node looks for what others may have left behind.
const RECOVER_AFTER: u64 = 90;

/// Small things that must be done now and then.
async fn tidy(app: AppState, stop: CancellationToken) {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    let (mut seconds, mut recovered, mut was_fine) = (0_u64, false, true);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = every.tick() => {}
        }
        app.intake.tidy().await;
        app.hub.evict_idle();
        if seconds.is_multiple_of(300) {
            retain(&app).await;
        }
        if seconds.is_multiple_of(LOOK_AT_STORE) && !app.store.is_shared() {
            was_fine = is_fine(&app.store, was_fine).await;
        }
        // Where other nodes write too, it takes a while to know what nobody writes any more; and they
        // may leave something behind at any time.
        let shared = app.store.is_shared();
        let look = if shared { RECOVER_AFTER } else { 0 };
        if seconds % 300 == look && (shared || !recovered) {
            recovered = app.intake.recover_items().await;
        }
        seconds += 1;
    }
}

/// How often it is looked whether the store can be written, in seconds: nobody may be writing.
const LOOK_AT_STORE: u64 = 10;

/// Whether the store can be written; says so in the log when that has changed.
async fn is_fine(store: &Store, was_fine: bool) -> bool {
    match store.check_writable().await {
        Err(error) if was_fine => tracing::error!(%error, "the store cannot be written"),
        Ok(()) if !was_fine => tracing::warn!("the store can be written again"),
        Err(_) => return false,
        Ok(()) => return true,
    }
    !was_fine
}

/// Deletes what is not to be kept.
async fn retain(app: &AppState) {
    let keep = &app.config.retention;
    if keep.max_age.is_none() && keep.max_bytes.is_none() {
        return;
    }
    if let Err(error) = routes::clear_sessions(app, "retention", keep.clone(), false).await {
        tracing::warn!(%error, "retention failed");
    }
}
