//! What an agent does, as updates of its session.

use super::super::scripted::play::{Voice, pieces};
use super::super::scripted::room::Room;
use super::super::scripted::{acts, uuid, wire};
use super::sessions::Sessions;
use super::update;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids of requests of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

const REJECTED: &str = "The user rejected permission to use this specific tool call.";

pub(crate) struct AcpVoice<'a> {
    session: &'a str,
    cwd: PathBuf,
    earlier: Vec<String>,
    room: &'a Room,
    sessions: &'a Sessions,
    /// Something like tokens.
    pub(crate) used: u64,
    /// Why the turn ends, or fails.
    pub(crate) reason: Option<String>,
    pub(crate) failure: Option<String>,
}

impl<'a> AcpVoice<'a> {
    pub(crate) fn new(
        session: &'a str,
        cwd: PathBuf,
        earlier: Vec<String>,
        room: &'a Room,
        sessions: &'a Sessions,
    ) -> AcpVoice<'a> {
        let (reason, failure) = (None, None);
        AcpVoice { session, cwd, earlier, room, sessions, used: 0, reason, failure }
    }

    /// Tells an update, and remembers it.
    fn tell(&self, told: &Value) {
        update(self.session, told);
        self.sessions.keep(self.session, told);
    }

    fn chunks(&mut self, kind: &str, pieces: &[String]) {
        let id = format!("msg_{}", uuid());
        let chunk = |text: &str| json!({"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}});
        for piece in pieces {
            if self.room.is_cancelled() {
                break;
            }
            self.used += 1;
            update(self.session, &chunk(piece));
        }
        // A replay has no pieces.
        self.sessions.keep(self.session, &chunk(&pieces.concat()));
    }

    fn say(&mut self, text: &str) {
        self.text(&pieces(text));
    }

    /// A call that begins to run: first its name, then what it is given.
    fn call(&self, name: &str, kind: &str, title: &str, path: &Path, input: &Value) -> String {
        let id = format!("toolu_{}", uuid().replace('-', ""));
        let places = json!([{"path": path}]);
        self.tell(
            &json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": name, "kind": kind,
            "status": "pending", "locations": places, "rawInput": {}}),
        );
        self.tell(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress",
            "kind": kind, "title": title, "locations": places, "rawInput": input}),
        );
        id
    }

    /// Its end; `more` stands beside its text.
    fn called(&self, id: &str, status: &str, text: &str, more: Option<Value>, raw: &Value) {
        let mut content =
            vec![json!({"type": "content", "content": {"type": "text", "text": text}})];
        content.extend(more);
        self.tell(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
            "content": content, "rawOutput": raw}));
    }

    fn failed(&self, id: &str, why: &str) {
        self.called(id, "failed", why, None, &json!({"error": why}));
    }

    /// Asks the client for something.
    fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        self.request_until(method, params, None)
    }

    /// The same, until a file is there: then the request is taken back.
    fn request_until(
        &self,
        method: &str,
        mut params: Value,
        until: Option<&Path>,
    ) -> Result<Value, String> {
        let id = NEXT.fetch_add(1, Ordering::SeqCst);
        let receiver = self.room.expect(&id.to_string());
        params["sessionId"] = json!(self.session);
        wire::send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        if let Some(file) = until {
            while !file.exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let params = json!({"requestId": id});
            wire::send(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}));
        }
        let answer = self.room.answered(&receiver).ok_or("cancelled")?;
        match answer.get("error") {
            Some(error) => {
                let words = error["message"].as_str().unwrap_or_default();
                Err(format!("error: {} {words}", error["code"]))
            }
            None => Ok(answer["result"].clone()),
        }
    }

    /// Runs a command in a terminal of the client.
    fn in_terminal(&self, command: &str) -> Result<String, String> {
        let created = self.request(
            "terminal/create",
            json!({"command": "sh", "args": ["-c", command], "cwd": self.cwd, "env": [], "outputByteLimit": 100_000}),
        )?;
        let id = created["terminalId"].clone();
        let call = self.call("bash", "execute", command, &self.cwd, &json!({"command": command}));
        self.tell(&json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress",
            "content": [{"type": "terminal", "terminalId": id}]}));
        let done = self.request("terminal/wait_for_exit", json!({"terminalId": id}));
        let output = self.request("terminal/output", json!({"terminalId": id}));
        let released = self.request("terminal/release", json!({"terminalId": id}));
        match done.and(output).and_then(|output| released.map(|_| output)) {
            Ok(output) => {
                let text = output["output"].as_str().unwrap_or_default().to_owned();
                let exit = output["exitStatus"]["exitCode"].clone();
                let raw = json!({"output": text, "metadata": {"output": text, "exit": exit}});
                self.called(&call, "completed", &text, None, &raw);
                Ok(text)
            }
            Err(why) => {
                self.failed(&call, &why);
                Err(why)
            }
        }
    }
}

