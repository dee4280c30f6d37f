//! `narrows watch`: alone, and beside a server.

use crate::home::{Machine, Running, SOON, Script};
use serde_json::json;
use std::time::Duration;

/// A session whose file has not changed for so long is over.
const OVER: Duration = Duration::from_mins(10);

/// Nobody holds the store.
fn is_free(machine: &Machine) {
    let told = machine.out(&["doctor"]);
    assert!(told.contains("no server runs"), "{told}");
    machine.out(&["demo"]);
}

/// The newest session, as it grows, until another begins.
fn follows(machine: &Machine, watch: &Running, old: &Script, new: &Script) {
    watch.prints(SOON, "The newest answer");
    assert!(!watch.out().contains("An old question"), "{}", watch.out());
    let grown = new.clone().says("It goes on here.");
    let grown = machine.grow(new, grown);
    watch.prints(SOON, "It goes on here.");
    let ran = json!({ "command": "make bridge", "description": "Make it" });
    let grown = machine.grow(&grown, grown.clone().calls("Bash", &ran, "made"));
    watch.prints(SOON, "make bridge");
    // Another begins.
    let third = Script::new(3, "A third question").says("A third answer");
    machine.write(&third);
    watch.prints(SOON, "A third answer");
    machine.grow(&third, third.clone().says("More of the third"));
    watch.prints(SOON, "More of the third");
    // One that goes on is the newest again.
    machine.grow(old, old.clone().says("The old one wakes up"));
    watch.prints(SOON, "The old one wakes up");
    for once in ["The newest answer", "It goes on here.", "More of the third"] {
        assert_eq!(watch.out().matches(once).count(), 1, "{once}:\n{}", watch.out());
    }
    drop(grown);
}

fn two() -> (Script, Script) {
    let old = Script::new(1, "An old question").says("An old answer").aged(Duration::from_mins(1));
    (old, Script::new(2, "The newest question").says("The newest answer"))
}

#[test]
fn watch_alone_shows_the_newest_session_as_it_grows() {
    let (old, new) = two();
    let machine = Machine::with(&[old.clone(), new.clone()]);
    let mut watch = machine.start(&["watch"]);
    follows(&machine, &watch, &old, &new);
    // Others read what it keeps.
    assert_eq!(machine.rows().len(), 3);
    assert_eq!(watch.signal("INT"), Some(0));
    assert_eq!(watch.err(), "");
    is_free(&machine);
}

#[test]
fn watch_beside_a_server_shows_the_same() {
    let (old, new) = two();
    let machine = Machine::with(&[old.clone(), new.clone()]);
    let mut server = machine.serve(&[]);
    crate::home::within(SOON, "both, with their answers", || {
        let rows = server.sessions();
        (rows.len() == 2 && rows.iter().all(|row| row["items"] == 2)).then_some(())
    });
    let mut watch = machine.start(&["watch"]);
    follows(&machine, &watch, &old, &new);
    assert_eq!(watch.signal("INT"), Some(0));
    assert_eq!(watch.err(), "");
    // The server was not disturbed.
    assert_eq!(server.sessions().len(), 3);
    assert_eq!(server.running.signal("INT"), Some(0));
    is_free(&machine);
}

#[test]
fn watch_waits_for_the_first_session() {
    let machine = Machine::new();
    let mut watch = machine.start(&["watch"]);
    crate::home::within(SOON, "a word", || watch.err().contains("waiting for one").then_some(()));
    machine.write(&Script::new(1, "At last").says("Here I am."));
    watch.prints(SOON, "Here I am.");
    assert_eq!(watch.signal("TERM"), Some(0));
}

#[test]
fn watch_begins_with_the_last_items() {
    let mut script = Script::new(1, "Count");
    for n in 1..=30 {
        script = script.says(&format!("number {n}."));
    }
    let machine = Machine::with(std::slice::from_ref(&script));
    let watch = machine.start(&["watch", "-n", "3"]);
    watch.prints(SOON, "number 30.");
    let out = watch.out();
    assert!(out.contains("number 28.") && !out.contains("number 27."), "{out}");
    drop(watch);
    let watch = machine.start(&["watch", "-n", "0"]);
    watch.prints(SOON, "Count");
    machine.grow(&script, script.clone().says("Done counting."));
    watch.prints(SOON, "Done counting.");
    assert!(!watch.out().contains("number"), "{}", watch.out());
}

#[test]
fn a_session_can_be_named_before_anything_was_read() {
    let (old, new) = two();
    let machine = Machine::with(&[old.clone(), new.clone()]);
    let mut watch = machine.start(&["watch", "00000001"]);
    watch.prints(SOON, "An old answer");
    // Others do not matter to it.
    machine.grow(&new, new.clone().says("Look at me"));
    machine.grow(&old, old.clone().says("I am watched"));
    watch.prints(SOON, "I am watched");
    assert!(!watch.out().contains("Look at me"));
    assert_eq!(watch.signal("INT"), Some(0));
    let told = machine.told(&["watch", "no-such"]);
    assert!(
        told.code == Some(1) && told.err.contains("no session has the prefix `no-such`"),
        "{told:?}"
    );
    is_free(&machine);
}

#[test]
fn watch_ends_with_the_session_where_that_is_asked_for() {
    let script = Script::new(1, "Do it").says("It is done.");
    let machine = Machine::with(std::slice::from_ref(&script));
    let mut watch = machine.start(&["watch", "--exit-on-end"]);
    watch.prints(SOON, "It is done.");
    let script = machine.grow(&script, script.clone().says("Goodbye."));
    watch.prints(SOON, "Goodbye.");
    machine.age(&script, OVER);
    assert_eq!(watch.ends(SOON), Some(0), "{}", watch.err());
    is_free(&machine);
    // One that is over is shown, and that is all.
    let mut watch = machine.start(&["watch", &script.id, "--exit-on-end"]);
    assert_eq!(watch.ends(SOON), Some(0));
    assert!(watch.out().contains("Goodbye."), "{}", watch.out());
}

#[test]
fn watch_ends_when_nobody_reads_it() {
    use std::process::Stdio;
    let script = Script::new(1, "Do it").says("It is done.");
    let machine = Machine::with(std::slice::from_ref(&script));
    let mut command = machine.command(&["watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("start");
    let mut out = child.stdout.take().expect("output");
    std::io::Read::read_exact(&mut out, &mut [0; 5]).expect("something");
    drop(out);
    let mut grown = script;
    let ended = crate::home::within(SOON, "an end", || {
        let done = child.try_wait().expect("wait");
        if done.is_none() {
            grown = machine.grow(&grown, grown.clone().says("Anybody there?"));
        }
        done
    });
    assert!(ended.success());
    is_free(&machine);
}
