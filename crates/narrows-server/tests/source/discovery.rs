//! Which sessions are found, and which files are theirs.

use crate::bed::{Bed, cases, id_in, input, make_old, write};
use crate::lines::{Talk, session_id};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_session_is_found_and_read_as_the_core_reads_it() {
    let bed = Bed::new();
    let mut files = BTreeMap::new();
    for case in cases("claude-history") {
        // Folder names say little: dashes stand for anything.
        let main = bed.put(&case, &format!("-tmp-cap-{}", case.replace('/', "-")));
        files.insert(id_in(&input(&case)), (main, case));
    }
    make_old(&bed.projects(), 3600);
    let sums = bed.pass().await;
    assert_eq!((sums.sessions, sums.done), (files.len() as u64, files.len() as u64));
    let parts = bed.open();
    let known: Vec<String> = files.keys().cloned().collect();
    assert_eq!(parts.labels().await, known);
    for (id, (main, case)) in &files {
        assert_eq!(parts.items(id).await, parts.truth(main), "{case}");
        let row = parts.row(id).await;
        assert_eq!(row.native_id.as_ref(), Some(id), "{case}");
        assert_eq!((row.file_exists, row.ended), (Some(true), true), "{case}");
    }
    parts.end().await;
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events, again.read), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_belong_to_their_session_in_the_new_and_in_the_old_layout() {
    for case in ["claude-history/2.1-g-subagent", "claude-history/2.0-g-subagent"] {
        let bed = Bed::new();
        // Two sessions in one folder: each has its own subagents only.
        let main = bed.put(case, "-app");
        let other = bed.put("claude-history/2.0-g-subagent-background", "-app");
        make_old(&bed.projects(), 3600);
        bed.pass().await;
        bed.look(async |parts| {
            assert_eq!(parts.sessions().await.len(), 2, "{case}");
            for main in [&main, &other] {
                let id = id_in(&fs::read(main).expect("file"));
                let items = parts.items(&id).await;
                assert_eq!(items, parts.truth(main), "{case}");
                assert!(
                    items.iter().any(|i| i["parentToolCallId"].is_string()),
                    "{case}: {items:?}"
                );
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_that_nobody_asked_for_is_no_session_and_gives_nothing() {
    let bed = Bed::new();
    let main = bed.put("claude-history/2.0-a-plain-text", "-app");
    bed.pass().await;
    bed.look(async |parts| {
        let id = id_in(&fs::read(&main).expect("file"));
        assert_eq!(parts.labels().await, [id.as_str()]);
        let items = parts.items(&id).await;
        assert!(items.iter().all(|i| i["parentToolCallId"].is_null()), "{items:?}");
    })
    .await;
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events), (0, 0), "it does not wait to be read either");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_sessions_are_read_first() {
    let bed = Bed::new();
    for n in 1..=40 {
        let talk = Talk::new(n);
        // The order of names says nothing.
        let path = bed.write("-app", &talk.session, talk.lines(1..=2));
        make_old(&path, 1000 + u64::from((n * 17) % 40) * 60);
    }
    let parts = bed.open();
    parts.catch_up(&bed.options).await;
    let mut read: Vec<(i64, u32)> = Vec::new();
    for n in 1..=40 {
        read.push((parts.session(&session_id(n)).await.key, (n * 17) % 40));
    }
    read.sort_unstable();
    // Some are read at the same time: no session comes much earlier than its turn.
    for (at, (_, age)) in read.iter().enumerate() {
        let at = u32::try_from(at).expect("small");
        assert!(age.abs_diff(at) <= 8, "{read:?}");
    }
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_is_the_last_name_of_the_folder_that_records_tell() {
    let bed = Bed::new();
    for (n, folder, cwd, project) in [
        (1, "-home-ada-my-app", "/home/ada/my-app", "my-app"),
        (2, "-home-ada-my-app-v2-core", "/home/ada/my/app-v2/core", "core"),
        (3, "C--Users-ada-shop", r"C:\Users\ada\shop", "shop"),
        (4, "-srv-Wörter-und-mehr", "/srv/Wörter und mehr", "Wörter und mehr"),
    ] {
        let talk = Talk::new(n).in_folder(cwd);
        bed.write(folder, &talk.session, talk.lines(1..=2));
        bed.pass().await;
        let row = bed.look(async |parts| parts.row(&talk.session).await).await;
        assert_eq!(row.project.as_deref(), Some(project));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_that_are_excluded_are_left_out_with_all_below_them() {
    let mut bed = Bed::new();
    bed.options.exclude = vec!["/home/ada/secret".into()];
    for (n, cwd) in [
        (1, "/home/ada/secret"),
        (2, "/home/ada/secret/inner/app"),
        (3, "/home/ada/secretary"),
        (4, "/home/ada/other"),
    ] {
        let talk = Talk::new(n).in_folder(cwd);
        bed.write(&format!("-p-{n}"), &talk.session, talk.lines(1..=2));
    }
    let sums = bed.pass().await;
    assert_eq!((sums.sessions, sums.done), (2, 2), "{sums:?}");
    let labels = bed.look(async |parts| parts.labels().await).await;
    assert_eq!(labels, [session_id(3), session_id(4)]);
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.bytes, again.events), (0, 0, 0), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_not_told_its_folder_waits_where_some_are_excluded() {
    let mut bed = Bed::new();
    bed.options.exclude = vec!["/home/ada/secret".into()];
    let talk = Talk::new(1).in_folder("/home/ada/secret");
    // What is written first tells no folder.
    let first = format!(
        "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"sessionId\":\"{}\",\"content\":\"psst\"}}\n",
        talk.session
    );
    let path = bed.write("-p", &talk.session, &first);
    bed.pass().await;
    assert!(bed.look(async |parts| parts.labels().await).await.is_empty());
    write(&path, first + &talk.lines(1..=2));
    bed.pass().await;
    assert!(bed.look(async |parts| parts.labels().await).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_excluded_is_seen_behind_a_long_first_record_too() {
    let mut bed = Bed::new();
    bed.options.exclude = vec!["/home/ada/secret".into()];
    let talk = Talk::new(1).in_folder("/home/ada/secret");
    let long = "long ".repeat(400_000);
    bed.write("-p", &talk.session, talk.prompt(1, &long) + &talk.lines(2..=3));
    bed.pass().await;
    assert!(bed.look(async |parts| parts.labels().await).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_are_missing_empty_or_closed_hide_no_other() {
    let mut bed = Bed::new();
    let second = bed.path().join("second");
    let talk = Talk::new(7);
    write(&second.join(format!("projects/-app/{}.jsonl", talk.session)), talk.lines(1..=2));
    bed.options.claude_dirs.insert(0, bed.path().join("nowhere"));
    bed.options.claude_dirs.push(second);
    fs::create_dir(bed.projects().join("-empty")).expect("folder");
    let closed = bed.projects().join("-closed");
    fs::create_dir(&closed).expect("folder");
    write(&closed.join(format!("{}.jsonl", session_id(8))), Talk::new(8).lines(1..=2));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("mode");
    let readable = fs::read_dir(&closed).is_ok();
    let sums = bed.pass().await;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("mode");
    // The owner of the machine may read everything.
    assert_eq!(sums.sessions, if readable { 2 } else { 1 });
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_session_is_passed_over() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let main = bed.write("-app", &talk.session, talk.lines(1..=2));
    let folder = main.parent().expect("folder").to_owned();
    write(&folder.join("notes.txt"), "hello");
    write(&folder.join(".hidden"), "hello");
    write(&bed.projects().join("loose.jsonl"), talk.lines(1..=2));
    fs::create_dir(folder.join(format!("{}.jsonl", session_id(2)))).expect("folder");
    symlink(&main, folder.join(format!("{}.jsonl", session_id(3)))).expect("link");
    symlink("/nowhere", folder.join(format!("{}.jsonl", session_id(4)))).expect("link");
    let pipe = folder.join(format!("{}.jsonl", session_id(5)));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|s| s.success()));
    write(&folder.join(format!("{}.jsonl", session_id(6))), "");
    write(&folder.join(format!("{}.jsonl", session_id(7))), "{\"type\":\"us");
    let sums = bed.pass().await;
    assert_eq!(sums.sessions, 1, "{sums:?}");
    bed.look(async |parts| assert_eq!(parts.labels().await, [talk.session.as_str()])).await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=2));
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_a_record_is_read_and_shows_its_damage() {
    let bed = Bed::new();
    bed.write("-app", &session_id(1), "no record\nat all\n");
    bed.pass().await;
    bed.look(async |parts| {
        let events = parts.events(&session_id(1)).await;
        assert!(events.len() == 2 && events.iter().all(|e| e["type"] == "malformed"), "{events:?}");
    })
    .await;
    assert_eq!(bed.pass().await.events, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_begins_with_a_very_long_record_is_read() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let long = "long ".repeat(400_000);
    let main = bed.write("-app", &talk.session, talk.prompt(1, &long));
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.items(&talk.session).await, parts.truth(&main));
        // More than one item has room for.
        assert_eq!(parts.texts(&talk.session).await.len(), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subagents_of_other_sessions_are_not_taken_for_ones_own() {
    let bed = Bed::new();
    bed.put("claude-history/2.1-g-subagent", "-app");
    // A session that was resumed under another id repeats the records of the one before.
    let (old, new) = (Talk::new(1), session_id(2));
    bed.write("-app", &new, old.lines(1..=2));
    bed.pass().await;
    bed.look(async |parts| {
        let items = parts.items(&new).await;
        assert_eq!(items.len(), 2, "{items:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_repeats_another_session_does_not_take_its_place() {
    let bed = Bed::new();
    let (talk, fork) = (Talk::new(1), session_id(2));
    // The fork's records still name the session that it began with.
    bed.write("-app", &fork, talk.lines(1..=4));
    bed.pass().await;
    bed.write("-app", &talk.session, talk.lines(1..=6));
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.labels().await, [talk.session.clone(), fork.clone()]);
        assert_eq!(parts.texts(&fork).await, talk.texts(1..=4));
        assert_eq!(parts.texts(&talk.session).await, talk.texts(1..=6));
    })
    .await;
}
