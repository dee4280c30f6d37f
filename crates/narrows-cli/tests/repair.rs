//! Damaged stores through the binary: the doctor ends and says so, a repair keeps what can be read, and
//! a server serves what was not hit as it was.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod served;

use serde_json::Value;
use served::{Dice, NARROWS, Served, serve};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const FIXTURES: [&str; 5] = [
    "acp/opencode-1.18-c-files",
    "acp/claude-acp-g-subagent",
    "claude-stream/2.1-g-subagent",
    "acp/opencode-1.18-f-todos",
    "acp/claude-acp-c-files",
];

/// What a server tells of each session: its events and items.
type Told = BTreeMap<String, (Vec<Value>, Value)>;

fn fixture(name: &str) -> Vec<u8> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures");
    std::fs::read(all.join(name).join("input.jsonl")).expect("a fixture")
}

fn narrows(data: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(NARROWS);
    command.args(words).arg("--data").arg(data).env("HOME", data.join("home"));
    for name in ["NARROWS_CONFIG", "CLAUDE_CONFIG_DIR", "NARROWS_DATA", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    command.output().expect("narrows")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn told(served: &Served) -> Told {
    let (_, list) = served.get("/api/sessions").expect("sessions");
    let ids = list["sessions"].as_array().expect("sessions").iter();
    let ids: Vec<String> = ids.map(|s| s["id"].as_str().expect("id").to_owned()).collect();
    let one = |id: String| {
        let (_, items) = served.get(&format!("/api/sessions/{id}/items?limit=500")).expect("items");
        let events = served.events(&id);
        (id, (events, items["items"].clone()))
    };
    ids.into_iter().map(one).collect()
}

/// A store after its server was stopped, one as it is while the server runs, and what both tell.
struct Stores {
    _dir: tempfile::TempDir,
    stopped: PathBuf,
    running: PathBuf,
    told: Told,
}

fn stores() -> Stores {
    let dir = tempfile::tempdir().expect("a folder");
    let (stopped, running) = (dir.path().join("stopped"), dir.path().join("running"));
    let mut served = serve(&stopped, &[], &[]).expect("a server");
    for (n, name) in FIXTURES.iter().enumerate() {
        let session = served.session(&format!("label-{n}")).expect("a session");
        let input = fixture(name);
        // Several requests: several rows.
        let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
        for part in lines.chunks(5) {
            let path = format!("/api/sessions/{session}/packets");
            let (status, answer) = served.post(&path, &part.concat()).expect("packets");
            assert_eq!(status, 200, "{answer}");
        }
        let end = format!("/api/sessions/{session}/packets?end=true");
        assert_eq!(served.post(&end, b"").expect("end").0, 200);
    }
    let told = told(&served);
    assert_eq!(told.len(), FIXTURES.len());
    copy(&stopped, &running);
    assert!(served.terminate().success());
    Stores { _dir: dir, stopped, running, told }
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a folder");
    for name in ["narrows.db", "narrows.db-wal", "narrows.durable", "token"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).expect("a copy");
        }
    }
}

fn flip(path: &Path, at: u64, bit: u64) {
    let mut bytes = std::fs::read(path).expect("a file");
    let at = usize::try_from(at).expect("a place") % bytes.len();
    bytes[at] ^= 1 << bit;
    std::fs::write(path, bytes).expect("a file");
}

