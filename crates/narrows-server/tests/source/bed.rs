//! A machine with a folder of Claude Code and a store, in a folder of its own.

use narrows::{Config, Format, Given, Items, Packets, Paths, Pipeline, Secrets};
use narrows_engine::discovery::{Follower, Progress, SourceOptions, Sums, catch_up, find};
use narrows_engine::ingest::{Hidden, Intake};
use narrows_engine::live::Hub;
use narrows_store::{ListFilter, Options, Session, SessionRow, Store, Window};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// The home directory on this machine, which is hidden.
pub(crate) const HOME: &str = "/home/ada-lovelace";
/// Nothing that is waited for takes longer, whatever the machine does.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures")
}

/// The recorded sessions of a format whose files tell a session's id.
pub(crate) fn cases(format: &str) -> Vec<String> {
    let list = fs::read_dir(fixtures().join(format)).expect("fixtures");
    let mut names: Vec<String> = list
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("2."))
        .map(|name| format!("{format}/{name}"))
        .collect();
    names.sort();
    names
}

/// What a recorded session's own file holds.
pub(crate) fn input(case: &str) -> Vec<u8> {
    fs::read(fixtures().join(case).join("input.jsonl")).expect(case)
}

/// The id of the session that a text is of.
pub(crate) fn id_in(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let ids = ["\"sessionId\":\"", "\"session_id\":\""];
    let at = ids.iter().find_map(|k| text.find(k).map(|at| at + k.len())).expect("an id");
    text[at..at + 36].to_owned()
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folder");
    for entry in fs::read_dir(from).expect("folder") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copy");
        }
    }
}

/// Where sessions lie, and where they are read to.
#[derive(Debug)]
pub(crate) struct Bed {
    dir: TempDir,
    pub(crate) options: SourceOptions,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        let dir = tempfile::tempdir().expect("folder");
        let claude = dir.path().join("claude");
        fs::create_dir_all(claude.join("projects")).expect("folder");
        let options = SourceOptions { claude_dirs: vec![claude], ..SourceOptions::default() };
        Bed { dir, options }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn projects(&self) -> PathBuf {
        self.path().join("claude/projects")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Where a session's own file lies in a project's folder.
    pub(crate) fn file(&self, project: &str, session: &str) -> PathBuf {
        self.projects().join(project).join(format!("{session}.jsonl"))
    }

    /// Writes a session's own file.
    pub(crate) fn write(&self, project: &str, session: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(project, session);
        write(&path, text);
        path
    }

    /// Puts a recorded session with all its files into a project's folder.
    pub(crate) fn put(&self, case: &str, project: &str) -> PathBuf {
        let from = fixtures().join(case);
        let text = input(case);
        let main = self.write(project, &id_in(&text), text);
        for entry in fs::read_dir(from).expect("case") {
            let entry = entry.expect("entry");
            let (path, name) = (entry.path(), entry.file_name());
            let to = main.with_file_name(&name);
            if path.is_dir() {
                copy_all(&path, &to);
            } else if name.to_string_lossy().starts_with("agent-") {
                fs::copy(&path, to).expect("copy");
            }
        }
        main
    }

    /// Opens the store as a program does.
    pub(crate) fn open(&self) -> Parts {
        Parts::on(&self.data())
    }

    /// A program that starts, reads what is new and ends.
    pub(crate) async fn pass(&self) -> Sums {
        let parts = self.open();
        let sums = parts.catch_up(&self.options).await;
        parts.end().await;
        sums
    }

    /// The same, but the program does not get to an orderly end.
    pub(crate) async fn cut_pass(&self) -> Sums {
        let parts = self.open();
        let sums = parts.catch_up(&self.options).await;
        parts.store.close().await;
        sums
    }

    /// Looks into the store while no program runs.
    pub(crate) async fn look<T>(&self, at: impl AsyncFnOnce(&Parts) -> T) -> T {
        let parts = self.open();
        let seen = at(&parts).await;
        parts.store.close().await;
        seen
    }

    pub(crate) async fn texts(&self, label: &str) -> Vec<String> {
        self.look(async |parts| parts.texts(label).await).await
    }
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("folder")).expect("folder");
    fs::write(path, text).expect("write");
}

pub(crate) fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new().append(true).open(path).expect("open");
    file.write_all(text.as_ref()).expect("write");
}

/// Makes a file, or all files below a folder, look as if nobody had written there for a while.
pub(crate) fn make_old(path: &Path, seconds: u64) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("folder") {
            make_old(&entry.expect("entry").path(), seconds);
        }
        return;
    }
    let at = SystemTime::now() - Duration::from_secs(seconds);
    File::options().append(true).open(path).expect("open").set_modified(at).expect("time");
}

/// The parts of a running program that reads sessions.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) intake: Intake,
    pub(crate) hub: Hub,
}

impl Parts {
    pub(crate) fn on(data: &Path) -> Parts {
        let store = Store::open(data, &Options::default()).expect("store");
        let mut secrets = Secrets::default();
        secrets.set_key(store.mark_key());
        let mut paths = Paths::new();
        paths.set_home(HOME);
        let hidden = Hidden { paths, secrets: Arc::new(secrets) };
        let hub = Hub::new(store.clone());
        let intake = Intake::new(store.clone(), hub.clone(), hidden);
        Parts { store, intake, hub }
    }

