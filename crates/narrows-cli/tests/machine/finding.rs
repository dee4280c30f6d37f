//! Sessions are found without being told of, and read once.

use crate::home::{Machine, Script, forbid};
use std::fs;
use std::time::Duration;

#[test]
fn ls_finds_sessions_by_itself() {
    let machine = Machine::with(&[Script::new(1, "Mend the bridge").says("It is mended.")]);
    assert!(!machine.data().exists());
    let told = machine.out(&["ls"]);
    assert!(told.contains("Mend the bridge") && told.contains("Claude Code"), "{told}");
    assert!(machine.out(&["show"]).contains("It is mended."));
    assert!(machine.out(&["search", "mended"]).contains("mended"));
}

#[test]
fn a_machine_with_nothing_is_told_so() {
    let machine = Machine::new();
    for words in [&["ls"][..], &["ls", "--json"], &["ls", "bridge"]] {
        let told = machine.told(words);
        assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{told:?}");
        assert!(told.err.contains("no sessions found"), "{told:?}");
    }
    assert_eq!(machine.out(&["index"]), "nothing new\n");
    // An agent that has its folder and no session yet.
    fs::create_dir_all(machine.path(".claude/projects/-srv-app")).expect("folder");
    assert_eq!(machine.out(&["index"]), "nothing new\n");
    assert!(machine.told(&["ls"]).err.contains("no sessions found"));
}

#[test]
fn a_machine_with_nothing_is_told_what_to_do() {
    let told = Machine::new().told(&["ls"]);
    assert!(told.err.contains("narrows demo"), "{told:?}");
}

#[test]
fn sessions_are_found_where_the_environment_says() {
    let mut machine = Machine::new();
    let (usual, one, two) = (Script::new(1, "usual"), Script::new(2, "one"), Script::new(3, "two"));
    machine.write(&usual);
    machine.write_in("elsewhere", &one);
    machine.write_in("more", &two);
    let both =
        format!("{},{}", machine.path("elsewhere").display(), machine.path("more").display());
    machine.set("CLAUDE_CONFIG_DIR", both.into());
    assert_eq!(machine.labels(), [one.id, two.id]);
}

#[test]
fn sessions_are_found_where_the_config_file_says() {
    let mut machine = Machine::new();
    let (usual, own) = (Script::new(1, "usual"), Script::new(2, "own"));
    machine.write(&usual);
    machine.write_in("elsewhere", &own);
    machine.config("[sources]\nclaude_dirs = [\"~/elsewhere\"]\n");
    // The file beats the environment, which names none of both.
    machine.set("CLAUDE_CONFIG_DIR", machine.path("nowhere"));
    assert_eq!(machine.labels(), [own.id]);
}

#[test]
fn projects_that_are_left_out_are_not_read() {
    let machine = Machine::new();
    let mut open = Script::empty(1, "/srv/open").asks("open");
    let hidden = Script::empty(2, "/srv/secret/deep").asks("hidden");
    let beside = Script::empty(3, "/srv/secretive").asks("beside");
    [&open, &hidden, &beside].into_iter().for_each(|script| machine.write(script));
    machine.config("[sources]\nexclude = [\"/srv/secret\"]\n");
    assert_eq!(machine.labels(), [open.id.clone(), beside.id.clone()]);
    let told = machine.told(&["search", "hidden"]);
    assert_eq!(told.out, "", "{told:?}");
    // Nothing of it is in the store; it is not read later either.
    open = machine.grow(&open.clone(), open.says("more"));
    machine.grow(&hidden.clone(), hidden.says("more"));
    assert_eq!(machine.labels(), [open.id, beside.id]);
}

#[test]
fn nothing_is_read_where_the_config_file_says_so() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    machine.config("[sources]\nfollow = false\n");
    let told = machine.told(&["index"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.err.contains("[sources]"), "{told:?}");
    assert!(machine.told(&["ls"]).err.contains("no sessions found"));
    // What is known is shown.
    machine.config("");
    assert_eq!(machine.rows().len(), 1);
    machine.config("[sources]\nfollow = false\n");
    machine.write(&Script::new(2, "two"));
    assert_eq!(machine.rows().len(), 1);
}

#[test]
fn a_config_file_with_a_fault_is_told_by_its_line() {
    let machine = Machine::new();
    machine.config("[sources]\nfolow = false\n");
    let told = machine.told(&["ls"]);
    assert!(told.code == Some(1) && told.err.contains("line 2"), "{told:?}");
}

#[test]
fn the_second_run_reads_nothing_and_tells_the_same() {
    let scripts: Vec<Script> =
        (1..=3).map(|n| Script::new(n, &format!("ask {n}")).says("done")).collect();
    let machine = Machine::with(&scripts);
    let (first, rows) = (machine.told(&["ls"]), machine.rows());
    assert_eq!(machine.out(&["index"]), "nothing new\n");
    assert_eq!(machine.told(&["ls"]), first);
    assert_eq!(machine.rows(), rows);
    // Nor does a touch of the file change anything.
    machine.age(&scripts[0], Duration::from_mins(1));
    assert_eq!(machine.told(&["ls"]), first);
}

