//! The truth tables of cleaning: `tests/paths.txt` and `tests/secrets.txt`, one case a block.
//!
//! `text`, `path` and `body` say how the input is cleaned, `root` which root is known.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]

use narrows::sanitize::{Mode, UserRule};
use narrows::{Paths, Redactor, Secrets};

#[test]
fn every_row_about_paths_holds() {
    assert!(check(include_str!("paths.txt")) > 70, "the table is missing");
}

#[test]
fn every_row_about_secrets_holds() {
    assert!(check(include_str!("secrets.txt")) > 20, "the table is missing");
}

/// Checks a table; returns how many rows it has.
fn check(table: &str) -> usize {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for block in table.split("\n\n").filter(|b| !b.trim().is_empty()) {
        let (mut paths, mut secrets) = (Paths::new(), Secrets::default());
        let mut lines = block.lines().filter(|l| !l.starts_with('#'));
        let Some(mut head) = lines.next() else {
            continue;
        };
        loop {
            if let Some(root) = head.strip_prefix("root ") {
                paths.add_root(root);
            } else if let Some(home) = head.strip_prefix("home ") {
                paths.set_home(home);
            } else if let Some(value) = head.strip_prefix("allow ") {
                secrets.allow(&value.replace('¦', ""));
            } else if let Some(value) = head.strip_prefix("known ") {
                assert!(secrets.add_known(value));
            } else if let Some(rule) = head.strip_prefix("rule ") {
                let mut parts = rule.split(' ').map(str::to_owned);
                let mut part = || parts.next().unwrap();
                let rule = UserRule { kind: part(), keyword: part(), regex: part() };
                secrets.add_rule(rule).unwrap();
            } else {
                break;
            }
            head = lines.next().unwrap_or_default();
        }
        let mut cleaner = Redactor::new(paths, secrets);
        let unescape = |s: &str| {
            s.replace('¦', "")
                .replace("\\n", "\n")
                .replace("\\e", "\u{1b}")
                .replace("\\x07", "\u{7}")
        };
        let (mode, input) = head.split_once(' ').unwrap_or((head, ""));
        let input = unescape(input);
        let want = unescape(lines.next().and_then(|l| l.strip_prefix("=> ")).unwrap_or_default());
        let got = match mode {
            "text" => cleaner.text(&input, Mode::Text),
            "body" => cleaner.text(&input, Mode::Body),
            "path" => cleaner.field(&input),
            other => panic!("no such mode: {other}"),
        };
        rows += 1;
        if got.as_str() != want {
            wrong.push(format!("{mode} {input:?}\n  got  {got:?}\n  want {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    rows
}
