//! Files that have grown since they were read: only what is new is read, and nothing is lost.

use crate::bed::{Bed, append, fixtures, id_in, input, make_old, texts, until, write};
use crate::lines::Talk;
use serde_json::{Value, json};
use std::fs;

/// Where each line of a text ends.
fn ends(text: &[u8]) -> Vec<usize> {
    text.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_pass_reads_nothing_and_later_ones_only_what_is_new() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let path = bed.write("-app", &talk.session, talk.lines(1..=4));
    assert!(bed.pass().await.events > 0);
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events, again.read), (0, 0, 0));
    append(&path, talk.lines(5..=6));
    let more = bed.pass().await;
    let few = (talk.lines(3..=6).len()) as u64;
    assert!(more.sessions == 1 && more.events > 0 && more.read <= few, "{more:?}");
    bed.look(async |parts| {
        assert_eq!(parts.items(&talk.session).await, parts.truth(&path));
        assert_eq!(parts.texts(&talk.session).await, talk.texts(1..=6));
    })
    .await;
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events, again.read), (0, 0, 0));
}

/// Reads a session up to a cut, then all of it, with a program that ends in between or not.
async fn cut_at(cases: &[(Vec<u8>, usize)], orderly: bool) {
    // Each cut is a session of its own in one store: what counts is what is read, not the store.
    let bed = Bed::new();
    let mut files = Vec::new();
    for (n, (text, cut)) in cases.iter().enumerate() {
        let id = id_in(text);
        let own = format!("{n:08x}{}", &id[8..]);
        let text = String::from_utf8_lossy(text).replace(&id, &own).into_bytes();
        files.push((bed.write("-app", &own, &text[..*cut]), own, text, *cut));
    }
    if orderly {
        bed.pass().await
    } else {
        bed.cut_pass().await
    };
    for (path, _, text, cut) in &files {
        append(path, &text[*cut..]);
    }
    if orderly {
        bed.pass().await
    } else {
        bed.cut_pass().await
    };
    let parts = bed.open();
    for (path, own, text, cut) in &files {
        let (items, truth) = (parts.items(own).await, parts.truth(path));
        let begun = String::from_utf8_lossy(&text[..*cut]).lines().last().unwrap_or("").to_owned();
        let begun: String = begun.chars().take(200).collect();
        assert_eq!(items, truth, "cut at {cut} of {}, after {begun}", text.len());
    }
    parts.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_cut_after_any_line_reads_the_same() {
    for case in ["2.1-b-thinking", "2.1-q-compact", "2.0-f-todos", "2.0-c-files"] {
        let text = input(&format!("claude-history/{case}"));
        let cuts: Vec<_> = ends(&text).into_iter().map(|cut| (text.clone(), cut)).collect();
        cut_at(&cuts, true).await;
        cut_at(&cuts, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_half_written_waits_wherever_it_is_cut() {
    let talk = Talk::new(1);
    let text = talk.lines(1..=4).into_bytes();
    let ends = ends(&text);
    // Every byte of a line with letters of two, three and four bytes.
    let cuts: Vec<_> = (ends[1]..=ends[2]).map(|cut| (text.clone(), cut)).collect();
    cut_at(&cuts, true).await;
    let text = input("claude-history/2.1-d-bash-background");
    let cuts: Vec<_> = (1..text.len()).step_by(331).map(|cut| (text.clone(), cut)).collect();
    cut_at(&cuts, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_line_gives_nothing_before_its_end_comes() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let (first, line) = (talk.lines(1..=2), talk.line(3));
    let path = bed.write("-app", &talk.session, first + &line[..line.len() - 20]);
    bed.pass().await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=2));
    make_old(&path, 3600);
    bed.pass().await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=2), "however old it is");
    append(&path, &line[line.len() - 20..]);
    bed.pass().await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_record_without_an_end_of_line_is_read_once_it_is_still() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let text = talk.lines(1..=3);
    let path = bed.write("-app", &talk.session, text.trim_end());
    bed.pass().await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=2), "more of it may come");
    // Nothing has come since: the file is as it was, but older.
    make_old(&path, 30);
    bed.pass().await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=3));
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events), (0, 0));
    // The end of its line comes after all.
    append(&path, "\n".to_owned() + &talk.lines(4..=5));
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.items(&talk.session).await, parts.truth(&path));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_waits_for_its_end_is_looked_at_again_though_nothing_changes() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let path = bed.write("-app", &talk.session, talk.lines(1..=3).trim_end());
    make_old(&path, 4);
    bed.pass().await;
    assert_eq!(bed.texts(&talk.session).await, talk.texts(1..=2));
    until("it is read", async || {
        bed.pass().await;
        bed.texts(&talk.session).await == talk.texts(1..=3)
    })
    .await;
}

/// Which kinds of items there are, with what they are called: whatever order they have.
fn by_id(items: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = items.to_vec();
    for item in &mut all {
        item["order"] = json!(0);
    }
    all.sort_by_key(|i| i["id"].to_string());
    all
}

