//! A server follows the sessions of its machine.

use crate::home::{Machine, SOON, Script, Server, within};
use std::fs;

/// Waits for a session that has so many items.
fn with_items(server: &Server, script: &Script, items: u64) -> serde_json::Value {
    within(SOON, "a session with its items", || {
        server.session(script).filter(|s| s["items"].as_u64() >= Some(items))
    })
}

#[test]
fn what_is_written_while_a_server_runs_is_served_soon() {
    let old = Script::new(1, "old").says("done");
    let machine = Machine::with(std::slice::from_ref(&old));
    let mut server = machine.serve(&[]);
    let greeting = server.running.out();
    assert!(greeting.contains("found  1 session of an agent on this machine"), "{greeting}");
    with_items(&server, &old, 2);
    // A new session, in a new folder of the agent.
    let new = Script::empty(2, "/srv/other").asks("Build a tower");
    machine.write(&new);
    let row = with_items(&server, &new, 1);
    assert_eq!(row["fileExists"], true);
    // It goes on.
    machine.grow(&new, new.clone().says("The tower has seven floors."));
    with_items(&server, &new, 2);
    let id = row["id"].as_str().expect("id");
    let items = server.text(&format!("/api/sessions/{id}/items?preview=0"));
    assert!(items.contains("The tower has seven floors."), "{items}");
    // Other commands show the same beside it.
    let told = machine.out(&["ls"]);
    assert!(told.contains("Build a tower") && told.contains("old"), "{told}");
    assert_eq!(machine.rows().len(), server.sessions().len());
    assert!(machine.out(&["index"]).contains("a running narrows imports sessions already"));
    assert_eq!(machine.out(&["index", "-q"]), "");
    assert!(machine.out(&["doctor"]).contains(&format!("a server runs at {}", server.url)));
    assert_eq!(server.running.signal("TERM"), Some(0));
    assert!(!machine.data().join("server.json").exists());
    assert!(machine.out(&["ls"]).contains("Build a tower"));
}

#[test]
fn an_agent_that_is_installed_while_a_server_runs_is_found() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    assert!(server.running.out().contains("no sessions yet"));
    let script = Script::new(1, "first of all");
    machine.write(&script);
    within(SOON, "the first session", || server.session(&script));
    // From then on it is followed like any other.
    machine.grow(&script, script.clone().says("and on"));
    with_items(&server, &script, 2);
}

#[test]
fn a_server_that_is_told_not_to_follow_reads_nothing() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    let server = machine.serve(&["--no-follow"]);
    assert!(
        server.running.out().contains("discovery of sessions is turned off"),
        "{}",
        server.running.out()
    );
    machine.write(&Script::new(2, "two"));
    // Nothing looks at the folder: no reading is under way that could be waited for.
    assert_eq!(server.get("/api/sources")["following"], false);
    assert_eq!(server.sessions().len(), 0);
    // Nobody else may write, so nothing is shown either.
    assert_eq!(machine.rows().len(), 0);
}

#[test]
fn several_sessions_are_counted_in_the_greeting() {
    let scripts: Vec<Script> = (1..=3).map(|n| Script::new(n, "x")).collect();
    let machine = Machine::with(&scripts);
    let server = machine.serve(&[]);
    assert!(server.running.out().contains("found  3 sessions of agents"));
    within(SOON, "all of them", || (server.sessions().len() == 3).then_some(()));
}

#[test]
fn a_session_outlives_its_file() {
    let (kept, gone) =
        (Script::new(1, "Kept one"), Script::new(2, "Lost one").says("Remember me."));
    let machine = Machine::with(&[kept.clone(), gone.clone()]);
    let server = machine.serve(&[]);
    with_items(&server, &gone, 2);
    fs::remove_file(machine.file(&gone)).expect("remove");
    let row =
        within(SOON, "the news", || server.session(&gone).filter(|row| row["fileExists"] == false));
    assert_eq!(row["items"], 2);
    assert_eq!(server.session(&kept).expect("kept")["fileExists"], true);
    let told = machine.out(&["ls"]);
    let line = |what: &str| told.lines().find(|l| l.contains(what)).expect("line").to_owned();
    assert!(
        line("Lost one").ends_with("archived") && line("Kept one").ends_with("Kept one"),
        "{told}"
    );
    assert!(machine.out(&["show", &gone.id]).contains("Remember me."));
    // Also without the server.
    drop(server);
    assert!(machine.out(&["ls"]).contains("archived"));
    // A file that is back is read on.
    machine.write(&gone.clone().says("I am back."));
    let shown = machine.out(&["show", &gone.id]);
    assert!(shown.contains("I am back.") && shown.matches("Remember me.").count() == 1, "{shown}");
    assert!(!machine.out(&["ls"]).contains("archived"));
}

#[test]
fn what_is_deleted_is_not_read_again() {
    let (kept, gone) = (Script::new(1, "Kept one"), Script::new(2, "Deleted one"));
    let machine = Machine::with(&[kept.clone(), gone.clone()]);
    let mut server = machine.serve(&[]);
    with_items(&server, &kept, 1);
    with_items(&server, &gone, 1);
    let told = machine.out(&["rm", "-y", &gone.id]);
    assert!(told.contains("deleted 1 session") && told.contains("not imported again"), "{told}");
    assert!(machine.file(&gone).exists(), "the agent's own file stays");
    assert_eq!(server.session(&gone), None);
    machine.grow(&gone, gone.clone().says("I go on."));
    machine.grow(&kept, kept.clone().says("So do I."));
    with_items(&server, &kept, 2);
    assert_eq!(server.session(&gone), None);
    assert_eq!(server.running.signal("TERM"), Some(0));
    // Nor by the next one, nor by a command.
    assert_eq!(machine.labels(), std::slice::from_ref(&kept.id));
    assert_eq!(machine.out(&["index"]), "nothing new\n");
    let server = machine.serve(&[]);
    machine.grow(&kept, kept.clone().says("So do I.").says("Again."));
    with_items(&server, &kept, 3);
    assert_eq!((server.sessions().len(), server.session(&gone)), (1, None));
}

#[test]
fn a_second_server_is_refused_and_the_first_goes_on() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    let server = machine.serve(&[]);
    let told = machine.told(&["serve", "--bind", "127.0.0.1:0"]);
    assert!(told.code == Some(1) && told.err.contains("another narrows (process"), "{told:?}");
    within(SOON, "the session", || (server.sessions().len() == 1).then_some(()));
}

#[test]
fn a_server_that_was_killed_hinders_nobody() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    let server = machine.serve(&[]);
    within(SOON, "the session", || (server.sessions().len() == 1).then_some(()));
    drop(server);
    assert!(machine.data().join("server.json").exists(), "it could not clean up");
    machine.write(&Script::new(2, "two"));
    assert_eq!(machine.rows().len(), 2);
    machine.out(&["rm", "-y", "00000002"]);
    let server = machine.serve(&[]);
    assert_eq!(server.sessions().len(), 1);
}
