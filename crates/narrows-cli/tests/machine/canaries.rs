//! Secrets and paths that are planted in sessions: no command shows them, no file keeps them.

use crate::home::{Machine, SOON, Script, within};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Where the agent worked.
pub(crate) const ROOT: &str = "/srv/canary-root-4711/work";
/// What must not show, and how it is planted.
pub(crate) const SECRETS: [(&str, &str); 4] = [
    (
        concat!("Q7ZW3", "LMX5CVB2NKP"),
        concat!("AWS Access Key ID [None]: AKIA", "Q7ZW3LMX5CVB2NKP"),
    ),
    (
        concat!("16C7e42F292c", "6912E7710c838347Ae178B4a"),
        concat!("token ghp_", "16C7e42F292c6912E7710c838347Ae178B4a in use"),
    ),
    (concat!("s3cr3t", "-Pa55"), concat!("postgres://app:s3cr3t", "-Pa55@db:5432/x")),
    // Known by the environment of narrows, in a form that no rule knows.
    (concat!("plain-words", "-of-mine"), concat!("say plain-words", "-of-mine to enter")),
];
const FORMS: [&str; 5] = ["text", "md", "html", "json", "jsonl"];

/// Everything at once, and a word by which it is found again.
fn planted(home: &Path, word: &str) -> String {
    let secrets: Vec<&str> = SECRETS.iter().map(|(_, planted)| *planted).collect();
    let home = home.display();
    format!("{word}: {}; see {ROOT}/src/main.rs and {home}/notes.txt end", secrets.join("; "))
}

/// A machine on which every part of a session says it.
pub(crate) fn machine() -> (Machine, Script) {
    let mut machine = Machine::new();
    machine.set("SERVICE_PASSWORD", SECRETS[3].0.into());
    machine.set(
        "NARROWS_LOG",
        "debug,narrows=trace,narrows_engine=trace,narrows_server=trace,narrows_store=trace".into(),
    );
    let home = machine.home();
    let say = |word: &str| planted(&home, word);
    let todo =
        json!({ "todos": [{ "content": say("todo"), "activeForm": "x", "status": "pending" }] });
    let id = Script::empty(7, ROOT).id;
    let folder = machine.file(&Script::empty(7, ROOT)).with_extension("");
    let result = |id: &str, text: String| {
        json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": text }
        ]})
    };
    let use_of = |id: &str, name: &str, input| {
        json!({
            "id": format!("msg-{id}"), "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{ "type": "tool_use", "id": id, "name": name, "input": input }],
        })
    };
    let path = format!("{ROOT}/ghp_{}.txt", SECRETS[1].0);
    let script = Script::empty(7, ROOT)
        .asks(&say("prompt"))
        .thinks(&say("thought"))
        .says(&say("answer"))
        .calls("Bash", &json!({ "command": say("command"), "description": say("about") }), &say("output"))
        .calls("Write", &json!({ "file_path": path, "content": say("written") }), "created")
        .calls("TodoWrite", &todo, "modified")
        .calls("mcp__odd__tool", &json!({ say("key"): say("value") }), &say("odd"))
        // A subagent, and an output that lies in a file of its own.
        .record("assistant", &json!({ "message": use_of("toolu_sub", "Agent", json!({ "prompt": say("task"), "description": "Look" })) }))
        .record("user", &json!({ "message": result("toolu_sub", say("report")), "toolUseResult": { "agentId": "x1" } }))
        .record("assistant", &json!({ "message": use_of("toolu_long", "Bash", json!({ "command": "cat long" })) }))
        .record("user", &json!({
            "message": result("toolu_long", "<persisted-output>cut</persisted-output>".to_owned()),
            "toolUseResult": { "stdout": "cut", "stderr": "", "persistedOutputPath": folder.join("tool-results/long.txt") },
        }))
        .record("something-new", &json!({ "content": say("unknown") }))
        .record("system", &json!({ "subtype": "api_error", "content": say("error"), "level": "error" }))
        .titled(&format!("Title {}", SECRETS[1].1));
    machine.write(&script);
    let broken = format!("{{\"type\":\"user\",\"cwd\":\"{ROOT}\",\"broken {}\n", say("malformed"));
    fs::write(machine.file(&script), script.text.clone() + &broken).expect("write");
    for (name, text) in [
        (
            "subagents/agent-x1.meta.json",
            json!({ "toolUseId": "toolu_sub", "description": say("meta") }).to_string(),
        ),
        ("subagents/agent-x1.jsonl", sidechain(&id, &say("subagent"))),
        ("tool-results/long.txt", say("offloaded")),
    ] {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("folder")).expect("folder");
        fs::write(file, text).expect("write");
    }
    (machine, script)
}

