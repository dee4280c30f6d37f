//! Databases, and nodes on them: each is a process of its own.

use crate::http::Http;
use crate::served::{Served, serve};
use tokio_postgres::{Client, NoTls};

/// A name that `scripts/services` has set.
pub(crate) fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name}: run this by `make bench-cluster`"))
}

/// Where a node is reached.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) token: String,
}

/// Whether nodes tell each other, or only look now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bus {
    Nats,
    None,
}

/// Nodes on a database of their own.
pub(crate) struct Cluster {
    pub(crate) database: String,
    bus: Bus,
    folder: tempfile::TempDir,
    pub(crate) nodes: Vec<Served>,
    pub(crate) places: Vec<Place>,
}

impl Cluster {
    pub(crate) async fn start(database: &str, nodes: usize, bus: Bus) -> Cluster {
        let client = connect("postgres").await;
        let drop = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
        client.batch_execute(&drop).await.expect("the old database goes");
        let create = format!("CREATE DATABASE {database}");
        client.batch_execute(&create).await.expect("a database");
        let mut cluster = Cluster {
            database: database.to_owned(),
            bus,
            folder: tempfile::tempdir().expect("folder"),
            nodes: Vec::new(),
            places: Vec::new(),
        };
        cluster.grow(nodes).await;
        cluster
    }

    /// Starts nodes until there are so many, and waits until each is well.
    pub(crate) async fn grow(&mut self, nodes: usize) {
        let store = address(&self.database);
        let nats = env("NARROWS_TEST_NATS");
        let mut more = vec!["--store", &store, "--streams-per-token", "1000"];
        if self.bus == Bus::Nats {
            more.extend(["--bus", &nats]);
        }
        for node in self.nodes.len()..nodes {
            let data = self.folder.path().join(format!("node{node}"));
            let served = tokio::task::block_in_place(|| serve(&data, &[], &more));
            let served = served.expect("a node");
            let address = served.url.trim_start_matches("http://").trim_end_matches('/');
            // The first one's token: all of them know it.
            let token = self.places.first().map_or(&served.token, |first| &first.token);
            self.places.push(Place { address: address.to_owned(), token: token.clone() });
            self.nodes.push(served);
        }
        for place in &self.places {
            let mut http = Http::open(place).await.expect("connect");
            let mut tries = 0..100;
            while !http.send("GET", "/healthz", b"").await.is_ok_and(|(code, _)| code == 200) {
                assert!(tries.next().is_some(), "a node is never well");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

fn address(database: &str) -> String {
    let port = env("NARROWS_TEST_PG_PORT");
    format!("postgres://narrows@127.0.0.1:{port}/{database}?sslmode=disable")
}

/// A connection to a database.
pub(crate) async fn connect(database: &str) -> Client {
    let made = tokio_postgres::connect(&address(database), NoTls).await;
    let (client, connection) = made.expect("PostgreSQL");
    tokio::spawn(connection);
    client
}

/// PostgreSQL begins anew to count what it has to write: nobody pays for what was before.
pub(crate) async fn checkpoint() {
    connect("postgres").await.batch_execute("CHECKPOINT").await.expect("a checkpoint");
}
