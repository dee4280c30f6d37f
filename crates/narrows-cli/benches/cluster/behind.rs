//! The same bare inserts, asked for over HTTP by the same writers: whoever waits for each answer pays
//! a round trip for each, whatever the server does.

use crate::bare::{Bare, Commit, Work, insert};
use crate::http::Http;
use crate::nodes::{Place, checkpoint};
use crate::write::packet;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::StatusCode;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Mutex;

/// A connection, and what is inserted by it next.
struct Next {
    client: tokio_postgres::Client,
    commits: std::vec::IntoIter<Commit>,
}

struct Shared {
    connections: Vec<Mutex<Next>>,
    count: AtomicUsize,
}

/// A server in a process of its own; it tells its address.
pub(crate) async fn serve(database: &str, writers: usize, batch: u64) {
    let rows = usize::try_from(batch).expect("a number");
    let work = Bare { database, writers, batch, rows }.prepare().await;
    let next = |Work { client, commits }| Mutex::new(Next { client, commits: commits.into_iter() });
    let shared = Shared { connections: work.into_iter().map(next).collect(), count: 0.into() };
    checkpoint().await;
    let router = Router::new().route("/insert", post(answer)).with_state(Arc::new(shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    crate::say(&listener.local_addr().expect("address").to_string());
    std::io::stdout().flush().expect("told");
    axum::serve(listener, router).await.expect("serve");
}

/// Inserts the next rows in one transaction, and answers when they are durable.
async fn answer(State(shared): State<Arc<Shared>>, body: Bytes) -> (StatusCode, String) {
    let at = shared.count.fetch_add(1, Ordering::Relaxed) % shared.connections.len();
    let mut next = shared.connections[at].lock().await;
    let Some(commit) = next.commits.next() else { return (StatusCode::GONE, String::new()) };
    insert(&next.client, &commit).await;
    (StatusCode::OK, format!("{{\"bytes\":{}}}", body.len()))
}

/// Writers ask until there are no rows left; returns events a second.
pub(crate) async fn run(database: &str, writers: usize, batch: u64) -> f64 {
    let own = std::env::current_exe().expect("own path");
    let (many, each) = (writers.to_string(), batch.to_string());
    let args = ["--role", "bare", "--database", database, "--writers", &many, "--batch", &each];
    let mut child = Command::new(own).args(args).stdout(Stdio::piped()).spawn().expect("spawn");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("output"));
    out.read_line(&mut line).expect("address");
    let place = Place { address: line.trim().to_owned(), token: "none".to_owned() };
    let began = Instant::now();
    let tasks: Vec<_> = (0..writers).map(|_| tokio::spawn(ask(place.clone(), batch))).collect();
    let mut events = 0;
    for task in tasks {
        events += task.await.expect("a writer");
    }
    let took = began.elapsed();
    let _ = child.kill();
    let _ = child.wait();
    events as f64 / took.as_secs_f64()
}

/// Returns the events that were inserted.
async fn ask(place: Place, batch: u64) -> u64 {
    let mut http = Http::open(&place).await.expect("connect");
    let mut events = 0;
    loop {
        let body: String = (events..events + batch).map(packet).collect();
        match http.send("POST", "/insert", body.as_bytes()).await.expect("an answer").0 {
            200 => events += batch,
            _ => return events,
        }
    }
}
