//! Forms of the Agent Client Protocol that some agents use and others do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use narrows::{Config, Items, Packets, Pipeline, PrintedEvent};
use serde_json::{Value, json};

fn read(lines: &[Value]) -> Items {
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps = Vec::new();
    for line in lines {
        packets.push(format!("{line}\n").as_bytes(), |g| pipeline.push(g, &mut steps));
    }
    pipeline.finish(&mut steps);
    let mut items = Items::new();
    steps.into_iter().flat_map(|s| s.changes).for_each(|change| items.apply(change));
    assert_eq!((items.info().unknown, items.info().malformed), (0, 0), "{lines:?}");
    items
}

fn events(lines: &[Value]) -> Vec<Value> {
    let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(Config::default()));
    let mut steps = Vec::new();
    for line in lines {
        packets.push(format!("{line}\n").as_bytes(), |g| pipeline.push(g, &mut steps));
    }
    pipeline.finish(&mut steps);
    steps.iter().map(|step| json!(PrintedEvent::new(1, "s", &step.event))).collect()
}

fn items(lines: &[Value]) -> Vec<Value> {
    read(lines).ordered().iter().map(|item| json!(item)).collect()
}

fn update(update: impl Into<Value>) -> Value {
    let update = update.into();
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

fn at(second: u32, from: &str, msg: &Value) -> Value {
    let ts = format!("2026-11-18T07:{:02}:{:02}Z", second / 60, second % 60);
    json!({"ts": ts, "dir": from, "msg": msg})
}

fn said(second: u32, text: &str) -> Value {
    let chunk =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    at(second, "agent->client", &update(chunk))
}

fn prompt(second: u32, id: u32, text: &str) -> Value {
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
    let msg = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params});
    at(second, "client->agent", &msg)
}

fn end(second: u32, id: u32) -> Value {
    let msg = json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}});
    at(second, "agent->client", &msg)
}

fn texts(lines: &[Value]) -> Vec<String> {
    let text = |i: &Value| i["content"].as_str().or(i["text"].as_str()).map(str::to_owned);
    items(lines).iter().filter_map(text).collect()
}

#[test]
fn a_text_after_a_turn_is_a_text_of_its_own() {
    let turn = |id: u32, from: u32, words: &str| {
        [prompt(from, id, "go"), said(from + 1, words), end(from + 2, id)]
    };
    let first = turn(1, 0, "one.");
    let second = turn(2, 60, "two.");
    let aside = [said(30, "By the way."), said(31, " More.")];
    let lines = [&first[..], &aside, &second].concat();
    assert_eq!(texts(&lines), ["go", "one.", "By the way. More.", "go", "two."]);
    // What comes right after the answer was on its way.
    let lines = [&first[..], &[said(2, " Done.")], &second].concat();
    assert_eq!(texts(&lines), ["go", "one. Done.", "go", "two."]);
    // Where prompts are not seen, the next turn begins with its first text.
    let is_agents = |line: &Value| line["dir"] == "agent->client";
    let lines = [&first[..], &second].concat().into_iter().filter(is_agents).collect::<Vec<_>>();
    assert_eq!(texts(&lines), ["one.", "two."]);
}

#[test]
fn an_artifact_that_is_made_again_stays_in_its_place() {
    let made = |name: &str| json!({"type": "artifact_created", "artifact": {"id": "a", "type": "html", "name": name, "path": "x.html"}});
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "then"}});
    let shown = items(&[made("one"), update(chunk), made("two")]);
    assert_eq!(shown.len(), 2);
    assert_eq!((&shown[0]["artifact"]["name"], &shown[0]["order"]), (&json!("two"), &json!(0)));
    assert_eq!(shown[1]["order"], 1);
}

