//! What is asked for is what is done: left out, counted, refused.

use crate::home::{Machine, SOON, Script, within};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_project_that_is_left_out_later_is_hidden_and_comes_back() {
    let open = Script::empty(1, "/srv/open").asks("open fox").says("an answer");
    let hidden = Script::empty(2, "/srv/secret/deep").asks("hidden fox").says("an answer");
    let gone = Script::empty(3, "/srv/secret").asks("archived fox").says("an answer");
    let machine = Machine::with(&[open.clone(), hidden.clone(), gone.clone()]);
    assert_eq!(machine.rows().len(), 3);
    let id = machine.rows().iter().find(|r| r["label"] == hidden.id.as_str()).expect("row")["id"]
        .clone();
    let id = id.as_str().expect("id").to_owned();
    // Also what is only in the store any more.
    fs::remove_file(machine.file(&gone)).expect("remove");
    assert_eq!(machine.rows().len(), 3);
    let answers = |machine: &Machine| {
        let told = machine.out(&["stats", "--by", "session", "--json"]);
        told.lines().count()
    };
    let before = answers(&machine);
    machine.config("[sources]\nexclude = [\"/srv/secret\"]\n");
    assert_eq!(machine.labels(), [&*open.id]);
    let found = machine.out(&["search", "--json", "fox"]);
    assert!(
        found.contains("open fox") && !found.contains("hidden") && !found.contains("archived"),
        "{found}"
    );
    assert!(answers(&machine) < before, "they are counted");
    for words in [&["show", &*id][..], &["export", &*id], &["show", &*hidden.id]] {
        assert_ne!(machine.told(words).code, Some(0), "{words:?}");
    }
    let server = machine.serve(&[]);
    assert_eq!(server.sessions().len(), 1);
    assert!(server.session(&hidden).is_none());
    for path in ["", "/items", "/outline", "/export?format=md"] {
        let said = server.text(&format!("/api/sessions/{id}{path}"));
        assert!(said.contains("NOT_FOUND") && !said.contains("hidden fox"), "{path}: {said}");
    }
    let facets = server.text("/api/facets");
    assert!(!facets.contains("deep"), "{facets}");
    drop(server);
    machine.config("");
    assert_eq!(machine.rows().len(), 3);
    assert!(machine.out(&["search", "--json", "fox"]).contains("hidden fox"));
    // A folder above all, and the home itself, which is in no session of /srv.
    let home = machine.home();
    machine.config(&format!("[sources]\nexclude = [\"{}\"]\n", home.display()));
    assert_eq!(machine.rows().len(), 3);
}

#[test]
fn what_is_no_time_or_no_name_is_an_error_of_usage() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    for words in [
        &["ls", "--since", "foo"][..],
        &["ls", "--until", "2024-02-30"],
        &["ls", "--since", "today", "--until", "yesterday"],
        &["search", "--since", "foo", "x"],
        &["stats", "--since", "foo"],
        &["show", ""],
        &["show", " "],
        &["export", ""],
        &["watch", ""],
        &["rm", "-y", ""],
    ] {
        let told = machine.told(words);
        assert_eq!(told.code, Some(2), "{words:?}: {told:?}");
        assert_eq!(told.out, "", "{words:?}");
    }
    assert_eq!(machine.rows().len(), 1, "nothing was deleted");
}

#[test]
fn index_counts_what_it_reads_now() {
    let old: Vec<Script> = (1..=5).map(|n| Script::new(n, "old").says("done")).collect();
    let machine = Machine::with(&old);
    assert!(machine.out(&["index"]).starts_with("5 sessions imported, "));
    // They are over by now: that is looked at, and nothing is read.
    old.iter().for_each(|script| machine.age(script, Duration::from_hours(1)));
    machine.write(&Script::new(6, "new"));
    machine.write(&Script::new(7, "new"));
    let told = machine.out(&["index"]);
    assert!(told.starts_with("2 sessions imported, "), "{told}");
    machine.grow(&old[0], old[0].clone().says("more"));
    let told = machine.out(&["index"]);
    assert!(told.starts_with("1 session imported, "), "{told}");
    assert_eq!(machine.out(&["index"]), "nothing new\n");
}

