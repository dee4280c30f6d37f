//! Files that are not what they were: moved, cut, written anew, copied, gone and back.
//!
//! What was read stays, what is new is added once, and what is known is never doubled.

use crate::bed::{Bed, append, id_in, input, until, write};
use crate::lines::Talk;
use serde_json::json;
use std::fs;
use std::path::Path;

/// What is done to the files.
type Deed = Box<dyn Fn(&Bed) + Send + Sync>;

/// Something is done, then these texts are known, and the file is there or not.
struct Step {
    what: &'static str,
    deed: Deed,
    texts: Vec<String>,
    exists: bool,
}

fn step(
    what: &'static str,
    texts: Vec<String>,
    deed: impl Fn(&Bed) + Send + Sync + 'static,
) -> Step {
    Step { what, deed: Box::new(deed), texts, exists: true }
}

fn gone(
    what: &'static str,
    texts: Vec<String>,
    deed: impl Fn(&Bed) + Send + Sync + 'static,
) -> Step {
    Step { exists: false, ..step(what, texts, deed) }
}

pub(crate) const A: &str = "-home-ada-a";
pub(crate) const B: &str = "-home-ada-b";

pub(crate) fn replace(path: &Path, text: String) {
    let temp = path.with_extension("tmp");
    write(&temp, text);
    fs::rename(temp, path).expect("rename");
}

/// Checks a story between passes of programs that end in order, or are cut off, or end later.
async fn in_passes(name: &str, talk: &Talk, steps: &[Step]) {
    for orderly in [true, false] {
        let bed = Bed::new();
        let mut id = None;
        for Step { what, deed, texts, exists } in steps {
            deed(&bed);
            // Copies are read one after the other: the second may need a second look.
            for _ in 0..2 {
                if orderly {
                    bed.pass().await
                } else {
                    bed.cut_pass().await
                };
            }
            bed.look(async |parts| {
                let mut known = parts.texts(&talk.session).await;
                let mut texts = texts.clone();
                known.sort();
                texts.sort();
                assert_eq!(known, texts, "{name}: {what} (orderly: {orderly})");
                let row = parts.row(&talk.session).await;
                assert_eq!(row.file_exists, Some(*exists), "{name}: {what} (orderly: {orderly})");
                assert_eq!(*id.get_or_insert(row.id.clone()), row.id, "{name}: {what}");
                assert_eq!(parts.sessions().await.len(), 1, "{name}: {what}");
            })
            .await;
            let again = bed.pass().await;
            assert_eq!((again.sessions, again.events), (0, 0), "{name}: {what}, and then");
        }
    }
}