#[test]
fn tools_without_a_name_are_known_by_what_they_do() {
    let call = |fields: Value| {
        let mut call =
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "completed"});
        call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        items(&[update(call)])[0]["toolCall"].clone()
    };
    let diff =
        |old: Value| json!([{"type": "diff", "path": "/w/a", "oldText": old, "newText": "x"}]);
    let edit = call(json!({"kind": "edit", "title": "Editing files", "content": diff(json!("y"))}));
    assert_eq!(edit["toolName"], "edit");
    let new = call(json!({"kind": "edit", "title": "Editing files", "content": diff(Value::Null)}));
    assert_eq!(new["toolName"], "write");
    for title in ["rig_shout", "context7_resolve-library-id", "mcp__rig__shout"] {
        let mcp = call(json!({"kind": "other", "title": title, "rawInput": {"text": "x"}}));
        assert_eq!(mcp["toolName"], "mcp", "{title}");
        assert_eq!(mcp["agentTitle"], title);
    }
    assert_eq!(call(json!({"kind": "other", "title": "Inspect the notes"}))["toolName"], "unknown");
    // Gemini does not say what its list holds.
    let todo = json!({"sessionUpdate": "tool_call", "toolCallId": "write_todos__call_1",
        "title": "Set 3 todo(s)", "kind": "other", "status": "completed", "content": []});
    let shown = items(&[update(todo)]);
    assert_eq!((shown.len(), &shown[0]["toolCall"]["agentTitle"]), (1, &json!("Set 3 todo(s)")));
}

#[test]
fn a_compaction_is_one_however_it_is_told() {
    let start = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "think",
        "title": "Compact conversation", "status": "in_progress"});
    let done =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let shown = items(&[update(start), update(done)]);
    assert_eq!((shown.len(), &shown[0]["type"]), (1, &json!("compaction")));
    let shown = items(&[
        update(json!({"sessionUpdate": "compaction_start", "trigger": "auto"})),
        update(
            json!({"sessionUpdate": "compaction_end", "trigger": "auto", "summary": "So far.", "tokensBefore": 900}),
        ),
    ]);
    assert_eq!((shown.len(), &shown[0]["type"]), (1, &json!("compaction")));
    assert!(shown[0].to_string().contains("So far."), "{shown:?}");
    let failed = items(&[update(json!({"sessionUpdate": "compaction_failed"}))]);
    assert_eq!(failed[0]["type"], "notice");
}

#[test]
fn notices_and_messages_without_a_method_are_read() {
    let notice = json!({"sessionUpdate": "notice", "level": "warning", "content": {"type": "text", "text": "Rate limit near."}});
    let shown = items(&[update(notice)]);
    assert_eq!(
        (&shown[0]["kind"], &shown[0]["text"]),
        (&json!("warning"), &json!("Rate limit near."))
    );
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "kept"}});
    assert_eq!(texts(&[json!({"params": {"sessionId": "s", "update": chunk}})]), ["kept"]);
}

#[test]
fn what_is_loaded_is_what_was_live() {
    let call = |id: &str, kind: &str| json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": kind, "title": "t", "status": "in_progress"});
    for kind in ["execute", "read", "search", "other", "fetch"] {
        let live = items(&[
            update(call("8c2f/tool_Xy12Zw34Ab56Cd78", kind)),
            update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "8c2f/tool_Xy12Zw34Ab56Cd78",
                "status": "completed", "rawOutput": "found it"}),
            ),
        ]);
        let loaded = items(&[
            update(call("replay/tool_Xy12Zw34Ab56Cd78", kind)),
            update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "replay/tool_Xy12Zw34Ab56Cd78",
                "status": "completed", "rawOutput": {"text": "found it"}}),
            ),
        ]);
        assert_eq!(live, loaded, "{kind}");
        assert_eq!(live[0]["toolCall"]["rawOutput"], "found it", "{kind}");
    }
    // What is no id of a model stays as it is.
    for id in ["a/b", "dir/file.txt", "x/"] {
        assert_eq!(items(&[update(call(id, "other"))])[0]["id"], id);
    }
}

