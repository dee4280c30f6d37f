//! The real binary as a server, and a client of it.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use ureq::Agent;

pub const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");

/// A running `narrows serve`.
pub struct Served {
    pub child: Child,
    pub url: String,
    pub token: String,
    pub agent: Agent,
    log: Option<JoinHandle<String>>,
}

/// A server on a data directory; `wrap` may put something before the command.
pub fn serve(data: &Path, wrap: &[&str], more: &[&str]) -> Result<Served, String> {
    serve_with(data, wrap, more, &[])
}

/// The same with variables of the environment.
pub fn serve_with(
    data: &Path,
    wrap: &[&str],
    more: &[&str],
    environment: &[(&str, &Path)],
) -> Result<Served, String> {
    let mut words: Vec<&str> = wrap.to_vec();
    words.extend([NARROWS, "serve", "--no-env", "--bind", "127.0.0.1:0", "--data"]);
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .arg(data)
        .args(more)
        .env("NARROWS_LOG", "warn")
        .env_remove("NARROWS_CONFIG")
        .env_remove("CLAUDE_CONFIG_DIR")
        // Whoever runs the tests has sessions of their own.
        .env("HOME", data.join("home"))
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut out = BufReader::new(child.stdout.take().expect("output")).lines();
    let url = out
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("listens on ").map(|(_, url)| url.trim().to_owned()));
    // Somebody reads it always: a server whose log is full would stand still.
    let mut log = child.stderr.take().expect("log");
    let told = std::thread::spawn(move || {
        let mut told = String::new();
        let _ = log.read_to_string(&mut told);
        told
    });
    let Some(url) = url else {
        child.wait().map_err(|e| e.to_string())?;
        return Err(told.join().unwrap_or_default());
    };
    // The last line names the token's file: everything is there then.
    let _ = out.find(|line| line.as_ref().is_ok_and(|l| l.contains("token")));
    let root =
        if wrap.is_empty() { PathBuf::new() } else { format!("/proc/{}/root", child.id()).into() };
    let file =
        root.join(data.strip_prefix("/").map_or(data.to_owned(), |d| {
            if wrap.is_empty() { data.to_owned() } else { d.to_owned() }
        }));
    let token = std::fs::read_to_string(file.join("token")).map_err(|e| e.to_string())?;
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_mins(1)))
        .proxy(None)
        .build();
    Ok(Served { child, url, token, agent: Agent::new_with_config(config), log: Some(told) })
}

impl Served {
    pub fn get(&self, path: &str) -> Result<(u16, Value), String> {
        let request = self.agent.get(format!("{}{path}", self.url));
        answer(request.header("authorization", format!("Bearer {}", self.token)).call())
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Result<(u16, Value), String> {
        let request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json");
        answer(request.send(body))
    }

    pub fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self
            .agent
            .patch(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json");
        answer(request.send(body.to_string())).expect("answer")
    }

    pub fn delete(&self, path: &str) -> Result<(u16, Value), String> {
        let request = self.agent.delete(format!("{}{path}", self.url));
        answer(request.header("authorization", format!("Bearer {}", self.token)).call())
    }

    /// A session of this label; returns its id.
    pub fn session(&self, label: &str) -> Result<String, String> {
        let body = serde_json::json!({ "label": label }).to_string();
        let (status, session) = self.post("/api/sessions", body.as_bytes())?;
        session["id"].as_str().map(str::to_owned).ok_or_else(|| format!("{status}: {session}"))
    }

    /// Every event of a session.
    pub fn events(&self, session: &str) -> Vec<Value> {
        events(&self.agent, &self.url, &format!("Bearer {}", self.token), session)
    }

    /// What it has written to its log, once it has ended.
    pub fn log(&mut self) -> String {
        self.log.take().and_then(|log| log.join().ok()).unwrap_or_default()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end; returns how it ended.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.is_ok_and(|s| s.success()));
        let until = Instant::now() + Duration::from_mins(2);
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Every event of a session, as the server at this address tells them.
pub fn events(agent: &Agent, url: &str, bearer: &str, session: &str) -> Vec<Value> {
    let url = format!("{url}/api/sessions/{session}/events?view=events");
    let stream = agent.get(url).header("authorization", bearer).call();
    let mut events = Vec::new();
    for line in BufReader::new(stream.expect("stream").into_body().into_reader()).lines() {
        let line = line.expect("line");
        if line == "event: ready" {
            return events;
        }
        if let Some(data) = line.strip_prefix("data: ") {
            events.push(serde_json::from_str(data).expect("JSON"));
        }
    }
    panic!("the stream ended early");
}

fn answer(
    done: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<(u16, Value), String> {
    let mut response = done.map_err(|e| e.to_string())?;
    let text = response.body_mut().read_to_string().map_err(|e| e.to_string())?;
    Ok((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// The events that the core itself makes of packets.
pub fn truth(packets: &[String], session: &str) -> Vec<Value> {
    use narrows::{Packets, Pipeline, Row};
    let (mut split, mut pipeline, mut steps) =
        (Packets::default(), Pipeline::default(), Vec::new());
    for packet in packets {
        split.push(packet.as_bytes(), |given| pipeline.push(given, &mut steps));
    }
    split.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    let print = |(seq, step): (u64, narrows::Step)| {
        serde_json::to_value(Row::new(seq, session, &step.event)).expect("JSON")
    };
    (1..).zip(steps).map(print).collect()
}

/// Random enough, and the same again by its seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}
