//! Whoever follows a session: goes to another node each time it is cut off, and must hear every event
//! once, in order.

use crate::served;
use crate::servers::{Cluster, NODES};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub struct Follower {
    pub session: String,
    /// Where it begins.
    pub node: usize,
    heard: Mutex<Vec<Value>>,
    cuts: AtomicUsize,
}

impl Follower {
    pub fn new(session: &str, node: usize) -> Follower {
        let (session, heard) = (session.to_owned(), Mutex::default());
        Follower { session, node, heard, cuts: AtomicUsize::new(0) }
    }

    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }

    pub fn follow(&self, cluster: &Cluster, over: &AtomicBool) {
        let (mut node, mut cursor) = (self.node, String::new());
        while !over.load(Ordering::Relaxed) {
            // It is cut off after a while in any case.
            let client = cluster.client(node, Duration::from_secs(6));
            let path = format!("/api/sessions/{}/events?view=events", self.session);
            let mut request = client
                .agent
                .get(format!("{}{path}", client.url))
                .header("authorization", client.bearer());
            if !cursor.is_empty() {
                request = request.header("last-event-id", &cursor);
            }
            if let Ok(response) = request.call()
                && response.status() == 200
            {
                self.take(response.into_body().into_reader(), &mut cursor);
            } else {
                std::thread::sleep(Duration::from_millis(50));
            }
            self.cuts.fetch_add(1, Ordering::Relaxed);
            node = (node + 1) % NODES;
        }
    }

    /// Takes whole frames, until the stream ends.
    fn take(&self, stream: impl std::io::Read, cursor: &mut String) {
        let (mut id, mut data) = (None, None);
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.to_owned());
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(text.to_owned());
            } else if line.starts_with("event: reset") {
                panic!("node {}: a cursor is not known elsewhere", self.node);
            } else if line.is_empty()
                && let (Some(id), Some(data)) = (id.take(), data.take())
            {
                self.hear(serde_json::from_str(&data).expect("JSON"));
                *cursor = id;
            }
        }
    }

    fn hear(&self, event: Value) {
        let mut heard = self.heard.lock().expect("heard");
        let next = heard.len() as u64 + 1;
        assert_eq!(event["seq"].as_u64(), Some(next), "a gap, or something twice: {event}");
        heard.push(event);
    }

    /// What it has heard, when it is all there.
    pub fn wait_for(&self, count: usize) -> Vec<Value> {
        let until = Instant::now() + Duration::from_mins(3);
        loop {
            let heard = self.heard.lock().expect("heard");
            if heard.len() >= count {
                return heard.clone();
            }
            let so_far = heard.len();
            drop(heard);
            assert!(Instant::now() < until, "{so_far} of {count} events were heard");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Every event of a session, as a node tells them.
pub fn all(cluster: &Cluster, node: usize, session: &str) -> Vec<Value> {
    let client = cluster.client(node, Duration::from_secs(30));
    served::events(&client.agent, &client.url, &client.bearer(), session)
}