#[test]
fn options_may_be_in_groups_and_need_not_be_words() {
    let options = json!([
        {"id": "thinking", "type": "boolean", "currentValue": true},
        {"id": "group", "name": "Session", "options": [
            {"id": "model", "category": "model", "type": "select", "currentValue": "k2",
             "options": [{"group": "g", "name": "G", "options": [{"value": "k2", "name": "K2"}]}]},
            {"id": "mode", "category": "mode", "type": "select", "currentValue": "plan", "options": []}]},
    ]);
    let items =
        read(&[update(json!({"sessionUpdate": "config_option_update", "configOptions": options}))]);
    let info = json!(items.info());
    assert_eq!((&info["model"], &info["mode"]), (&json!("k2"), &json!("plan")));
}

#[test]
fn a_form_is_a_question() {
    let schema = json!({"type": "object", "properties": {
        "color": {"type": "string", "title": "Color", "enum": ["red", "green"]},
        "sure": {"type": "boolean", "description": "Are you sure?"}}});
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create",
        "params": {"sessionId": "s", "mode": "form", "message": "Pick", "requestedSchema": schema}});
    let open = items(&[at(1, "agent->client", &ask)]);
    assert_eq!((open.len(), &open[0]["type"]), (1, &json!("question")));
    let questions = open[0]["questions"].as_array().unwrap();
    let options = |n: usize| questions[n]["options"].as_array().unwrap().len();
    assert_eq!((questions.len(), options(0), options(1)), (2, 2, 2));
    let answer = |result: Value| {
        let msg = json!({"jsonrpc": "2.0", "id": 7, "result": result});
        let lines = [at(1, "agent->client", &ask), at(2, "client->agent", &msg)];
        items(&lines)[0]["answers"].clone()
    };
    let given = answer(json!({"action": "accept", "content": {"color": "green", "sure": true}}));
    assert_eq!(given[0], json!({"question": "Pick\nColor", "answer": "green"}));
    assert_eq!(given[1]["answer"], "Yes");
    assert_eq!(answer(json!({"action": "decline"}))[0]["answer"], "decline");
}

#[test]
fn a_form_says_what_an_answer_has_to_be() {
    let schema = json!({"type": "object", "required": ["age"], "properties": {
        "age": {"type": "integer", "title": "Age", "minimum": 1, "default": 7},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}]}},
        "tier": {"type": "string", "oneOf": [{"const": "s", "title": "Small", "description": "One core"},
            {"const": "l", "title": "Large"}], "default": "l"}}});
    let ask = |id: u32| {
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"sessionId": "s",
            "toolCallId": "c", "mode": "form", "message": "Say", "requestedSchema": schema}})
    };
    let content = json!({"age": 9, "tags": ["b", "a"], "tier": "s"});
    let given =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": content}});
    // One call asks twice: the second question is open.
    let lines = [
        at(1, "agent->client", &ask(1)),
        at(2, "client->agent", &given),
        at(3, "agent->client", &ask(2)),
    ];
    let shown = items(&lines);
    assert_eq!((shown.len(), &shown[1]["answers"]), (2, &Value::Null), "{shown:?}");
    let answers: Vec<_> =
        shown[0]["answers"].as_array().unwrap().iter().map(|a| a["answer"].clone()).collect();
    assert_eq!(answers, ["9", "Beta, Alpha", "Small"]);
    let parts = shown[0]["questions"].as_array().unwrap();
    let fields = |name: &str| parts.iter().map(|p| p[name].clone()).collect::<Vec<_>>();
    assert_eq!(fields("name"), ["age", "day", "tags", "tier"]);
    assert_eq!(fields("optional"), [json!(null), json!(true), json!(true), json!(true)]);
    assert_eq!(fields("format"), [json!("integer"), json!("date"), json!(null), json!(null)]);
    assert_eq!(fields("default"), [json!("7"), json!(null), json!(null), json!("Large")]);
    assert_eq!(parts[3]["options"][0], json!({"label": "Small", "description": "One core"}));
    assert_eq!(parts[2]["multiSelect"], true);
    let visit = json!({"jsonrpc": "2.0", "id": 3, "method": "elicitation/create", "params": {"sessionId": "s",
        "mode": "url", "elicitationId": "e", "url": "https://example.com/login", "message": "Log in"}});
    let shown = items(&[at(1, "agent->client", &visit)]);
    let part = &shown[0]["questions"][0];
    assert_eq!((&part["format"], &part["optional"]), (&json!("url"), &json!(true)));
    assert_eq!(part["question"], "Log in https://example.com/login");
}

