//! Nodes, PostgreSQL and NATS, and what is done to them.

use crate::served::{Dice, Served, serve};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub const NODES: usize = 3;

/// A name that `scripts/services` has set.
pub fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name}: run this by `make cluster`"))
}

/// The right to do something to the servers; none where none were started: these tests have a pass of
/// their own.
pub fn alone() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let on = std::env::var("NARROWS_TEST_STORE").is_ok_and(|store| store == "postgres");
    on.then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A program of PostgreSQL that speaks with the server.
pub fn client(program: &str) -> Command {
    let mut client = Command::new(format!("{}/{program}", env("NARROWS_TEST_PG_BIN")));
    client.args(["-h", "127.0.0.1", "-U", "narrows", "-p", &env("NARROWS_TEST_PG_PORT")]);
    client
}

/// The script that starts servers.
pub fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services")
}

/// A database of its own; returns its address.
pub fn database(name: &str) -> String {
    let run = |program: &str, args: &[&str]| {
        assert!(client(program).args(args).status().expect(program).success(), "{program}");
    };
    run("dropdb", &["--if-exists", "--force", name]);
    run("createdb", &[name]);
    let port = env("NARROWS_TEST_PG_PORT");
    format!("postgres://narrows@127.0.0.1:{port}/{name}?sslmode=disable")
}

/// Nodes on one database.
pub struct Cluster {
    dir: tempfile::TempDir,
    store: String,
    bus: String,
    nodes: [Mutex<Option<Served>>; NODES],
    /// Where each is reached; another place after each start.
    urls: RwLock<[String; NODES]>,
    pub token: String,
}

impl Cluster {
    pub fn start(name: &str) -> Cluster {
        let (dir, store) = (tempfile::tempdir().expect("folder"), database(name));
        let mut cluster = Cluster {
            dir,
            store,
            bus: env("NARROWS_TEST_NATS"),
            nodes: [const { Mutex::new(None) }; NODES],
            urls: RwLock::default(),
            token: String::new(),
        };
        // At the same time: one of them makes the tables.
        std::thread::scope(|scope| {
            for node in 0..NODES {
                let cluster = &cluster;
                scope.spawn(move || cluster.start_node(node));
            }
        });
        cluster.token = std::fs::read_to_string(cluster.data(0).join("token")).expect("token");
        cluster
    }

