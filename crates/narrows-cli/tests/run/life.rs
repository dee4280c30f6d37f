//! Processes: what they get, and that none is left.

use crate::agents::{kill, until, zombies};
use crate::helper::{BOTH, Running, said};
use crate::served::serve;
use serde_json::json;

#[test]
fn a_server_that_was_not_told_to_runs_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let served = serve(&folder.path().join("data"), &[], &["--no-follow"]).expect("server");
    let (status, told) = served.post("/api/runs", br#"{"agent":"claude"}"#).expect("answer");
    assert_eq!((status, &told["error"]["code"]), (403, &json!("RUN_NOT_ALLOWED")), "{told}");
    assert_eq!(served.get("/api/agents").expect("agents").1["allowRun"], false);
    let id = served.session("x").expect("session");
    let (status, _) = served
        .post(&format!("/api/sessions/{id}/send-message"), br#"{"content":"x"}"#)
        .expect("answer");
    assert_eq!(status, 403);
}

#[test]
fn an_agent_gets_no_more_than_it_may() {
    let running = Running::start("environment = \"minimal\"");
    let id = running.session("acp");
    let told = said(&running.turn(&id, "env"));
    let names: Vec<&str> = told.split_whitespace().collect();
    assert!(names.contains(&"HOME") && names.contains(&"PATH"), "{told}");
    for name in ["NARROWS_LOG", "CARGO", "CARGO_MANIFEST_DIR", "NARROWS_CONFIG"] {
        assert!(!names.contains(&name), "{name} is seen: {told}");
    }
    assert_eq!(said(&running.turn(&id, "fds")).trim(), "0 1 2");
    assert_eq!(said(&running.turn(&id, "cwd")).trim(), ".");
    // Files and commands of the session's folder only.
    let told = said(&running.turn(&id, "write files/in.txt inside"));
    assert!(!told.contains("error"), "{told}");
    for path in ["/etc/passwd", "../../token", "files/../../../token"] {
        let told = said(&running.turn(&id, &format!("read {path}")));
        assert!(told.contains("error") && !told.contains("root:"), "{path}: {told}");
    }
    running.turn(&id, "bash ln -s / escape");
    let told = said(&running.turn(&id, "read escape/etc/passwd"));
    assert!(told.contains("outside"), "{told}");
    let outside = running.folder.path().join("evil");
    said(&running.turn(&id, &format!("write {} x", outside.display())));
    assert!(!outside.exists());
    let told = said(&running.turn(&id, "terminal echo from a terminal"));
    assert!(told.contains("from a terminal"), "{told}");
}

#[test]
fn on_ones_own_machine_an_agent_gets_what_the_shell_has() {
    let running = Running::start("");
    let id = running.session("valued");
    let told = said(&running.turn(&id, "env"));
    let names: Vec<&str> = told.split_whitespace().collect();
    for name in ["HOME", "PATH", "CARGO_MANIFEST_DIR", "VALUED_API_KEY"] {
        assert!(names.contains(&name), "{name} is missing: {told}");
    }
    for name in ["NARROWS_LOG", "NARROWS_CONFIG", "PWD", "LD_PRELOAD"] {
        assert!(!names.contains(&name), "{name} is seen: {told}");
    }
    // The agent has the value; nobody who reads has it.
    running.turn(&id, "bash printf %s $VALUED_API_KEY | wc -c\nbash echo $VALUED_API_KEY");
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    assert!(text.contains("25") && !text.contains("quiet-harbor"), "{text}");
    // By any name, unless it is no secret.
    running.turn(&id, "bash echo $VALUED_OTHER with $VALUED_MODEL");
    let text = serde_json::to_string(&running.items(&id)).expect("text");
    assert!(text.contains("with gpt-4o-mini") && !text.contains("p4ss9harbor"), "{text}");
}

#[test]
fn nothing_lives_on() {
    let mut running = Running::start("");
    let ids = [running.session("acp"), running.session("claude")];
    for id in &ids {
        running.turn(id, "fork\ndaemon\ndeaf\nsay ready");
    }
    assert!(running.alive().len() >= 4, "{:?}", running.alive());
    // The server ends as it should.
    let status = running.served.terminate();
    assert!(status.success(), "{status}");
    assert!(running.alive().is_empty(), "{:?}", running.alive());
    // The server is killed.
    running.again();
    for id in &ids {
        running.turn(id, "fork\ndaemon\ndeaf\nsay ready");
    }
    running.tell(&ids[0], "say in the middle\nhang");
    assert!(running.alive().len() >= 4, "{:?}", running.alive());
    running.served.kill();
    until("everybody is gone", || running.alive().is_empty());
    running.again();
    let last = running.items(&ids[0]).pop().expect("an item");
    assert_eq!(last["type"], "error", "the turn has an end: {last}");
}

#[test]
fn agents_come_and_go_without_a_trace() {
    let running = Running::start("");
    let pid = running.served.child.id();
    let open = || std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let id = running.session("acp");
    let cycles: usize =
        std::env::var("NARROWS_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(25);
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
    };
    let (mut before, mut took) = (0, 0);
    for n in 0..cycles {
        running.turn(&id, "exit 0");
        if n == cycles / 5 {
            (before, took) = (open(), memory());
        }
    }
    assert!(memory() <= took + 24, "{took} MB, then {} MB", memory());
    until("all are taken up", || zombies(pid) == 0);
    until("as many files are open as before", || open() <= before + 4);
    assert!(running.alive().is_empty());
}

#[test]
fn too_much_is_refused() {
    let running = Running::start("queue = 2\nagents = 2\nprocesses = 20\n");
    let id = running.session("acp");
    running.tell(&id, "wait 3000");
    running.until(&id, "running", |run| run["state"] == "running");
    running.tell(&id, "say a");
    running.tell(&id, "say b");
    let path = format!("/api/sessions/{id}/send-message?wait=false");
    assert_eq!(running.post(&path, &json!({"content": "say c"})).0, 429);
    let other = running.session("acp");
    running.turn(&other, "say two");
    let third = running.session("acp");
    let path = format!("/api/sessions/{third}/send-message?wait=false");
    assert_eq!(running.post(&path, &json!({"content": "say three"})).0, 429);
    assert_eq!(running.post(&path, &json!({"content": "  "})).0, 400);
}

#[test]
fn a_keeper_that_is_killed_leaves_nothing() {
    let running = Running::start("");
    // Whatever works in a folder of this test: agents, and what has detached itself from them.
    let root = running.folder.path().canonicalize().expect("folder");
    let here = || -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let is_here = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&root))
        };
        pids.filter(is_here).collect()
    };
    for agent in BOTH {
        let id = running.session(agent);
        // While it has nothing to do, and in the middle of a turn.
        for in_turn in [false, true] {
            running.turn(&id, "daemon\ndeaf\ndaemon\nsay ready");
            assert!(here().len() >= 4, "{agent}: {:?}", running.alive());
            if in_turn {
                running.tell(&id, "say begun\nwait 60000");
                running.until(&id, "running", |run| run["state"] == "running");
            }
            for line in running.alive().iter().filter(|line| line.contains(" __supervise ")) {
                let pid = line.split(' ').next().and_then(|pid| pid.parse().ok()).expect("pid");
                kill("-KILL", pid);
            }
            let run = running.until(&id, "ended", |run| run["state"] == "ended");
            assert!(run["error"].as_str().is_some_and(|e| e.contains("killed")), "{run}");
            until("everybody is gone", || here().is_empty());
            until("none is a zombie", || zombies(running.served.child.id()) == 0);
        }
        // The next message starts it again; others are left alone.
        assert!(said(&running.turn(&id, "say alive")).contains("alive"), "{agent}");
        running.post(&format!("/api/sessions/{id}/stop"), &json!({}));
    }
}
