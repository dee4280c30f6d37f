//! Speaking the Agent Client Protocol, as its client. What agents say is kept as it is; only what
//! concerns the way of speaking is looked at here.

mod choices;
mod forms;
mod login;
mod replay;
mod session;

use super::driver::{Chosen, Effect, Heard, Opening, Prompt, Refused, Reply, RunChoice, RunOption};
use choices::Choices;
use forms::Form;
use login::Logins;
use replay::Replay;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;

/// Requests for leave that may wait at once.
const MAX_REQUESTS: usize = 256;
/// The error of a request that was taken back.
const CANCELLED: i32 = -32800;
/// Updates that may tell of modes are short.
const MAX_LOOKED_AT: usize = 256 << 10;

/// What was asked of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Initialize,
    Authenticate,
    New,
    /// To go on with a session, without a replay of it.
    Resume,
    Load,
    /// Whether it has more to replay.
    Quiet,
    Prompt,
    /// A choice, which an agent may refuse without harm.
    Choice,
    /// To let go of the session.
    Close,
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
    /// Forms that wait to be filled in.
    forms: HashMap<String, Form>,
    /// Requests for something of the machine that are at work.
    wants: HashSet<String>,
    session: Option<String>,
    images: bool,
    /// What the agent can do with sessions: load, resume, close.
    can: Abilities,
    logins: Logins,
    /// Whether it has said anything of its own.
    spoke: bool,
    replay: Replay,
    prompting: Option<u64>,
    /// The running turn is to be cancelled.
    cancelling: bool,
    choices: Choices,
}

