//! The server and the commands around it, as a user runs them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod served;

use served::{NARROWS, serve};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures").join(name)
}

fn narrows(data: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(NARROWS);
    command.args(words).env("NARROWS_DATA", data).env_remove("NARROWS_CONFIG");
    command.output().expect("run")
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ingest_is_the_same_with_a_server_and_without_one() {
    let dir = tempfile::tempdir().expect("folder");
    for name in ["claude-history/2.1-g-subagent", "acp/opencode-1.18-c-files"] {
        let file = fixture(name).join("input.jsonl");
        let file = file.to_str().expect("path");
        let (beside, through) = (dir.path().join("beside"), dir.path().join("through"));
        let told = out(&narrows(&beside, &["ingest", "--no-env", "--label", name, file]));
        assert!(told.contains(" new events"), "{told}");
        let served = serve(&through, &[], &[]).expect("start");
        out(&narrows(&through, &["ingest", "--no-env", "--label", name, file]));
        // Again: nothing is new, with the server and after it.
        let again = out(&narrows(&through, &["ingest", "--no-env", "--label", name, file]));
        assert!(again.contains(" 0 new events"), "{again}");
        let items = |served: &served::Served| {
            let session = served.session(name).expect("session");
            let (_, page) = served
                .get(&format!("/api/sessions/{session}/items?limit=500&preview=0"))
                .expect("items");
            page["items"].clone()
        };
        let of_server = items(&served);
        drop(served);
        let again = out(&narrows(&through, &["ingest", "--no-env", "--label", name, file]));
        assert!(again.contains(" 0 new events"), "{again}");
        let served = serve(&beside, &[], &[]).expect("start");
        assert_eq!(items(&served), of_server, "{name}");
        // And the same as parse prints.
        let parsed = out(&narrows(dir.path(), &["parse", "--no-env", file]));
        let mut parsed: Vec<serde_json::Value> =
            parsed.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        parsed.sort_by_key(|item| item["order"].as_u64());
        assert_eq!(serde_json::Value::Array(parsed), of_server, "{name}");
    }
}

#[test]
fn tokens_are_made_listed_and_revoked_with_a_server_and_without_one() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let alone = out(&narrows(&data, &["token", "create", "early", "--scopes", "read"]));
    let served = serve(&data, &[], &[]).expect("start");
    let made =
        out(&narrows(&data, &["token", "create", "late", "--scopes", "read,write", "--ttl", "1h"]));
    for secret in [&alone, &made] {
        let reply = served
            .agent
            .get(format!("{}/api/me", served.url))
            .header("authorization", format!("Bearer {}", secret.trim()))
            .call()
            .expect("answer");
        assert_eq!(reply.status(), 200);
    }
    let list = out(&narrows(&data, &["token", "list"]));
    let line = list.lines().find(|l| l.contains(" early ")).expect("early");
    assert!(!list.contains("nrw_"), "{list}");
    let id = line.split_whitespace().next().expect("id");
    out(&narrows(&data, &["token", "revoke", id]));
    let reply = served
        .agent
        .get(format!("{}/api/me", served.url))
        .header("authorization", format!("Bearer {}", alone.trim()))
        .call()
        .expect("answer");
    assert_eq!(reply.status(), 401);
    let url = out(&narrows(&data, &["login-url"]));
    assert!(url.starts_with(&served.url) && url.contains("/#ticket="), "{url}");
}