impl Voice for AcpVoice<'_> {
    fn text(&mut self, pieces: &[String]) {
        self.chunks("agent_message_chunk", pieces);
    }

    fn think(&mut self, pieces: &[String]) {
        self.chunks("agent_thought_chunk", pieces);
    }

    fn edit(&mut self, path: &str, text: &str) {
        let path = self.cwd.join(path);
        let text = format!("{text}\n");
        let title = path.display().to_string();
        let before = std::fs::read_to_string(&path).ok();
        let (name, input) = match &before {
            Some(old) => ("edit", json!({"filePath": path, "oldString": old, "newString": text})),
            None => ("write", json!({"filePath": path, "content": text})),
        };
        let call = self.call(name, "edit", &title, &path, &input);
        match acts::put(&path, &text) {
            Ok(before) => {
                let diff =
                    json!({"type": "diff", "path": path, "oldText": before, "newText": text});
                let done = "Edit applied successfully.";
                let notes = json!({"diagnostics": {}, "filepath": path, "exists": before.is_some(), "truncated": false});
                let raw = json!({"output": done, "metadata": notes});
                self.called(&call, "completed", done, Some(diff), &raw);
            }
            Err(e) => self.failed(&call, &e.to_string()),
        }
    }

    fn bash(&mut self, command: &str) {
        let input = json!({"command": command, "description": "Scripted", "cwd": self.cwd});
        let call = self.call("bash", "execute", command, &self.cwd, &input);
        let ran = acts::run(command, &self.cwd, self.room);
        match ran.code {
            Some(code) => {
                let notes = json!({"output": ran.output, "exit": code, "truncated": false});
                let raw = json!({"output": ran.output, "metadata": notes});
                self.called(&call, "completed", &ran.output, None, &raw);
            }
            None => self.failed(&call, "User aborted the command"),
        }
    }

    fn ask(&mut self, title: &str) {
        let input = json!({"command": format!("echo {title}"), "description": title});
        let call = self.call("bash", "execute", title, &self.cwd, &input);
        let options = json!([
            {"optionId": "allow_once", "kind": "allow_once", "name": "Allow once"},
            {"optionId": "allow_always", "kind": "allow_always", "name": "Always allow"},
            {"optionId": "reject_once", "kind": "reject_once", "name": "Reject"},
            {"optionId": "reject_always", "kind": "reject_always", "name": "Always reject"},
        ]);
        let about = json!({"toolCallId": call, "title": title, "kind": "execute", "status": "pending",
            "locations": [], "rawInput": input});
        let answer = self
            .request("session/request_permission", json!({"toolCall": about, "options": options}));
        let answer = match answer {
            Ok(answer) => answer["outcome"].clone(),
            Err(why) if self.room.is_cancelled() => return self.failed(&call, &why),
            Err(why) => {
                self.failed(&call, &why);
                return self.say(&why);
            }
        };
        let option = answer["optionId"].as_str().unwrap_or_default();
        if answer["outcome"] == "selected" && option.starts_with("allow") {
            let output = format!("{title}\n");
            let raw = json!({"output": output, "metadata": {"output": output, "exit": 0, "truncated": false}});
            self.called(&call, "completed", &output, None, &raw);
            self.say(&format!("allowed: {option}"));
        } else {
            self.failed(&call, REJECTED);
            self.say("rejected");
        }
    }

    fn question(&mut self, text: &str, answers: &[String]) {
        self.say(&format!("question {text}|{}", answers.join("|")));
    }

    fn elicit(&mut self, params: &str, until: Option<&str>) {
        let params = serde_json::from_str(params).unwrap_or_default();
        let until = until.map(|file| self.cwd.join(file));
        let answer = self.request_until("elicitation/create", params, until.as_deref());
        let told = answer.map_or_else(|why| why, |answer| answer.to_string());
        self.say(&format!("got {told}"));
    }

    fn subagent(&mut self, text: &str) {
        self.say(text);
    }

    fn read(&mut self, path: &str) {
        let answer = self.request("fs/read_text_file", json!({"path": self.cwd.join(path)}));
        let text = answer.map(|got| got["content"].as_str().unwrap_or_default().to_owned());
        self.say(&text.unwrap_or_else(|why| why));
    }

    fn write(&mut self, path: &str, text: &str) {
        let params = json!({"path": self.cwd.join(path), "content": format!("{text}\n")});
        let answer = self.request("fs/write_text_file", params);
        self.say(&answer.map_or_else(|why| why, |_| "written".to_owned()));
    }

    fn terminal(&mut self, command: &str) {
        let said = self.in_terminal(command).unwrap_or_else(|why| why);
        self.say(&said);
    }

    fn todo(&mut self, items: &[String]) {
        let entries: Vec<Value> = items
            .iter()
            .enumerate()
            .map(|(n, item)| {
                let status = if n == 0 { "in_progress" } else { "pending" };
                json!({"content": item, "status": status, "priority": "medium"})
            })
            .collect();
        self.tell(&json!({"sessionUpdate": "plan", "entries": entries}));
    }

    fn garbage(&mut self) {
        wire::raw("this is no JSON\n{\"jsonrpc\":\"2.0\",\"method\":\"session/upd\n");
        wire::send(
            &json!({"jsonrpc": "2.0", "method": "strange/method", "params": {"sessionId": self.session}}),
        );
        update(
            self.session,
            &json!({"sessionUpdate": "strange_update", "content": {"type": "text", "text": "?"}}),
        );
    }

    fn stop(&mut self, reason: &str) {
        self.reason = Some(reason.to_owned());
    }

    fn fail(&mut self, words: &str) {
        self.failure = Some(words.to_owned());
    }

    fn plan(&mut self, title: &str, plan: &str) {
        let id = format!("toolu_{}", uuid().replace('-', ""));
        let about = json!({"toolCallId": id, "title": title, "kind": "switch_mode", "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": plan}}],
            "rawInput": {"plan": plan}});
        let options = json!([
            {"optionId": "default", "kind": "allow_once", "name": "Yes, and ask before changes"},
            {"optionId": "plan", "kind": "reject_once", "name": "No, keep planning"},
        ]);
        let params = json!({"toolCall": about, "options": options});
        let answer = self.request("session/request_permission", params);
        let chosen = answer.map(|answer| answer["outcome"]["optionId"] == "default");
        if chosen.unwrap_or(false) {
            self.called(&id, "completed", "planned", None, &json!({"output": "planned"}));
            self.say("planned");
        } else {
            self.failed(&id, REJECTED);
            self.say("rejected");
        }
    }

    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn earlier(&self) -> Vec<String> {
        self.earlier.clone()
    }
}
