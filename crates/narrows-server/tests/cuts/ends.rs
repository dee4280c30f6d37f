//! Sources that end for now and go on later: files that grow between two readings, sessions that are said
//! to be over and are not, and answers after which nothing comes.

use crate::bed::{Bed, Cut};
use crate::common::{Post, TestServer, until};
use crate::planted::{ROOT, acp, canaries, claude, line};
use narrows::Format;
use narrows_engine::ingest::{Arrival, Reading, Wrapped};
use narrows_store::{Error, Session};
use serde_json::{Value, json};

fn reading(format: Format) -> Reading {
    let roots = vec![ROOT.to_owned()];
    Reading { format, arrival: Arrival::None, end: true, roots, ..Reading::default() }
}

/// Reads a file of so many lines, as one that may have been read before.
async fn read(bed: &Bed, session: &Session, lines: &[Vec<u8>], format: Format) {
    let known = bed.store.sources(session.key).await.expect("sources");
    let from = known.iter().find(|s| s.number == 0).map_or(0, |s| s.rest as usize);
    let reading = Reading { wrapped: true, ..reading(format) };
    let mut take = bed.intake.open(session, reading).await.expect("open");
    for (at, line) in lines.iter().enumerate().skip(from) {
        let offset = lines[..at].iter().map(Vec::len).sum::<usize>();
        let wrapped = Wrapped::line(0, at as u64 + 1, offset as u64, None, line.trim_ascii_end());
        let printed = serde_json::to_string(&wrapped).expect("JSON") + "\n";
        take.push(printed.as_bytes()).await.expect("push");
    }
    take.finish().await.expect("read");
}