/// What an agent can do with sessions.
#[derive(Debug, Clone, Copy, Default)]
struct Abilities {
    load: bool,
    resume: bool,
    close: bool,
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
            forms: HashMap::new(),
            wants: HashSet::new(),
            session: None,
            images: false,
            can: Abilities::default(),
            logins: Logins::default(),
            spoke: false,
            replay: Replay::default(),
            prompting: None,
            cancelling: false,
            choices: Choices::default(),
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
                // Whoever reads what is missing has a terminal.
                "auth": {"terminal": true},
                "session": {"configOptions": {"boolean": {}}},
                "elicitation": {"form": {}, "url": {}},
                "_meta": {"terminal-auth": true},
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
            if method == "session/update" {
                self.spoke = self.spoke || log && replay::is_said(message.params);
                if line.len() < MAX_LOOKED_AT {
                    self.update(message.params, &mut effects);
                }
            } else if method == "$/cancel_request" {
                effects = self.withdrawn(message.params);
            } else if method == "elicitation/complete" {
                effects = self.form_is_done(message.params);
            }
            return Heard { log, effects };
        };
        let params: Value =
            message.params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or(Value::Null);
        let effects = match method {
            "session/request_permission" => {
                self.spoke = true;
                self.leave_asked(id, &params)
            }
            "elicitation/create" => {
                self.spoke = true;
                // Somebody has to see it, also while a session is replayed.
                return Heard { log: true, effects: self.form_asked(id, &params) };
            }
            _ if method.starts_with("fs/") || method.starts_with("terminal/") => {
                self.wants.insert(id.to_string());
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
        let missing = |early: bool| error.is_some_and(|error| login::is_missing(error, early));
        let effects = match asked {
            Asked::Authenticate if error.is_none() => vec![self.open()],
            Asked::Authenticate => self.log_in(error),
            Asked::New | Asked::Resume | Asked::Load if missing(true) => {
                self.replay.end();
                self.log_in(error)
            }
            Asked::Prompt if self.prompting == Some(id) && missing(false) => {
                self.log_in_first(error)
            }
            Asked::Initialize if error.is_some() => failed("the agent does not begin"),
            Asked::New if error.is_some() => failed("the agent opens no session"),
            Asked::Initialize => self.initialized(&result),
            Asked::New => self.opened(&result),
            Asked::Resume if error.is_some() && self.can.load => {
                self.can.resume = false;
                vec![self.open()]
            }
            Asked::Resume if error.is_none() => {
                let mut result = if result.is_object() { result } else { json!({}) };
                result["sessionId"] = json!(self.opening.native);
                self.opened(&result)
            }
            Asked::Load | Asked::Resume if error.is_some() => {
                // It has lost it, or never had it: what narrows has kept stays.
                self.replay.end();
                let mut effects = vec![Effect::Notice(session::LOST.to_owned())];
                effects.push(self.open_new());
                effects
            }
            Asked::Load | Asked::Resume => {
                self.replay.loaded(result, self.opening.native.clone());
                vec![self.is_quiet()]
            }
            Asked::Quiet => match self.replay.is_over() {
                None => vec![self.is_quiet()],
                Some(loaded) => self.opened(&loaded),
            },
            Asked::Prompt if self.prompting == Some(id) => {
                (self.prompting, self.spoke) = (None, true);
                vec![Effect::Ended]
            }
            // An agent that takes options tells all of them anew.
            Asked::Choice if result["configOptions"].is_array() => {
                self.choices.read_options(&result["configOptions"]);
                vec![Effect::Choices]
            }
            Asked::Close => vec![Effect::Closed],
            Asked::Prompt | Asked::Choice => Vec::new(),
        };
        // What failed here is told by narrows, with what the agent said last.
        let told = matches!(effects.first(), Some(Effect::Fatal(_) | Effect::Login(_)));
        let tried = matches!(asked, Asked::Authenticate | Asked::Resume)
            || matches!(effects.first(), Some(Effect::Send(line)) if line.contains("authenticate"));
        let told = told || error.is_some() && tried || asked == Asked::Close;
        Heard { log: log && !told, effects }
    }

    /// The agent does not wait any more for something that it asked for.
    fn withdrawn(&mut self, params: Option<&RawValue>) -> Vec<Effect> {
        let params = params.and_then(|p| serde_json::from_str::<Value>(p.get()).ok());
        let Some(id) = params.as_ref().map(|p| &p["requestId"]).filter(|id| !id.is_null()) else {
            return Vec::new();
        };
        let name = self.name(id);
        if self.wants.remove(&id.to_string()) {
            return vec![refuse(id, CANCELLED, "Request cancelled")];
        }
        let is_asked = self.leave.contains_key(&name) || self.forms.contains_key(&name);
        if !is_asked {
            return Vec::new();
        }
        self.answer(&name, &Reply::Cancelled).unwrap_or_default()
    }

    fn update(&mut self, params: Option<&RawValue>, effects: &mut Vec<Effect>) {
        let Some(params) = params.map(RawValue::get) else { return };
        let told = ["current_mode_update", "config_option_update"];
        if !told.iter().any(|kind| params.contains(kind)) {
            return;
        }
        let Ok(params) = serde_json::from_str::<Value>(params) else { return };
        if self.choices.update(&params["update"]) {
            effects.push(Effect::Choices);
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
        (self.prompting, self.cancelling) = (Some(self.next - 1), false);
        Ok(vec![effect])
    }

    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        let Some(session) = &self.session else { return Vec::new() };
        let cancel = json!({
            "jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session},
        });
        let mut effects = vec![Effect::Send(cancel.to_string())];
        // Asked again: also in the words of the protocol below.
        if std::mem::replace(&mut self.cancelling, true)
            && let Some(prompt) = self.prompting
        {
            effects.push(cancel_request(prompt));
        }
        let mut open: Vec<String> = self.leave.keys().chain(self.forms.keys()).cloned().collect();
        open.sort();
        for name in open {
            effects.extend(self.answer(&name, &Reply::Cancelled).unwrap_or_default());
        }
        effects
    }

    pub(crate) fn answer(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        if self.forms.contains_key(request) {
            return self.fill_in(request, reply);
        }
        let leave = self.leave.get(request).ok_or(Refused::Unknown)?;
        let outcome = match reply {
            Reply::Option(option) if leave.options.contains(option) => {
                json!({"outcome": "selected", "optionId": option})
            }
            // The protocol has no words for it.
            Reply::Because { option, .. } if leave.options.contains(option) => {
                return Err(Refused::NoReason);
            }
            Reply::Option(_) | Reply::Because { .. } | Reply::Answers(_) | Reply::Declined => {
                return Err(Refused::NoSuchOption);
            }
            Reply::Cancelled => json!({"outcome": "cancelled"}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": leave.id, "result": {"outcome": outcome}});
        self.leave.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(request.to_owned())])
    }

    pub(crate) fn choose(&mut self, chosen: &Chosen) -> Vec<Effect> {
        let Some(session) = self.session.clone() else { return Vec::new() };
        let mut asks = Vec::new();
        asks.extend(chosen.mode.as_deref().and_then(|m| self.choices.set_mode(&session, m)));
        asks.extend(chosen.model.as_deref().and_then(|m| self.choices.set_model(&session, m)));
        for (id, value) in &chosen.options {
            asks.extend(self.choices.set_option(&session, id, value));
        }
        asks.iter().map(|(method, params)| self.ask(Asked::Choice, method, params)).collect()
    }

    pub(crate) fn give(&mut self, id: &Value, given: Result<Value, String>) -> Vec<Effect> {
        // It was cancelled, and answered then.
        if !self.wants.remove(&id.to_string()) {
            return Vec::new();
        }
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
        (&self.choices.modes, self.choices.mode.as_deref())
    }

    pub(crate) fn models(&self) -> (&[RunChoice], Option<&str>) {
        (&self.choices.models, self.choices.model.as_deref())
    }

    pub(crate) fn options(&self) -> &[RunOption] {
        &self.choices.options
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

    /// Asks something of which the log needs not know.
    fn ask_quietly(&mut self, asked: Asked, method: &str, params: &Value) -> Effect {
        match self.ask(asked, method, params) {
            Effect::Send(line) => Effect::Tell(line),
            other => other,
        }
    }

    fn ask(&mut self, asked: Asked, method: &str, params: &Value) -> Effect {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, asked);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Effect::Send(message.to_string())
    }
}

/// Takes back something that was asked of the agent.
fn cancel_request(id: u64) -> Effect {
    let params = json!({"requestId": id});
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
    Effect::Send(cancel.to_string())
}

fn refuse(id: &Value, code: i32, what: &str) -> Effect {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}});
    Effect::Send(answer.to_string())
}
