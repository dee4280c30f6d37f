//! The scripted agents speak the protocols that they stand for.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod agents;

use agents::{NARROWS, Talk, agent};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// What `narrows parse` makes of the lines: events, and their kinds.
fn parsed(folder: &Path, from: &str, lines: &str) -> Vec<Value> {
    let file = folder.join("said.jsonl");
    std::fs::write(&file, lines).expect("file");
    let output = Command::new(NARROWS)
        .args(["parse", "--format", from, "--view", "events"])
        .arg(&file)
        .output()
        .expect("narrows");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("event")).collect()
}

/// How many events are of a kind.
fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

fn all_known(events: &[Value]) {
    let odd: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "unknown" || event["type"] == "malformed")
        .collect();
    assert!(odd.is_empty() && !events.is_empty(), "{odd:?}");
}

/// The scripted ACP agent, with a client that answers.
struct Acp {
    talk: Talk,
    id: u64,
    session: Value,
    /// What the client says to a question for leave.
    option: &'static str,
}

impl Acp {
    fn start(words: &[&str], cwd: &Path) -> Acp {
        let mut command = Command::new(agent("scripted_acp"));
        let talk = Talk::start(command.args(words));
        let mut acp = Acp { talk, id: 0, session: Value::Null, option: "allow_once" };
        let hello =
            acp.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(hello["result"]["protocolVersion"], 1);
        if !words.contains(&"--old") {
            let new = acp.call("session/new", &json!({"cwd": cwd, "mcpServers": []}));
            acp.session = new["result"]["sessionId"].clone();
        }
        acp
    }

