//! The commands that show the sessions of this machine, as a user runs them. What they print is in
//! `library/`; `NARROWS_BLESS=1` writes it anew.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "library/home.rs"]
mod home;
mod served;

use home::{Home, json, snapshot};
use std::time::Duration;

const DAY: u64 = 24 * 3600;

#[test]
fn ls_lists_the_newest_first() {
    let home = Home::filled();
    let mut told = String::new();
    for words in [
        &["ls"][..],
        &["list", "-n", "2"],
        &["ls", "--project", "APP"],
        &["ls", "--agent", "opencode"],
        &["ls", "--tag", "night"],
        &["ls", "--since", "2024-03-01", "--until", "2024-03-05T12:00"],
    ] {
        told += &home.told(words);
    }
    snapshot("ls", &told);
}

#[test]
fn ls_finds_what_was_said_and_what_sessions_are_called() {
    let home = Home::filled();
    let mut told = String::new();
    for words in [
        // In a title, in a text, in both.
        &["ls", "race in"][..],
        &["ls", "mutex"],
        &["ls", "fox"],
        &["ls", "fox", "-n", "1"],
        &["ls", "漢字"],
        &["ls", "🚀"],
        &["ls", "fox", "--project", "app"],
    ] {
        told += &home.told(words);
    }
    snapshot("ls-text", &told);
}

#[test]
fn ls_says_what_it_did_not_find() {
    let (home, empty) = (Home::filled(), Home::empty());
    let mut told = String::new();
    for words in [
        &["ls", "--project", "nowhere", "--since", "7d"][..],
        &["ls", "--agent", "nobody", "--tag", "x", "--until", "2000-01-01"],
        &["ls", "nobody said that"],
        &["ls", "--since", "soon"],
        &["ls", "--until", "2024-02-30"],
        &["ls", "--since", "today", "--until", "yesterday"],
        &["ls", " "],
    ] {
        told += &home.told(words);
    }
    told += "In an empty store:\n";
    for words in [&["ls"][..], &["search", "x"], &["stats"], &["rm", "-y", "latest"]] {
        told += &empty.told(words);
    }
    snapshot("nothing", &told);
}

#[test]
fn ls_prints_rows_for_programs() {
    let home = Home::filled();
    let told = home.told(&["ls", "--json", "-n", "2"]);
    let rows = told.lines().filter(|l| l.starts_with('{')).map(|line| {
        let mut row = json(line);
        // By chance, and by the work of others.
        row["cursor"] = "…".into();
        row["bytes"] = 0.into();
        row["heardAt"] = 0.into();
        serde_json::to_string_pretty(&row).expect("JSON") + "\n"
    });
    snapshot("ls-json", &rows.collect::<String>());
    let all = home.told(&["ls", "--json", "-n", "0"]);
    assert_eq!(all.lines().filter(|l| l.starts_with('{')).count(), 6, "{all}");
}

#[test]
fn search_groups_hits_by_session() {
    let home = Home::filled();
    let mut told = String::new();
    for words in [
        &["search", "fox"][..],
        &["search", "fox", "-n", "2"],
        &["search", "the", "MUTEX"],
        &["search", "\"the writer\""],
        &["search", "漢字"],
        &["search", "🚀"],
        &["search", "café"],
        &["search", "fox", "--session", "web-files"],
        &["search", "fox", "--agent", "opencode", "--color", "always"],
        &["search", "fox", "--project", "app"],
        &["search", "zebra"],
        &["search", " ", "\""],
        &["search", "fox", "--session", "nothing"],
        &["search", "fox", "--since", "1y"],
    ] {
        told += &home.told(words);
    }
    snapshot("search", &told);
    snapshot("search-json", &home.told(&["search", "--json", "漢字"]));
}

#[test]
fn stats_add_up() {
    let home = Home::filled();
    let mut told = String::new();
    for by in ["day", "project", "model", "agent", "tool", "session"] {
        told += &home.told(&["stats", "--by", by]);
    }
    told +=
        &home.told(&["stats", "--since", "2024-03-01", "--agent", "claude", "--project", "app"]);
    told += &home.told(&["stats", "--since", "7d"]);
    told += &home.told(&["stats", "--since", "never"]);
    snapshot("stats", &told);
    let mut told = String::new();
    for by in ["day", "tool"] {
        told += &home.told(&["stats", "--by", by, "--json"]);
    }
    snapshot("stats-json", &told);
}

#[test]
fn nothing_of_an_agent_is_a_command_to_the_terminal() {
    let home = Home::filled();
    for words in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "alert"],
        &["search", "alert"],
        &["search", "alert", "--json"],
        &["stats", "--by", "project"],
        &["stats", "--by", "model"],
        &["stats", "--by", "tool"],
        &["stats", "--by", "session"],
        &["rm", "evil"],
        &["doctor"],
    ] {
        let told = home.told(words);
        let odd =
            |c: &char| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c);
        assert_eq!(told.chars().find(odd), None, "{told:?}");
    }
    assert!(home.told(&["ls"]).contains("alert"));
    // Our own colours are there when they are asked for, and only those.
    let told = home.told(&["search", "alert", "--color", "always"]);
    assert!(told.contains("\x1b[1;31malert\x1b[0m"), "{told:?}");
    assert!(!told.contains("\x1b[2J") && !told.contains("\x1b]"), "{told:?}");
}

