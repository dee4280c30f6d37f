//! Speaking the Agent Client Protocol, as its client. What agents say is kept as it is; only what
//! concerns the way of speaking is looked at here.

mod replay;

use super::driver::{Effect, Heard, Opening, Prompt, Refused, Reply, RunChoice};
use replay::Replay;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::ErrorKind;

/// Requests for leave that may wait at once.
const MAX_REQUESTS: usize = 256;
/// Updates that may tell of modes are short.
const MAX_LOOKED_AT: usize = 256 << 10;

/// What was asked of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Initialize,
    New,
    Load,
    /// Whether it has more to replay.
    Quiet,
    Prompt,
    /// A choice, which an agent may refuse without harm.
    Choice,
}

/// A request for leave that waits.
#[derive(Debug)]
struct Leave {
    id: Value,
    options: Vec<String>,
}

/// The client's side of one connection.
#[derive(Debug)]
pub(crate) struct Acp {
    opening: Opening,
    next: u64,
    asked: HashMap<u64, Asked>,
    leave: HashMap<String, Leave>,
    session: Option<String>,
    images: bool,
    replay: Replay,
    prompting: Option<u64>,
    modes: Vec<RunChoice>,
    mode: Option<String>,
    models: Vec<RunChoice>,
    model: Option<String>,
    /// The option by which newer agents choose the mode and the model.
    by_option: (bool, bool),
}

/// A message, looked at no deeper than needed.
#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

impl Acp {
    pub(crate) fn new(opening: Opening) -> Self {
        Acp {
            opening,
            next: 0,
            asked: HashMap::new(),
            leave: HashMap::new(),
            session: None,
            images: false,
            replay: Replay::default(),
            prompting: None,
            modes: Vec::new(),
            mode: None,
            models: Vec::new(),
            model: None,
            by_option: (false, false),
        }
    }

