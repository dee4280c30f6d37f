//! Files with damage in them: everything else is read, and the damage is told.

use crate::bed::{Bed, append, write};
use crate::lines::Talk;

/// Reads damaged lines, then more lines after them; both times all that can be read is there.
async fn reads_the_rest(name: &str, text: Vec<u8>, known: Vec<String>, talk: &Talk, next: u32) {
    let bed = Bed::new();
    let path = bed.write("-app", &talk.session, "");
    write(&path, text);
    bed.pass().await;
    let (mut known, bad) = (known, async || {
        bed.look(async |parts| {
            assert_eq!(parts.items(&talk.session).await, parts.truth(&path), "{name}");
            let events = parts.events(&talk.session).await;
            events.iter().filter(|e| e["type"] == "malformed").count()
        })
        .await
    });
    let before = bad().await;
    assert!(before > 0, "{name}: the damage is told");
    assert_eq!(bed.texts(&talk.session).await, known, "{name}");
    append(&path, talk.lines(next..next + 4));
    bed.cut_pass().await;
    known.extend(talk.texts(next..next + 4));
    assert_eq!(bed.texts(&talk.session).await, known, "{name}: and goes on");
    assert_eq!(bad().await, before, "{name}: the damage is told once");
    let again = bed.pass().await;
    assert_eq!((again.sessions, again.events), (0, 0), "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_record_with_the_next_one_glued_to_it() {
    let talk = Talk::new(1);
    let torn = &talk.line(3)[..120];
    let text = talk.lines(1..=2) + torn + &talk.lines(4..=6);
    let known = talk.texts([1, 2, 4, 5, 6]);
    reads_the_rest("glued", text.into_bytes(), known, &talk, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zeros_in_the_middle_of_a_file() {
    let talk = Talk::new(1);
    let zeros = "\0".repeat(700);
    let text = talk.lines(1..=2) + &zeros + "\n" + &talk.lines(3..=4);
    reads_the_rest("zeros", text.into_bytes(), talk.texts(1..=4), &talk, 5).await;
    // As a disk leaves them that was cut off: the next record follows at once.
    let text = talk.lines(1..=2) + &zeros + &talk.lines(3..=4);
    reads_the_rest("zeros, glued", text.into_bytes(), talk.texts(1..=4), &talk, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_line_of_a_thousand() {
    let talk = Talk::new(1);
    let mut text = talk.lines(1..=500).into_bytes();
    text.extend_from_slice(b"{\"type\":\"user\",\"message\":\xff\xfe\n");
    text.extend_from_slice(talk.lines(501..=999).as_bytes());
    reads_the_rest("one of many", text, talk.texts(1..=999), &talk, 1000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_never_got_its_end_and_one_after_it() {
    let bed = Bed::new();
    let talk = Talk::new(1);
    let line = talk.line(3);
    let path = bed.write("-app", &talk.session, talk.lines(1..=2) + &line[..100]);
    bed.pass().await;
    // The program was killed; the next one begins a line of its own.
    append(&path, "\n".to_owned() + &talk.lines(4..=5));
    bed.pass().await;
    bed.look(async |parts| {
        assert_eq!(parts.texts(&talk.session).await, talk.texts([1, 2, 4, 5]));
        assert_eq!(parts.items(&talk.session).await, parts.truth(&path));
    })
    .await;
}
