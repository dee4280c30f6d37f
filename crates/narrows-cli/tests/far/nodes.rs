//! Two nodes with a database of their own.

use crate::helper::{Running, config};
use crate::served::{Served, serve_with};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How many seconds a silent node keeps its agents: longer than any test takes, and, where a node is to
/// be lost, as short as a busy machine allows.
const LONG: &str = "600";
const SHORT: &str = "4";

/// Two nodes. Agents keep their sessions below the folder of the first.
pub(crate) struct Nodes {
    pub(crate) a: Running,
    pub(crate) b: Running,
    url: String,
    lease: &'static str,
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name}: run this by scripts/services"))
}

fn node(data: &Path, config: &Path, url: &str, lease: &str, more: &[&str]) -> Served {
    let config = config.to_str().expect("text");
    let mut all = vec!["--no-follow", "--config", config, "--store", url];
    all.extend(more);
    let lease = [("NARROWS_RUN_LEASE_SECONDS", Path::new(lease))];
    serve_with(data, &[], &all, &lease).expect("server")
}

/// Two nodes; none where nobody asked for these tests.
pub(crate) fn nodes() -> Option<Nodes> {
    start(true, LONG)
}

/// Two nodes of which one will be lost.
pub(crate) fn nodes_to_lose() -> Option<Nodes> {
    start(true, SHORT)
}

/// Two nodes that cannot wake each other.
pub(crate) fn nodes_without_bus() -> Option<Nodes> {
    start(false, LONG)
}

fn start(bus: bool, lease: &'static str) -> Option<Nodes> {
    if std::env::var("NARROWS_TEST_STORE").as_deref() != Ok("postgres") {
        return None;
    }
    let [first, second] = [(), ()].map(|()| tempfile::tempdir().expect("folder"));
    let name = first.path().file_name().and_then(|n| n.to_str()).expect("a name");
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "").to_lowercase();
    let port = env("NARROWS_TEST_PG_PORT");
    let made = Command::new(format!("{}/createdb", env("NARROWS_TEST_PG_BIN")))
        .args(["-h", "127.0.0.1", "-U", "narrows", "-p", &port, &format!("far{name}")])
        .status();
    assert!(made.is_ok_and(|s| s.success()), "no database");
    let url = format!("postgres://narrows@127.0.0.1:{port}/far{name}?sslmode=disable");
    let file = config(first.path(), "");
    let nats = env("NARROWS_TEST_NATS");
    let more = if bus { vec!["--allow-run", "--bus", &nats] } else { vec!["--allow-run"] };
    let a = node(&first.path().join("data"), &file, &url, lease, &more);
    let b = node(&second.path().join("data"), &file, &url, lease, &more);
    let (a, b) = (Running { folder: first, served: a }, Running { folder: second, served: b });
    Some(Nodes { a, b, url, lease })
}

impl Nodes {
    /// The first node once more, after it was killed.
    pub(crate) fn start_a(&mut self) {
        let config = self.a.folder.path().join("config.toml");
        let nats = env("NARROWS_TEST_NATS");
        let more = ["--allow-run", "--bus", &nats];
        let data = self.a.folder.path().join("data");
        self.a.served = node(&data, &config, &self.url, self.lease, &more);
    }

    /// A node that runs nothing itself.
    pub(crate) fn guest(&self) -> Served {
        let config = self.a.folder.path().join("config.toml");
        let nats = env("NARROWS_TEST_NATS");
        let data = self.b.folder.path().join("guest");
        node(&data, &config, &self.url, self.lease, &["--bus", &nats])
    }

    /// Cuts every connection to the database.
    pub(crate) fn cut_connections(&self) {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let psql = format!("{}/psql", env("NARROWS_TEST_PG_BIN"));
        let done = Command::new(psql).args(["-qAtc", sql, &self.url]).output();
        assert!(done.is_ok_and(|d| d.status.success()), "no connection was cut");
    }

    /// Agents of a node, with their keepers.
    pub(crate) fn agents_of(&self, node: &Running) -> Vec<String> {
        let parent = format!("--parent {} ", node.served.child.id());
        self.a.alive().into_iter().filter(|line| line.contains(&parent)).collect()
    }
}

/// Waits until something is told.
pub(crate) fn until<T>(what: &str, patience: Duration, mut find: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(began.elapsed() < patience, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many events have this type, or text.
pub(crate) fn count(events: &[Value], is: impl Fn(&Value) -> bool) -> usize {
    events.iter().filter(|e| is(e)).count()
}
