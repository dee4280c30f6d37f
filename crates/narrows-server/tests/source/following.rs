//! Files that come and grow while they are followed.

use crate::bed::{Bed, append, fixtures, id_in, input, until, write};
use crate::lines::{Talk, session_id};
use std::fs;
use std::os::unix::fs::symlink;

#[tokio::test(flavor = "multi_thread")]
async fn new_files_and_lines_appear_soon_whether_told_or_looked_for() {
    for poll in [false, true] {
        let mut bed = Bed::new();
        bed.options.poll = poll;
        let parts = bed.open();
        let follower = parts.follow(&bed.options);
        let talk = Talk::new(1);
        // A folder that is made together with its first file.
        let path = bed.write("-app", &talk.session, talk.lines(1..=2));
        for last in [2, 4, 6, 8] {
            if last > 2 {
                append(&path, talk.lines(last - 1..=last));
            }
            let known = async || parts.texts(&talk.session).await == talk.texts(1..=last);
            until("the lines are there", known).await;
        }
        // Another folder, another session, one written in one go.
        for n in 2..6 {
            let talk = Talk::new(n);
            bed.write(&format!("-other-{n}"), &talk.session, talk.lines(1..=3));
            let known = async || parts.texts(&talk.session).await == talk.texts(1..=3);
            until("the session is there", known).await;
        }
        assert_eq!(parts.items(&talk.session).await, parts.truth(&path));
        follower.stop().await;
        parts.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_sessions_that_is_made_later_is_found() {
    for poll in [false, true] {
        let mut bed = Bed::new();
        bed.options.poll = poll;
        fs::remove_dir_all(bed.path().join("claude")).expect("remove");
        let parts = bed.open();
        let follower = parts.follow(&bed.options);
        let talk = Talk::new(1);
        bed.write("-app", &talk.session, talk.lines(1..=2));
        let known = async || parts.texts(&talk.session).await == talk.texts(1..=2);
        until("the session is there", known).await;
        // It goes away and comes back.
        fs::remove_dir_all(bed.projects()).expect("remove");
        let gone = async || parts.row(&talk.session).await.file_exists == Some(false);
        until("the file is gone", gone).await;
        let path = bed.write("-app", &talk.session, talk.lines(1..=4));
        let known = async || parts.texts(&talk.session).await == talk.texts(1..=4);
        until("it is back", known).await;
        append(&path, talk.lines(5..=6));
        let known = async || parts.texts(&talk.session).await == talk.texts(1..=6);
        until("it grows", known).await;
        follower.stop().await;
        parts.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_missing_folder_of_two_is_found_when_it_comes() {
    let mut bed = Bed::new();
    let second = bed.path().join("second");
    bed.options.claude_dirs.push(second.clone());
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    let (one, two) = (Talk::new(1), Talk::new(2));
    bed.write("-app", &one.session, one.lines(1..=2));
    until("the first is there", async || !parts.texts(&one.session).await.is_empty()).await;
    write(&second.join(format!("projects/-app/{}.jsonl", two.session)), two.lines(1..=2));
    let known = async || parts.texts(&two.session).await == two.texts(1..=2);
    until("the second is there", known).await;
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_files_that_grow_at_once_are_all_complete() {
    let bed = Bed::new();
    let talks: Vec<Talk> = (1..=300).map(Talk::new).collect();
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    for round in 0..4 {
        for (n, talk) in talks.iter().enumerate() {
            let lines = talk.lines(round * 2 + 1..=round * 2 + 2);
            let project = format!("-app-{}", n % 7);
            if round == 0 {
                bed.write(&project, &talk.session, lines);
            } else {
                append(&bed.file(&project, &talk.session), lines);
            }
        }
    }
    for talk in &talks {
        let known = async || parts.texts(&talk.session).await == talk.texts(1..=8);
        until("a session is complete", known).await;
    }
    assert_eq!(follower.progress().sums().failed, 0);
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_that_begins_while_its_session_runs_is_read() {
    let bed = Bed::new();
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    let case = "claude-history/2.1-g-subagent";
    let text = input(case);
    let id = id_in(&text);
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    // Up to the call; the subagent's records; what came after.
    let path = bed.write("-app", &id, lines[..24].concat());
    until("the call is there", async || parts.items(&id).await.len() > 2).await;
    let from = fixtures().join(case).join(&id).join("subagents");
    let to = path.with_extension("").join("subagents");
    for entry in fs::read_dir(from).expect("folder") {
        let entry = entry.expect("entry");
        write(&to.join(entry.file_name()), fs::read(entry.path()).expect("file"));
    }
    let side = async || {
        let items = parts.items(&id).await;
        items.iter().any(|i| i["parentToolCallId"].is_string())
    };
    until("the subagent is seen", side).await;
    append(&path, lines[24..].concat());
    let whole = async || parts.items(&id).await == parts.truth(&path);
    until("all is there", whole).await;
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_not_followed_when_they_are_told_either() {
    let bed = Bed::new();
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    let (one, two) = (Talk::new(1), Talk::new(2));
    let main = bed.write("-app", &one.session, one.lines(1..=2));
    until("the session is there", async || !parts.texts(&one.session).await.is_empty()).await;
    symlink(&main, bed.file("-app", &session_id(9))).expect("link");
    bed.write("-app", &two.session, two.lines(1..=2));
    until("the next is there", async || !parts.texts(&two.session).await.is_empty()).await;
    assert_eq!(parts.labels().await, [one.session.clone(), two.session.clone()]);
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sums_tell_when_everything_is_done() {
    let bed = Bed::new();
    for n in 1..=20 {
        let talk = Talk::new(n);
        bed.write("-app", &talk.session, talk.lines(1..=4));
    }
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    until("all are read", async || follower.progress().sums().done == 20).await;
    let sums = follower.progress().sums();
    assert_eq!((sums.sessions, sums.failed), (20, 0));
    assert_eq!(sums.bytes, sums.read);
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_the_list_learns_that_a_file_is_gone_or_back() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let path = bed.write("-app", &talk.session, talk.lines(1..=2));
    bed.pass().await;
    let touched = async || {
        let filter = narrows_store::ListFilter { limit: 10, ..Default::default() };
        bed.look(async |parts| parts.store.list(filter).await.expect("list").touched).await
    };
    let first = touched().await;
    fs::remove_file(&path).expect("remove");
    bed.pass().await;
    let second = touched().await;
    assert!(second > first);
    bed.write("-app", &talk.session, talk.lines(1..=2));
    bed.pass().await;
    assert!(touched().await > second);
}
