//! A machine with an agent, and programs that run on it.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");
/// How long anything may take before a test fails.
pub(crate) const SOON: Duration = Duration::from_mins(2);
/// A user without rights.
const NOBODY: u32 = 65_534;

/// Waits until something is there; panics when it does not come in time.
pub(crate) fn within<T>(most: Duration, what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + most;
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(Instant::now() < until, "not within {most:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A session as Claude Code writes it.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) id: String,
    pub(crate) cwd: String,
    lines: u32,
    pub(crate) text: String,
}

impl Script {
    /// A session with a number, in which something is asked for.
    pub(crate) fn new(number: u32, asked: &str) -> Script {
        Script::empty(number, "/srv/app").asks(asked)
    }

    pub(crate) fn empty(number: u32, cwd: &str) -> Script {
        let id = format!("{number:08}-0000-4000-8000-000000000000");
        Script { id, cwd: cwd.to_owned(), lines: 0, text: String::new() }
    }

    pub(crate) fn record(mut self, kind: &str, more: &Value) -> Script {
        self.lines += 1;
        let mut record = json!({
            "type": kind, "uuid": format!("{}-0000-4000-8000-{:012}", &self.id[..8], self.lines),
            "timestamp": jiff::Timestamp::now().to_string(), "cwd": self.cwd,
            "sessionId": self.id, "version": "2.1.325",
        });
        for (key, value) in more.as_object().expect("object") {
            record[key] = value.clone();
        }
        self.text += &(record.to_string() + "\n");
        self
    }

    pub(crate) fn asks(self, text: &str) -> Script {
        self.record("user", &json!({ "message": { "role": "user", "content": text } }))
    }

    fn answers(self, content: &Value) -> Script {
        let name = format!("{}-{}", &self.id[..8], self.lines);
        let usage = json!({ "input_tokens": 3, "output_tokens": 4 });
        self.record(
            "assistant",
            &json!({ "requestId": format!("req-{name}"), "message": {
                "id": format!("msg-{name}"), "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [content], "usage": usage,
            }}),
        )
    }

    pub(crate) fn says(self, text: &str) -> Script {
        self.answers(&json!({ "type": "text", "text": text }))
    }

    pub(crate) fn thinks(self, text: &str) -> Script {
        self.answers(&json!({ "type": "thinking", "thinking": text, "signature": "" }))
    }

    /// A call, and what it gave.
    pub(crate) fn calls(self, tool: &str, input: &Value, gave: &str) -> Script {
        let id = format!("toolu-{}-{}", &self.id[..8], self.lines);
        let call = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": gave });
        self.answers(&call)
            .record("user", &json!({ "message": { "role": "user", "content": [result] } }))
    }

    pub(crate) fn titled(mut self, title: &str) -> Script {
        let record = json!({ "type": "custom-title", "customTitle": title, "sessionId": self.id });
        self.text += &(record.to_string() + "\n");
        self
    }

    /// The same, a while ago.
    pub(crate) fn aged(mut self, by: Duration) -> Script {
        let lines = self.text.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("JSON");
            let at: jiff::Timestamp =
                record["timestamp"].as_str().expect("time").parse().expect("time");
            record["timestamp"] = json!((at - by).to_string());
            record.to_string() + "\n"
        });
        self.text = lines.collect();
        self
    }

    /// What is new since another state of it.
    fn since(&self, before: &Script) -> &str {
        &self.text[before.text.len()..]
    }
}

/// What a command printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

/// A home directory.
pub(crate) struct Machine {
    folder: TempDir,
    variables: Vec<(&'static str, PathBuf)>,
    /// Whether commands run without the rights of root.
    humble: bool,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        let folder = tempfile::Builder::new().prefix("narrows-machine-").tempdir();
        Machine { folder: folder.expect("folder"), variables: Vec::new(), humble: false }
    }

    /// With some sessions in the usual folder.
    pub(crate) fn with(scripts: &[Script]) -> Machine {
        let machine = Machine::new();
        scripts.iter().for_each(|script| machine.write(script));
        machine
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path(".local/share/narrows")
    }

    pub(crate) fn set(&mut self, name: &'static str, value: PathBuf) {
        self.variables.push((name, value));
    }

    pub(crate) fn config(&self, text: &str) {
        let file = self.path(".config/narrows/config.toml");
        fs::create_dir_all(file.parent().expect("folder")).expect("folder");
        fs::write(file, text).expect("config");
    }