/// Repairs; then everything that was not hit is as it was.
fn repaired(data: &Path, before: &Told, what: &str) -> Value {
    let doctor = narrows(data, &["doctor", "--json"]);
    let ill: Value = serde_json::from_slice(&doctor.stdout).expect("what the doctor says");
    let done = narrows(data, &["repair", "--json"]);
    let said = text(&done.stderr);
    assert!(done.status.success(), "{what}: {said}");
    let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
    if report["damaged"] == true {
        let aside = report["aside"].as_str().expect("the old store");
        assert!(Path::new(aside).exists(), "{what}: {report}");
        assert_eq!(ill["well"], false, "{what}: the doctor found nothing: {report}");
    }
    let doctor = narrows(data, &["doctor"]);
    assert!(doctor.status.success(), "{what}: {}", text(&doctor.stdout));
    let mut served = serve(data, &[], &[]).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (status, health) = served.get("/healthz").expect("health");
    assert_eq!((status, &health["status"]), (200, &Value::from("ok")), "{what}: {health}");
    let after = told(&served);
    let hit = |id: &str| {
        let named = |list: &str, id: &str| {
            report[list].as_array().expect(list).iter().any(|s| s["id"] == id || s == id)
        };
        named("sessions", id) || named("gone", id)
    };
    for (id, was) in before {
        if !hit(id) {
            assert_eq!(after.get(id), Some(was), "{what}: {report}");
        }
    }
    let gone = report["gone"].as_array().expect("gone").len();
    assert!(after.len() + gone >= before.len(), "{what}: {report}");
    assert!(served.terminate().success());
    let again = narrows(data, &["repair"]);
    let said = text(&again.stdout);
    assert!(again.status.success() && said.contains("nothing to repair"), "{what}: {said}");
    report
}

fn places() -> u64 {
    std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}

#[test]
fn what_a_flipped_byte_did_not_hit_is_as_it_was() {
    let stores = stores();
    let (mut dice, mut damaged) = (Dice(77), 0);
    let data = stores.stopped.with_file_name("data");
    for n in 0..places() {
        // Every other time in the write-ahead log.
        let (from, file) = match n % 2 {
            0 => (&stores.stopped, "narrows.db"),
            _ => (&stores.running, "narrows.db-wal"),
        };
        copy(from, &data);
        let size = std::fs::metadata(data.join(file)).expect("a file").len();
        let at = dice.roll(size);
        flip(&data.join(file), at, dice.roll(8));
        let report = repaired(&data, &stores.told, &format!("{file} at {at}"));
        damaged += u64::from(report["damaged"] == true);
    }
    assert!(damaged > 0, "the test looks at nothing");
}

#[test]
fn what_is_left_of_a_store_that_was_cut_is_kept() {
    let stores = stores();
    let data = stores.stopped.with_file_name("data");
    let cut = |file: &str, parts: u64| {
        let file = std::fs::OpenOptions::new().write(true).open(data.join(file)).expect("a file");
        let size = file.metadata().expect("a size").len();
        file.set_len(size - size / parts).expect("shorter");
    };
    copy(&stores.stopped, &data);
    cut("narrows.db", 3);
    let report = repaired(&data, &stores.told, "the database is cut");
    assert_eq!(report["damaged"], true);
    copy(&stores.running, &data);
    cut("narrows.db-wal", 3);
    let report = repaired(&data, &stores.told, "the write-ahead log is cut");
    assert_eq!(report["damaged"], true, "{report}");
    copy(&stores.running, &data);
    std::fs::remove_file(data.join("narrows.db-wal")).expect("gone");
    let report = repaired(&data, &stores.told, "the write-ahead log is gone");
    assert_eq!(report["damaged"], true, "{report}");
}

