//! The service, the completions, the manual and the sample, as a user meets them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

// What the program holds, whoever uses it there.
#[path = "../src/commands/demo/session.rs"]
mod session;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn narrows(words: &[&str]) -> Output {
    let output = Command::new(NARROWS).args(words).output().expect("run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[cfg(target_os = "linux")]
mod service {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// A user with a home and a systemctl that is no real one.
    struct User {
        dir: TempDir,
    }

    impl User {
        fn new() -> User {
            let user = User { dir: tempfile::tempdir().expect("folder") };
            fs::create_dir_all(user.bin()).expect("folder");
            let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/bin/systemctl");
            symlink(fake, user.bin().join("systemctl")).expect("link");
            user
        }

        fn bin(&self) -> PathBuf {
            self.dir.path().join("bin")
        }

        fn unit(&self) -> PathBuf {
            self.dir.path().join("home/.config/systemd/user/narrows.service")
        }

        fn run(&self, words: &[&str]) -> Output {
            self.run_with(words, &[])
        }

        fn run_with(&self, words: &[&str], environment: &[(&str, &str)]) -> Output {
            Command::new(NARROWS)
                .arg("service")
                .args(words)
                .env_clear()
                .env("HOME", self.dir.path().join("home"))
                .env("PATH", self.bin())
                .envs(environment.iter().copied())
                .output()
                .expect("run")
        }

        /// What systemctl was asked since the last time.
        fn asked(&self) -> Vec<String> {
            let file = self.bin().join("asked");
            let text = fs::read_to_string(&file).unwrap_or_default();
            let _ = fs::remove_file(file);
            text.lines().map(str::to_owned).collect()
        }

        fn mark(&self, name: &str) {
            fs::write(self.bin().join(name), "").expect("file");
        }
    }

    fn err(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[test]
    fn the_file_is_printed_and_nothing_else_is_done() {
        let user = User::new();
        let printed = user.run(&["install", "--print"]);
        assert_eq!(printed.status.code(), Some(0));
        let plain = include_str!("service/plain.service");
        assert_eq!(out(&printed), plain.replace("/home/ada/.local/bin/narrows", NARROWS));
        assert!(!user.dir.path().join("home").exists());
        assert!(user.asked().is_empty());
        // Where things are goes with it: a service does not see the variables of a shell.
        let elsewhere = [("XDG_DATA_HOME", "/srv/my data"), ("CLAUDE_CONFIG_DIR", "/srv/claude")];
        let printed = out(&user.run_with(&["install", "--print", "--data", "here"], &elsewhere));
        let here = std::env::current_dir().expect("folder").join("here");
        assert!(printed.contains(&format!(" serve --data {}\n", here.display())), "{printed}");
        assert!(printed.contains("Environment=\"XDG_DATA_HOME=/srv/my data\"\n"), "{printed}");
        assert!(printed.contains("Environment=CLAUDE_CONFIG_DIR=/srv/claude\n"), "{printed}");
    }

    #[test]
    fn a_second_installation_restarts_only_what_changed() {
        let user = User::new();
        let first = user.run(&["install"]);
        assert_eq!(first.status.code(), Some(0), "{}", err(&first));
        let told = out(&first);
        assert!(told.starts_with("~/.config/systemd/user/narrows.service: written\n"), "{told}");
        assert!(told.contains("loginctl enable-linger"), "{told}");
        // The tests run what was built just now, wherever that is.
        assert!(err(&first).contains("directory, and the service fails"), "{}", err(&first));

        assert_eq!(
            user.asked(),
            [
                "--user daemon-reload",
                "--user enable --now narrows.service",
                "--user is-active narrows.service"
            ]
        );
        let unit = fs::read_to_string(user.unit()).expect("unit");
        assert_eq!(unit, out(&user.run(&["install", "--print"])));

        let same = user.run(&["install"]);
        assert_eq!(same.status.code(), Some(0));
        assert!(out(&same).contains(": unchanged\n"), "{}", out(&same));
        assert!(!user.asked().iter().any(|a| a.contains(" restart ")));

        let other = user.run(&["install", "--data", "/srv/other"]);
        assert_eq!(other.status.code(), Some(0));
        let asked = user.asked();
        assert!(asked.contains(&"--user restart narrows.service".to_owned()), "{asked:?}");
        let unit = fs::read_to_string(user.unit()).expect("unit");
        assert!(unit.contains(" serve --data /srv/other\n"), "{unit}");
        let beside = fs::read_dir(user.unit().parent().expect("folder")).expect("folder");
        assert_eq!(beside.count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_may_be_written_without_starting_anything() {
        let user = User::new();
        let written = user.run(&["install", "--no-start"]);
        assert_eq!(written.status.code(), Some(0));
        assert!(out(&written).contains("systemctl --user daemon-reload\n"), "{}", out(&written));
        assert!(user.unit().exists());
        assert!(user.asked().is_empty());
        // The place that the user chose for configuration.
        let config = user.dir.path().join("config");
        let environment = [("XDG_CONFIG_HOME", config.to_str().expect("path"))];
        user.run_with(&["install", "--no-start"], &environment);
        assert!(config.join("systemd/user/narrows.service").exists());
    }

    #[test]
    fn what_narrows_did_not_write_stays() {
        let user = User::new();
        fs::create_dir_all(user.unit().parent().expect("folder")).expect("folder");
        let foreign = "[Service]\n# Written by narrows\nExecStart=/usr/bin/mine\n";
        fs::write(user.unit(), foreign).expect("file");
        for words in [&["install"][..], &["install", "--no-start"], &["remove"]] {
            let refused = user.run(words);
            assert_eq!(refused.status.code(), Some(1));
            assert!(err(&refused).contains("narrows.service"), "{}", err(&refused));
        }
        assert!(user.asked().is_empty());
        assert_eq!(fs::read_to_string(user.unit()).expect("unit"), foreign);
        let status = out(&user.run(&["status"]));
        assert!(status.contains("(not written by narrows)"), "{status}");
        // So does a unit that was masked, and a link that somebody manages.
        for to in ["/dev/null", "/not/there"] {
            fs::remove_file(user.unit()).expect("remove");
            symlink(to, user.unit()).expect("link");
            assert_eq!(user.run(&["install"]).status.code(), Some(1));
            assert!(user.unit().symlink_metadata().expect("link").is_symlink());
        }
    }

    #[test]
    fn without_a_service_manager_the_file_is_written_and_the_rest_is_told() {
        let user = User::new();
        user.mark("no-bus");
        let told = user.run(&["install", "--data", "/srv/my data"]);
        assert_eq!(told.status.code(), Some(1));
        let told = err(&told);
        assert!(told.contains("written): this login has no"), "{told}");
        assert!(told.contains("Failed to connect to bus"), "{told}");
        assert!(told.contains(" serve --data '/srv/my data' >/dev/null 2>&1 &"), "{told}");
        assert!(user.unit().exists());
        let status = user.run(&["status"]);
        assert_eq!(status.status.code(), Some(1));
        assert!(out(&status).starts_with("installed, state unknown"));

        fs::remove_file(user.bin().join("systemctl")).expect("remove");
        let told = user.run(&["install"]);
        assert_eq!(told.status.code(), Some(1));
        assert!(err(&told).contains("systemctl is not installed"), "{}", err(&told));
        assert_eq!(user.run(&["status"]).status.code(), Some(1));
        let removed = user.run(&["remove"]);
        assert_eq!(removed.status.code(), Some(0), "{}", err(&removed));
        assert!(!user.unit().exists());
    }

    #[test]
    fn a_service_that_does_not_come_up_is_told() {
        let user = User::new();
        user.mark("dies");
        let told = user.run(&["install"]);
        assert_eq!(told.status.code(), Some(1));
        assert!(err(&told).contains("it is failed; see `journalctl"), "{}", err(&told));
        let status = user.run(&["status"]);
        assert_eq!(status.status.code(), Some(1));
        let told = out(&status);
        assert!(told.starts_with("installed, not running (failed); see `journalctl"), "{told}");
        user.mark("refuses");
        let told = user.run(&["install"]);
        assert_eq!(told.status.code(), Some(1));
        assert!(err(&told).contains("Job for narrows.service failed."), "{}", err(&told));
    }

    #[test]
    fn status_and_removal_in_every_state() {
        let user = User::new();
        let status = user.run(&["status"]);
        assert_eq!(status.status.code(), Some(1));
        assert_eq!(out(&status), "not installed; `narrows service install` installs it\n");
        let removed = user.run(&["remove"]);
        assert_eq!(removed.status.code(), Some(0));
        assert_eq!(out(&removed), "not installed, nothing to remove\n");
        assert!(user.asked().is_empty());

        user.run(&["install", "--no-start"]);
        let status = user.run(&["status"]);
        assert_eq!(status.status.code(), Some(1));
        let told = out(&status);
        assert!(told.starts_with("installed, not running (inactive)"), "{told}");
        assert!(told.ends_with("\n  at login  does not start\n"), "{told}");

        user.run(&["install"]);
        let status = user.run(&["status"]);
        assert_eq!(status.status.code(), Some(0));
        assert_eq!(
            out(&status),
            "running\n  file      ~/.config/systemd/user/narrows.service\n  at login  starts\n"
        );

        user.asked();
        let removed = user.run(&["remove"]);
        assert_eq!(removed.status.code(), Some(0), "{}", err(&removed));
        let told = out(&removed);
        assert!(told.starts_with("stopped; ") && told.contains("sessions stay"), "{told}");
        assert!(!user.unit().exists());
        assert_eq!(user.asked()[0], "--user disable --now narrows.service");
        assert_eq!(user.run(&["remove"]).status.code(), Some(0));
    }

    #[test]
    fn systemd_reads_what_is_written() {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("folder");
        let verify = |file: &Path| {
            let mut command = Command::new("systemd-analyze");
            command.args(["--user", "verify"]).arg(file).env("XDG_RUNTIME_DIR", dir.path());
            command.output().ok()
        };
        let file = dir.path().join("narrows.service");
        fs::write(&file, "[Service]\nExecStart=/bin/true\n").expect("file");
        // Some systems have no systemd, or one that cannot tell.
        if !verify(&file).is_some_and(|o| o.status.success() && o.stderr.is_empty()) {
            return;
        }
        for name in ["plain", "a b %h $HOME ${x} ; é", r#"the "best" 'tools' \x"#] {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).expect("folder");
            let exe = folder.join("narrows");
            fs::hard_link(NARROWS, &exe).expect("link");
            let data = dir.path().join(r#"ada's "data" \ $x ${y} 5% \"#);
            let printed = Command::new(&exe)
                .args(["service", "install", "--print", "--data"])
                .arg(&data)
                .env("CODEX_HOME", dir.path().join(r#"100% "mine" \ $x"#))
                .output()
                .expect("run");
            fs::write(&file, &printed.stdout).expect("file");
            let verified = verify(&file).expect("run");
            let unit = out(&printed);
            assert!(verified.status.success(), "{}\n{unit}", err(&verified));
            assert_eq!(err(&verified), "", "{unit}");
        }
    }
}

#[test]
fn completions_are_there_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = out(&narrows(&["completions", shell]));
        assert!(text.contains("narrows") && text.contains("service"), "{shell}");
        assert_eq!(text, out(&narrows(&["completions", shell])), "{shell}: always the same");
    }
    let dir = tempfile::tempdir().expect("folder");
    for shell in ["bash", "zsh", "fish"] {
        let file = dir.path().join(shell);
        fs::write(&file, narrows(&["completions", shell]).stdout).expect("file");
        // A shell that is not on this machine is not asked.
        if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(read.status.success(), "{shell}: {}", String::from_utf8_lossy(&read.stderr));
        }
    }
}

/// Every command that `--help` names, with those below it.
fn commands(words: &[&str], found: &mut BTreeSet<String>) {
    found.insert(format!("{}.1", [&["narrows"], words].concat().join("-")));
    let help = out(&narrows(&[words, &["--help"]].concat()));
    // The overview has groups; the help of a command has one list.
    let mut lines = help.lines();
    let mut listed = Vec::new();
    while let Some(heading) = lines.find(|l| l.ends_with(':') && !l.starts_with(' ')) {
        let rows = lines.clone().take_while(|l| l.starts_with("  "));
        if !words.is_empty() && heading != "Commands:" || heading == "Options:" {
            continue;
        }
        listed.extend(rows);
    }
    for line in listed {
        let name = line.split_whitespace().next().expect("name");
        // A description goes on in a line that is further in.
        if line.starts_with("   ") || name == "help" {
            continue;
        }
        commands(&[words, &[name]].concat(), found);
    }
}

#[test]
fn there_is_a_page_for_every_command() {
    let dir = tempfile::tempdir().expect("folder");
    let pages = dir.path().join("share/man1");
    let told = out(&narrows(&["man", "--dir", pages.to_str().expect("path")]));
    let names = || fs::read_dir(&pages).expect("folder").map(|f| f.expect("file").file_name());
    let written: BTreeSet<String> = names().map(|n| n.to_string_lossy().into_owned()).collect();
    assert!(told.starts_with(&format!("{} pages written to ", written.len())), "{told}");
    let mut expected = BTreeSet::new();
    commands(&[], &mut expected);
    assert_eq!(written, expected);
    assert!(written.contains("narrows-service-install.1"));
    // What is printed is the first page, whatever the environment says.
    let mut printed = Command::new(NARROWS);
    let printed = printed.arg("man").env("NARROWS_DATA", "/srv/secret").output().expect("run");
    assert_eq!(printed.stdout, fs::read(pages.join("narrows.1")).expect("page"));
    for name in &written {
        let text = fs::read_to_string(pages.join(name)).expect("page");
        assert!(text.contains(".SH NAME") && !text.contains(".SH EXTRA"), "{name}");
    }
}

#[test]
fn whoever_stops_reading_is_no_failure() {
    for words in [&["completions", "bash"][..], &["man"]] {
        let mut child = Command::new(NARROWS)
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_sample_shows_what_a_session_can_be() {
    let dir = tempfile::tempdir().expect("folder");
    let main = session::write_to(dir.path()).expect("sample");
    let main = main.to_str().expect("path");
    let parse = |view: &str| -> Vec<Value> {
        let text = out(&narrows(&["parse", "--no-env", "--view", view, main]));
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let session = parse("session").remove(0);
    assert_eq!(session["unknown"], 0);
    assert_eq!(session["malformed"], 0);
    assert_eq!(session["title"], "Fix the next high tide across midnight");
    let items = parse("items");
    let of = |kind: &str| items.iter().filter(|i| i["type"] == kind).count();
    assert!(of("user_message") >= 2 && of("thinking") >= 3 && of("text") >= 8);
    assert_eq!(of("todo_list"), 1);
    let calls: Vec<&Value> = items.iter().filter(|i| i["type"] == "tool_call").collect();
    let call = |name: &str| calls.iter().find(|c| c["toolCall"]["name"] == name).expect("call");
    for name in ["Bash", "Read", "Grep", "Edit", "Write", "Agent"] {
        assert!(call(name)["toolCall"]["status"].is_string(), "{name}");
    }
    assert!(calls.iter().all(|c| c["toolCall"]["status"] != "running"));
    assert!(calls.iter().filter(|c| c["toolCall"]["status"] == "failed").count() == 2);
    assert!(call("Edit")["toolCall"]["diffs"][0]["hunks"][0].is_object());
    let subagent = &call("Agent")["id"];
    assert!(items.iter().filter(|i| &i["parentToolCallId"] == subagent).count() >= 6);
    // What is shown is clean, and says so.
    let shown = out(&narrows(&["parse", "--no-env", main]));
    assert!(shown.contains("[redacted:aws-key-id:") && !shown.contains("AKIA"), "{shown}");
    assert!(!shown.contains("/home/ada"), "{shown}");
    let known = narrows(&["check", "drift", "--exit-code", dir.path().to_str().expect("path")]);
    assert!(known.status.success());
}
