//! What edits did, and what of those that failed is told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use narrows::{Config, Items, Packets, Pipeline};
use serde_json::{Value, json};

fn items(records: &[Value]) -> Vec<Value> {
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps = Vec::new();
    for record in records {
        packets.push(format!("{record}\n").as_bytes(), |g| pipeline.push(g, &mut steps));
    }
    pipeline.finish(&mut steps);
    let mut items = Items::new();
    steps.into_iter().flat_map(|s| s.changes).for_each(|change| items.apply(change));
    items.ordered().iter().map(|item| json!(item)).collect()
}

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "assistant", "sessionId": "s", "message": {"id": format!("m-{id}"), "content": [
        {"type": "tool_use", "id": id, "name": name, "input": input}]}})
}

fn result(id: &str, text: &str, failed: bool, value: &Value) -> Value {
    json!({"type": "user", "sessionId": "s", "toolUseResult": value, "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}]}})
}

fn notebook(cells: &[(&str, &str)]) -> String {
    let cells = cells.iter().map(|(id, source)| {
        let lines: Vec<&str> = source.split_inclusive('\n').collect();
        json!({"id": id, "cell_type": "code", "source": lines, "outputs": []})
    });
    json!({"cells": cells.collect::<Vec<_>>(), "nbformat": 4}).to_string()
}

#[test]
fn an_edit_of_a_notebook_shows_what_changed_in_its_cell() {
    let before = notebook(&[("a", "x = 1\ny = 2\n"), ("b", "print(x)\nprint(y)\n")]);
    let after = notebook(&[("a", "x = 1\ny = 2\n"), ("b", "print(x)\nprint(x + y)\n")]);
    let edit = |cell: &str, mode: &str, new: &str| {
        let input = json!({"notebook_path": "/w/n.ipynb", "cell_id": cell, "new_source": new,
            "edit_mode": mode});
        let value = json!({"notebook_path": "/w/n.ipynb", "cell_id": cell, "new_source": new,
            "edit_mode": mode, "cell_type": "code", "language": "python", "error": "",
            "original_file": before, "updated_file": after});
        let text = format!("Updated cell {cell}");
        items(&[call("t", "NotebookEdit", &input), result("t", &text, false, &value)])
    };
    for cell in ["b", "cell-1", "unheard-of"] {
        let shown = edit(cell, "replace", "print(x)\nprint(x + y)\n");
        let diff = &shown[0]["toolCall"]["diffs"][0];
        assert_eq!(diff["oldText"], "print(x)\nprint(y)\n", "{cell}: {shown:?}");
        assert_eq!(diff["newText"], "print(x)\nprint(x + y)\n", "{cell}");
        assert_eq!((&diff["additions"], &diff["deletions"]), (&json!(1), &json!(1)), "{cell}");
    }
    let diff = edit("b", "insert", "z = 3\n")[0]["toolCall"]["diffs"][0].clone();
    assert_eq!((&diff["oldText"], &diff["newText"]), (&Value::Null, &json!("z = 3\n")));
    let diff = edit("b", "delete", "")[0]["toolCall"]["diffs"][0].clone();
    assert_eq!((&diff["additions"], &diff["deletions"]), (&json!(0), &json!(2)));
}

#[test]
fn a_task_that_cannot_be_updated_leaves_a_trace() {
    let create = [
        call("t1", "TaskCreate", &json!({"subject": "Read", "activeForm": "Reading"})),
        result("t1", "Task #1 created", false, &json!({"task": {"id": "1", "subject": "Read"}})),
    ];
    let update = call("t2", "TaskUpdate", &json!({"taskId": "9", "status": "completed"}));
    for (failed, value) in [
        (
            false,
            json!({"success": false, "taskId": "9", "updatedFields": [], "error": "Task not found"}),
        ),
        (true, json!("Error: Task not found")),
    ] {
        let mut records = create.to_vec();
        records.extend([update.clone(), result("t2", "Task not found", failed, &value)]);
        let shown = items(&records);
        let trace = shown.iter().find(|i| i["toolCall"]["id"] == "t2").expect("a trace");
        assert_eq!(trace["toolCall"]["status"], "failed", "{trace}");
        assert_eq!(trace["toolCall"]["error"], "Task not found", "{trace}");
        let list = shown.iter().find(|i| i["type"] == "todo_list").expect("the list");
        assert_eq!(list["todoList"]["todos"].as_array().unwrap().len(), 1, "{list}");
    }
}

#[test]
fn lines_of_edits_are_counted_where_they_were_made() {
    let line = |n: u32, word: &str| format!("{word} {n}\n");
    let before: String = (0..10_000).map(|n| line(n, "line")).collect();
    let word = |n: u32| if n.is_multiple_of(3) { "other" } else { "line" };
    let after: String = (0..10_000).map(|n| line(n, word(n))).collect();
    let input = json!({"file_path": "/w/a.txt", "content": after});
    let value = json!({"type": "update", "filePath": "/w/a.txt", "content": after,
        "originalFile": before, "structuredPatch": []});
    let shown = items(&[call("t", "Write", &input), result("t", "updated", false, &value)]);
    let diff = &shown[0]["toolCall"]["diffs"][0];
    assert_eq!((&diff["additions"], &diff["deletions"]), (&json!(3334), &json!(3334)));
    // Several edits of one file are one change of it.
    let edits =
        json!([{"old_string": "a", "new_string": "b"}, {"old_string": "x", "new_string": "y"}]);
    let input = json!({"file_path": "/w/b.txt", "edits": edits});
    let value = json!({"filePath": "/w/b.txt", "edits": edits, "originalFileContents": "a\nm\nx\n",
        "structuredPatch": []});
    let shown = items(&[call("t", "MultiEdit", &input), result("t", "ok", false, &value)]);
    let diffs = shown[0]["toolCall"]["diffs"].as_array().unwrap();
    assert_eq!(diffs.len(), 1);
    assert_eq!(diffs[0]["newText"], "b\nm\ny\n");
    assert_eq!((&diffs[0]["additions"], &diffs[0]["deletions"]), (&json!(2), &json!(2)));
    // What was refused changed nothing.
    let input = json!({"file_path": "/w/b.txt", "old_string": "a", "new_string": "b"});
    let refused = json!("User rejected tool use");
    for value in [refused, json!("Error: String to replace not found in file.")] {
        let shown = items(&[call("t", "Edit", &input), result("t", "no", true, &value)]);
        let diff = &shown[0]["toolCall"]["diffs"][0];
        assert_eq!((&diff["additions"], &diff["deletions"]), (&Value::Null, &Value::Null));
    }
}

#[test]
fn an_output_that_older_versions_cut_is_told_to_be() {
    let run = |printed: &str| {
        let value =
            json!({"stdout": printed, "stderr": "", "interrupted": false, "isImage": false});
        let bash = call("t", "Bash", &json!({"command": "cat long"}));
        items(&[bash, result("t", printed, false, &value)])[0]["toolCall"]["truncated"].clone()
    };
    assert_eq!(run("line 614 of a long outpu\n\n... [886 lines truncated] ..."), true);
    assert_eq!(run("... [12 characters truncated] ...\n"), true);
    assert_eq!(run("whole\n"), Value::Null);
    assert_eq!(run("... [some lines truncated] ..."), Value::Null);
    assert_eq!(run("... [886 lines truncated] ...\nand more of it"), Value::Null);
}