    /// Files without rights cannot be read by commands from here on, also when tests run as root.
    pub(crate) fn be_humble(&mut self) {
        fn give(path: &Path) {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("chown");
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                give(&entry.path());
            }
        }
        let probe = self.path("probe");
        fs::write(&probe, "").expect("write");
        forbid(&probe);
        if File::open(&probe).is_ok() {
            give(self.folder.path());
            self.humble = true;
        }
    }

    /// Where a session lies below the folder of an agent.
    pub(crate) fn file_in(&self, folder: &str, script: &Script) -> PathBuf {
        let project = script.cwd.replace(['/', '.'], "-");
        self.path(folder).join("projects").join(project).join(format!("{}.jsonl", script.id))
    }

    pub(crate) fn file(&self, script: &Script) -> PathBuf {
        self.file_in(".claude", script)
    }

    pub(crate) fn write_in(&self, folder: &str, script: &Script) {
        let file = self.file_in(folder, script);
        fs::create_dir_all(file.parent().expect("folder")).expect("folder");
        fs::write(file, &script.text).expect("write");
    }

    pub(crate) fn write(&self, script: &Script) {
        self.write_in(".claude", script);
    }

    /// The agent goes on; returns the session as it is then.
    pub(crate) fn grow(&self, before: &Script, grown: Script) -> Script {
        let mut file = File::options().append(true).open(self.file(before)).expect("open");
        file.write_all(grown.since(before).as_bytes()).expect("write");
        grown
    }

    /// The agent has written nothing for a while.
    pub(crate) fn age(&self, script: &Script, by: Duration) {
        let file = File::options().append(true).open(self.file(script)).expect("open");
        file.set_modified(SystemTime::now() - by).expect("time");
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(NARROWS);
        command
            .args(words)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .env("NO_COLOR", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        if self.humble {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn told(&self, words: &[&str]) -> Told {
        let done = self.command(words).output().expect("run");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Told { out: text(done.stdout), err: text(done.stderr), code: done.status.code() }
    }

    /// What a command prints that ends well and complains of nothing.
    pub(crate) fn out(&self, words: &[&str]) -> String {
        let told = self.told(words);
        assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{words:?}: {}", told.out);
        told.out
    }

    /// The sessions that `ls` lists, the newest first.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let told = self.told(&["ls", "--json", "-n", "0"]);
        told.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub(crate) fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> =
            self.rows().iter().map(|row| row["label"].as_str().unwrap_or("-").to_owned()).collect();
        labels.sort();
        labels
    }

    /// Starts a command that goes on.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let mut command = self.command(words);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
        let (out, all_out) = kept(child.stdout.take().expect("output"));
        let (err, all_err) = kept(child.stderr.take().expect("errors"));
        Running { child, out, err, readers: vec![all_out, all_err] }
    }

    /// A server; its address stands in the data directory.
    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        let mut words = vec!["serve", "--bind", "127.0.0.1:0"];
        words.extend(more);
        let mut running = self.start(&words);
        let data = self.data();
        let url = within(SOON, "a server", || {
            assert!(running.ended().is_none(), "{}", running.err());
            // It is greeted by its last line.
            running.out().contains("\n  found  ").then_some(())?;
            let at: Value =
                serde_json::from_slice(&fs::read(data.join("server.json")).ok()?).ok()?;
            Some(at["url"].as_str().expect("address").to_owned())
        });
        let token = fs::read_to_string(data.join("token")).expect("token").trim().to_owned();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(SOON))
            .proxy(None)
            .build();
        Server { running, url, token, agent: ureq::Agent::new_with_config(agent) }
    }
}

/// Nobody may read a file.
pub(crate) fn forbid(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o000)).expect("rights");
}

/// What comes, as it comes.
fn kept(mut from: impl Read + Send + 'static) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let all = Arc::<Mutex<Vec<u8>>>::default();
    let keep = Arc::clone(&all);
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            keep.lock().expect("lock").extend_from_slice(&bytes[..n]);
        }
    });
    (all, reader)
}

/// A command that goes on. It is killed at the end.
pub(crate) struct Running {
    child: Child,
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.out.lock().expect("lock")).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.err.lock().expect("lock")).into_owned()
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("wait")
    }

    /// Waits until it has printed something.
    pub(crate) fn prints(&self, most: Duration, what: &str) {
        let is = || self.out().contains(what).then_some(());
        let until = Instant::now() + most;
        while is().is_none() {
            let (out, err) = (self.out(), self.err());
            assert!(Instant::now() < until, "no `{what}` within {most:?}:\n{out}\n{err}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end, and for all that it printed.
    pub(crate) fn ends(&mut self, most: Duration) -> Option<i32> {
        let status = within(most, "an end", || self.ended());
        self.readers.drain(..).for_each(|reader| reader.join().expect("reader"));
        status.code()
    }

    /// Sends a signal; returns the exit code.
    pub(crate) fn signal(&mut self, name: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill").success());
        self.ends(SOON)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `narrows serve`.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) url: String,
    token: String,
    agent: ureq::Agent,
}

impl Server {
    /// What it answers, as text.
    pub(crate) fn text(&self, path: &str) -> String {
        let request = self.agent.get(format!("{}{path}", self.url));
        let bearer = format!("Bearer {}", self.token);
        let mut answer = request.header("authorization", bearer).call().expect("answer");
        answer.body_mut().read_to_string().expect("text")
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).expect("JSON")
    }

    pub(crate) fn sessions(&self) -> Vec<Value> {
        self.get("/api/sessions")["sessions"].as_array().expect("sessions").clone()
    }

    /// A session, if it is there.
    pub(crate) fn session(&self, script: &Script) -> Option<Value> {
        self.sessions().into_iter().find(|s| s["label"] == script.id.as_str())
    }

    /// What of a session's events comes within a moment.
    pub(crate) fn events(&self, id: &str, view: &str) -> String {
        let url = format!("{}/api/sessions/{id}/events?view={view}", self.url);
        let bearer = format!("Bearer {}", self.token);
        let answer = self.agent.get(url).header("authorization", bearer).call().expect("stream");
        let mut body = answer.into_body().into_reader();
        let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&all).contains("event: ready") {
            let n = body.read(&mut bytes).expect("read");
            assert!(n > 0, "the stream ended early");
            all.extend_from_slice(&bytes[..n]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}
