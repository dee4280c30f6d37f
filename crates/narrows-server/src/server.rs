//! A server from its start to its end.

use crate::auth::{Throttle, Tickets, Tokens, new_secret};
use crate::config::ServeConfig;
use crate::metrics::Metrics;
use crate::state::{AppState, NodeCaches, Parts, SessionCache};
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
    background: JoinHandle<()>,
    spools: JoinHandle<()>,
    follower: Option<Follower>,
    address: SocketAddr,
}

impl Server {
    /// Opens the store and begins to listen.
    pub async fn start(mut config: ServeConfig, redaction: RedactionOptions) -> io::Result<Server> {
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
        tokens.ensure_owner(&secret).await.map_err(io::Error::other)?;
        let RedactionOptions { paths, mut secrets } = redaction;
        secrets.add_known(&secret);
        secrets.set_key(store.mark_key());
        let redaction = Hidden { paths, secrets: Arc::new(secrets) };
        let (bus, wakes) = open_bus(&config, &store).await?;
        let hub = Hub::with_bus(store.clone(), bus);
        let intake = Intake::new(store.clone(), hub.clone(), redaction);
        let runs = Runs::new(store.clone(), intake.clone(), hub.clone(), config.run.clone());
        runs.settle().await;
        let session_cache = SessionCache::default();
        let cluster = if store.is_shared() {
            let (tokens, runs, session_cache) =
                (tokens.clone(), runs.clone(), session_cache.clone());
            let caches = NodeCaches { tokens, runs, session_cache };
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
            session_cache,
            reading: OnceLock::new(),
        });
        list_once(&app.store, &app.intake, &app.hub, None).await;
        let stop = CancellationToken::new();
        let router = routes::router(&app);
        let serving =
            tokio::spawn(listen::serve(listener, acceptor, router, app.clone(), stop.clone()));
        let background = tokio::spawn(background_tasks(app.clone(), stop.clone()));
        tokio::spawn(check_store_daily(app.store.clone(), stop.clone()));
        if let Some(cluster) = cluster {
            tokio::spawn(cluster.run(wakes, stop.clone()));
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
        Ok(Server { app, stop, serving, background, spools, follower, address })
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
        let ticket = self.app.tickets.create(all, narrows_store::Sight::default()).await;
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
        let _ = self.background.await;
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
const STORE_CHECK_INTERVAL: Duration = Duration::from_hours(24);
const STORE_CHECK_PAUSE: Duration = Duration::from_millis(50);

/// Looks whether everything can still be read; what cannot be is in the log and in `/healthz`.
async fn check_store_daily(store: Store, stop: CancellationToken) {
    store.looks();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            // The store says itself what it found.
            _ = store.check(STORE_CHECK_INTERVAL, STORE_CHECK_PAUSE) => {}
        }
        store.looked();
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(STORE_CHECK_INTERVAL) => {}
        }
    }
}

/// Seconds after which a node looks for what others may have left behind.
const RECOVERY_DELAY_SECONDS: u64 = 90;

/// Small things that must be done now and then.
async fn background_tasks(app: AppState, stop: CancellationToken) {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    let (mut seconds, mut recovered, mut was_writable) = (0_u64, false, true);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = every.tick() => {}
        }
        app.intake.tidy().await;
        app.hub.evict_idle();
        if seconds.is_multiple_of(300) {
            apply_retention(&app).await;
        }
        if seconds.is_multiple_of(WRITE_CHECK_SECONDS) && !app.store.is_shared() {
            was_writable = check_writable(&app.store, was_writable).await;
        }
        // Where other nodes write too, it takes a while to know what nobody writes any more; and they
        // may leave something behind at any time.
        let shared = app.store.is_shared();
        let recovery_second = if shared { RECOVERY_DELAY_SECONDS } else { 0 };
        if seconds % 300 == recovery_second && (shared || !recovered) {
            recovered = app.intake.recover_items().await;
        }
        seconds += 1;
    }
}

/// How often it is looked whether the store can be session_cache, in seconds: nobody may be writing.
const WRITE_CHECK_SECONDS: u64 = 10;

/// Whether the store can be session_cache; says so in the log when that has changed.
async fn check_writable(store: &Store, was_writable: bool) -> bool {
    match store.check_writable().await {
        Err(error) if was_writable => tracing::error!(%error, "the store cannot be session_cache"),
        Ok(()) if !was_writable => tracing::warn!("the store can be session_cache again"),
        Err(_) => return false,
        Ok(()) => return true,
    }
    !was_writable
}

/// Deletes what is not to be kept.
async fn apply_retention(app: &AppState) {
    let keep = &app.config.retention;
    if keep.max_age.is_none() && keep.max_bytes.is_none() {
        return;
    }
    if let Err(error) = routes::clear_sessions(app, "retention", keep.clone(), false).await {
        tracing::warn!(%error, "retention failed");
    }
}