#[test]
fn a_backup_is_restored_as_a_new_life_of_every_log() {
    let dir = tempfile::tempdir().expect("folder");
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy.db"));
    let copy_name = copy.to_str().expect("path");
    let mut served = serve(&data, &[], &[]).expect("start");
    let file = fixture("acp/opencode-1.18-c-files/input.jsonl");
    out(&narrows(&data, &["ingest", "--label", "kept", file.to_str().expect("path")]));
    let session = served.session("kept").expect("session");
    let (_, before) = served.get(&format!("/api/sessions/{session}")).expect("session");
    // While the server runs.
    out(&narrows(&data, &["backup", copy_name]));
    let refused = narrows(&data, &["restore", copy_name]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another narrows"), "{refused:?}");
    served.delete(&format!("/api/sessions/{session}")).expect("delete");
    assert!(served.terminate().success(), "a clean end");
    assert!(out(&narrows(&data, &["restore", copy_name])).contains("1 session restored"));
    let served = serve(&data, &[], &[]).expect("start");
    let (_, after) = served.get(&format!("/api/sessions/{session}")).expect("session");
    assert_eq!(before["events"], after["events"]);
    let epoch = |s: &serde_json::Value| {
        s["cursor"].as_str().expect("cursor").split('-').next().map(str::to_owned)
    };
    assert_ne!(epoch(&before), epoch(&after));
}

#[test]
fn what_is_unsafe_or_taken_is_refused_in_clear_words() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let open = narrows(&data, &["serve", "--bind", "0.0.0.0:0"]);
    let told = String::from_utf8_lossy(&open.stderr).into_owned();
    assert!(
        !open.status.success() && told.contains("--tls-cert") && told.contains("127.0.0.1"),
        "{told}"
    );
    let _served = serve(&data, &[], &[]).expect("start");
    let second = narrows(&data, &["serve", "--bind", "127.0.0.1:0"]);
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && told.contains("another narrows (process"), "{told}");
    let bad = dir.path().join("config.toml");
    std::fs::write(&bad, "[serve]\nbind = \"127.0.0.1:0\"\nnonsense = 1\n").expect("config");
    let faulty = narrows(&data, &["serve", "--config", bad.to_str().expect("path")]);
    let told = String::from_utf8_lossy(&faulty.stderr).into_owned();
    assert!(!faulty.status.success() && told.contains("line 3"), "{told}");
}

#[test]
fn the_config_file_and_the_environment_set_what_the_command_line_does_not() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let config = dir.path().join("config.toml");
    let text = "[serve]\nallow_origins = [\"https://app.example\"]\n[serve.limits]\nstreams_per_token = 7\n";
    std::fs::write(&config, text).expect("config");
    let served = serve(&data, &[], &["--config", config.to_str().expect("path")]).expect("start");
    let (_, limits) = served.get("/api/limits").expect("limits");
    assert_eq!(limits["streamsPerToken"], 7);
    let reply = served
        .agent
        .get(format!("{}/healthz", served.url))
        .header("origin", "https://app.example")
        .call()
        .expect("answer");
    assert_eq!(reply.headers()["access-control-allow-origin"], "https://app.example");
}

#[test]
fn planted_secrets_and_roots_are_nowhere_but_where_they_must_be() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let mut served = serve(&data, &[], &["--log-format", "json"]).expect("start");
    let session = served.session("canary").expect("session");
    let secret = concat!("ghp_", "Zk3vQ9xW1rT7yU2iO5pA8sD4fG6hJ0kL3zX9");
    let root = "/srv/canary-root-4711/work";
    let own = served.token.clone();
    let new = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": root}});
    let say = |text: String| serde_json::json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let body = format!(
        "{new}\n{}\n{}\n{}\nnot json {secret}\n",
        say(format!("token {secret} in {root}/src")),
        say(format!("again {}", &secret[..20])),
        say(format!("{} and {own}", &secret[20..]))
    );
    let path = format!("/api/sessions/{session}/packets?end=true");
    assert_eq!(served.post(&path, body.as_bytes()).expect("send").0, 200);
    let mut shown = String::new();
    for view in ["items?preview=0", "packets", ""] {
        shown +=
            &served.get(&format!("/api/sessions/{session}/{view}")).expect("view").1.to_string();
    }
    shown += &serde_json::to_string(&served.events(&session)).expect("JSON");
    shown += &served.get("/api/search?q=token").expect("search").1.to_string();
    shown += &served.get("/metrics").expect("metrics").1.to_string();
    assert!(served.terminate().success());
    let log = served.log();
    assert!(shown.contains("redacted:github-token"), "{shown}");
    for (place, text) in [("answers", &shown), ("log", &log)] {
        for planted in [secret, &secret[4..20], root, "canary-root", own.as_str()] {
            assert!(!text.contains(planted), "{planted} in {place}");
        }
    }
    // The data directory has the root where the session goes on from, and no secret.
    for entry in std::fs::read_dir(&data).expect("data") {
        let path = entry.expect("entry").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let has = |what: &str| bytes.windows(what.len()).any(|w| w == what.as_bytes());
        assert!(!has(secret) && !has(&secret[4..20]), "{}", path.display());
        assert!(!has(&own) || path.ends_with("token"), "{}", path.display());
    }
}
