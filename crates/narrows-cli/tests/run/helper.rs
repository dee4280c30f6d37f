//! A server that runs scripted agents.

use crate::agents::{PATIENCE, agent};
use crate::served::{NARROWS, Served, serve_with};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The two ways of speaking, by the name of their agent.
pub(crate) const BOTH: [&str; 2] = ["acp", "claude"];

pub(crate) struct Running {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) served: Served,
}

/// The config file, with agents that keep their sessions below a folder.
pub(crate) fn config(folder: &Path, more: &str) -> PathBuf {
    let file = folder.join("config.toml");
    let agent = |name: &str, protocol: &str, args: &str| {
        let program = agent(&format!("scripted_{protocol}"));
        let state = folder.join(format!("state-{name}"));
        format!(
            "[[agent]]\nname = {name:?}\nprotocol = {protocol:?}\nargv = [{:?}, \"--state\", {:?}{args}]\n",
            program.display().to_string(),
            state.display().to_string(),
        )
    };
    let beside = folder.join("beside").display().to_string();
    let directories = format!("directories = [{beside:?}, \"/nowhere/at/all\"]\n");
    let once = |name: &str| {
        format!(
            ", \"--exit-once\", {:?}",
            folder.join(format!("once-{name}")).display().to_string()
        )
    };
    let text = [
        agent("acp", "acp", ""),
        agent("claude", "claude", ""),
        agent("no-load", "acp", ", \"--no-load\""),
        agent("mute", "acp", ", \"--mute\""),
        agent("dead", "acp", ", \"--exit-at-start\", \"7\""),
        agent("once-acp", "acp", &once("acp")),
        agent("once-claude", "claude", &once("claude")),
        agent("options", "acp", ", \"--config-options\""),
        agent("valued", "acp", "")
            + "env = { VALUED_API_KEY = \"quiet-harbor-4711-lantern\", VALUED_OTHER = \"p4ss9harbor\", VALUED_MODEL = \"gpt-4o-mini\" }\n",
        agent("login", "acp", ", \"--login\""),
        agent("login-late", "acp", ", \"--login-late\""),
        agent("login-claude", "claude", ", \"--login\"")
            + "login = [\"claude\", \"auth\", \"login\"]\n",
        agent("login-key", "acp", ", \"--login\"")
            + "env = { SCRIPTED_API_KEY = \"good-4711-lantern\" }\n",
        agent("newer", "acp", ", \"--newer\""),
        agent("lists", "acp", ", \"--lists\""),
        agent("loops", "acp", ", \"--loops\""),
        agent("stubborn", "acp", ", \"--stubborn\""),
        agent("wide", "acp", ", \"--newer\"") + &directories,
        agent("wide-old", "acp", "") + &directories,
        "[[agent]]\nname = \"missing\"\nargv = [\"no-such-agent\"]\n".to_owned(),
        format!("[run]\nstart_seconds = 2\ncancel_seconds = 1\n{more}\n"),
    ];
    std::fs::write(&file, text.concat()).expect("config");
    file
}

impl Running {
    pub(crate) fn start(more: &str) -> Running {
        let folder = tempfile::tempdir().expect("folder");
        config(folder.path(), more);
        let served = Running::serve(&folder);
        Running { folder, served }
    }

    fn serve(folder: &tempfile::TempDir) -> Served {
        let config = folder.path().join("config.toml");
        let config = config.to_str().expect("text");
        let more = ["--no-follow", "--allow-run", "--config", config];
        serve_with(&folder.path().join("data"), &[], &more, &[]).expect("server")
    }

    /// Another server on the same data.
    pub(crate) fn again(&mut self) {
        self.served.kill();
        self.served = Running::serve(&self.folder);
    }

    pub(crate) fn session(&self, agent: &str) -> String {
        let body = json!({ "agent": agent }).to_string();
        let (status, made) = self.served.post("/api/runs", body.as_bytes()).expect("made");
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().expect("id").to_owned()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.served.post(path, body.to_string().as_bytes()).expect("answer")
    }

    /// Changes how a session is run.
    pub(crate) fn change(&self, id: &str, change: &Value) {
        let (status, told) = self.patch(id, change);
        assert_eq!(status, 200, "{change}: {told}");
    }

    pub(crate) fn patch(&self, id: &str, change: &Value) -> (u16, Value) {
        self.served.patch(&format!("/api/sessions/{id}/run"), change)
    }

    pub(crate) fn run(&self, id: &str) -> Value {
        self.served.get(&format!("/api/sessions/{id}/run")).expect("run").1
    }

