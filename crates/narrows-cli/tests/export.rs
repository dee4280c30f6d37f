//! A session as a file: the command and the server write the same bytes.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod served;

use served::{NARROWS, serve};
use std::path::Path;
use std::process::Command;

#[test]
fn the_command_and_the_server_write_the_same() {
    let dir = tempfile::tempdir().expect("folder");
    let data = dir.path().join("data");
    let served = serve(&data, &[], &[]).expect("start");
    for name in [
        "claude-history/2.1-g-subagent",
        "claude-history/2.1-u-user-image",
        "claude-stream/made-subagents-at-once",
        "acp/odd-several-diffs",
        "acp/odd-permission-unanswered",
        "acp/odd-empty-input",
    ] {
        let id = served.session(name).expect("session");
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows/tests/fixtures");
        let input = std::fs::read(fixtures.join(name).join("input.jsonl")).expect("input");
        let (status, told) =
            served.post(&format!("/api/sessions/{id}/packets"), &input).expect("packets");
        assert_eq!(status, 200, "{told}");
        for (format, ending) in
            [("text", "txt"), ("md", "md"), ("html", "html"), ("json", "json"), ("jsonl", "jsonl")]
        {
            let url = format!("{}/api/sessions/{id}/export?format={format}", served.url);
            let request =
                served.agent.get(url).header("authorization", format!("Bearer {}", served.token));
            let mut reply = request.call().expect("reply");
            assert_eq!(reply.status().as_u16(), 200, "{name} {format}");
            let over_http = reply.body_mut().read_to_vec().expect("body");
            let file = dir.path().join(format!("{id}.{ending}"));
            let done = Command::new(NARROWS)
                .args(["export", &id, "--no-scan", "-o"])
                .arg(&file)
                .env("NARROWS_DATA", &data)
                .env_remove("NARROWS_CONFIG")
                .output()
                .expect("run");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let by_command = std::fs::read(&file).expect("file");
            assert_eq!(
                String::from_utf8_lossy(&over_http),
                String::from_utf8_lossy(&by_command),
                "{name} {format}"
            );
            let printed = Command::new(NARROWS)
                .args(["export", &id, "--no-scan", "--format", format, "-o", "-"])
                .env("NARROWS_DATA", &data)
                .env_remove("NARROWS_CONFIG")
                .current_dir(dir.path())
                .output()
                .expect("run");
            assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
            assert!(printed.stdout == over_http, "{name} {format}: standard output has the same");
            assert!(!dir.path().join("-").exists(), "`-` is no file");
            assert!(over_http.len() > 20 || name.ends_with("empty-input"), "{name} {format}");
        }
    }
}