#[test]
fn rm_deletes_what_was_named() {
    let home = Home::filled();
    let mut told = String::new();
    for words in [
        &["rm", "race"][..],
        &["rm", "-y", "no-such"],
        // Both begin so.
        &["rm", "-y", "web-"],
        // One that is not there: nothing is deleted.
        &["rm", "-y", "race", "no-such"],
        // Twice the same.
        &["rm", "-y", "race", "race"],
        &["rm", "--yes", "kanji", "latest"],
        &["ls"],
        &["search", "mutex"],
    ] {
        told += &home.told(words);
    }
    snapshot("rm", &told);
}

#[test]
fn rm_asks_the_running_server() {
    let home = Home::filled();
    let mut server = home.serve();
    let id = home.id("race");
    let told = home.told(&["rm", "-y", "race"]);
    assert!(told.contains("deleted 1 session"), "{told}");
    assert_eq!(server.get(&format!("/api/sessions/{id}")).expect("answer").0, 404);
    assert_eq!(server.get(&format!("/api/sessions/{}", home.id("kanji"))).expect("answer").0, 200);
    let told = home.told(&["doctor"]);
    assert!(told.contains("✓ a server runs at http://127.0.0.1:"), "{told}");
    server.kill();
}

#[test]
fn what_runs_and_what_is_gone_is_marked() {
    let home = Home::empty();
    let (kept, gone) =
        ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222");
    let ago = |seconds| Duration::from_secs(seconds);
    home.write_claude(kept, &home::history("2024-03-05", "/srv/app", "Kept by the agent"), ago(60));
    home.write_claude(
        gone,
        &home::history("2024-03-04", "/srv/app", "Gone from its folder"),
        ago(60),
    );
    assert!(home.told_scanning(&["ls"]).contains("Gone from its folder\n"));
    home.remove_claude(gone);
    let mut told = home.told_scanning(&["ls"]);
    told += &home.told_scanning(&["rm", "-y", "1111"]);
    told += &home.told_scanning(&["ls"]);
    snapshot("archived", &told);
    // One that is written just now.
    let now = jiff::Timestamp::now().to_string();
    let text = home::history(&now[..10], "/srv/app", "Happens now");
    let text = text.replace(&format!("{}T10:03:12Z", &now[..10]), &now);
    home.write_claude("33333333-3333-4333-8333-333333333333", &text, Duration::ZERO);
    let told = home.told_scanning(&["ls"]);
    assert!(told.contains("  ● Happens now\n"), "{told}");
}

#[test]
fn doctor_tells_what_is_at_risk() {
    let home = Home::empty();
    let mut told = String::from("Nothing at all:\n");
    told += &home.told_scanning(&["doctor"]);
    let text = home::history("2024-03-05", "/srv/app", "A session");
    let days = |n| Duration::from_secs(n * DAY);
    home.write_claude("11111111-1111-4111-8111-111111111111", &text, days(40));
    home.write_claude("22222222-2222-4222-8222-222222222222", &text, days(26));
    told += "Two files, not read:\n";
    told += &home.told(&["doctor"]);
    told += "Read:\n";
    told += &home.told_scanning(&["doctor"]);
    let drift =
        text.replace("\"type\":\"assistant\"", "\"type\":\"something-new\"") + "{\"broken\n";
    home.write_claude("33333333-3333-4333-8333-333333333333", &drift, days(1));
    home.remove_claude("11111111-1111-4111-8111-111111111111");
    home.remove_claude("22222222-2222-4222-8222-222222222222");
    home.settings("{\"cleanupPeriodDays\": 99999}");
    told += "Others, one of them strange, and they are kept for long:\n";
    told += &home.told_scanning(&["doctor"]);
    snapshot("doctor", &told);
    snapshot("doctor-json", &home.told_scanning(&["doctor", "--json"]));
}

/// A terminal of some columns, where `script` makes one.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_lines_that_fit_and_a_question() {
    let home = Home::filled();
    let mut told = String::new();
    for (columns, words) in [
        (80, "ls -n 5"),
        (120, "ls"),
        (80, "search fox -n 3"),
        (80, "stats"),
        (120, "stats --by session"),
    ] {
        let Some(said) = home.on_terminal(columns, words, "") else { return };
        for line in said.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= columns, "{columns}: {line}");
        }
        told.extend([format!("{columns} columns: "), said]);
    }
    for answer in ["n\n", "\n", "y\n"] {
        told += &home.on_terminal(80, "rm race", answer).expect("terminal");
    }
    snapshot("terminal", &told);
}
