//! What cannot be read is named, with the reason; a data directory that vanished is noticed.

use crate::home::{Machine, SOON, Script, forbid, within};
use std::fs;
use std::path::Path;

#[test]
fn doctor_names_what_cannot_be_read() {
    let (good, bad) = (Script::new(1, "good"), Script::new(2, "bad"));
    let far = Script::empty(3, "/srv/far").asks("far");
    let lost = Script::empty(4, "/srv/lost").asks("lost");
    let mut machine = Machine::with(&[good, bad.clone(), far.clone(), lost.clone()]);
    // However new the file is.
    for script in [&far, &lost] {
        machine.age(script, std::time::Duration::from_hours(1));
    }
    machine.be_humble();
    let folder = |script: &Script| machine.file(script).parent().map(Path::to_owned);
    let (far, lost) = (folder(&far).expect("folder"), folder(&lost).expect("folder"));
    forbid(&machine.file(&bad));
    forbid(&far);
    // A folder that can be listed, and no more.
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o444);
    fs::set_permissions(&lost, rights).expect("rights");
    let told = machine.told(&["doctor"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    let bad = format!("{}.jsonl: Permission denied", bad.id);
    let all = told.out.clone() + &told.err;
    for what in [&*bad, "-srv-far: Permission denied", "-srv-lost/"] {
        assert!(all.contains(what), "{what}: {all}");
    }
    assert!(!all.contains("all sessions are imported"), "{all}");
    assert!(!all.contains("the store's disk"), "{all}");
    let json = machine.told(&["doctor", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let refused = json["agents"][0]["refused"].as_array().expect("refused");
    assert_eq!(refused.len(), 3, "{json}");
    assert!(refused.iter().all(|r| r[1].as_str().is_some_and(|why| why.contains("denied"))));
}

#[test]
fn a_data_directory_that_vanishes_is_noticed() {
    let machine = Machine::with(&[Script::new(1, "kept")]);
    let server = machine.serve(&[]);
    within(SOON, "the session", || (server.sessions().len() == 1).then_some(()));
    assert_eq!(server.get("/healthz")["status"], "ok");
    fs::remove_dir_all(machine.data()).expect("remove");
    let health = within(SOON, "a word", || {
        let health = server.get("/healthz");
        (health["status"] == "degraded").then_some(health)
    });
    let why = health["reason"].as_str().expect("reason");
    assert!(why.contains("data directory") && why.contains("deleted"), "{health}");
    assert!(!why.contains("disk fails"), "{health}");
    // Nobody has to ask for it.
    within(SOON, "the log", || {
        server.running.err().contains("no longer in the data directory").then_some(())
    });
    let told = machine.told(&["doctor", "--no-scan"]);
    assert!(told.out.contains("the directory does not exist"), "{told:?}");
    assert!(!machine.data().exists(), "looking makes nothing");
}

#[test]
fn doctor_says_what_the_server_that_runs_says() {
    let machine = Machine::with(&[Script::new(1, "kept")]);
    let server = machine.serve(&[]);
    within(SOON, "the session", || (server.sessions().len() == 1).then_some(()));
    let well = machine.told(&["doctor", "--no-scan"]);
    assert!(well.out.contains("the database is intact"), "{well:?}");
    fs::remove_file(machine.data().join("narrows.db-wal")).expect("remove");
    let health = within(SOON, "a word", || {
        let health = server.get("/healthz");
        (health["status"] == "degraded").then_some(health)
    });
    let why = health["reason"].as_str().expect("reason");
    let told = machine.told(&["doctor", "--no-scan"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    let all = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains(why), "{why}: {all}");
    assert!(!all.contains("the database is intact"), "{all}");
}