fn sidechain(session: &str, text: &str) -> String {
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(20);
    let record = json!({
        "type": "user", "isSidechain": true, "agentId": "x1", "sessionId": session, "cwd": ROOT,
        "uuid": "77777777-0000-4000-8000-000000000001", "version": "2.1.325",
        "timestamp": later.to_string(), "message": { "role": "user", "content": text },
    });
    record.to_string() + "\n"
}

/// No secret and no root is in what was told.
fn assert_clean(what: &str, told: &str) {
    let lower = told.to_lowercase();
    let needles = SECRETS.iter().map(|(secret, _)| *secret).chain([ROOT, "canary-root"]);
    for needle in needles {
        if let Some(at) = lower.find(&needle.to_lowercase()) {
            let from = lower.floor_char_boundary(at.saturating_sub(200));
            let to = lower.ceil_char_boundary((at + 100).min(lower.len()));
            panic!("{what} tells {needle}: …{}…", &lower[from..to]);
        }
    }
}

/// Not the home directory either: it is `~`.
fn assert_at_home(machine: &Machine, what: &str, told: &str) {
    assert_clean(what, told);
    let home = machine.home().to_str().expect("path").to_owned();
    assert!(!told.contains(&home), "{what} tells {home}: {told}");
}

/// No file below a folder has a secret.
fn assert_files_clean(folder: &Path) {
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            assert_files_clean(&path);
            continue;
        }
        let bytes = fs::read(&path).expect("read");
        for (secret, _) in SECRETS {
            let found =
                bytes.windows(secret.len()).any(|w| w.eq_ignore_ascii_case(secret.as_bytes()));
            assert!(!found, "{secret} in {}", path.display());
        }
    }
}

#[test]
fn no_command_tells_a_secret_or_where_the_agent_worked() {
    let (machine, script) = machine();
    let all = |words: &[&str]| {
        let told = machine.told(words);
        assert_eq!(told.code, Some(0), "{words:?}: {told:?}");
        told.out + &told.err
    };
    assert_clean("index", &all(&["index"]));
    let everything = all(&["show", &script.id, "--all", "--format", "json"]);
    for word in [
        "prompt",
        "thought",
        "answer",
        "command",
        "output",
        "written",
        "todo",
        "task",
        "report",
        "subagent",
        "offloaded",
    ] {
        assert!(everything.contains(&format!("{word}: ")), "{word} was read");
    }
    assert!(
        everything.contains("[redacted:github-token:")
            && everything.contains("[redacted:url-password:")
    );
    for words in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "prompt"],
        &["search", "redacted"],
        &["search", "--json", "offloaded"],
        &["search", "notes.txt"],
        &["stats", "--by", "project"],
        &["stats", "--by", "session", "--json"],
        &["stats", "--by", "tool"],
    ] {
        assert_at_home(&machine, &words.join(" "), &all(words));
    }
    for form in FORMS {
        for more in [&[][..], &["--all"]] {
            let words = [&["show", &script.id, "--format", form][..], more].concat();
            let told = all(&words);
            assert!(told.contains("redacted:"), "{form}: {told}");
            assert_at_home(&machine, &words.join(" "), &told);
        }
        let file = format!("export.{}", form.replace("text", "txt"));
        assert_clean("export", &all(&["export", &script.id, "-o", &file]));
        let written = fs::read_to_string(machine.path(&file)).expect("file");
        assert!(written.contains("redacted:"), "{form}");
        assert_at_home(&machine, &file, &written);
    }
    for words in [&["doctor"][..], &["doctor", "--json"]] {
        let told = machine.told(words);
        assert_clean(&words.join(" "), &(told.out + &told.err));
    }
    let mut watch = machine.start(&["watch", "--tool-output", "--thinking", "-n", "100"]);
    watch.prints(crate::home::SOON, "subagent: ");
    assert_eq!(watch.signal("INT"), Some(0));
    assert_at_home(&machine, "watch", &(watch.out() + &watch.err()));
    // What is not kept is not found.
    for secret in SECRETS.iter().map(|(secret, _)| *secret).chain(["canary-root"]) {
        let told = machine.told(&["search", "--", &format!("\"{secret}\"")]);
        assert_eq!((told.code, told.out.as_str()), (Some(1), ""), "{secret}: {told:?}");
    }
    assert_clean("backup", &all(&["backup", "copy.db"]));
    assert_files_clean(&machine.data());
    fs::create_dir(machine.path("copies")).expect("folder");
    fs::rename(machine.path("copy.db"), machine.path("copies/copy.db")).expect("move");
    assert_files_clean(&machine.path("copies"));
    assert_clean("rm", &all(&["rm", "-y", &script.id]));
    assert_files_clean(&machine.data());
}

