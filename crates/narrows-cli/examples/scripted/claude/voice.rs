//! What an agent does, as records of Claude Code.

use super::super::scripted::play::{Voice, pieces};
use super::super::scripted::room::Room;
use super::super::scripted::{acts, state::State, uuid, wire};
use super::records::{Block, Speaker, now};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const STOPPED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

pub(crate) struct ClaudeVoice<'a> {
    speaker: &'a Speaker,
    state: &'a State,
    cwd: PathBuf,
    earlier: Vec<String>,
    /// Whether somebody can be asked.
    asks: bool,
    room: &'a Room,
    end: End,
    todos: Value,
}

/// How a turn ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    /// How many messages the model said.
    pub(crate) said: usize,
    pub(crate) last: String,
    pub(crate) denials: Vec<Value>,
    pub(crate) interrupted: bool,
    pub(crate) reason: String,
    /// The result says that the turn failed.
    pub(crate) failed: bool,
    pub(crate) terminal: &'static str,
}

impl<'a> ClaudeVoice<'a> {
    pub(crate) fn new(
        speaker: &'a Speaker,
        state: &'a State,
        cwd: PathBuf,
        earlier: Vec<String>,
        asks: bool,
        room: &'a Room,
    ) -> ClaudeVoice<'a> {
        let end = End { reason: "end_turn".to_owned(), terminal: "completed", ..End::default() };
        ClaudeVoice { speaker, state, cwd, earlier, asks, room, end, todos: json!([]) }
    }

    /// The turn is over.
    pub(crate) fn end(mut self) -> End {
        if self.room.is_cancelled() && !self.end.interrupted {
            self.interrupted("[Request interrupted by user]", "aborted_streaming");
        }
        self.end
    }

    fn interrupted(&mut self, words: &str, terminal: &'static str) {
        let content = json!([{"type": "text", "text": words}]);
        let told = json!({"type": "user", "message": {"role": "user", "content": content},
            "parent_tool_use_id": null, "timestamp": now()});
        self.keep(&self.speaker.tell(told));
        (self.end.interrupted, self.end.terminal) = (true, terminal);
    }

    fn keep(&self, record: &Value) {
        self.state.keep(&self.speaker.session, record);
    }

    fn message(&mut self, block: &Block<'_>) {
        let room = self.room;
        self.end.said += 1;
        let record = self.speaker.message(block, &|| room.is_cancelled());
        self.keep(&record);
    }

    fn say(&mut self, text: &str) {
        self.text(&pieces(text));
    }

    fn call(&mut self, name: &str, input: &Value) -> String {
        let id = format!("toolu_{}", uuid().replace('-', ""));
        // A call that was begun is told whole: only texts are cut.
        self.end.said += 1;
        let record = self.speaker.message(&Block::Tool { id: &id, name, input }, &|| false);
        self.keep(&record);
        id
    }

    fn called(&self, id: &str, content: &str, raw: &Value) {
        let meta = json!({"permission_decision": {"decision": "accept", "source": "config", "reason_type": "mode"}});
        self.keep(&self.speaker.result(id, content, false, raw, meta));
    }

    fn failed(&self, id: &str, why: &str) {
        let meta = json!({"permission_decision": {"decision": "accept", "source": "config", "reason_type": "mode"}});
        self.keep(&self.speaker.result(id, why, true, &json!(format!("Error: {why}")), meta));
    }

    /// The user broke off while a call ran.
    fn stopped(&mut self, id: &str) {
        let meta = json!({"non_execution_kind": "user-rejected"});
        self.keep(&self.speaker.result(id, STOPPED, true, &json!("User rejected tool use"), meta));
        self.interrupted("[Request interrupted by user for tool use]", "aborted_tools");
        "tool_use".clone_into(&mut self.end.reason);
    }

    /// Asks for leave: the answer, or nothing when the turn was broken off.
    fn leave(&mut self, id: &str, name: &str, input: &Value, more: &Value) -> Option<Value> {
        if !self.asks {
            return Some(json!({"behavior": "deny", "message": "Nobody can be asked."}));
        }
        let mut request = json!({"subtype": "can_use_tool", "tool_name": name, "display_name": name,
            "input": input, "tool_use_id": id});
        if let (Some(request), Some(more)) = (request.as_object_mut(), more.as_object()) {
            request.extend(more.clone());
        }
        let request_id = uuid();
        let receiver = self.room.expect(&request_id);
        wire::send(
            &json!({"type": "control_request", "request_id": request_id, "request": request}),
        );
        let answer = self.room.answered(&receiver);
        if answer.is_none() {
            wire::send(&json!({"type": "control_cancel_request", "request_id": request_id}));
            self.stopped(id);
        }
        answer
    }

    /// A refusal, with its words.
    fn refused(&mut self, id: &str, name: &str, input: &Value, answer: &Value) {
        let words = answer["message"].as_str().unwrap_or("The user said no.");
        self.end.denials.push(json!({"tool_name": name, "tool_use_id": id, "tool_input": input}));
        let meta = json!({"non_execution_kind": "permission-rule",
            "permission_decision": {"decision": "reject", "source": "user_reject"}});
        self.keep(&self.speaker.result(id, words, true, &json!(format!("Error: {words}")), meta));
        if answer["interrupt"] == true {
            self.room.set_cancelled(true);
            self.interrupted("[Request interrupted by user for tool use]", "aborted_tools");
        } else {
            self.say("rejected");
        }
    }

    fn allowed(&self, id: &str, content: &str, raw: &Value, always: bool) {
        let source = if always { "user_permanent" } else { "user_temporary" };
        let meta = json!({"permission_decision": {"decision": "accept", "source": source}});
        self.keep(&self.speaker.result(id, content, false, raw, meta));
    }
}

