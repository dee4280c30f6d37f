//! What was acknowledged is there, once, whatever happens to the process or the disk.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod served;

use served::{Dice, Served, serve, serve_with, truth};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A packet that gives an event at once, or a piece of a text that is held back.
fn packet(writer: usize, n: usize) -> String {
    let update = match n % 5 {
        0..3 => format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"w{writer}-{n}","title":"bash","kind":"execute","status":"completed","rawInput":{{"command":"echo {n}"}},"rawOutput":{{"output":"{n}"}}}}"#
        ),
        3 => format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"w{writer} said {n} "}}}}"#
        ),
        _ => r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#
            .to_owned(),
    };
    update + "\n"
}

struct Writer {
    label: String,
    packets: Vec<String>,
    /// The place up to which everything was acknowledged.
    acknowledged: usize,
}

impl Writer {
    /// Sends some packets; false when the server is gone.
    fn send(&mut self, served: &Served, number: usize, some: usize) -> Result<(), String> {
        let session = served.session(&self.label)?;
        let (_, state) = served.get(&format!("/api/sessions/{session}/packets"))?;
        let place = state["sources"][0]["acknowledged"].as_u64().unwrap_or(0) as usize;
        assert!(
            place >= self.acknowledged,
            "{} was acknowledged, {place} is there",
            self.acknowledged
        );
        while self.packets.len() < place + some {
            self.packets.push(packet(number, self.packets.len()));
        }
        let body = self.packets[place..place + some].concat();
        let path = format!("/api/sessions/{session}/packets?arrived=none&first={}", place + 1);
        let (status, answer) = served.post(&path, body.as_bytes())?;
        if status != 200 {
            return Err(format!("{status}: {answer}"));
        }
        self.acknowledged = answer["acknowledged"].as_u64().expect("acknowledged") as usize;
        Ok(())
    }
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let kills = std::env::var("NARROWS_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let seed = std::env::var("NARROWS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let mut dice = Dice(seed);
    let writers: Vec<Arc<Mutex<Writer>>> = (0..4)
        .map(|n| {
            let label = format!("writer-{n}");
            Arc::new(Mutex::new(Writer { label, packets: Vec::new(), acknowledged: 0 }))
        })
        .collect();
    let (mut slowest, mut acknowledged) = (Duration::ZERO, 0);
    for kill in 0..kills {
        let began = Instant::now();
        let mut served = serve(&data, &[], &[]).unwrap_or_else(|e| panic!("start {kill}: {e}"));
        slowest = slowest.max(began.elapsed());
        let stop = AtomicBool::new(false);
        let wait = Duration::from_millis(20 + dice.roll(150));
        std::thread::scope(|scope| {
            for (number, writer) in writers.iter().enumerate() {
                let (served, stop) = (&served, &stop);
                let some = 1 + dice.roll(60) as usize;
                scope.spawn(move || {
                    let mut writer = writer.lock().expect("writer");
                    while !stop.load(Ordering::Relaxed) && writer.send(served, number, some).is_ok()
                    {
                    }
                });
            }
            let pid = served.child.id().to_string();
            std::thread::sleep(wait);
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
            stop.store(true, Ordering::Relaxed);
        });
        served.kill();
        acknowledged = writers.iter().map(|w| w.lock().expect("writer").acknowledged).sum();
    }
    let served = serve(&data, &[], &[]).expect("start");
    for (number, writer) in writers.iter().enumerate() {
        let mut writer = writer.lock().expect("writer");
        let kept = writer.acknowledged;
        // The rest, so that nothing is held back when we compare.
        while writer.acknowledged < writer.packets.len() {
            let left = writer.packets.len() - writer.acknowledged;
            writer.send(&served, number, left).expect("send");
            let session = served.session(&writer.label).expect("session");
            let end = format!("/api/sessions/{session}/packets?end=true");
            assert_eq!(served.post(&end, b"").expect("end").0, 200);
            writer.acknowledged = writer.packets.len();
        }
        assert!(writer.packets.len() >= kept && kept > 0, "writer {number} acknowledged {kept}");
        let session = served.session(&writer.label).expect("session");
        let (there, should) = (served.events(&session), truth(&writer.packets, &session));
        let differs = there.iter().zip(&should).position(|(a, b)| a != b);
        assert_eq!(
            differs,
            None,
            "writer {number}: {:?}",
            differs.map(|n| (&there[n], &should[n]))
        );
        assert_eq!(there.len(), should.len(), "writer {number}");
    }
    println!("{kills} kills, {acknowledged} packets acknowledged, slowest start {slowest:?}");
}

#[test]
fn a_full_disk_is_told_and_survived() {
    let dir = tempfile::tempdir().expect("folder");
    let mount = dir.path().join("disk");
    std::fs::create_dir(&mount).expect("folder");
    // A small disk of its own.
    let script = format!("mount -t tmpfs -o size=6m tmpfs '{}' && exec \"$@\"", mount.display());
    let wrap = ["unshare", "-rm", "sh", "-c", &script, "sh"];
    let served = serve(&mount.join("data"), &wrap, &[])
        .unwrap_or_else(|e| panic!("this test needs user namespaces (unshare -rm): {e}"));
    let session = served.session("full").expect("session");
    let path = format!("/api/sessions/{session}/packets?arrived=none");
    let body: String = (0..200).map(|n| packet(0, n)).collect();
    assert_eq!(served.post(&path, body.as_bytes()).expect("first").0, 200);
    let before = served.events(&session).len();
    // Something else fills the disk.
    let inside = format!("/proc/{}/root{}", served.child.id(), mount.display());
    let filler = Path::new(&inside).join("filler");
    let _ = std::fs::write(&filler, vec![1; 8 << 20]);
    let (rounds, (status, answer)) = fill(&served, &path);
    assert_eq!((status, answer["error"]["code"].as_str()), (507, Some("STORE_FULL")), "{answer}");
    assert_eq!(answer["error"]["retryable"], true);
    assert_eq!(served.get("/healthz").expect("health").0, 503);
    let during = served.events(&session).len();
    assert!(during >= before, "reads go on");
    // There is room again: it goes on by itself, once what was held back is sent again.
    std::fs::remove_file(&filler).expect("room");
    let sent = (0..200).chain((0..=rounds).flat_map(|_| 0..2000)).map(|n| packet(0, n));
    let sent: Vec<String> = sent.collect();
    let status = eventually(|| {
        let refused = served.post(&path, body.as_bytes())?;
        let Some(first) = refused.1["error"]["first"].as_u64() else { return Ok(refused) };
        assert_eq!(refused.1["error"]["code"], "RESEND");
        let from = usize::try_from(first - 1).expect("small");
        served.post(&format!("{path}&first={first}"), sent[from..].concat().as_bytes())
    });
    assert_eq!(status, 200);
    assert_eq!(served.get("/healthz").expect("health").0, 200);
}

#[test]
fn a_file_that_may_not_grow_is_told_and_survived() {
    let dir = tempfile::tempdir().expect("folder");
    // Blocks of 512 bytes: no file of it has more than 2 MiB.
    let wrap = ["sh", "-c", "ulimit -f 4096 && exec \"$@\"", "sh"];
    let mut served = serve(&dir.path().join("data"), &wrap, &[]).expect("start");
    let session = served.session("limited").expect("session");
    let path = format!("/api/sessions/{session}/packets?arrived=none");
    // The write-ahead log is the first file that is full. It can begin anew, and the rest goes in, until
    // the database is full too.
    let (rounds, _) = fill(&served, &path);
    let body: Vec<String> = (0..2000).map(|n| packet(0, n)).collect();
    let mut sent: Vec<String> = (0..=rounds).flat_map(|_| body.clone()).collect();
    for round in 0.. {
        assert!(round < 50, "no file is full");
        if served.get("/healthz").expect("health").0 == 503 {
            break;
        }
        sent.extend_from_slice(&body);
        let (mut status, mut answer) =
            served.post(&path, body.concat().as_bytes()).expect("answer");
        if let Some(first) = answer["error"]["first"].as_u64() {
            let from = usize::try_from(first - 1).expect("small");
            let again = format!("{path}&first={first}");
            (status, answer) =
                served.post(&again, sent[from..].concat().as_bytes()).expect("answer");
        }
        assert!([200, 409, 503, 507].contains(&status), "{status} {answer}");
        assert!(status == 200 || answer["error"]["retryable"] == true, "{answer}");
    }
    assert!(!served.events(&session).is_empty(), "reads go on");
    assert_eq!(served.get("/livez").expect("alive").0, 200);
    assert_eq!(served.child.try_wait().expect("state"), None, "it goes on");
    served.kill();
    assert!(served.log().contains("ulimit -f"), "the log says why");
}

#[test]
fn a_disk_that_fails_is_told_and_survived() {
    let dir = tempfile::tempdir().expect("folder");
    let (shim, flag) = (dir.path().join("fault.so"), dir.path().join("fault"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/served/fault.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&shim)
        .arg(source)
        .arg("-ldl")
        .output();
    let built = built.expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let environment = [("LD_PRELOAD", shim.as_path()), ("NARROWS_TEST_FAULT", flag.as_path())];
    let served = serve_with(&dir.path().join("data"), &[], &[], &environment).expect("start");
    let session = served.session("fault").expect("session");
    let mut writer = Writer { label: "fault".to_owned(), packets: Vec::new(), acknowledged: 0 };
    writer.send(&served, 0, 50).expect("send");
    // A read-only file system, one with errors, a full one, one over its quota.
    for (errno, name) in [(30, "EROFS"), (5, "EIO"), (28, "ENOSPC"), (122, "EDQUOT")] {
        let before = served.events(&session).len();
        std::fs::write(&flag, errno.to_string()).expect("flag");
        let refused = writer.send(&served, 0, 50).expect_err(name);
        assert!(refused.starts_with("503") || refused.starts_with("507"), "{name}: {refused}");
        assert!(refused.contains(r#""retryable":true"#), "{name}: {refused}");
        assert_eq!(served.get("/healthz").expect("health").0, 503, "{name}");
        assert_eq!(served.events(&session).len(), before, "{name}: reads go on");
        std::fs::remove_file(&flag).expect("flag");
        // It goes on by itself, and nothing is there twice.
        writer.send(&served, 0, 50).expect(name);
        assert_eq!(served.get("/healthz").expect("health").0, 200, "{name}");
    }
    let path = format!("/api/sessions/{session}/packets?end=true");
    assert_eq!(served.post(&path, b"").expect("end").0, 200);
    let (there, should) = (served.events(&session), truth(&writer.packets, &session));
    let differs = there.iter().zip(&should).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{:?}", differs.map(|n| (&there[n], &should[n])));
    assert_eq!(there.len(), should.len());
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_in_clear_words() {
    let dir = tempfile::tempdir().expect("folder");
    let script = format!("mount -t tmpfs -o ro tmpfs '{}' && exec \"$@\"", dir.path().display());
    let wrap = ["unshare", "-rm", "sh", "-c", &script, "sh"];
    let told = serve(&dir.path().join("data"), &wrap, &[]).err().expect("refused");
    assert!(told.contains("data directory") && told.contains("Read-only"), "{told}");
}

/// Sends until the store is full: how often that went well, and what came then.
fn fill(served: &Served, path: &str) -> (usize, (u16, serde_json::Value)) {
    let body: String = (0..2000).map(|n| packet(0, n)).collect();
    for round in 0..20 {
        let (status, answer) = served.post(path, body.as_bytes()).expect("answer");
        if status != 200 {
            return (round, (status, answer));
        }
    }
    panic!("the disk is not full");
}

fn eventually(mut ask: impl FnMut() -> Result<(u16, serde_json::Value), String>) -> u16 {
    let until = Instant::now() + Duration::from_mins(2);
    loop {
        let (status, answer) = ask().expect("answer");
        if status == 200 || Instant::now() > until {
            assert_eq!(status, 200, "{answer}");
            return status;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