#[test]
fn a_prompt_whose_request_was_cancelled_was_cancelled() {
    let error = json!({"code": -32800, "message": "Request cancelled"});
    let msg = json!({"jsonrpc": "2.0", "id": 1, "error": error});
    let items = read(&[prompt(0, 1, "go"), said(1, "half"), at(2, "agent->client", &msg)]);
    let kinds: Vec<_> = items.ordered().iter().map(|i| json!(i)["type"].clone()).collect();
    assert_eq!(kinds, ["user_message", "text"]);
}

#[test]
fn an_answer_that_was_cut_off_has_a_mark() {
    let msg = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "max_tokens"}});
    let shown = items(&[prompt(0, 1, "go"), said(1, "half of"), at(2, "agent->client", &msg)]);
    assert_eq!((shown.len(), &shown[2]["kind"]), (3, &json!("max_tokens")));
    assert!(items(&[prompt(0, 1, "go"), said(1, "all"), end(2, 1)]).len() == 2);
}

fn compacted(id: &str, more: &Value) -> Value {
    let mut of = json!({"sessionUpdate": "compaction_update", "compactionId": id});
    of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    update(of)
}

fn summed(id: &str, text: &str) -> Value {
    update(json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": id,
        "content": {"type": "text", "text": text}}))
}

#[test]
fn a_compaction_has_an_id_and_a_summary_that_streams() {
    let begins = compacted("k", &json!({"status": "in_progress"}));
    let done = compacted("k", &json!({"status": "completed"}));
    let of = |lines: &[Value]| {
        let shown = items(lines);
        assert_eq!((shown.len(), &shown[0]["type"]), (1, &json!("compaction")), "{shown:?}");
        assert_eq!(shown[0]["id"], "compaction-k");
        shown[0]["text"].as_str().unwrap().to_owned()
    };
    // Cut inside a token, the pieces are one text.
    let pieces = [
        summed("k", "Kept: the key is ghp_a1B2c3D4e5F6g7H8"),
        summed("k", "i9J0k1L2m3N4o5P6q7R8 and ☂."),
    ];
    let streamed = of(&[&[begins.clone()][..], &pieces, std::slice::from_ref(&done)].concat());
    assert!(streamed.starts_with("Kept: the key is [redacted:"), "{streamed}");
    assert!(streamed.ends_with("and ☂."), "{streamed}");
    // What is given whole stands for the pieces.
    let blocks = json!([{"type": "text", "text": "All "}, {"type": "text", "text": "of it."}]);
    let whole = compacted("k", &json!({"status": "completed", "summary": blocks}));
    assert_eq!(of(&[begins.clone(), summed("k", "Some"), whole.clone()]), "All of it.");
    // Told again, and told more: it stays one.
    assert_eq!(of(&[begins.clone(), done.clone(), whole.clone(), whole.clone()]), "All of it.");
    assert_eq!(of(&[whole.clone(), summed("k", " More.")]), "All of it. More.");
    assert_eq!(of(&[summed("k", "Only pieces."), done.clone()]), "Only pieces.");
    let cleared = compacted("k", &json!({"status": "completed", "summary": null}));
    assert_eq!(of(&[begins.clone(), summed("k", "Some"), cleared]), "");
    // However it is cut, what is told is of the size of what came.
    let pieces =
        (0..400).map(|n| if n % 2 == 0 { summed("k", &"word ".repeat(200)) } else { done.clone() });
    let pieces: Vec<Value> = pieces.collect();
    let sizes = |lines: &[Value]| lines.iter().map(|l| l.to_string().len()).sum::<usize>();
    let told: Vec<Value> = events(&pieces);
    assert!(sizes(&told) < 10 * sizes(&pieces), "{} of {}", sizes(&told), sizes(&pieces));
    assert_eq!(of(&pieces).len(), "word ".len() * 200 * 200 - 1);
    // Two at once do not mix.
    let two = items(&[
        begins.clone(),
        compacted("l", &json!({"status": "in_progress"})),
        summed("k", "one"),
        summed("l", "two"),
        compacted("l", &json!({"status": "completed"})),
        done,
    ]);
    assert_eq!((&two[0]["text"], &two[1]["text"]), (&json!("two"), &json!("one")));
    // What did not come to its end leaves a trace.
    let failed = compacted("k", &json!({"status": "failed", "error": "The summary was too long."}));
    let shown = items(&[begins.clone(), failed]);
    assert_eq!(
        (&shown[0]["kind"], &shown[0]["text"]),
        (&json!("warning"), &json!("The summary was too long."))
    );
    let cancelled = items(&[begins.clone(), compacted("k", &json!({"status": "cancelled"}))]);
    assert_eq!((cancelled.len(), &cancelled[0]["type"]), (1, &json!("notice")));
    let cut = [prompt(0, 1, "go"), begins, summed("k", "Half of"), end(3, 1)];
    let shown = items(&cut);
    assert_eq!((shown.len(), &shown[1]["text"]), (2, &json!("Half of")), "{shown:?}");
}