    /// A request and its answer; what the agent asks meanwhile is answered.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.talk.send(&request);
        self.wait(id)
    }

    fn wait(&mut self, id: u64) -> Value {
        loop {
            let message = self.talk.find(|message| message.get("id").is_some());
            let Some(method) = message["method"].as_str() else {
                assert_eq!(message["id"], id);
                return message;
            };
            let answer = match method {
                "session/request_permission" => {
                    json!({"result": {"outcome": {"outcome": "selected", "optionId": self.option}}})
                }
                "fs/read_text_file" => json!({"result": {"content": "what was read"}}),
                "fs/write_text_file" => {
                    json!({"error": {"code": -32000, "message": "outside of the root"}})
                }
                "terminal/create" => json!({"result": {"terminalId": "t1"}}),
                "terminal/wait_for_exit" => json!({"result": {"exitCode": 0, "signal": null}}),
                "terminal/output" => json!({"result": {"output": "from the terminal",
                    "truncated": false, "exitStatus": {"exitCode": 0, "signal": null}}}),
                _ => json!({"result": {}}),
            };
            let mut answer = answer;
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = message["id"].clone();
            self.talk.send(&answer);
        }
    }

    fn prompt(&mut self, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.call("session/prompt", &json!({"sessionId": self.session, "prompt": prompt}))
    }

    /// What the agent said since the beginning, texts only.
    fn text(&self) -> String {
        let lines = self.talk.said.iter().filter(|(agents, _)| *agents);
        lines
            .filter_map(|(_, line)| serde_json::from_str::<Value>(line).ok())
            .map(|message| message["params"]["update"].clone())
            .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
            .map(|update| update["content"]["text"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Everything in both directions, as it is recorded.
    fn recorded(&self) -> String {
        let mut lines = String::new();
        for (agents, line) in &self.talk.said {
            let dir = if *agents { "agent->client" } else { "client->agent" };
            let line: Value = serde_json::from_str(line).unwrap_or_else(|_| json!(line));
            let ts = "2026-11-16T12:00:00.000Z";
            lines.push_str(&json!({"ts": ts, "dir": dir, "msg": line}).to_string());
            lines.push('\n');
        }
        lines
    }
}

#[test]
fn acp_does_what_the_prompt_says() {
    let folder = tempfile::tempdir().expect("folder");
    let mut acp = Acp::start(&[], folder.path());
    let script = "say hello you\nthink hm\nchunks 3\nedit a/b.txt first\nedit a/b.txt second\n\
        bash echo out; echo err >&2; exit 3\nask May I?\nread x.txt\nwrite /etc/x no\n\
        terminal ls\ntodo One|Two\nstderr noise\nno command";
    let answer = acp.prompt(script);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let written = std::fs::read_to_string(folder.path().join("a/b.txt")).expect("file");
    assert_eq!(written, "second\n");
    acp.option = "reject_once";
    acp.prompt("ask Again?\nrecall\ncwd");
    let text = acp.text();
    let said = "hello youword 0 word 1 word 2 allowed: allow_oncewhat was read\
        error: -32000 outside of the rootfrom the terminalno commandrejectedbefore: say hello";
    assert!(text.starts_with(said), "{text}");
    assert!(text.ends_with(&folder.path().display().to_string()), "{text}");
    let mode = acp.session.clone();
    assert_eq!(
        acp.call("session/set_mode", &json!({"sessionId": mode, "modeId": "plan"}))["error"],
        Value::Null
    );
    let events = parsed(folder.path(), "acp", &acp.recorded());
    all_known(&events);
    assert_eq!(acp.talk.end(), Some(0));
}

#[test]
fn acp_is_cancelled_loaded_and_odd() {
    let folder = tempfile::tempdir().expect("folder");
    let state = folder.path().join("state");
    let state = state.to_str().expect("path");
    let mut acp = Acp::start(&["--state", state, "--config-options"], folder.path());
    acp.prompt("say kept\nbash echo kept too");
    let options = json!({"sessionId": acp.session, "configId": "model", "value": "large"});
    let set = acp.call("session/set_config_option", &options);
    assert_eq!(set["result"]["configOptions"][0]["currentValue"], "large");
    for script in ["wait 60000", "bash sleep 60"] {
        acp.id += 1;
        let prompt = json!([{"type": "text", "text": format!("say begun\n{script}\nsay never")}]);
        let params = json!({"sessionId": acp.session, "prompt": prompt});
        let id = acp.id;
        acp.talk.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}),
        );
        acp.talk.find(|m| m["params"]["update"]["content"]["text"] == "begun");
        let session = acp.session.clone();
        acp.talk.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
        assert_eq!(acp.wait(id)["result"]["stopReason"], "cancelled");
    }
    assert!(!acp.text().contains("never"));
    let (session, live) = (acp.session.clone(), acp.recorded());
    all_known(&parsed(folder.path(), "acp", &live));
    assert_eq!(acp.talk.end(), Some(0));

    let mut again = Acp::start(&["--state", state, "--old"], folder.path());
    let params = |id: &Value| json!({"sessionId": id, "cwd": folder.path(), "mcpServers": []});
    assert_eq!(again.call("session/load", &params(&json!("ses_none")))["error"]["code"], -32002);
    assert_eq!(again.call("session/load", &params(&session))["error"], Value::Null);
    assert!(again.text().starts_with("keptbegun"), "{}", again.text());
    again.session = session;
    again.prompt("recall");
    assert!(again.text().ends_with("before: say kept\nbash echo kept too | say begun\nwait 60000\nsay never | say begun\nbash sleep 60\nsay never"));
    all_known(&parsed(folder.path(), "acp", &again.recorded()));

    let before = again.talk.said.len();
    again.prompt("garbage");
    let lines: Vec<&str> = again.talk.said[before + 1..].iter().map(|(_, l)| l.as_str()).collect();
    let events = parsed(folder.path(), "acp", &(lines.join("\n") + "\n"));
    assert_eq!((count(&events, "malformed"), count(&events, "unknown")), (2, 2), "{events:?}");
    let mut gone = Acp::start(&["--no-load"], folder.path());
    assert_eq!(gone.call("session/load", &params(&json!("x")))["error"]["code"], -32601);
    let ending = json!({"sessionId": gone.session, "prompt": [{"type": "text", "text": "exit 9"}]});
    gone.talk
        .send(&json!({"jsonrpc": "2.0", "id": 99, "method": "session/prompt", "params": ending}));
    assert_eq!(gone.talk.exit(), Some(9));
}