/// Bytes that a command reads, by the kernel's own count.
fn bytes_read(machine: &Machine, words: &[&str]) -> u64 {
    let command = machine.command(words);
    let inner: Vec<_> = std::iter::once(command.get_program().to_owned())
        .chain(command.get_args().map(ToOwned::to_owned))
        .collect();
    let mut told = Command::new("sh");
    told.arg("-c").arg("\"$@\" >/dev/null 2>&1; cat /proc/$$/io").arg("sh").args(inner);
    told.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let told = told.output().expect("run").stdout;
    let told = String::from_utf8(told).expect("text");
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("rchar");
    line.trim().parse().expect("number")
}

#[test]
fn a_file_of_holes_costs_nothing() {
    const HUGE: u64 = 8 << 30;
    let (one, torn) = (Script::new(1, "one").says("first"), Script::new(2, "two").says("before"));
    let machine = Machine::with(&[one, torn.clone()]);
    let folder = machine.path(".claude/projects/-srv-app");
    let file =
        fs::File::create(folder.join("00000009-0000-4000-8000-000000000000.jsonl")).expect("file");
    file.set_len(HUGE).expect("length");
    // A hole within a session: what stands before and behind it is read.
    let mut file = fs::OpenOptions::new().append(true).open(machine.file(&torn)).expect("file");
    file.set_len(HUGE).expect("length");
    file.seek(SeekFrom::End(0)).expect("seek");
    let more = torn.clone().says("behind the hole");
    write!(file, "\n{}", &more.text[torn.text.len()..]).expect("write");
    let read = bytes_read(&machine, &["ls"]);
    assert!(read < 1 << 30, "{read} bytes were read");
    assert_eq!(machine.rows().len(), 2);
    let shown = machine.out(&["show", "00000002"]);
    assert!(shown.contains("before") && shown.contains("behind the hole"), "{shown}");
    let read = bytes_read(&machine, &["ls"]);
    assert!(read < 1 << 28, "{read} bytes were read again");
}

#[test]
fn a_linked_folder_is_followed_and_what_lies_below_is_not_walked() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    let (projects, deep) = (machine.path(".claude/projects"), machine.path("deep"));
    for n in 0..300 {
        fs::create_dir_all(deep.join(format!("a{n}/b/c"))).expect("folders");
    }
    symlink(&deep, projects.join("-linked")).expect("link");
    symlink("/", projects.join("-root")).expect("link");
    let server = machine.serve(&[]);
    within(SOON, "the session", || (server.sessions().len() == 1).then_some(()));
    let watches = || {
        let folder = format!("/proc/{}/fdinfo", server.running.id());
        let all = fs::read_dir(folder).expect("fdinfo").flatten();
        let texts = all.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        texts.map(|text| text.matches("inotify wd:").count()).sum::<usize>()
    };
    let many = watches();
    assert!((1..100).contains(&many), "{many} folders are watched");
    // What is written into a linked folder is told at once all the same.
    let script = Script::empty(2, "/srv/linked").asks("by a link");
    fs::write(deep.join(format!("{}.jsonl", script.id)), &script.text).expect("write");
    within(SOON, "the session behind the link", || server.session(&script));
}

#[test]
fn a_place_that_is_a_link_is_followed() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("elsewhere")).expect("folder");
    fs::create_dir_all(machine.path(".claude")).expect("folder");
    symlink(machine.path("elsewhere"), machine.path(".claude/projects")).expect("link");
    let server = machine.serve(&[]);
    let script = Script::new(1, "one");
    machine.write(&script);
    within(SOON, "the session", || server.session(&script));
    let grown = machine.grow(&script, script.clone().says("a word that is new"));
    within(SOON, "the rest", || {
        let id = server.session(&grown)?["id"].as_str()?.to_owned();
        server
            .text(&format!("/api/sessions/{id}/items"))
            .contains("a word that is new")
            .then_some(())
    });
}

#[test]
fn a_pipe_is_no_copy_of_a_store() {
    let machine = Machine::with(&[Script::new(1, "one")]);
    assert_eq!(machine.rows().len(), 1);
    let pipe = machine.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let pipe = pipe.to_str().expect("text");
    let folder = machine.home();
    for from in [pipe, "/dev/zero", folder.to_str().expect("text")] {
        let mut running = machine.start(&["restore", from]);
        assert_eq!(running.ends(SOON), Some(1), "{from}: {}", running.err());
        assert!(running.err().contains("not a file"), "{from}: {}", running.err());
    }
    assert_eq!(machine.rows().len(), 1, "the store is as it was");
}