#[test]
fn a_notice_has_a_title_and_more() {
    for (severity, description, text) in [
        (
            "warning",
            json!("The server `db` did not answer."),
            "No MCP server\nThe server `db` did not answer.",
        ),
        ("error", Value::Null, "No MCP server"),
        ("info", json!(""), "No MCP server"),
    ] {
        let of = json!({"sessionUpdate": "notice", "severity": severity, "title": "No MCP server", "description": description});
        let shown = items(&[update(of)]);
        assert_eq!((&shown[0]["kind"], &shown[0]["text"]), (&json!(severity), &json!(text)));
    }
}

#[test]
fn plans_have_ids_and_forms() {
    let plan = |plan: Value| update(json!({"sessionUpdate": "plan_update", "plan": plan}));
    let entries = json!([{"content": "Step 1", "priority": "high", "status": "in_progress"}]);
    let shown = items(&[
        prompt(0, 1, "go"),
        plan(json!({"type": "items", "planId": "p", "entries": entries})),
        update(json!({"sessionUpdate": "plan_removed", "planId": "p"})),
    ]);
    assert_eq!((shown.len(), &shown[1]["type"]), (2, &json!("todo_list")), "{shown:?}");
    assert_eq!(shown[1]["todoList"]["todos"][0]["content"], "Step 1");
    let text = "## Steps\n- [x] Refactor module\n- [ ] Add tests\n";
    let shown = items(&[plan(json!({"type": "markdown", "id": "p", "content": text}))]);
    assert_eq!((shown.len(), &shown[0]["kind"]), (1, &json!("plan")), "{shown:?}");
    assert!(shown[0]["text"].as_str().unwrap().contains("- [x] Refactor module"));
    let shown = items(&[plan(json!({"type": "file", "id": "p", "uri": "file:///w/plan.md"}))]);
    assert_eq!((&shown[0]["kind"], shown.len()), (&json!("plan"), 1));
}

