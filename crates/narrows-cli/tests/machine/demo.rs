//! `narrows demo`.

use crate::home::Machine;

fn check(machine: &Machine) {
    let told = machine.out(&["demo"]);
    assert!(told.contains("narrows show demo") && told.contains("narrows rm demo"), "{told}");
    let rows = machine.rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (rows[0]["label"].as_str(), rows[0]["tags"][0].as_str()),
        (Some("demo"), Some("demo"))
    );
    assert!(machine.out(&["ls"]).contains("tidewater"));
    let shown = machine.out(&["show", "demo", "--all"]);
    assert!(shown.lines().count() > 20, "{shown}");
    // It holds a key of AWS, which nobody sees.
    assert!(shown.contains("[redacted:") && !shown.contains("AKIA"), "{shown}");
    // Again is fine, and nothing lies around.
    assert!(machine.out(&["demo"]).contains(" 0 new events"));
    assert_eq!(machine.rows(), rows);
    assert!(!machine.data().join("demo").exists());
    let told = machine.out(&["rm", "demo", "-y"]);
    assert!(told.contains("deleted 1 session"), "{told}");
    assert!(!told.contains("not imported again"), "no agent has it: {told}");
    assert_eq!(machine.rows().len(), 0);
    // It may come back.
    machine.out(&["demo"]);
    assert_eq!(machine.rows().len(), 1);
    machine.out(&["rm", "demo", "-y"]);
    assert_eq!(machine.rows().len(), 0);
}

#[test]
fn demo_session_is_imported_and_deleted_without_a_server() {
    check(&Machine::new());
}

#[test]
fn demo_session_is_imported_and_deleted_with_a_server() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    assert!(server.running.out().contains("narrows demo"), "{}", server.running.out());
    check(&machine);
    machine.out(&["demo"]);
    assert_eq!(server.sessions().len(), 1);
    machine.out(&["rm", "demo", "-y"]);
    assert_eq!(server.sessions().len(), 0);
}