    pub(crate) async fn catch_up(&self, options: &SourceOptions) -> Sums {
        let (store, intake, hub) = (self.store.clone(), self.intake.clone(), self.hub.clone());
        let progress = Arc::<Progress>::default();
        let sums = catch_up(store, intake, hub, options.clone(), Arc::clone(&progress)).await;
        let sums = sums.expect("a pass");
        assert_eq!(sums.failed, 0, "{:?}", progress.fault());
        sums
    }

    pub(crate) fn follow(&self, options: &SourceOptions) -> Follower {
        let (store, intake, hub) = (self.store.clone(), self.intake.clone(), self.hub.clone());
        Follower::start(store, intake, hub, options.clone())
    }

    /// An orderly end.
    pub(crate) async fn end(self) {
        self.intake.close().await;
        self.store.close().await;
    }

    pub(crate) async fn sessions(&self) -> Vec<SessionRow> {
        let filter = ListFilter { limit: 10_000, ..ListFilter::default() };
        self.store.list(filter).await.expect("list").sessions
    }

    pub(crate) async fn labels(&self) -> Vec<String> {
        let rows = self.sessions().await;
        let mut labels: Vec<String> = rows.into_iter().filter_map(|s| s.label).collect();
        labels.sort();
        labels
    }

    pub(crate) async fn session(&self, label: &str) -> Session {
        self.store.session_by_label(label).await.expect(label)
    }

    pub(crate) async fn row(&self, label: &str) -> SessionRow {
        let id = self.session(label).await.id;
        self.store.session_row(&id).await.expect("row")
    }

    /// All items of a session, in order.
    pub(crate) async fn items(&self, label: &str) -> Vec<Value> {
        let Ok(session) = self.store.session_by_label(label).await else { return Vec::new() };
        self.items_of(session.key).await
    }

    pub(crate) async fn items_of(&self, key: i64) -> Vec<Value> {
        let page = self.store.items(key, Window::From(0), 100_000).await.expect("items");
        let items = page.items.into_iter().map(|row| row.item);
        settled(Items::from_parts(narrows::session::SessionInfo::default(), items))
    }

    /// What is said in a session: texts of prompts and answers, in order.
    pub(crate) async fn texts(&self, label: &str) -> Vec<String> {
        texts(&self.items(label).await)
    }

    /// The events of a session, as they are kept.
    pub(crate) async fn events(&self, label: &str) -> Vec<Value> {
        let key = self.session(label).await.key;
        let page = self.store.events_after(key, 0, 1 << 20, 1 << 30).await.expect("events");
        let rows = page.rows.iter();
        rows.map(|row| serde_json::from_slice(&row.event).expect("JSON")).collect()
    }

    /// What the core makes of the files of a session that it reads at once.
    pub(crate) fn truth(&self, main: &Path) -> Vec<Value> {
        truth(main, self.store.mark_key())
    }
}

fn settled(mut items: Items) -> Vec<Value> {
    items.settle();
    let mut sorted: Vec<&narrows::Item> = items.iter().collect();
    sorted.sort_by_key(|item| item.order);
    let json = |item: &&narrows::Item| {
        let mut text = Vec::new();
        narrows::json::print(&mut text, *item).expect("print");
        serde_json::from_slice(&text).expect("JSON")
    };
    sorted.iter().map(json).collect()
}

pub(crate) fn texts(items: &[Value]) -> Vec<String> {
    let said = |i: &Value| i["text"].as_str().or(i["content"].as_str()).map(str::to_owned);
    items
        .iter()
        .filter(|i| i["type"] == "user_message" || i["type"] == "text")
        .filter_map(said)
        .collect()
}

fn truth(main: &Path, key: [u8; 32]) -> Vec<Value> {
    let mut secrets = Secrets::default();
    secrets.set_key(key);
    let mut config = Config { secrets: Arc::new(secrets), ..Config::default() };
    config.format = Format::ClaudeHistory;
    config.paths.set_home(HOME);
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(config));
    let mut steps = Vec::new();
    let found = find(main).expect("files");
    let mut beside = found.beside().expect("files");
    let bytes = fs::read(main).expect("file");
    packets.push(&bytes, |given| {
        if let Given::Packet(packet) = &given {
            beside.before(packet.bytes, |given| pipeline.push(given, &mut steps));
        }
        pipeline.push(given, &mut steps);
    });
    packets.finish(|given| pipeline.push(given, &mut steps));
    beside.rest(|given| pipeline.push(given, &mut steps));
    for output in found.outputs() {
        let (name, text) = output.expect("output");
        pipeline.offloaded(&name, &text, &mut steps);
    }
    pipeline.finish(&mut steps);
    let mut items = Items::new();
    steps.into_iter().flat_map(|step| step.changes).for_each(|change| items.apply(change));
    settled(items)
}

/// Asks until the answer is yes.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