#[test]
fn a_session_that_grows_is_shown_as_it_is() {
    let script = Script::new(1, "Mend the bridge");
    let machine = Machine::with(std::slice::from_ref(&script));
    assert!(machine.out(&["ls"]).contains("Mend the bridge"));
    let before = machine.rows();
    let grown = machine.grow(
        &script,
        script.clone().says("The bridge has two arches.").titled("Bridges and arches"),
    );
    let told = machine.out(&["ls"]);
    assert!(told.contains("Bridges and arches"), "{told}");
    assert!(machine.out(&["show"]).contains("The bridge has two arches."));
    let after = machine.rows();
    assert_eq!(before[0]["id"], after[0]["id"]);
    assert!(before[0]["items"].as_u64() < after[0]["items"].as_u64(), "{after:?}");
    // Half a line is not read, and whole when the rest of it is there.
    let whole = grown.clone().says("A third arch is built.");
    let mut half = whole.clone();
    half.text.truncate(whole.text.len() - 40);
    machine.grow(&grown, half.clone());
    assert!(!machine.out(&["show"]).contains("third arch"));
    machine.grow(&half, whole);
    assert!(machine.out(&["show"]).contains("A third arch is built."));
}

#[test]
fn index_tells_how_much_it_read() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    let told = machine.out(&["index"]);
    assert!(told.starts_with("1 session imported, ") && told.ends_with(" new events\n"), "{told}");
    machine.write(&Script::new(2, "two"));
    machine.write(&Script::new(3, "three"));
    let told = machine.out(&["index"]);
    assert!(told.starts_with("2 sessions imported, "), "{told}");
    assert_eq!(machine.out(&["index"]), "nothing new\n");
    machine.write(&Script::new(4, "four"));
    assert_eq!(machine.out(&["index", "--quiet"]), "");
    assert_eq!(machine.rows().len(), 4);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_hides_no_other() {
    let (good, bad) = (Script::new(1, "good"), Script::new(2, "bad"));
    let mut machine = Machine::with(&[good.clone(), bad.clone()]);
    forbid(&machine.file(&bad));
    machine.be_humble();
    let told = machine.told(&["index"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.out.starts_with("1 session imported, "), "{told:?}");
    assert!(told.out.ends_with(", 1 failed\n"), "{told:?}");
    let says = |err: &str| err.contains("cannot read 1 session") && err.contains(&bad.id);
    assert!(says(&told.err) && told.err.contains("ermission denied"), "{told:?}");
    // Quiet is not silent of faults; what is asked for is shown all the same.
    let told = machine.told(&["index", "-q"]);
    assert!(told.code == Some(1) && told.out.is_empty() && says(&told.err), "{told:?}");
    let told = machine.told(&["ls"]);
    assert!(told.code == Some(0) && told.out.contains("good") && says(&told.err), "{told:?}");
    assert_eq!(machine.labels(), [good.id]);
}

#[test]
fn a_file_of_something_else_does_no_harm() {
    let machine = Machine::with(&[Script::new(1, "good")]);
    let folder = machine.path(".claude/projects/-srv-app");
    fs::write(folder.join("empty.jsonl"), "").expect("write");
    fs::write(folder.join("notes.txt"), "nothing").expect("write");
    fs::write(folder.join("begun.jsonl"), "{\"type\":\"us").expect("write");
    std::os::unix::fs::symlink("/dev/zero", folder.join("endless.jsonl")).expect("link");
    fs::create_dir(folder.join("folder.jsonl")).expect("folder");
    assert_eq!(machine.rows().len(), 1);
}

#[test]
fn commands_at_the_same_time_do_not_fail() {
    let scripts: Vec<Script> =
        (1..=12).map(|n| Script::new(n, &format!("ask {n}")).says("done")).collect();
    for round in 0..4 {
        let machine = Machine::with(&scripts);
        let words = [&["ls"][..], &["index"], &["ls"], &["stats"], &["ls"]];
        let mut all: Vec<_> = words.iter().map(|words| machine.start(words)).collect();
        for (one, words) in all.iter_mut().zip(words) {
            let code = one.ends(crate::home::SOON);
            let told = format!("{round} {words:?}: {}{}", one.out(), one.err());
            assert_eq!(code, Some(0), "{told}");
            assert!(!told.contains("fails") && !told.contains("another narrows"), "{told}");
            // Whoever comes while another reads sees at least something.
            assert!(words[0] != "ls" || one.out().contains("TITLE"), "{told}");
        }
        assert_eq!(machine.rows().len(), 12);
    }
}