#[test]
fn what_an_agent_takes_back_is_no_longer_asked() {
    let ask = json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": {"sessionId": "s",
        "toolCall": {"toolCallId": "c", "title": "rm x", "kind": "execute", "rawInput": {"command": "rm x"}},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}});
    let form = json!({"jsonrpc": "2.0", "id": 6, "method": "elicitation/create", "params": {"sessionId": "s",
        "mode": "url", "elicitationId": "e", "url": "https://example.org/in", "message": "Log in"}});
    let back = |id: u32| json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
    let open = items(&[at(1, "agent->client", &ask), at(1, "agent->client", &form)]);
    let kinds: Vec<_> = open.iter().map(|i| i["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"permission") && kinds.contains(&"question"), "{kinds:?}");
    let question = open.iter().find(|i| i["type"] == "question").unwrap();
    assert_eq!(question["questions"][0]["question"], "Log in https://example.org/in");
    let shown = items(&[
        at(1, "agent->client", &ask),
        at(1, "agent->client", &form),
        at(2, "agent->client", &back(5)),
        at(2, "agent->client", &back(6)),
    ]);
    assert!(!shown.iter().any(|i| i["type"] == "permission"), "{shown:?}");
    let question = shown.iter().find(|i| i["type"] == "question").unwrap();
    assert_eq!(question["answers"][0]["answer"], "cancel");
}

#[test]
fn what_a_form_offers_is_told_in_the_words_it_offers() {
    let schema = json!({"type": "object", "properties": {"how": {"type": "string", "title": "How",
        "oneOf": [{"const": "a", "title": "Carefully"}, {"const": "b", "title": "Fast"}]}}});
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "session/elicitation",
        "params": {"sessionId": "s", "mode": "form", "message": "How shall I?", "requestedSchema": schema}});
    let answer =
        json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": {"how": "b"}}});
    let shown = items(&[at(1, "agent->client", &ask), at(2, "client->agent", &answer)]);
    assert_eq!(shown[0]["questions"][0]["options"][1]["label"], "Fast");
    assert_eq!(shown[0]["answers"][0], json!({"question": "How shall I?", "answer": "Fast"}));
    let done = json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "e"}});
    let older = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}});
    assert_eq!(items(&[at(1, "agent->client", &done), at(2, "agent->client", &older)]).len(), 0);
}

#[test]
fn folders_beside_the_working_directory_are_hidden_too() {
    let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {
        "cwd": "/srv/team-nine/app", "additionalDirectories": ["/data/team-nine/shared-lib"], "mcpServers": []}});
    let read = update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "read", "title": "Read x.rs",
        "locations": [{"path": "/data/team-nine/shared-lib/src/x.rs"}], "rawInput": {"path": "/data/team-nine/shared-lib/src/x.rs"}}),
    );
    let all = read_all(&[at(0, "client->agent", &new), at(1, "agent->client", &read)]);
    assert!(!all.contains("team-nine/shared-lib"), "{all}");
    assert!(all.contains("src/x.rs"), "{all}");
}

fn read_all(lines: &[Value]) -> String {
    let items = read(lines);
    let shown: Vec<Value> = items.ordered().iter().map(|item| json!(item)).collect();
    format!("{}{}", json!(items.info()), json!(shown))
}

#[test]
fn options_are_told_when_they_are_set() {
    let set = json!({"jsonrpc": "2.0", "id": 4, "method": "session/set_config_option",
        "params": {"sessionId": "s", "configId": "model", "value": "m2"}});
    let options = json!([{"configId": "model", "category": null, "type": "select", "currentValue": "m2",
        "options": [{"group": "g", "name": "G", "options": [{"value": "m2", "name": "M 2"}]}]},
        {"id": "web", "type": "boolean", "currentValue": false}]);
    let answer = json!({"jsonrpc": "2.0", "id": 4, "result": {"configOptions": options}});
    let info = json!(read(&[at(0, "client->agent", &set), at(1, "agent->client", &answer)]).info());
    assert_eq!(info["model"], "m2");
}