/// Checks a story while a program follows.
async fn followed(name: &str, talk: &Talk, steps: &[Step]) {
    let bed = Bed::new();
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    for Step { what, deed, texts, exists } in steps {
        deed(&bed);
        let mut texts = texts.clone();
        texts.sort();
        let known = async || {
            let mut known = parts.texts(&talk.session).await;
            known.sort();
            known
        };
        let is_so = async || {
            known().await == texts && parts.row(&talk.session).await.file_exists == Some(*exists)
        };
        let began = std::time::Instant::now();
        while !is_so().await {
            let waited = began.elapsed();
            assert!(
                waited < crate::bed::PATIENCE,
                "{name}: {what}\nknown {:?}\nwant  {texts:?}\nexists {:?}",
                known().await,
                parts.row(&talk.session).await.file_exists
            );
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    // It stays so when everything is quiet.
    until("it is quiet", async || {
        let sums = follower.progress().sums();
        sums.done >= sums.sessions
    })
    .await;
    let last = steps.last().expect("a step");
    let mut texts = last.texts.clone();
    texts.sort();
    let mut known = parts.texts(&talk.session).await;
    known.sort();
    assert_eq!(known, texts, "{name}: in the end");
    assert_eq!(follower.progress().sums().failed, 0, "{name}: {:?}", follower.progress().fault());
    follower.stop().await;
    parts.end().await;
}

async fn story(name: &str, talk: &Talk, steps: Vec<Step>) {
    in_passes(name, talk, &steps).await;
    followed(name, talk, &steps).await;
}

fn begin(talk: &Talk, last: u32) -> Step {
    let (own, texts) = (talk.clone(), talk.texts(1..=last));
    step("it begins", texts, move |bed| drop(bed.write(A, &own.session, own.lines(1..=last))))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_moved_to_another_project_goes_on_under_the_same_id() {
    let talk = Talk::new(1);
    let (t, u, v) = (talk.clone(), talk.clone(), talk.clone());
    let steps = vec![
        begin(&talk, 4),
        step("moved", talk.texts(1..=4), move |bed| {
            let to = bed.file(B, &t.session);
            fs::create_dir_all(to.parent().expect("folder")).expect("folder");
            fs::rename(bed.file(A, &t.session), to).expect("rename");
        }),
        step("grown there", talk.texts(1..=6), move |bed| {
            append(&bed.file(B, &u.session), u.lines(5..=6));
        }),
        step("begun anew where it was", talk.texts(1..=8), move |bed| {
            drop(bed.write(A, &v.session, v.lines(7..=8)));
        }),
    ];
    story("moved", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_copied_away_and_emptied_goes_on() {
    let talk = Talk::new(1);
    let (t, u) = (talk.clone(), talk.clone());
    let steps = vec![
        begin(&talk, 4),
        step("emptied", talk.texts(1..=4), move |bed| {
            let path = bed.file(A, &t.session);
            fs::copy(&path, path.with_extension("jsonl.1")).expect("copy");
            fs::write(path, "").expect("write");
        }),
        step("written on", talk.texts(1..=8), move |bed| {
            append(&bed.file(A, &u.session), u.lines(5..=8));
        }),
    ];
    story("copied away and emptied", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_anew_with_other_records_adds_them() {
    let talk = Talk::new(1);
    let (t, u) = (talk.clone(), talk.clone());
    let other = talk.named("other");
    let (o, p) = (other.clone(), other.clone());
    let both = [talk.texts(1..=4), other.texts(1..=9)].concat();
    let more = [both.clone(), other.texts(10..=11)].concat();
    let steps = vec![
        begin(&talk, 4),
        step("larger than before", both, move |bed| {
            drop(bed.write(A, &t.session, o.lines(1..=9)));
        }),
        step("and grown", more, move |bed| append(&bed.file(A, &u.session), p.lines(10..=11))),
    ];
    story("written anew", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_cut_back_and_written_on_keeps_what_was_read() {
    let talk = Talk::new(1);
    let (t, u, v) = (talk.clone(), talk.clone(), talk.clone());
    let other = talk.named("other");
    let all = [talk.texts(1..=6), other.texts(7..=8)].concat();
    let steps = vec![
        begin(&talk, 6),
        step("cut back", talk.texts(1..=6), move |bed| {
            let file = fs::File::options().write(true).open(bed.file(A, &t.session));
            let length = t.lines(1..=3).len() as u64;
            file.expect("open").set_len(length).expect("cut");
        }),
        step("the same again", talk.texts(1..=6), move |bed| {
            append(&bed.file(A, &u.session), u.lines(4..=6));
        }),
        step("and something new", all, move |bed| {
            append(&bed.file(A, &v.session), other.lines(7..=8));
        }),
    ];
    story("cut back", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_deleted_and_comes_back() {
    let talk = Talk::new(1);
    let (t, u, v, w) = (talk.clone(), talk.clone(), talk.clone(), talk.clone());
    let other = talk.named("other");
    let both = [talk.texts(1..=4), other.texts(1..=3)].concat();
    let steps = vec![
        begin(&talk, 4),
        gone("deleted", talk.texts(1..=4), move |bed| {
            fs::remove_file(bed.file(A, &t.session)).expect("remove");
        }),
        step("back", talk.texts(1..=4), move |bed| {
            drop(bed.write(A, &u.session, u.lines(1..=4)));
        }),
        gone("deleted again", talk.texts(1..=4), move |bed| {
            fs::remove_file(bed.file(A, &v.session)).expect("remove");
        }),
        step("something else in its place", both, move |bed| {
            drop(bed.write(A, &w.session, other.lines(1..=3)));
        }),
    ];
    story("deleted", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_replaced_at_once_with_the_same_and_more() {
    let talk = Talk::new(1);
    let (t, u) = (talk.clone(), talk.clone());
    let steps = vec![
        begin(&talk, 5),
        step("replaced", talk.texts(1..=7), move |bed| {
            replace(&bed.file(A, &t.session), t.lines(1..=7));
        }),
        step("with one record taken out", talk.texts(1..=9), move |bed| {
            replace(&bed.file(A, &u.session), u.lines([1, 2, 4, 5, 6, 7, 8, 9]));
        }),
    ];
    story("replaced, the same", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_replaced_at_once_with_other_records() {
    let talk = Talk::new(1);
    let (t, u) = (talk.clone(), talk.clone());
    let other = talk.named("other");
    let (o, p) = (other.clone(), other.clone());
    let both = [talk.texts(1..=4), other.texts(1..=4)].concat();
    let steps = vec![
        begin(&talk, 4),
        step("replaced", both.clone(), move |bed| {
            replace(&bed.file(A, &t.session), o.lines(1..=4));
        }),
        step("and back, with both", both, move |bed| {
            replace(&bed.file(A, &u.session), u.lines(1..=4) + &p.lines(1..=4));
        }),
    ];
    story("replaced, others", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_in_another_project_that_has_grown_is_the_same_session() {
    let talk = Talk::new(1);
    let (t, u, v) = (talk.clone(), talk.clone(), talk.clone());
    let other = talk.named("other");
    let all = [talk.texts(1..=8), other.texts(9..=10)].concat();
    let steps = vec![
        begin(&talk, 4),
        step("copied and grown", talk.texts(1..=6), move |bed| {
            drop(bed.write(B, &t.session, t.lines(1..=6)));
        }),
        step("the copy grows", talk.texts(1..=8), move |bed| {
            append(&bed.file(B, &u.session), u.lines(7..=8));
        }),
        step("the first one grows otherwise", all.clone(), move |bed| {
            append(&bed.file(A, &v.session), other.lines(9..=10));
        }),
    ];
    story("a copy", &talk, steps).await;
    // One of the two goes: the session still has a file.
    let (t, u) = (talk.clone(), talk.clone());
    let steps = vec![
        begin(&talk, 4),
        step("copied", talk.texts(1..=6), move |bed| {
            drop(bed.write(B, &t.session, t.lines(1..=6)));
        }),
        step("the first one goes", talk.texts(1..=6), move |bed| {
            fs::remove_file(bed.file(A, &u.session)).expect("remove");
        }),
    ];
    story("one of two", &talk, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_files_of_one_session_that_differ_are_both_read() {
    let talk = Talk::new(1);
    let (t, o) = (talk.clone(), talk.named("other"));
    let all = [talk.texts(1..=6), o.texts(4..=9)].concat();
    let steps = vec![step("both at once", all, move |bed| {
        bed.write(A, &t.session, t.lines(1..=6));
        bed.write(B, &t.session, t.lines(1..=3) + &o.lines(4..=9));
    })];
    for _ in 0..3 {
        in_passes("two that differ", &talk, &steps).await;
    }
    followed("two that differ", &talk, &steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_records_do_not_make_older_ones_unknown() {
    // Records that give no event are read after others: the others are still known later.
    let bed = Bed::new();
    let talk = Talk::new(1);
    let path = bed.write(A, &talk.session, talk.lines(1..=5));
    bed.cut_pass().await;
    let quiet = talk.line(6).replace("\"type\":\"assistant\"", "\"type\":\"progress\"");
    append(&path, &quiet);
    bed.cut_pass().await;
    replace(&path, talk.line(7) + &talk.lines(1..=5));
    bed.cut_pass().await;
    let mut known = bed.texts(&talk.session).await;
    known.sort();
    let mut texts = talk.texts([1, 2, 3, 4, 5, 7]);
    texts.sort();
    assert_eq!(known, texts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_folder_that_is_renamed_takes_its_sessions_and_their_subagents_along() {
    let case = "claude-history/2.1-g-subagent";
    let id = id_in(&input(case));
    for orderly in [true, false] {
        let bed = Bed::new();
        let main = bed.put(case, "-one");
        if orderly {
            bed.pass().await
        } else {
            bed.cut_pass().await
        };
        let before = bed.look(async |parts| parts.items(&id).await).await;
        fs::rename(main.parent().expect("folder"), bed.projects().join("-two")).expect("rename");
        let sums = bed.pass().await;
        assert_eq!((sums.sessions, sums.events), (1, 0), "{orderly}");
        bed.look(async |parts| {
            assert_eq!(parts.items(&id).await, before, "{orderly}");
            assert_eq!(parts.row(&id).await.file_exists, Some(true));
        })
        .await;
        let again = bed.pass().await;
        assert_eq!((again.sessions, again.events), (0, 0), "{orderly}");
    }
    // While it is followed; then the folder goes away altogether.
    let bed = Bed::new();
    let main = bed.put(case, "-one");
    let parts = bed.open();
    let follower = parts.follow(&bed.options);
    let whole = async || parts.items(&id).await == parts.truth(&main);
    until("it is read", whole).await;
    let truth = parts.truth(&main);
    let events = parts.events(&id).await.len();
    let two = bed.projects().join("-two");
    fs::rename(main.parent().expect("folder"), &two).expect("rename");
    let moved = bed.file("-two", &id);
    let known = async || {
        let files = parts.store.files().await.expect("files");
        files.iter().any(|m| Path::new(&m.path) == moved && !m.gone)
    };
    until("it is known where it is", known).await;
    assert_eq!((parts.items(&id).await, parts.events(&id).await.len()), (truth, events));
    fs::rename(&two, bed.path().join("away")).expect("rename");
    let gone = async || parts.row(&id).await.file_exists == Some(false);
    until("it is gone", gone).await;
    follower.stop().await;
    parts.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_subagent_that_is_written_anew_doubles_nothing() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let begun = talk.line(1) + &talk.call(2, "toolu_1", "Task", &json!({"prompt": "Look."}));
    let main = bed.write(A, &talk.session, begun);
    let agent = main.with_extension("").join("subagents/agent-x1.jsonl");
    let note = json!({"toolUseId": "toolu_1"}).to_string();
    write(&agent.with_extension("meta.json"), note);
    let side = |of: &[u32]| {
        of.iter().map(|n| talk.side(*n, "x1", &format!("side {n}"))).collect::<String>()
    };
    write(&agent, side(&[3, 4, 5]));
    bed.cut_pass().await;
    for (lines, known) in
        [(&[3][..], 5), (&[3, 4, 5, 6], 6), (&[6, 5, 7], 7), (&[8, 3, 4, 5, 6, 7], 8)]
    {
        replace(&agent, side(lines));
        bed.cut_pass().await;
        let said = bed.texts(&talk.session).await;
        let mut sides: Vec<&String> = said.iter().filter(|t| t.starts_with("side")).collect();
        sides.sort();
        let want: Vec<String> = (3..=known).map(|n| format!("side {n}")).collect();
        assert_eq!(sides, want.iter().collect::<Vec<_>>(), "{lines:?}");
    }
}