    fn data(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("node{node}"))
    }

    /// Starts a node; while the database is away it is tried again.
    pub fn start_node(&self, node: usize) {
        let until = Instant::now() + Duration::from_mins(3);
        let more = ["--store", &self.store, "--bus", &self.bus];
        let served = loop {
            match serve(&self.data(node), &[], &more) {
                Ok(served) => break served,
                Err(told) => assert!(Instant::now() < until, "node {node}: {told}"),
            }
            std::thread::sleep(Duration::from_millis(200));
        };
        self.urls.write().expect("addresses")[node].clone_from(&served.url);
        *self.nodes[node].lock().expect("node") = Some(served);
    }

    pub fn kill_node(&self, node: usize) {
        if let Some(mut served) =
            self.nodes[node].lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            served.kill();
            println!("node {node} wrote: {}", served.log());
        }
    }

    pub fn signal_node(&self, node: usize, what: &str) {
        if let Some(served) = &*self.nodes[node].lock().expect("node") {
            signal(what, &[served.child.id()]);
        }
    }

    pub fn url(&self, node: usize) -> String {
        self.urls.read().expect("addresses")[node].clone()
    }

    /// A client of a node, with the first node's token.
    pub fn client(&self, node: usize, patience: Duration) -> Client {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(patience))
            .proxy(None)
            .build();
        let agent = ureq::Agent::new_with_config(config);
        Client { agent, url: self.url(node), token: self.token.clone() }
    }

    /// Waits until every node says that all is well.
    pub fn settle(&self) {
        for node in 0..NODES {
            let client = self.client(node, Duration::from_secs(10));
            let until = Instant::now() + Duration::from_mins(3);
            loop {
                let health = client.get("/healthz");
                if health.as_ref().is_ok_and(|(code, told)| *code == 200 && told["status"] == "ok")
                {
                    break;
                }
                assert!(Instant::now() < until, "node {node} is never well: {health:?}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..NODES).for_each(|node| self.kill_node(node));
    }
}

/// Somebody who asks a node.
pub struct Client {
    pub agent: ureq::Agent,
    pub url: String,
    token: String,
}

pub type Reply = Result<(u16, serde_json::Value), String>;

impl Client {
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub fn get(&self, path: &str) -> Reply {
        let request = self.agent.get(format!("{}{path}", self.url));
        read(request.header("authorization", self.bearer()).call())
    }

    pub fn post(&self, path: &str, key: Option<&str>, body: &[u8]) -> Reply {
        let mut request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", self.bearer())
            .header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        read(request.send(body))
    }
}

fn read(done: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Reply {
    let mut response = done.map_err(|e| e.to_string())?;
    let text = response.body_mut().read_to_string().map_err(|e| e.to_string())?;
    let value = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
    Ok((response.status().as_u16(), value))
}

fn signal(what: &str, pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    // Some may be gone by now.
    let _ = Command::new("kill").arg(what).args(pids).stderr(std::process::Stdio::null()).status();
}

/// Every process of the PostgreSQL.
fn postgres() -> Vec<u32> {
    let data = env("NARROWS_TEST_PG_DATA");
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let ours = all
        .filter(|p| std::fs::read_link(p.path().join("cwd")).is_ok_and(|c| c == Path::new(&data)));
    ours.filter_map(|p| p.file_name().to_str()?.parse().ok()).collect()
}

fn nats() -> Vec<u32> {
    let file = Path::new(&env("NARROWS_TEST_SERVICES")).join("nats.pid");
    std::fs::read_to_string(file).ok().and_then(|t| t.trim().parse().ok()).into_iter().collect()
}

/// Starts whichever of the servers is not there.
fn services_up() {
    let done = Command::new(script()).arg("up").arg(env("NARROWS_TEST_SERVICES")).output();
    let done = done.expect("services");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Something bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    KillNode,
    PauseNode,
    KillNats,
    PauseNats,
    KillPostgres,
    PausePostgres,
}

/// All of them, in some order.
pub fn harms(dice: &mut Dice) -> Vec<Harm> {
    use Harm::{KillNats, KillNode, KillPostgres, PauseNats, PauseNode, PausePostgres};
    let mut all =
        vec![KillNode, KillNode, PauseNode, KillNats, PauseNats, KillPostgres, PausePostgres];
    for at in (1..all.len()).rev() {
        all.swap(at, usize::try_from(dice.roll(at as u64 + 1)).unwrap_or(0));
    }
    all
}

/// Does it, waits, and makes it good again.
pub fn harm(cluster: &Cluster, what: Harm, dice: &mut Dice) {
    let node = usize::try_from(dice.roll(NODES as u64)).unwrap_or(0);
    let (wait, pause) = (200 + dice.roll(1800), 500 + dice.roll(4500));
    let sleep = |ms| std::thread::sleep(Duration::from_millis(ms));
    println!("{what:?} (node {node}, {wait} or {pause} ms)");
    match what {
        Harm::KillNode => {
            cluster.kill_node(node);
            sleep(wait);
            cluster.start_node(node);
        }
        Harm::PauseNode => {
            cluster.signal_node(node, "-STOP");
            sleep(pause);
            cluster.signal_node(node, "-CONT");
        }
        Harm::KillNats | Harm::KillPostgres => {
            signal("-KILL", &if what == Harm::KillNats { nats() } else { postgres() });
            sleep(wait);
            services_up();
        }
        Harm::PauseNats | Harm::PausePostgres => {
            let all = if what == Harm::PauseNats { nats() } else { postgres() };
            signal("-STOP", &all);
            sleep(pause);
            signal("-CONT", &all);
        }
    }
}