/// Lets the files of a session and its subagent grow line by line, in many orders.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_its_subagent_grow_in_any_order_and_nothing_is_lost_or_doubled() {
    for case in ["2.1-g-subagent", "2.1-g-subagent-background"] {
        let case = format!("claude-history/{case}");
        let main = input(&case);
        let id = id_in(&main);
        let from = fixtures().join(&case).join(&id).join("subagents");
        let mut notes = fs::read_dir(&from).expect("folder").map(|e| e.expect("entry").path());
        let note = notes.find(|p| p.to_string_lossy().ends_with(".meta.json")).expect("a note");
        let name =
            note.file_name().expect("name").to_string_lossy().replace(".meta.json", ".jsonl");
        let side = fs::read(from.join(&name)).expect("file");
        let (main_ends, side_ends) = (ends(&main), ends(&side));
        for seed in 0..6_u64 {
            let bed = Bed::new();
            let path = bed.write("-app", &id, "");
            let beside = path.with_extension("").join("subagents");
            write(&beside.join(note.file_name().expect("name")), fs::read(&note).expect("note"));
            let agent = beside.join(&name);
            let (mut at, mut side_at, mut state) = (0, 0, seed * 7919 + 1);
            let mut next = |most: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                usize::try_from(state >> 33).expect("small") % most
            };
            while at < main_ends.len() || side_at < side_ends.len() {
                at = (at + next(12)).min(main_ends.len());
                // A subagent begins after its call, which is in the first two thirds.
                if at * 3 > main_ends.len() * 2 {
                    side_at = (side_at + next(9)).min(side_ends.len());
                }
                write(&path, &main[..at.checked_sub(1).map_or(0, |n| main_ends[n])]);
                if side_at > 0 {
                    write(&agent, &side[..side_ends[side_at - 1]]);
                }
                if next(2) == 0 {
                    bed.pass().await
                } else {
                    bed.cut_pass().await
                };
            }
            bed.pass().await;
            bed.look(async |parts| {
                let (items, truth) = (parts.items(&id).await, parts.truth(&path));
                assert_eq!(by_id(&items), by_id(&truth), "{case} {seed}");
                let ids: std::collections::BTreeSet<String> =
                    parts.events(&id).await.iter().map(|e| e["id"].to_string()).collect();
                assert_eq!(ids.len(), parts.events(&id).await.len(), "{case} {seed}");
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_that_is_named_later_is_read_then() {
    // Old layout: the session's own file tells whose it is only when it is done.
    let case = "claude-history/2.0-g-subagent";
    let text = input(case);
    for cut in ends(&text) {
        let bed = Bed::new();
        let main = bed.put(case, "-app");
        write(&main, &text[..cut]);
        bed.pass().await;
        write(&main, &text);
        bed.pass().await;
        bed.look(async |parts| {
            let (items, truth) = (parts.items(&id_in(&text)).await, parts.truth(&main));
            assert_eq!(by_id(&items), by_id(&truth), "{cut}");
        })
        .await;
        let again = bed.pass().await;
        assert_eq!((again.sessions, again.events), (0, 0), "{cut}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_tells_later_whose_a_subagent_is_makes_it_read() {
    let case = "claude-history/2.1-g-subagent";
    let bed = Bed::new();
    let main = bed.put(case, "-app");
    let id = id_in(&input(case));
    let beside = main.with_extension("").join("subagents");
    let mut notes = fs::read_dir(&beside).expect("folder").map(|e| e.expect("entry").path());
    let note = notes.find(|p| p.to_string_lossy().ends_with(".meta.json")).expect("a note");
    let told = fs::read(&note).expect("note");
    // The session's own file does not tell it either.
    let text = String::from_utf8(input(case)).expect("text").replace("agentId", "nobodyId");
    write(&main, &text);
    fs::remove_file(&note).expect("remove");
    bed.pass().await;
    let side = |items: &[Value]| items.iter().filter(|i| i["parentToolCallId"].is_string()).count();
    bed.look(async |parts| assert_eq!(side(&parts.items(&id).await), 0)).await;
    write(&note, told);
    bed.pass().await;
    bed.look(async |parts| {
        assert!(side(&parts.items(&id).await) > 0);
        assert_eq!(by_id(&parts.items(&id).await), by_id(&parts.truth(&main)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_shown_though_its_file_was_there_before_its_record() {
    let case = "claude-history/2.1-d-bash";
    let text = input(case);
    let id = id_in(&text);
    let named = |line: &&[u8]| String::from_utf8_lossy(line).contains("burxuufxy");
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let first = lines.iter().position(named).expect("a line that names it");
    let bed = Bed::new();
    let main = bed.put(case, "-app");
    // The agent puts the output away first, then tells where.
    write(&main, lines[..first].concat());
    bed.pass().await;
    write(&main, lines[..=first].concat());
    bed.pass().await;
    write(&main, &text);
    bed.pass().await;
    bed.look(async |parts| assert_eq!(parts.items(&id).await, parts.truth(&main))).await;
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn items_have_the_same_ids_however_often_reading_was_interrupted() {
    let bed = Bed::new();
    let case = "claude-history/2.1-l-resume";
    let text = input(case);
    let id = id_in(&text);
    let path = bed.write("-app", &id, "");
    for cut in (0..=text.len()).step_by(1499).chain([text.len()]) {
        write(&path, &text[..cut]);
        bed.cut_pass().await;
    }
    bed.look(async |parts| {
        let items = parts.items(&id).await;
        assert_eq!(items, parts.truth(&path));
        assert!(!texts(&items).is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_nobody_writes_any_more_is_over() {
    let mut bed = Bed::new();
    let talk = Talk::new(1);
    let path = bed.write("-app", &talk.session, talk.lines(1..=4));
    make_old(&path, 299);
    let [long, short] = [3600, 60].map(|seconds| Some(std::time::Duration::from_secs(seconds)));
    let ended =
        async |bed: &Bed| bed.look(async |parts| parts.row(&talk.session).await.ended).await;
    bed.options.silence = long;
    bed.pass().await;
    assert!(!ended(&bed).await);
    // Nothing changes, but it is silent for longer than it takes.
    bed.options.silence = short;
    bed.pass().await;
    assert!(ended(&bed).await);
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events), (0, 0));
    append(&path, talk.lines(5..=6));
    bed.options.silence = long;
    bed.pass().await;
    assert!(!ended(&bed).await, "until it goes on");
}
