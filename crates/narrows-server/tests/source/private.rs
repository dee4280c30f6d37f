//! What the store holds: no path of the machine but where files are remembered, and no secret.

use crate::bed::{Bed, HOME, append, cases, write};
use crate::lines::Talk;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::json;
use std::fs;

/// Every value of every table, with the names of both.
fn everything(bed: &Bed) -> Vec<(String, Vec<u8>)> {
    let db = Connection::open(bed.data().join("narrows.db")).expect("database");
    let mut query =
        db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("tables");
    let names = query.query_map([], |r| r.get::<_, String>(0)).expect("tables");
    let names: Vec<String> = names.map(|name| name.expect("name")).collect();
    let mut all = Vec::new();
    for table in names {
        // The index of search has virtual tables of its own; their rows are in others.
        let Ok(mut rows) = db.prepare(&format!("SELECT * FROM \"{table}\"")) else { continue };
        let columns: Vec<String> = rows.column_names().map(str::to_owned).collect();
        let mut rows = rows.query([]).expect("rows");
        while let Ok(Some(row)) = rows.next() {
            for (at, column) in columns.iter().enumerate() {
                let value = match row.get_ref(at).expect("value") {
                    ValueRef::Text(text) => text.to_vec(),
                    ValueRef::Blob(blob) => {
                        let plain = narrows_store::plain(blob);
                        [blob, b"\n", &plain].concat()
                    }
                    _ => continue,
                };
                all.push((format!("{table}.{column}"), value));
            }
        }
    }
    all
}

fn holds(value: &[u8], what: &str) -> bool {
    value.windows(what.len()).any(|window| window == what.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_and_no_secret_is_anywhere_but_where_files_are_remembered() {
    let bed = Bed::new();
    for (n, case) in cases("claude-history").into_iter().enumerate() {
        if n % 4 == 0 || case.contains("subagent") || case.contains("paths") {
            bed.put(&case, "-tmp-cap");
        }
    }
    let secret = concat!("ghp_", "Zk3vQ9xW2mT7bN5cR8dL1sF6gH4jP0aY2eUo");
    let talk = Talk::new(1).in_folder("/home/ada-lovelace/my-app");
    let main = bed.write("-home-ada-lovelace-my-app", &talk.session, talk.lines(1..=2));
    let told = format!(
        "See /home/ada-lovelace/my-app/src/main.rs with {secret} and /home/ada-lovelace/.ssh/id"
    );
    append(&main, talk.prompt(3, &told));
    append(&main, talk.call(4, "toolu_9", "Bash", &json!({"command": told})));
    append(&main, talk.result(5, "toolu_9", &told, &json!({"stdout": told, "stderr": ""})));
    let beside = main.with_extension("");
    write(&beside.join("subagents/agent-x1.jsonl"), talk.side(6, "x1", &told));
    write(
        &beside.join("subagents/agent-x1.meta.json"),
        json!({"toolUseId": "toolu_9"}).to_string(),
    );
    write(&beside.join("tool-results/out.txt"), &told);
    // Damage tells of its place, not of what stands there.
    append(&main, format!("{{\"type\":\"user\",\"cwd\":\"{told}\n"));
    bed.pass().await;
    // A file that is replaced, and one that is gone.
    write(&main, talk.named("other").lines(1..=2));
    bed.pass().await;
    fs::remove_file(&main).expect("remove");
    bed.pass().await;
    let temp = bed.path().file_name().expect("name").to_string_lossy().into_owned();
    let all = everything(&bed);
    assert!(all.len() > 1000, "{}", all.len());
    let named = all.iter().any(|(at, value)| at == "source.path" && holds(value, &temp));
    assert!(named, "the search finds what is there");
    assert!(all.iter().any(|(at, v)| at.starts_with("item.") && holds(v, "src/main.rs")));
    for (at, value) in &all {
        let text = String::from_utf8_lossy(value);
        assert!(!holds(value, &secret[4..]), "{at}: {text}");
        if at.starts_with("source.") {
            continue;
        }
        for path in [temp.as_str(), HOME, "-home-ada-lovelace", "/tmp/cap/claude"] {
            assert!(!holds(value, path), "{at} tells {path}: {text}");
        }
    }
}