fn printed(text: &str) -> Value {
    json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false})
}

impl Voice for ClaudeVoice<'_> {
    fn text(&mut self, pieces: &[String]) {
        self.end.last = pieces.concat();
        self.message(&Block::Text(pieces));
    }

    fn think(&mut self, pieces: &[String]) {
        self.message(&Block::Thinking(pieces));
    }

    fn edit(&mut self, path: &str, text: &str) {
        let path = self.cwd.join(path);
        let text = format!("{text}\n");
        let before = std::fs::read_to_string(&path).ok();
        let (name, input) = match &before {
            Some(old) => (
                "Edit",
                json!({"replace_all": false, "file_path": path, "old_string": old, "new_string": text}),
            ),
            None => ("Write", json!({"file_path": path, "content": text})),
        };
        let id = self.call(name, &input);
        match acts::put(&path, &text) {
            Err(e) => self.failed(&id, &e.to_string()),
            Ok(Some(old)) => {
                let lines: Vec<String> = old
                    .lines()
                    .map(|line| format!("-{line}"))
                    .chain(text.lines().map(|line| format!("+{line}")))
                    .collect();
                let hunks = json!([{"oldStart": 1, "oldLines": old.lines().count(), "newStart": 1,
                    "newLines": text.lines().count(), "lines": lines}]);
                let raw = json!({"filePath": path, "oldString": old, "newString": text, "originalFile": old,
                    "structuredPatch": hunks, "userModified": false, "replaceAll": false});
                self.called(
                    &id,
                    &format!("The file {} has been updated successfully.", path.display()),
                    &raw,
                );
            }
            Ok(None) => {
                let raw = json!({"type": "create", "filePath": path, "content": text, "structuredPatch": [],
                    "originalFile": null, "userModified": false});
                self.called(
                    &id,
                    &format!("File created successfully at: {}", path.display()),
                    &raw,
                );
            }
        }
    }

    fn bash(&mut self, command: &str) {
        let id = self.call("Bash", &json!({"command": command, "description": "Scripted"}));
        let ran = acts::run(command, &self.cwd, self.room);
        let output = ran.output.trim_end();
        match ran.code {
            Some(0) => self.called(&id, output, &printed(output)),
            Some(code) => self.failed(&id, &format!("Exit code {code}\n{output}")),
            None => self.stopped(&id),
        }
    }

    fn ask(&mut self, title: &str) {
        let input = json!({"command": format!("echo {title}"), "description": title});
        let id = self.call("Bash", &input);
        let rule = json!({"toolName": "Bash", "ruleContent": format!("echo {title}")});
        let more = json!({"description": title, "permission_suggestions": [
            {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"}]});
        let Some(answer) = self.leave(&id, "Bash", &input, &more) else { return };
        if answer["behavior"] != "allow" {
            return self.refused(&id, "Bash", &input, &answer);
        }
        let always = answer["updatedPermissions"].as_array().is_some_and(|all| !all.is_empty());
        self.allowed(&id, title, &printed(title), always);
        self.say(if always { "allowed: allow_always" } else { "allowed: allow_once" });
    }

    fn question(&mut self, text: &str, answers: &[String]) {
        let options: Vec<Value> =
            answers.iter().map(|label| json!({"label": label, "description": label})).collect();
        let header: String = text.chars().take(12).collect();
        let questions =
            json!([{"question": text, "header": header, "options": options, "multiSelect": false}]);
        let input = json!({"questions": questions});
        let id = self.call("AskUserQuestion", &input);
        let more = json!({"requires_user_interaction": true});
        let Some(answer) = self.leave(&id, "AskUserQuestion", &input, &more) else { return };
        if answer["behavior"] != "allow" {
            return self.refused(&id, "AskUserQuestion", &input, &answer);
        }
        let given = &answer["updatedInput"]["answers"];
        let chosen = match &given[text] {
            Value::String(one) => one.clone(),
            Value::Array(many) => {
                many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            _ => String::new(),
        };
        let content = format!(
            "Your questions have been answered: \"{text}\"=\"{chosen}\". You can now continue with these answers in mind."
        );
        self.allowed(&id, &content, &json!({"questions": questions, "answers": given}), false);
        self.say(&format!("answered: {chosen}"));
    }

    fn elicit(&mut self, params: &str, _until: Option<&str>) {
        let asked: Value = serde_json::from_str(params).unwrap_or_default();
        let id = uuid();
        let receiver = self.room.expect(&id);
        wire::send(&json!({"type": "control_request", "request_id": id, "request": {
            "subtype": "elicitation", "mcp_server_name": "harbor", "message": asked["message"],
            "mode": asked["mode"], "url": asked["url"], "elicitation_id": asked["elicitationId"],
            "requested_schema": asked["requestedSchema"]}}));
        match self.room.answered(&receiver) {
            Some(answer) => self.say(&format!("got {answer}")),
            None => wire::send(&json!({"type": "control_cancel_request", "request_id": id})),
        }
    }

    fn subagent(&mut self, text: &str) {
        let input = json!({"description": "Scripted", "prompt": "Say it", "subagent_type": "general-purpose"});
        let call = self.call("Task", &input);
        let content = json!([{"type": "text", "text": text}]);
        let id = format!("msg_{}", uuid().replace('-', ""));
        let message = json!({"id": id, "type": "message", "role": "assistant", "model": self.speaker.model,
            "content": content, "stop_reason": null, "stop_sequence": null});
        // Without having been asked to, it does not tell.
        if self.room.forwards.load(std::sync::atomic::Ordering::SeqCst) {
            self.speaker
                .tell(json!({"type": "assistant", "message": message, "parent_tool_use_id": call,
                "timestamp": now()}));
        }
        self.called(
            &call,
            "The subagent is done.",
            &json!({"status": "completed", "content": content}),
        );
    }

    fn read(&mut self, path: &str) {
        self.say(&format!("read {path}"));
    }

    fn write(&mut self, path: &str, text: &str) {
        self.say(&format!("write {path} {text}"));
    }

    fn terminal(&mut self, command: &str) {
        self.say(&format!("terminal {command}"));
    }

    fn todo(&mut self, items: &[String]) {
        let todos: Vec<Value> = items
            .iter()
            .enumerate()
            .map(|(n, item)| {
                let status = if n == 0 { "in_progress" } else { "pending" };
                json!({"content": item, "status": status, "activeForm": item})
            })
            .collect();
        let todos = json!(todos);
        let id = self.call("TodoWrite", &json!({"todos": todos}));
        let raw = json!({"oldTodos": self.todos, "newTodos": todos});
        self.todos = todos;
        self.called(&id, "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable", &raw);
    }

    fn garbage(&mut self) {
        wire::raw("this is no JSON\n{\"type\":\"assistant\",\"message\":{\"id\n");
        self.speaker.tell(json!({"type": "strange"}));
        self.speaker.tell(json!({"type": "system", "subtype": "strange"}));
    }

    fn stop(&mut self, reason: &str) {
        reason.clone_into(&mut self.end.reason);
    }

    fn fail(&mut self, words: &str) {
        self.keep(&self.speaker.failure(words, None));
        (self.end.last, self.end.failed) = (words.to_owned(), true);
    }

    fn plan(&mut self, title: &str, plan: &str) {
        let input = json!({"plan": plan, "planFilePath": self.cwd.join("plan.md")});
        let id = self.call("ExitPlanMode", &input);
        let more = json!({"title": title, "description": title});
        let Some(answer) = self.leave(&id, "ExitPlanMode", &input, &more) else { return };
        if answer["behavior"] != "allow" {
            return self.refused(&id, "ExitPlanMode", &input, &answer);
        }
        self.allowed(&id, "User has approved your plan.", &json!({"plan": plan}), false);
        self.say("planned");
    }

    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn earlier(&self) -> Vec<String> {
        self.earlier.clone()
    }
}
