//! The sample: for whoever has no session yet.

use crate::home::Machine;

fn check(machine: &Machine) {
    let told = machine.out(&["sample"]);
    assert!(told.contains("narrows show sample") && told.contains("narrows rm sample"), "{told}");
    let rows = machine.rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (rows[0]["label"].as_str(), rows[0]["tags"][0].as_str()),
        (Some("sample"), Some("sample"))
    );
    assert!(machine.out(&["ls"]).contains("tidewater"));
    let shown = machine.out(&["show", "sample", "--all"]);
    assert!(shown.lines().count() > 20, "{shown}");
    // It holds a key of AWS, which nobody sees.
    assert!(shown.contains("[redacted:") && !shown.contains("AKIA"), "{shown}");
    // Again is fine, and nothing lies around.
    assert!(machine.out(&["sample"]).contains(" 0 new events"));
    assert_eq!(machine.rows(), rows);
    assert!(!machine.data().join("sample").exists());
    let told = machine.out(&["rm", "sample", "-y"]);
    assert!(told.contains("deleted 1 session"), "{told}");
    assert!(!told.contains("not read again"), "no agent has it: {told}");
    assert_eq!(machine.rows().len(), 0);
    // It may come back.
    machine.out(&["sample"]);
    assert_eq!(machine.rows().len(), 1);
    machine.out(&["rm", "sample", "-y"]);
    assert_eq!(machine.rows().len(), 0);
}

#[test]
fn the_sample_comes_and_goes_without_a_server() {
    check(&Machine::new());
}

#[test]
fn the_sample_comes_and_goes_with_a_server() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    assert!(server.running.out().contains("narrows sample"), "{}", server.running.out());
    check(&machine);
    machine.out(&["sample"]);
    assert_eq!(server.sessions().len(), 1);
    machine.out(&["rm", "sample", "-y"]);
    assert_eq!(server.sessions().len(), 0);
}
