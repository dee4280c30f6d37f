//! Turn after turn of one session.

use super::super::scripted::options::Options;
use super::super::scripted::play::play;
use super::super::scripted::room::{Room, lock};
use super::super::scripted::{state::State, uuid};
use super::records::{Speaker, now, usage};
use super::voice::ClaudeVoice;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// A message of the user.
pub(crate) struct Prompt {
    pub(crate) content: Value,
    pub(crate) uuid: Option<String>,
}

pub(crate) struct Turns {
    session: String,
    cwd: PathBuf,
    version: &'static str,
    state: State,
    partial: bool,
    replay: bool,
    asks: bool,
    /// Nothing is done before a login.
    login: bool,
    model: Mutex<String>,
    mode: Mutex<String>,
    earlier: Mutex<Vec<String>>,
}

const LOGGED_OUT: &str = "Not logged in · Please run /login";
const TOOLS: [&str; 5] = ["AskUserQuestion", "Bash", "Edit", "TodoWrite", "Write"];

impl Turns {
    /// The session; none when it is to be resumed and was not kept.
    pub(crate) fn new(options: &Options, version: &'static str) -> Option<Turns> {
        let state = State(options.state.clone());
        let mut earlier = Vec::new();
        if let Some(session) = &options.resume {
            let kept = state.kept(session)?;
            let prompts = kept.iter().filter(|record| record["isReplay"] == true);
            earlier.extend(prompts.map(|record| words(&record["message"]["content"])));
        }
        let session = options.resume.clone().or_else(|| options.session.clone());
        Some(Turns {
            session: session.unwrap_or_else(uuid),
            cwd: std::env::current_dir().unwrap_or_default(),
            version,
            state,
            partial: options.partial,
            replay: options.replay,
            asks: options.asks,
            login: options.login,
            model: Mutex::new(
                options.model.clone().unwrap_or_else(|| "claude-sonnet-4-5".to_owned()),
            ),
            mode: Mutex::new(options.mode.clone().unwrap_or_else(|| "default".to_owned())),
            earlier: Mutex::new(earlier),
        })
    }

    fn speaker(&self) -> Speaker {
        let model = lock(&self.model).clone();
        Speaker { session: self.session.clone(), model, partial: self.partial }
    }

    pub(crate) fn set_mode(&self, mode: &str) {
        mode.clone_into(&mut lock(&self.mode));
        self.speaker().status(&Value::Null, Some(mode));
    }

    pub(crate) fn set_model(&self, model: &str) {
        model.clone_into(&mut lock(&self.model));
    }

    /// The answer to `initialize`.
    pub(crate) fn greeting(&self) -> Value {
        let model = |value: &str, name: &str| json!({"value": value, "resolvedModel": value, "displayName": name, "description": name});
        json!({
            "commands": [{"name": "recall", "description": "Says the prompts of this session", "argumentHint": ""}],
            "agents": [{"name": "general-purpose", "description": "For anything"}],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [model("default", "Default"), model("sonnet", "Sonnet"), model("haiku", "Haiku")],
            "account": {"tokenSource": "none", "apiKeySource": "none", "apiProvider": "firstParty"},
            "pid": std::process::id(),
            "claude_code_version": self.version,
            "current_permission_mode": *lock(&self.mode),
        })
    }

    /// Plays prompts as they come, until there are no more.
    pub(crate) fn play(&self, prompts: &Receiver<Prompt>, room: &Room) {
        for (index, prompt) in prompts.iter().enumerate() {
            self.turn(index, &prompt, room);
            room.turn_ended();
        }
    }

    fn turn(&self, index: usize, prompt: &Prompt, room: &Room) {
        let (began, speaker) = (Instant::now(), self.speaker());
        self.init(&speaker);
        speaker.status(&json!("requesting"), None);
        let asked = json!({"type": "user", "message": {"role": "user", "content": prompt.content},
            "session_id": self.session, "parent_tool_use_id": null,
            "uuid": prompt.uuid.clone().unwrap_or_else(uuid), "timestamp": now(), "isReplay": true});
        if self.replay {
            speaker.tell(asked.clone());
        }
        self.state.keep(&self.session, &asked);
        let text = words(&prompt.content);
        let earlier = lock(&self.earlier).clone();
        lock(&self.earlier).push(text.clone());
        let mut voice =
            ClaudeVoice::new(&speaker, &self.state, self.cwd.clone(), earlier, self.asks, room);
        if self.login {
            let told = speaker.failure(LOGGED_OUT, Some("authentication_failed"));
            self.state.keep(&self.session, &told);
        } else {
            play(&text, &mut voice, room);
        }
        let mut end = voice.end();
        if self.login {
            (end.last, end.failed) = (LOGGED_OUT.to_owned(), true);
        }
        let ms = began.elapsed().as_millis() as u64;
        let used = usage(end.said as u64);
        let mut record = json!({
            "duration_api_ms": ms, "stop_reason": end.reason, "total_cost_usd": 0.001,
            "usage": used, "permission_denials": end.denials, "terminal_reason": end.terminal,
            "is_error": end.interrupted || end.failed, "num_turns": end.said,
            "subtype": if end.interrupted { "error_during_execution" } else { "success" },
            "type": "result", "duration_ms": ms, "queued_turn_count": 0, "result_index": index,
            "modelUsage": {(speaker.model.as_str()): {"inputTokens": 13, "outputTokens": end.said,
                "cacheReadInputTokens": 4100, "cacheCreationInputTokens": 300, "webSearchRequests": 0,
                "costUSD": 0.001, "contextWindow": 200_000, "maxOutputTokens": 32_000}},
        });
        if end.interrupted {
            record["errors"] = json!([]);
        } else {
            record["result"] = json!(end.last);
        }
        speaker.tell(record);
    }

    fn init(&self, speaker: &Speaker) {
        speaker.tell(json!({
            "type": "system", "subtype": "init", "cwd": self.cwd, "session_id": self.session, "tools": TOOLS,
            "mcp_servers": [], "model": speaker.model, "permissionMode": *lock(&self.mode),
            "slash_commands": ["recall"], "apiKeySource": "none", "claude_code_version": self.version,
            "output_style": "default", "agents": ["general-purpose"], "skills": [], "plugins": [],
        }));
    }
}

/// The text of a message; a picture is told by its type and size.
fn words(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<String> = blocks
        .iter()
        .map(|block| match block["type"].as_str() {
            Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
            Some("image") => {
                let size = block["source"]["data"].as_str().map_or(0, str::len);
                format!(
                    "say image {} {size}",
                    block["source"]["media_type"].as_str().unwrap_or("?")
                )
            }
            other => format!("say block {}", other.unwrap_or("?")),
        })
        .collect();
    lines.join("\n")
}