async fn no_canaries(bed: &Bed, session: &Session, what: &str) {
    let rows = bed.rows(session).await;
    assert_eq!(canaries().into_iter().find(|canary| rows.contains(canary)), None, "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_reads_as_if_it_had_been_whole() {
    for (lines, format) in [(acp(7), Format::Acp), (claude(7), Format::ClaudeStream)] {
        let mut bed = Bed::new();
        let truth = bed.truth(&lines, format, ROOT);
        let mut whole = 0;
        for at in 1..lines.len() {
            let session = bed.session().await;
            read(&bed, &session, &lines[..at], format).await;
            let what = format!("{format:?} after {at} lines");
            no_canaries(&bed, &session, &what).await;
            // Letters that a word could begin with are shown, and cannot be taken back.
            let before = bed.items(&session).await;
            let is_whole = before.iter().zip(&truth).all(|(item, whole)| is_beginning(item, whole));
            whole += usize::from(is_whole);
            // By the same program, or by the next one.
            if at % 3 > 0 {
                bed.cut(if at % 3 == 1 { Cut::Term } else { Cut::Kill }).await;
            }
            read(&bed, &session, &lines, format).await;
            no_canaries(&bed, &session, &what).await;
            if is_whole {
                assert_eq!(bed.items(&session).await, truth, "{what}");
            }
        }
        assert!(whole > lines.len() * 4 / 5, "{whole} of {}", lines.len());
    }
}

/// Whether the text of an item is the beginning of another one's.
fn is_beginning(item: &Value, whole: &Value) -> bool {
    let text = |item: &Value| item["content"].as_str().or(item["text"].as_str()).map(str::to_owned);
    text(whole).unwrap_or_default().starts_with(&text(item).unwrap_or_default())
}

fn message(text: &str) -> Vec<u8> {
    let content = json!({"type": "text", "text": text});
    line(&json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_said_to_be_over_shows_no_half_of_a_secret() {
    let mut bed = Bed::new();
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let secrets =
        [token, "postgres://app:k9Lw2zQx7Vb4Rt8m@db/x".to_owned(), format!("{ROOT}/a.rs")];
    for secret in &secrets {
        for half in secret.len() / 2..secret.len() - 6 {
            for cut in [None, Some(Cut::Term), Some(Cut::Kill), Some(Cut::Evict)] {
                let (first, second) = secret.split_at(half);
                let first = format!("It is {first}");
                let parts = [message(&first), message(&format!("{second} and done."))];
                let truth = bed.truth(&parts, Format::Acp, ROOT);
                let session = bed.session().await;
                let say = async |bed: &Bed, reading: Reading, parts: &[Vec<u8>]| {
                    let mut take = bed.intake.open(&session, reading).await?;
                    take.push(&parts.concat()).await?;
                    take.finish().await
                };
                let answer = say(&bed, reading(Format::Acp), &parts[..1]).await.expect("kept");
                assert_eq!((answer.read, answer.acknowledged), (1, 0), "{secret:.4} {half}");
                if let Some(cut) = cut {
                    bed.cut(cut).await;
                }
                match say(&bed, reading(Format::Acp), &parts[1..]).await {
                    Ok(_) => assert_eq!(cut, None),
                    Err(Error::Resend { acknowledged: 0, .. }) => {
                        let all = Reading { first: Some(1), ..reading(Format::Acp) };
                        say(&bed, all, &parts).await.expect("sent again");
                    }
                    Err(error) => panic!("{error}"),
                }
                let what = format!("{secret:.4} at {half}, {cut:?}");
                no_canaries(&bed, &session, &what).await;
                assert_eq!(bed.items(&session).await, truth, "{what}");
            }
        }
    }
}

/// However often a session is said to be over in the middle of a text, and whatever happens between:
/// nothing comes twice, nothing is missing, nothing is shown that is to be hidden.
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_again_and_again_is_the_same() {
    let mut bed = Bed::new();
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let texts = [
        format!("one —dashBearer {token} ok. "),
        "one two DB_PASSWORD=k9Lw2zQx7Vb4Rt8m and Done".to_owned(),
        format!("see {ROOT}/src/main.rs, then go on"),
        "plain words, aa aa aa\n\n\nand no more".to_owned(),
    ];
    let seed = std::env::var("NARROWS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut dice: u64 = seed.unwrap_or(7);
    let mut roll = |most: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % most
    };
    let begins: Vec<&str> = [&token[..1], &token[..2], &token[..3], &token[..4]]
        .into_iter()
        .chain((1..6).map(|n| &ROOT[..n]))
        .chain([ROOT])
        .collect();
    let mut whole = 0;
    for round in 0..120_usize {
        let text: Vec<char> = texts[round % texts.len()].chars().collect();
        let output = round % 3 == 2;
        let (mut parts, mut borders) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < text.len() {
            let end = (at + 1 + roll(14) as usize).min(text.len());
            let piece: String = text[at..end].iter().collect();
            parts.push(if output { more_output(&piece) } else { message(&piece) });
            at = end;
            borders.push(at);
        }
        borders.push(at);
        parts.push(line(&json!({"type": "prompt_response", "stopReason": "end_turn"})));
        let truth = bed.truth(&parts, Format::Acp, ROOT);
        let session = bed.session().await;
        let what = format!("round {round}");
        let (mut sent, mut is_within, keyed) = (0, false, round % 2 == 1);
        let mut asked: Vec<(String, usize, usize, Reading)> = Vec::new();
        while sent < parts.len() {
            let until = (sent + 1 + roll(3) as usize).min(parts.len());
            let reading = Reading { end: roll(2) == 0, ..reading(Format::Acp) };
            let said: String =
                texts[round % texts.len()].chars().take(borders[until - 1]).collect();
            // By places, or by keys; those without a packet count as well.
            let mut asks = vec![(format!("{sent}-{until}"), sent, until, reading)];
            if roll(4) == 0 {
                let end = Reading { end: true, ..asks[0].3.clone() };
                asks.push((format!("{until}-end"), until, until, end));
            }
            let ends = asks.iter().any(|(.., reading)| reading.end);
            is_within |= ends && begins.iter().any(|begun| said.ends_with(begun));
            for ask in asks {
                asked.push(ask);
                let mut from = asked.len() - 1;
                while from < asked.len() {
                    let (key, first, until, reading) = &asked[from];
                    let (first, until) = (*first, *until);
                    let mut reading = reading.clone();
                    if keyed {
                        reading.key = Some(key.clone());
                    } else {
                        reading.first = Some(first as u64 + 1);
                    }
                    let done = async {
                        let mut take = bed.intake.open(&session, reading).await?;
                        take.push(&parts[first..until].concat()).await?;
                        take.finish().await
                    };
                    match done.await {
                        Ok(_) => from += 1,
                        Err(Error::Resend { key: Some(key), .. }) if keyed => {
                            let at = asked.iter().position(|(known, ..)| *known == key);
                            from = at.expect("a key that was given");
                        }
                        Err(Error::Resend { acknowledged, .. }) if !keyed => {
                            let (last, rest) = (asked.len() - 1, acknowledged as usize);
                            asked[last].1 = rest;
                            from = last;
                        }
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
            }
            sent = until;
            match roll(4) {
                0 => bed.cut(Cut::Term).await,
                1 => bed.cut(Cut::Kill).await,
                2 => bed.cut(Cut::Evict).await,
                _ => {}
            }
        }
        no_canaries(&bed, &session, &what).await;
        // Letters that something to hide begins with are shown where a session ends, and stay.
        if !is_within {
            assert_eq!(bed.items(&session).await, truth, "{what}");
            whole += 1;
        }
    }
    assert!(whole > 60, "{whole}");
}

fn more_output(piece: &str) -> Vec<u8> {
    let meta = json!({"terminal_output_delta": {"data": piece}});
    line(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress",
        "kind": "execute", "_meta": meta}))
}

/// All of it is shown at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_over_is_told_to_its_last_word() {
    let server = TestServer::start().await;
    for text in ["Done", "Look at /", "See commit 3f2a9c1", "It is in /srv", "Um zwei Uhr. "] {
        let session = server.session().await;
        let path = format!("end=true&root={ROOT}");
        server.packets(&session, &path, &message(text)).await;
        let items = server.items(&session).await;
        assert_eq!(items[0]["content"], *text, "{items:?}");
    }
}

/// Whatever its last word may become, an answer is shown whole when nothing has followed for a while;
/// in a request that goes on as well.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_shown_to_its_last_word() {
    let server = TestServer::start().await;
    let end = line(&json!({"type": "prompt_response", "stopReason": "end_turn"}));
    let texts =
        ["Done", "The folder is /srv", "Look at /", "It begins with sk-", "The hash is 3f2a9c1"];
    let (mut sessions, mut open) = (Vec::new(), Vec::new());
    for text in texts {
        let said = [message(text), end.clone()].concat();
        let session = server.session().await;
        server.packets(&session, &format!("root={ROOT}"), &said).await;
        sessions.push((text, session));
        let session = server.session().await;
        let path = format!("/api/sessions/{session}/packets?root={ROOT}");
        let mut post = Post::open(&server, &path, &[]).await;
        post.push(&said).await;
        sessions.push((text, session));
        open.push(post);
    }
    let is_kept = async |session: &str| {
        let path = format!("/api/sessions/{session}/packets");
        server.get(&path).await["sources"][0]["acknowledged"] == 2
    };
    for (text, session) in sessions {
        // It is kept: nobody has to send it again.
        until(text, async || is_kept(&session).await).await;
        assert_eq!(server.items(&session).await[0]["content"], *text);
    }
    // A whole secret is a mark, also there.
    let token = ["gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let session = server.session().await;
    let said = [message(&format!("Your new key is {token}")), end].concat();
    server.packets(&session, &format!("root={ROOT}"), &said).await;
    until("a secret at the end", async || is_kept(&session).await).await;
    let text = server.items(&session).await[0]["content"].to_string();
    assert!(text.starts_with("\"Your new key is [redacted:") && text.ends_with("]\""), "{text}");
}