    pub(crate) fn start(&mut self) -> Vec<Effect> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                // narrows has no text that is not on the disk. Gemini CLI, which is told that a file is
                // not there, makes none (0.61): it reads by itself.
                "fs": {"readTextFile": false, "writeTextFile": true},
                "terminal": true,
            },
            "clientInfo": {
                "name": "narrows", "title": "narrows", "version": env!("CARGO_PKG_VERSION"),
            },
        });
        vec![self.ask(Asked::Initialize, "initialize", &params)]
    }

    pub(crate) fn hear(&mut self, line: &[u8]) -> Heard {
        let log = !self.replay.is_on();
        let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else {
            return Heard { log, effects: Vec::new() };
        };
        let Some(method) = message.method.as_deref() else {
            return self.answered(&message);
        };
        let Some(id) = message.id else {
            let mut effects = Vec::new();
            let log = self.replay.passes(message.params);
            if method == "session/update" && line.len() < MAX_LOOKED_AT {
                self.update(message.params, &mut effects);
            }
            return Heard { log, effects };
        };
        let params: Value =
            message.params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or(Value::Null);
        let effects = match method {
            "session/request_permission" => self.leave_asked(id, &params),
            _ if method.starts_with("fs/") || method.starts_with("terminal/") => {
                vec![Effect::Wants { id, method: method.to_owned(), params }]
            }
            _ => vec![refuse(&id, -32601, "narrows does not know this method")],
        };
        Heard { log, effects }
    }

    /// An answer to something that was asked of the agent.
    fn answered(&mut self, message: &Message<'_>) -> Heard {
        let asked = message.id.as_ref().and_then(Value::as_u64);
        let asked = asked.and_then(|id| self.asked.remove(&id).map(|asked| (id, asked)));
        let log = !self.replay.is_on() || matches!(asked, Some((_, Asked::Load)));
        let Some((id, asked)) = asked else { return Heard { log, effects: Vec::new() } };
        let error = message.error.as_ref();
        let result: Value =
            message.result.and_then(|r| serde_json::from_str(r.get()).ok()).unwrap_or(Value::Null);
        let failed = |what: &str| {
            let told = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
            vec![Effect::Fatal(format!("{what}: {told}"))]
        };
        let effects = match asked {
            Asked::Initialize if error.is_some() => failed("the agent does not begin"),
            Asked::New if error.is_some() => failed("the agent opens no session"),
            Asked::Initialize => self.initialized(&result),
            Asked::New => self.opened(&result),
            Asked::Load if error.is_some() => {
                // It has lost it, or never had it: what narrows has kept stays.
                self.replay.end();
                let mut effects = vec![Effect::Notice(LOST.to_owned())];
                effects.push(self.open_new());
                effects
            }
            Asked::Load => {
                self.replay.loaded(result, self.opening.native.clone());
                vec![self.is_quiet()]
            }
            Asked::Quiet => match self.replay.is_over() {
                None => vec![self.is_quiet()],
                Some(loaded) => self.opened(&loaded),
            },
            Asked::Prompt if self.prompting == Some(id) => {
                self.prompting = None;
                vec![Effect::Ended]
            }
            Asked::Prompt | Asked::Choice => Vec::new(),
        };
        // What failed here is told by narrows, with what the agent said last.
        let told = matches!(effects.first(), Some(Effect::Fatal(_)));
        Heard { log: log && !told, effects }
    }

    fn initialized(&mut self, result: &Value) -> Vec<Effect> {
        let version = result["protocolVersion"].as_u64().unwrap_or(1);
        if version != 1 {
            let what = format!("the agent speaks version {version} of the protocol, narrows 1");
            return vec![Effect::Fatal(what)];
        }
        let can = &result["agentCapabilities"];
        self.images = can["promptCapabilities"]["image"].as_bool().unwrap_or(false);
        let Some(native) = self.opening.native.clone().filter(|_| self.opening.resume) else {
            return vec![self.open_new()];
        };
        if can["loadSession"].as_bool() != Some(true) {
            return vec![Effect::Notice(CANNOT.to_owned()), self.open_new()];
        }
        self.replay.begin();
        let params = json!({"sessionId": native, "cwd": self.opening.cwd, "mcpServers": []});
        vec![self.ask(Asked::Load, "session/load", &params)]
    }

    /// Asks whether more is replayed. The log needs not know.
    fn is_quiet(&mut self) -> Effect {
        match self.ask(Asked::Quiet, Replay::METHOD, &json!({})) {
            Effect::Send(line) => Effect::Tell(line),
            other => other,
        }
    }

    fn open_new(&mut self) -> Effect {
        let params = json!({"cwd": self.opening.cwd, "mcpServers": []});
        self.ask(Asked::New, "session/new", &params)
    }

    fn opened(&mut self, result: &Value) -> Vec<Effect> {
        let Some(session) = result["sessionId"].as_str() else {
            return vec![Effect::Fatal("the agent opened a session without an id".to_owned())];
        };
        self.session = Some(session.to_owned());
        let mut effects = vec![Effect::Native(session.to_owned())];
        let told = &result["modes"];
        if told.is_object() {
            self.modes = choices(&told["availableModes"], "id");
            self.mode = told["currentModeId"].as_str().map(str::to_owned);
        }
        let told = &result["models"];
        if told.is_object() {
            self.models = choices(&told["availableModels"], "modelId");
            self.model = told["currentModelId"].as_str().map(str::to_owned);
        }
        self.options(&result["configOptions"]);
        effects.push(Effect::Choices);
        let wanted = (self.opening.mode.clone(), self.opening.model.clone());
        effects.extend(self.choose(wanted.0.as_deref(), wanted.1.as_deref()));
        effects.push(Effect::Ready);
        effects
    }

    fn options(&mut self, list: &Value) {
        for option in list.as_array().into_iter().flatten() {
            let now = option["currentValue"].as_str().map(str::to_owned);
            match option["category"].as_str().or(option["id"].as_str()) {
                Some("mode") => {
                    self.by_option.0 = self.modes.is_empty();
                    if self.by_option.0 {
                        self.modes = choices(&option["options"], "value");
                    }
                    self.mode = now;
                }
                Some("model") => {
                    self.by_option.1 = true;
                    self.models = choices(&option["options"], "value");
                    self.model = now;
                }
                _ => {}
            }
        }
    }

    fn update(&mut self, params: Option<&RawValue>, effects: &mut Vec<Effect>) {
        let Some(params) = params.map(RawValue::get) else { return };
        let told = ["current_mode_update", "config_option_update"];
        if !told.iter().any(|kind| params.contains(kind)) {
            return;
        }
        let Ok(params) = serde_json::from_str::<Value>(params) else { return };
        let update = &params["update"];
        match update["sessionUpdate"].as_str() {
            Some("current_mode_update") => {
                self.mode = update["currentModeId"].as_str().map(str::to_owned);
                effects.push(Effect::Choices);
            }
            Some("config_option_update") => {
                self.options(&update["configOptions"]);
                effects.push(Effect::Choices);
            }
            _ => {}
        }
    }

    fn leave_asked(&mut self, id: Value, params: &Value) -> Vec<Effect> {
        if self.leave.len() >= MAX_REQUESTS {
            return vec![refuse(&id, -32000, "too many requests wait for an answer")];
        }
        let options = params["options"].as_array().into_iter().flatten();
        let options = options.filter_map(|o| o["optionId"].as_str()).map(str::to_owned).collect();
        let name = self.name(&id);
        self.leave.insert(name.clone(), Leave { id, options });
        let call = params["toolCall"]["toolCallId"].as_str().unwrap_or_default().to_owned();
        vec![Effect::Asked { request: name, call, question: false }]
    }

    /// The name of a request outside of this connection.
    fn name(&self, id: &Value) -> String {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        format!("{}.{id}", self.opening.run)
    }

    pub(crate) fn prompt(&mut self, prompt: &Prompt) -> Result<Vec<Effect>, String> {
        let Some(session) = self.session.clone() else {
            return Err("the agent is not ready".to_owned());
        };
        if !prompt.images.is_empty() && !self.images {
            return Err("this agent does not take pictures".to_owned());
        }
        let mut blocks: Vec<Value> = prompt
            .images
            .iter()
            .map(|i| json!({"type": "image", "mimeType": i.mime_type, "data": i.data}))
            .collect();
        if !prompt.text.is_empty() || blocks.is_empty() {
            blocks.push(json!({"type": "text", "text": prompt.text}));
        }
        let effect = self.ask(
            Asked::Prompt,
            "session/prompt",
            &json!({"sessionId": session, "prompt": blocks}),
        );
        self.prompting = Some(self.next - 1);
        Ok(vec![effect])
    }

    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        let Some(session) = &self.session else { return Vec::new() };
        let cancel = json!({
            "jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session},
        });
        let mut effects = vec![Effect::Send(cancel.to_string())];
        let mut open: Vec<String> = self.leave.keys().cloned().collect();
        open.sort();
        for name in open {
            effects.extend(self.answer(&name, &Reply::Cancelled).unwrap_or_default());
        }
        effects
    }

    pub(crate) fn answer(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        let leave = self.leave.get(request).ok_or(Refused::Unknown)?;
        let outcome = match reply {
            Reply::Option(option) if leave.options.contains(option) => {
                json!({"outcome": "selected", "optionId": option})
            }
            // The protocol has no words for it.
            Reply::Because { option, .. } if leave.options.contains(option) => {
                return Err(Refused::NoReason);
            }
            Reply::Option(_) | Reply::Because { .. } | Reply::Answers(_) => {
                return Err(Refused::NoSuchOption);
            }
            Reply::Cancelled => json!({"outcome": "cancelled"}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": leave.id, "result": {"outcome": outcome}});
        self.leave.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(request.to_owned())])
    }

    pub(crate) fn choose(&mut self, mode: Option<&str>, model: Option<&str>) -> Vec<Effect> {
        let Some(session) = self.session.clone() else { return Vec::new() };
        let mut effects = Vec::new();
        let option = |id: &str, value: &str| {
            let params = json!({"sessionId": session, "configId": id, "value": value});
            ("session/set_config_option", params)
        };
        let known = |list: &[RunChoice], id: &str| list.iter().any(|c| c.id == id);
        if let Some(mode) =
            mode.filter(|m| known(&self.modes, m) && self.mode.as_deref() != Some(m))
        {
            let (method, params) = if self.by_option.0 {
                option("mode", mode)
            } else {
                ("session/set_mode", json!({"sessionId": session, "modeId": mode}))
            };
            effects.push(self.ask(Asked::Choice, method, &params));
            self.mode = Some(mode.to_owned());
        }
        if let Some(model) =
            model.filter(|m| known(&self.models, m) && self.model.as_deref() != Some(m))
        {
            let (method, params) = if self.by_option.1 {
                option("model", model)
            } else {
                ("session/set_model", json!({"sessionId": session, "modelId": model}))
            };
            effects.push(self.ask(Asked::Choice, method, &params));
            self.model = Some(model.to_owned());
        }
        effects
    }

    pub(crate) fn give(id: &Value, given: Result<Value, String>) -> Vec<Effect> {
        match given {
            Ok(result) => {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                vec![Effect::Send(answer.to_string())]
            }
            // Whoever is about to make a file looks first whether it is there, and knows these words.
            Err(what) if what.ends_with(&ErrorKind::NotFound.to_string()) => {
                vec![refuse(id, -32002, &format!("Resource not found: {what}"))]
            }
            Err(what) => vec![refuse(id, -32000, &what)],
        }
    }

    pub(crate) fn modes(&self) -> (&[RunChoice], Option<&str>) {
        (&self.modes, self.mode.as_deref())
    }

    pub(crate) fn models(&self) -> (&[RunChoice], Option<&str>) {
        (&self.models, self.model.as_deref())
    }

    /// A line of the log: who said it, when, and in which process.
    pub(crate) fn wrap(&self, to_agent: bool, line: &[u8], at: &str, out: &mut Vec<u8>) {
        let object = line.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        // What is no message stays as it is: the log tells that there was such a line.
        if !object {
            return out.extend_from_slice(line);
        }
        let dir = if to_agent { "client->agent" } else { "agent->client" };
        let run = &self.opening.run;
        let head = format!(r#"{{"ts":"{at}","dir":"{dir}","run":"{run}","msg":"#);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(line);
        out.push(b'}');
    }

    fn ask(&mut self, asked: Asked, method: &str, params: &Value) -> Effect {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, asked);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Effect::Send(message.to_string())
    }
}

const LOST: &str =
    "The agent does not have this session any more: it begins anew, without its memory.";
const CANNOT: &str = "This agent cannot take up a session: it begins anew, without its memory.";

fn refuse(id: &Value, code: i32, what: &str) -> Effect {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}});
    Effect::Send(answer.to_string())
}

fn choices(list: &Value, id: &str) -> Vec<RunChoice> {
    let list = list.as_array().into_iter().flatten();
    let choice = |c: &Value| {
        let id = c[id].as_str().or(c["id"].as_str())?;
        Some(RunChoice { id: id.to_owned(), name: c["name"].as_str().unwrap_or(id).to_owned() })
    };
    list.filter_map(choice).take(256).collect()
}
