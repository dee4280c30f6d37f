//! A PostgreSQL that has no connections left, and one whose disk is full: what fails can be tried again,
//! what was acknowledged stays, and all is well by itself once the cause is gone.

use crate::served::{Served, serve, truth};
use crate::servers::{alone, client, database, script};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn packet(n: usize) -> String {
    format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"c{n}","title":"bash","kind":"execute","status":"completed","rawInput":{{"command":"echo {n}"}},"rawOutput":{{"output":"{n}"}}}}"#
    ) + "\n"
}

/// Somebody who sends one packet after the other, and keeps what was not acknowledged.
struct Sender<'a> {
    served: &'a Served,
    session: String,
    sent: usize,
}

impl Sender<'_> {
    fn send(&mut self) -> Result<(u16, Value), String> {
        let path =
            format!("/api/sessions/{}/packets?arrived=none&first={}", self.session, self.sent + 1);
        let reply = self.served.post(&path, packet(self.sent).as_bytes())?;
        self.sent += usize::from(reply.0 == 200);
        Ok(reply)
    }

    /// Sends until it is taken; whatever fails meanwhile can be tried again.
    fn send_until_taken(&mut self) {
        let until = Instant::now() + Duration::from_mins(3);
        loop {
            let (status, told) = self.send().expect("answer");
            if status == 200 {
                return;
            }
            assert_eq!(told["error"]["retryable"], true, "{status} {told}");
            assert!(Instant::now() < until, "never taken: {status} {told}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn check(&self) {
        let packets: Vec<String> = (0..self.sent).map(packet).collect();
        assert_eq!(self.served.events(&self.session), truth(&packets, &self.session));
    }
}

#[test]
fn without_connections_what_fails_can_be_tried_again() {
    let Some(_alone) = alone() else { return };
    let url = database("few");
    let psql = |sql: &str| {
        let done = client("psql").args(["-qAtc", sql, "few"]).status();
        assert!(done.expect("psql").success(), "{sql}");
    };
    psql(
        "DROP ROLE IF EXISTS few; CREATE ROLE few LOGIN CONNECTION LIMIT 3; ALTER DATABASE few OWNER TO few; GRANT ALL ON SCHEMA public TO few",
    );
    let url = url.replace("narrows@", "few@");
    let dir = tempfile::tempdir().expect("folder");
    let served = serve(&dir.path().join("data"), &[], &["--store", &url]).expect("start");
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..24)
            .map(|n| {
                let served = &served;
                scope.spawn(move || {
                    let body = format!(r#"{{"label":"s{n}"}}"#);
                    served.post("/api/sessions", body.as_bytes()).expect("answer")
                })
            })
            .collect();
        for asked in asked {
            let (status, told) = asked.join().expect("asked");
            assert!(
                matches!(status, 200 | 201) || told["error"]["retryable"] == true,
                "{status} {told}"
            );
        }
    });
    psql("ALTER ROLE few CONNECTION LIMIT 40");
    let session = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        served.session("after").ok()
    });
    let mut sender = Sender { served: &served, session: session.expect("a session"), sent: 0 };
    (0..20).for_each(|_| sender.send_until_taken());
    sender.check();
}

#[test]
fn a_full_disk_of_postgres_is_told_and_survived() {
    let Some(_alone) = alone() else { return };
    // A server of its own, whose writes fail when a file says so.
    let dir = tempfile::tempdir().expect("folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).expect("mode");
    let (shim, flag, home) =
        (dir.path().join("fault.so"), dir.path().join("fault"), dir.path().join("services"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/served/fault.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(source).arg("-ldl");
    assert!(cc.status().expect("a C compiler").success());
    let services = |what: &str| {
        let mut run = Command::new(script());
        run.arg(what).arg(&home);
        if what == "up" {
            run.env("LD_PRELOAD", &shim).env("NARROWS_TEST_FAULT", &flag);
        }
        let done = run.output().expect("services");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let told = services("up");
    let url =
        told.lines().find_map(|line| line.strip_prefix("NARROWS_TEST_POSTGRES=")).expect("url");
    let served = serve(&dir.path().join("data"), &[], &["--store", url]).expect("start");
    let session = served.session("full").expect("session");
    let mut sender = Sender { served: &served, session, sent: 0 };
    (0..20).for_each(|_| sender.send_until_taken());
    std::fs::write(&flag, "28").expect("flag");
    let until = Instant::now() + Duration::from_mins(3);
    let (status, told) = loop {
        let reply = sender.send().expect("answer");
        if reply.0 != 200 {
            break reply;
        }
        assert!(Instant::now() < until, "it is never full");
    };
    assert!(matches!(status, 503 | 507), "{status} {told}");
    assert_eq!(told["error"]["retryable"], true, "{told}");
    assert_eq!(served.get("/healthz").expect("health").0, 503);
    std::fs::remove_file(&flag).expect("room");
    // PostgreSQL itself gives up when it cannot write its log; whoever operates it starts it again.
    services("up");
    (0..20).for_each(|_| sender.send_until_taken());
    sender.check();
    assert_eq!(served.get("/healthz").expect("health").0, 200);
    drop(served);
    services("down");
}