    /// Sends a message without waiting for its turn.
    pub(crate) fn tell(&self, id: &str, words: &str) -> Value {
        let path = format!("/api/sessions/{id}/send-message?wait=false");
        let (status, taken) = self.post(&path, &json!({ "content": words }));
        assert_eq!(status, 202, "{taken}");
        taken
    }

    /// Sends a message; the packets of its turn, read to their end.
    pub(crate) fn turn(&self, id: &str, words: &str) -> Vec<Value> {
        let (status, frames) = self.frames(id, words, None);
        assert_eq!(status, 200);
        frames.map(|(_, packet)| packet).collect()
    }

    /// Sends a message; the frames of its turn as they come, with their cursors.
    pub(crate) fn frames(
        &self,
        id: &str,
        words: &str,
        key: Option<&str>,
    ) -> (u16, impl Iterator<Item = (String, Value)> + use<>) {
        let mut request = self
            .served
            .agent
            .post(format!("{}/api/sessions/{id}/send-message", self.served.url))
            .header("authorization", format!("Bearer {}", self.served.token))
            .header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = request.send(json!({ "content": words }).to_string()).expect("answer");
        let status = response.status().as_u16();
        (status, packets(response.into_body().into_reader()))
    }

    /// What the session's own stream tells as packets after a cursor, up to now.
    pub(crate) fn stream(&self, id: &str, after: &str) -> Vec<(String, Value)> {
        let path = format!("/api/sessions/{id}/events?view=packets&after={after}");
        let request = self.served.agent.get(format!("{}{path}", self.served.url));
        let request = request.header("authorization", format!("Bearer {}", self.served.token));
        packets(request.call().expect("stream").into_body().into_reader()).collect()
    }

    pub(crate) fn items(&self, id: &str) -> Vec<Value> {
        let (_, page) =
            self.served.get(&format!("/api/sessions/{id}/items?limit=500")).expect("items");
        page["items"].as_array().expect("items").clone()
    }

    /// Items of a session that has more than a page of them.
    pub(crate) fn all_items(&self, id: &str) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let before =
                all.first().map_or(String::new(), |item| format!("&before={}", item["order"]));
            let path = format!("/api/sessions/{id}/items?limit=500{before}");
            let (_, page) = self.served.get(&path).expect("items");
            let items = page["items"].as_array().expect("items").clone();
            all.splice(0..0, items);
            if page["before"] != true {
                return all;
            }
        }
    }

    /// Waits until a run is as it should be.
    pub(crate) fn until(&self, id: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let run = self.run(id);
            if is(&run) {
                return run;
            }
            assert!(began.elapsed() < PATIENCE, "still not {what}: {run}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for a question; its id.
    pub(crate) fn asked(&self, id: &str) -> String {
        let run = self.until(id, "waiting", |run| run["state"] == "waiting");
        run["requests"][0].as_str().expect("request").to_owned()
    }

    pub(crate) fn answer(&self, id: &str, request: &str, answer: &Value) -> (u16, Value) {
        self.post(&format!("/api/sessions/{id}/permissions/{request}"), answer)
    }

    /// Processes of this server's agents, with their keepers.
    pub(crate) fn alive(&self) -> Vec<String> {
        let needle = self.folder.path().join("state-").display().to_string();
        let entries = std::fs::read_dir("/proc").expect("processes");
        let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let lines = pids.filter_map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some(format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ")))
        });
        lines.filter(|line| line.contains(&needle)).collect()
    }
}

/// The packets of a stream, with their cursors: up to its end, or to where it has caught up.
fn packets(body: impl std::io::Read) -> impl Iterator<Item = (String, Value)> {
    let mut lines = BufReader::new(body).lines();
    let mut cursor = String::new();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?.ok()?;
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut cursor);
            } else if let Some(name) = line.strip_prefix("event: ") {
                if name == "ready" {
                    return None;
                }
                assert_eq!(name, "message");
            } else if let Some(data) = line.strip_prefix("data: ") {
                let packet = serde_json::from_str(data).expect("packet");
                return Some((cursor.clone(), packet));
            }
        }
    })
}

/// What the agent said in a turn.
pub(crate) fn said(packets: &[Value]) -> String {
    let texts = packets.iter().filter(|p| p["type"] == "agent_message_chunk");
    texts.map(|p| p["content"]["text"].as_str().unwrap_or_default()).collect()
}

pub(crate) fn last(packets: &[Value]) -> &Value {
    packets.last().expect("a packet")
}

pub(crate) fn narrows() -> std::process::Command {
    std::process::Command::new(NARROWS)
}