#[test]
fn no_server_tells_a_secret_or_where_the_agent_worked() {
    let (machine, script) = machine();
    let mut server = machine.serve(&[]);
    let row = within(SOON, "the session", || {
        server.session(&script).filter(|s| s["items"].as_u64() >= Some(8))
    });
    let id = row["id"].as_str().expect("id").to_owned();
    // It goes on, and somebody watches.
    let mut watch = machine.start(&["watch", "--tool-output", "--thinking"]);
    watch.prints(crate::home::SOON, "redacted:");
    let late = script.clone().says(&planted(&machine.home(), "later"));
    machine.grow(&script, late);
    watch.prints(SOON, "later: ");
    assert_eq!(watch.signal("INT"), Some(0));
    assert_at_home(&machine, "watch", &(watch.out() + &watch.err()));
    for path in [
        "/api/sessions".to_owned(),
        format!("/api/sessions/{id}"),
        format!("/api/sessions/{id}/items?preview=0&limit=500"),
        format!("/api/sessions/{id}/items"),
        format!("/api/sessions/{id}/packets"),
        "/api/search?q=redacted".to_owned(),
        "/api/audit".to_owned(),
        "/api/limits".to_owned(),
        "/metrics".to_owned(),
    ] {
        assert_at_home(&machine, &path, &server.text(&path));
    }
    for view in ["events", "items", "activity", "packets"] {
        let told = server.events(&id, view);
        assert!(told.contains("redacted:"), "{view}");
        assert_at_home(&machine, view, &told);
    }
    let beside = machine.told(&["ls", "--json"]);
    assert_at_home(&machine, "ls", &(beside.out + &beside.err));
    // While it runs, and when it has ended.
    assert_files_clean(&machine.data());
    assert_eq!(server.running.signal("TERM"), Some(0));
    assert_clean("greeting", &server.running.out());
    assert!(server.running.err().len() > 100, "there is a log");
    assert_clean("log", &server.running.err());
    assert_files_clean(&machine.data());
}

#[test]
fn a_subagent_that_is_read_first_tells_no_root_either() {
    let mut machine = Machine::new();
    machine.set("SERVICE_PASSWORD", SECRETS[3].0.into());
    let script = Script::empty(7, ROOT);
    // As it begins: a record that does not tell where the agent works.
    let queued = json!({
        "type": "queue-operation", "operation": "enqueue", "sessionId": script.id,
        "timestamp": jiff::Timestamp::now().to_string(), "content": "x",
    });
    let mut begun = script.clone();
    begun.text = format!("{queued}\n");
    machine.write(&begun);
    let folder = machine.file(&script).with_extension("").join("subagents");
    fs::create_dir_all(&folder).expect("folder");
    let meta = json!({ "toolUseId": "toolu_sub" }).to_string();
    fs::write(folder.join("agent-x1.meta.json"), meta).expect("write");
    let said = sidechain(&script.id, &planted(&machine.home(), "subagent"));
    fs::write(folder.join("agent-x1.jsonl"), said).expect("write");
    let told = machine.told(&["show", &script.id]);
    assert!(told.out.contains("subagent: "), "{told:?}");
    assert_clean("show", &told.out);
}