const FLAGS: [&str; 10] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    "--replay-user-messages",
];

fn claude(words: &[&str], cwd: &Path) -> Talk {
    let mut command = Command::new(agent("scripted_claude"));
    let mut talk = Talk::start(command.args(FLAGS).args(words).current_dir(cwd));
    let hello = json!({"subtype": "initialize", "hooks": {}});
    talk.send(&json!({"type": "control_request", "request_id": "init", "request": hello}));
    let answer = talk.find(|message| message["type"] == "control_response");
    assert_eq!(answer["response"]["request_id"], "init");
    talk
}

fn tell(talk: &mut Talk, uuid: &str, text: &str) {
    let content = json!([{"type": "text", "text": text}]);
    talk.send(&json!({"type": "user", "message": {"role": "user", "content": content},
        "parent_tool_use_id": null, "session_id": "", "uuid": uuid}));
    talk.find(|message| message["isReplay"] == true && message["uuid"] == uuid);
}

/// Waits for a question for leave, and answers it.
fn leave(talk: &mut Talk, answer: impl FnOnce(&Value) -> Value) {
    let asked = talk.find(|message| message["type"] == "control_request");
    let response = answer(&asked["request"]["input"]);
    let id = &asked["request_id"];
    talk.send(&json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": id, "response": response}}));
}

fn result(talk: &mut Talk) -> Value {
    talk.find(|message| message["type"] == "result")
}

/// What the agent printed.
fn printed(talk: &Talk) -> String {
    let lines = talk.said.iter().filter(|(agents, _)| *agents);
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

#[test]
fn claude_does_what_the_prompt_says() {
    let folder = tempfile::tempdir().expect("folder");
    let mut talk = claude(&["--model", "sonnet", "--permission-mode", "plan"], folder.path());
    let script = "say hello you\nthink hm\nchunks 3\nedit a.txt first\nedit a.txt second\n\
        bash echo out\nbash exit 3\ntodo One|Two\nask May I?\nask Always?\nask No?\n\
        question Which?|Red|Blue\nread x";
    tell(&mut talk, "00000000-0000-4000-8000-000000000001", script);
    leave(&mut talk, |input| json!({"behavior": "allow", "updatedInput": input}));
    leave(
        &mut talk,
        |input| json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": [{"type": "addRules"}]}),
    );
    leave(&mut talk, |_| json!({"behavior": "deny", "message": "Not this one."}));
    leave(&mut talk, |input| {
        let mut input = input.clone();
        input["answers"] = json!({"Which?": "Blue"});
        json!({"behavior": "allow", "updatedInput": input})
    });
    let end = result(&mut talk);
    assert_eq!((&end["subtype"], &end["result"]), (&json!("success"), &json!("read x")));
    assert_eq!(end["permission_denials"].as_array().map(Vec::len), Some(1));
    let all = printed(&talk);
    for said in ["allowed: allow_once", "allowed: allow_always", "rejected", "answered: Blue"] {
        assert!(all.contains(&format!(r#""text":"{said}""#)), "{said}");
    }
    assert!(all.contains(r#""model":"sonnet""#) && all.contains(r#""permissionMode":"plan""#));
    let events = parsed(folder.path(), "claude-stream", &all);
    all_known(&events);
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn claude_is_interrupted_resumed_and_odd() {
    let folder = tempfile::tempdir().expect("folder");
    let state = folder.path().join("state");
    let state = state.to_str().expect("path");
    let session = "11111111-0000-4000-8000-000000000001";
    let mut talk = claude(&["--state", state, "--session-id", session], folder.path());
    for (n, script) in ["wait 60000", "bash sleep 60", "ask Never?"].iter().enumerate() {
        let uuid = format!("00000000-0000-4000-8000-00000000000{n}");
        tell(&mut talk, &uuid, &format!("say begun\n{script}\nsay never"));
        talk.find(|message| message["message"]["content"][0]["text"] == "begun");
        if n == 2 {
            talk.find(|message| message["type"] == "control_request");
        }
        let request = json!({"subtype": "interrupt"});
        talk.send(&json!({"type": "control_request", "request_id": "stop", "request": request}));
        let end = result(&mut talk);
        assert_eq!(
            (&end["subtype"], &end["is_error"]),
            (&json!("error_during_execution"), &json!(true))
        );
    }
    let all = printed(&talk);
    assert!(!all.contains(r#""text":"never""#) && all.contains("control_cancel_request"));
    for subtype in ["set_permission_mode", "set_model"] {
        let request = json!({"subtype": subtype, "mode": "acceptEdits", "model": "haiku"});
        talk.send(&json!({"type": "control_request", "request_id": subtype, "request": request}));
        let answer = talk.find(|message| message["type"] == "control_response");
        assert_eq!(answer["response"]["subtype"], "success");
    }
    all_known(&parsed(folder.path(), "claude-stream", &printed(&talk)));
    // What was said before the end of the input is still done.
    tell(&mut talk, "00000000-0000-4000-8000-000000000009", "wait 50\nsay late");
    assert_eq!(talk.end(), Some(0));
    assert!(printed(&talk).contains(r#""result":"late""#));

    let mut again = claude(&["--state", state, "--resume", session], folder.path());
    tell(&mut again, "00000000-0000-4000-8000-00000000000a", "recall\ngarbage\nexit 5");
    while again.line().is_some() {}
    assert_eq!(again.exit(), Some(5));
    let all = printed(&again);
    assert!(all.contains("before: say begun") && all.contains("say late"), "{all}");
    let events = parsed(folder.path(), "claude-stream", &all);
    assert_eq!((count(&events, "malformed"), count(&events, "unknown")), (2, 2), "{events:?}");
    let lost = Command::new(agent("scripted_claude"))
        .args(["-p", "--resume", "none", "--state", state])
        .output()
        .expect("agent");
    assert_eq!(lost.status.code(), Some(1));
}

#[test]
fn pipes_can_be_closed_and_starts_can_fail() {
    let folder = tempfile::tempdir().expect("folder");
    for (name, version) in [("scripted_acp", "1.0.0"), ("scripted_claude", "2.1.325")] {
        let output = Command::new(agent(name)).arg("--version").output().expect("agent");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(version));
        let output = Command::new(agent(name)).args(["--exit-at-start", "6"]).output();
        assert_eq!(output.expect("agent").status.code(), Some(6));
    }
    let mut talk = claude(&[], folder.path());
    tell(
        &mut talk,
        "00000000-0000-4000-8000-000000000001",
        "flood 1000000\nclose-stdin\nsay deaf ears",
    );
    talk.find(|message| message["type"] == "result");
    let message = json!({"type": "keep_alive"}).to_string() + "\n";
    let input = talk.input.as_mut().expect("input");
    let error = std::io::Write::write_all(input, message.as_bytes()).expect_err("closed");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    assert!(printed(&talk).len() > 1_000_000);

    let mut acp = Acp::start(&["--slow-start", "50"], folder.path());
    let prompt = json!([{"type": "text", "text": "close-stdout\nwait 60000"}]);
    let params = json!({"sessionId": acp.session, "prompt": prompt});
    acp.talk
        .send(&json!({"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": params}));
    while acp.talk.line().is_some() {}
    assert_eq!(acp.talk.child.try_wait().expect("wait"), None);
    assert_eq!(acp.talk.end(), Some(0));
}