#[test]
fn a_store_in_use_is_not_repaired() {
    let stores = stores();
    let served = serve(&stores.stopped, &[], &[]).expect("a server");
    let refused = narrows(&stores.stopped, &["repair"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("another narrows") && said.contains("stop it"), "{said}");
    drop(served);
    let nowhere = narrows(&stores.stopped.join("nowhere"), &["repair"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("no store in"), "{}", text(&nowhere.stderr));
    assert!(!stores.stopped.join("nowhere").exists(), "it makes none");
}

/// Damages a row in the midst of the log of one session.
fn damage_a_row(data: &Path) {
    let db = rusqlite::Connection::open(data.join("narrows.db")).expect("a database");
    let sql = "UPDATE event SET event = substr(event, 2) WHERE key = (SELECT key FROM event
         WHERE key >> 32 = 2 ORDER BY key LIMIT 1 OFFSET 2)";
    assert_eq!(db.execute(sql, []).expect("damaged"), 1);
}

#[test]
fn what_would_be_lost_is_told_without_a_change() {
    let stores = stores();
    let data = stores.stopped.with_file_name("data");
    copy(&stores.stopped, &data);
    damage_a_row(&data);
    let bytes = || std::fs::read(data.join("narrows.db")).expect("a database");
    let before = bytes();
    let check = narrows(&data, &["repair", "--check"]);
    let said = text(&check.stdout);
    assert_eq!(check.status.code(), Some(1), "{said}");
    assert!(said.contains("events recovered") && said.contains("nothing changed"), "{said}");
    assert!(said.starts_with("4 sessions are as they were"), "{said}");
    assert!(bytes() == before, "it changed something");
    let done = narrows(&data, &["repair"]);
    let said = text(&done.stdout);
    assert!(done.status.success() && said.contains("; lost: "), "{said}");
    assert!(said.contains("is kept as"), "{said}");
    assert_eq!(narrows(&data, &["repair", "--check"]).status.code(), Some(0));
}

#[test]
fn a_repair_that_is_killed_leaves_the_old_store_or_the_new_one() {
    let stores = stores();
    let data = stores.stopped.with_file_name("data");
    let kills = std::env::var("NARROWS_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    copy(&stores.stopped, &data);
    damage_a_row(&data);
    let began = std::time::Instant::now();
    let done = narrows(&data, &["repair", "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
    let hit = report["sessions"][0]["id"].as_str().expect("a session");
    // A repair that was over before it was killed has said what it lost.
    let told: Told = stores.told.into_iter().filter(|(id, _)| id != hit).collect();
    let whole = u64::try_from(began.elapsed().as_micros()).expect("a time");
    for n in 0..kills {
        copy(&stores.stopped, &data);
        damage_a_row(&data);
        let mut command = Command::new(NARROWS);
        command.arg("repair").arg("--data").arg(&data).env("HOME", data.join("home"));
        let repair = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut repair = repair.expect("a repair");
        // At any time: the moment is the point.
        std::thread::sleep(Duration::from_micros(whole * (n + 1) / kills));
        let _ = repair.kill();
        let _ = repair.wait();
        repaired(&data, &told, &format!("kill {n}"));
    }
}

#[test]
fn damage_is_in_the_log_once_and_the_rest_is_served() {
    let stores = stores();
    let data = stores.stopped.with_file_name("data");
    copy(&stores.stopped, &data);
    damage_a_row(&data);
    let mut served = serve(&data, &[], &[]).expect("a server");
    for _ in 0..3 {
        let now = told(&served);
        let same = stores.told.iter().filter(|(id, was)| now.get(*id) == Some(was)).count();
        assert_eq!((now.len(), same), (5, 4), "only one session was hit");
    }
    let (status, health) = served.get("/healthz").expect("health");
    assert_eq!((status, &health["status"]), (200, &Value::from("degraded")), "{health}");
    assert!(served.terminate().success());
    let log = served.log();
    let said = log.lines().filter(|line| line.contains("the store is damaged"));
    let mut said: Vec<&str> =
        said.filter_map(|line| line.split_once("ERROR")).map(|l| l.1).collect();
    let all = said.len();
    said.sort_unstable();
    said.dedup();
    assert!(all > 0 && said.len() == all, "{log}");
}

#[test]
fn a_damaged_index_is_found_by_the_doctor_and_its_session_is_served() {
    let stores = stores();
    let id = stores.told.keys().next().expect("a session").clone();
    let path = stores.stopped.join("narrows.db");
    let mut bytes = std::fs::read(&path).expect("a database");
    // The index of ids is the fourth page.
    let page = 3 * 4096..4 * 4096;
    let at = bytes[page.clone()].windows(id.len()).position(|w| w == id.as_bytes());
    bytes[page.start + at.expect("it stands there") + id.len() - 1] ^= 2;
    std::fs::write(&path, bytes).expect("a database");
    let mut served = serve(&stores.stopped, &[], &[]).expect("a server");
    let (status, found) = served.get(&format!("/api/sessions/{id}")).expect("the session");
    assert_eq!((status, found["id"].as_str()), (200, Some(id.as_str())), "{found}");
    let (_, health) = served.get("/healthz").expect("health");
    assert_eq!(health["status"], "degraded", "{health}");
    assert_eq!(told(&served), stores.told);
    assert!(served.terminate().success());
    let doctor = narrows(&stores.stopped, &["doctor", "--no-scan"]);
    let said = text(&doctor.stdout);
    assert!(!doctor.status.success(), "{said}");
    assert!(
        said.contains("sqlite_autoindex_session_1") && said.contains("narrows repair"),
        "{said}"
    );
    repaired(&stores.stopped, &stores.told, "the index of ids");
}

#[test]
fn a_database_that_is_gone_is_missed() {
    let stores = stores();
    std::fs::remove_file(stores.stopped.join("narrows.db")).expect("removed");
    for words in [&["doctor"][..], &["doctor", "--no-scan"], &["repair"], &["repair", "--check"]] {
        let done = narrows(&stores.stopped, words);
        let said = text(&done.stdout) + &text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("narrows.db was deleted") && said.contains("5 sessions"), "{said}");
        assert!(!stores.stopped.join("narrows.db").exists(), "{words:?} made another one");
    }
}

#[test]
fn the_doctor_of_a_store_that_cannot_be_opened_names_the_repair() {
    let stores = stores();
    let path = stores.stopped.join("narrows.db");
    let mut bytes = std::fs::read(&path).expect("a database");
    bytes[100] ^= 0x41;
    std::fs::write(&path, bytes).expect("a database");
    let doctor = narrows(&stores.stopped, &["doctor", "--no-scan"]);
    let said = text(&doctor.stdout);
    assert_eq!(doctor.status.code(), Some(1), "{said}");
    assert!(said.contains("the store is damaged") && said.contains("narrows repair"), "{said}");
}

/// A store whose database was cut while its server ran, and what that told before.
fn cut_while_served(data: &Path, length: u64) -> Told {
    let mut served = serve(data, &[], &[]).expect("a server");
    // While somebody reads, nothing is moved out of the write-ahead log.
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let reader = rusqlite::Connection::open_with_flags(data.join("narrows.db"), flags);
    let reader = reader.expect("a database");
    reader.execute_batch("BEGIN; SELECT count(*) FROM session").expect("a read");
    for (n, name) in FIXTURES.iter().enumerate() {
        let session = served.session(&format!("label-{n}")).expect("a session");
        let path = format!("/api/sessions/{session}/packets?end=true");
        assert_eq!(served.post(&path, &fixture(name)).expect("packets").0, 200);
    }
    let before = told(&served);
    let database = std::fs::OpenOptions::new().write(true).open(data.join("narrows.db"));
    database.and_then(|file| file.set_len(length)).expect("shorter");
    drop(reader);
    for path in ["/healthz", "/readyz"] {
        let (status, health) = served.get(path).expect("health");
        assert_eq!((status, &health["status"]), (503, &Value::from("degraded")), "{health}");
    }
    let (status, _) = served.post("/api/sessions", b"{}").expect("an answer");
    assert_ne!(status, 201);
    assert!(served.terminate().success());
    before
}

#[test]
fn what_the_write_ahead_log_holds_survives_a_cut_under_a_running_server() {
    for length in [2 * 4096, 0] {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("data");
        let before = cut_while_served(&data, length);
        let size = || std::fs::metadata(data.join("narrows.db-wal")).expect("it is left").len();
        let wal = size();
        assert!(wal > 0, "{length}");
        let doctor = narrows(&data, &["doctor", "--no-scan"]);
        let said = text(&doctor.stdout);
        let check = narrows(&data, &["repair", "--check"]);
        assert_eq!(doctor.status.code(), check.status.code(), "{said}");
        // The log may have all that was cut off, but an empty database is none.
        assert!(length > 0 || check.status.code() == Some(1), "{said}");
        assert!(length > 0 || said.contains("narrows repair"), "{said}");
        assert_eq!(size(), wal);
        let report = repaired(&data, &before, &format!("cut to {length}"));
        assert_eq!(report["gone"], serde_json::json!([]), "{report}");
        let sessions = report["sessions"].as_array().expect("sessions").iter();
        let lost: usize = sessions.map(|s| s["lost"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(lost, 0, "all events are in the log: {report}");
    }
}
