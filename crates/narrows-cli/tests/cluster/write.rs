//! Whoever writes a session, to any node, again and again until it is acknowledged.

use crate::served::Dice;
use crate::servers::{Client, Cluster, NODES};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How packets are made known again when they are sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By their places.
    Places,
    /// By a key of the request.
    Keys,
    /// By their places, by two who do not know of each other.
    TwoAtOnce,
}

/// A session and its packets.
pub struct Writer {
    pub session: String,
    pub how: How,
    number: usize,
    /// The place up to which everything was acknowledged, and the last one that was sent.
    places: Mutex<(usize, usize)>,
}

/// A packet that gives an event at once, or a piece of a text that is held back.
fn packet(writer: usize, n: usize, plain: bool) -> String {
    let update = match n % 5 {
        3 if !plain => format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"w{writer} said {n} "}}}}"#
        ),
        4 if !plain => {
            r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#
                .to_owned()
        }
        _ => format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"w{writer}-{n}","title":"bash","kind":"execute","status":"completed","rawInput":{{"command":"echo {n}"}},"rawOutput":{{"output":"{n}"}}}}"#
        ),
    };
    update + "\n"
}

impl Writer {
    pub fn new(cluster: &Cluster, number: usize, how: How) -> Writer {
        let client = cluster.client(number % NODES, Duration::from_secs(20));
        let body = format!(r#"{{"label":"writer-{number}"}}"#);
        let (_, made) = client.post("/api/sessions", None, body.as_bytes()).expect("session");
        let session = made["id"].as_str().expect("id").to_owned();
        Writer { session, how, number, places: Mutex::default() }
    }

    pub fn threads(&self) -> u64 {
        if self.how == How::TwoAtOnce { 2 } else { 1 }
    }

    fn packets(&self, from: usize, until: usize) -> Vec<String> {
        let plain = self.how == How::Keys;
        (from..until).map(|n| packet(self.number, n, plain)).collect()
    }

    /// What is acknowledged now, as a node tells it: never less than was acknowledged before.
    fn place(&self, client: &Client) -> Result<usize, String> {
        let before = self.places.lock().expect("places").0;
        let (status, state) = client.get(&format!("/api/sessions/{}/packets", self.session))?;
        if status != 200 {
            return Err(state.to_string());
        }
        let place = state["sources"][0]["acknowledged"].as_u64().unwrap_or(0) as usize;
        assert!(place >= before, "{before} was acknowledged, {place} is there: {:?}", self.how);
        Ok(place)
    }

    fn send(&self, client: &Client, some: usize) -> Result<(), String> {
        let (first, body) = if self.how == How::Keys {
            // The same request until it is answered: its key says which one it is.
            let (first, _) = *self.places.lock().expect("places");
            (first, self.packets(first, first + 7).concat())
        } else {
            let first = self.place(client)?;
            (first, self.packets(first, first + some).concat())
        };
        let path = format!("/api/sessions/{}/packets?arrived=none", self.session);
        let until = first + body.lines().count();
        {
            let mut places = self.places.lock().expect("places");
            places.1 = places.1.max(until);
        }
        let key = format!("from-{first}");
        let (status, answer) = if self.how == How::Keys {
            client.post(&path, Some(&key), body.as_bytes())?
        } else {
            client.post(&format!("{path}&first={}", first + 1), None, body.as_bytes())?
        };
        if status != 200 {
            let retryable = answer["error"]["retryable"] == true;
            // Somebody else may have sent these and more meanwhile.
            assert!(retryable, "{status} {answer}");
            return Err(answer.to_string());
        }
        let told = answer["acknowledged"].as_u64().expect("acknowledged") as usize;
        let mut places = self.places.lock().expect("places");
        let done = if self.how == How::Keys { until } else { told };
        places.0 = places.0.max(done);
        Ok(())
    }

    pub fn write(&self, cluster: &Cluster, seed: u64, stop: &AtomicBool) {
        let mut dice = Dice(seed.wrapping_mul(31) + self.number as u64);
        while !stop.load(Ordering::Relaxed) {
            let node = usize::try_from(dice.roll(NODES as u64)).unwrap_or(0);
            let client = cluster.client(node, Duration::from_secs(4));
            if self.send(&client, 1 + dice.roll(40) as usize).is_err() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Sends what is missing, and ends the session; returns all packets.
    pub fn finish(&self, cluster: &Cluster) -> Vec<String> {
        let until = Instant::now() + Duration::from_mins(3);
        loop {
            let client = cluster.client(0, Duration::from_secs(20));
            let done = self.finish_at(&client);
            match done {
                Ok(packets) => return packets,
                Err(told) => {
                    assert!(Instant::now() < until, "{:?} is never done: {told}", self.how)
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn finish_at(&self, client: &Client) -> Result<Vec<String>, String> {
        if self.how == How::Keys {
            self.send(client, 0)?;
        }
        let (acknowledged, sent) = *self.places.lock().expect("places");
        let first = self.place(client)?;
        let all = sent.max(acknowledged);
        let body = self.packets(first.min(all), all).concat();
        let path = format!("/api/sessions/{}/packets?arrived=none", self.session);
        let path = format!("{path}&first={}&end=true", first.min(all) + 1);
        let (status, answer) = client.post(&path, None, body.as_bytes())?;
        if status == 200 { Ok(self.packets(0, all)) } else { Err(answer.to_string()) }
    }
}
