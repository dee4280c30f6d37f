//! Speaking the Agent Client Protocol, as its client. What agents say is kept as it is; only what
//! concerns the way of speaking is looked at here.

mod choices;
mod forms;
mod leave;
mod login;
mod names;
mod replay;
mod session;

use super::driver::{Chosen, Effect, Heard, Opening, Prompt, RunChoice, RunOption};
use choices::Choices;
use forms::Waiting;
use leave::Leave;
use login::Logins;
use names::Names;
use replay::Replay;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;

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

/// The client's side of one connection.
#[derive(Debug)]
pub(crate) struct Acp {
    opening: Opening,
    next: u64,
    asked: HashMap<u64, Asked>,
    leave: HashMap<String, Leave>,
    /// Forms that wait to be filled in.
    forms: HashMap<String, Waiting>,
    names: Names,
    /// What the request is called, unless by its id, that the last line was about.
    about: Option<String>,
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
    directories: bool,
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
            names: Names::default(),
            about: None,
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
        let log = !self.replay.is_dropped();
        self.about = None;
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
        if self.is_open(&id) {
            return self.asked_twice(&id);
        }
        let params: Value =
            message.params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or(Value::Null);
        let effects = match method {
            "session/request_permission" => {
                self.spoke = true;
                return Heard { log: true, effects: self.leave_asked(id, &params) };
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
        let log = match asked {
            Some((_, Asked::Quiet)) => false,
            Some((_, Asked::Load)) => true,
            _ => !self.replay.is_dropped(),
        };
        let Some((id, asked)) = asked else { return Heard { log, effects: Vec::new() } };
        let error = message.error.as_ref();
        let result: Value =
            message.result.and_then(|r| serde_json::from_str(r.get()).ok()).unwrap_or(Value::Null);
        let failed = |what: &str| {
            let told = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
            // The reason may stand beside a word that says nothing.
            let data = error.map_or(&Value::Null, |e| &e["data"]);
            let more = data.as_str().or(data["details"].as_str()).or(data["message"].as_str());
            let more = more.map_or(String::new(), |more| format!(" ({more})"));
            vec![Effect::Fatal(format!("{what}: {told}{more}"))]
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
            Asked::Load | Asked::Resume if error.is_some() => self.lost(error),
            Asked::Load | Asked::Resume => {
                self.replay.loaded(result, self.opening.native.clone());
                vec![self.is_quiet()]
            }
            Asked::Quiet => match self.replay.is_over() {
                None => vec![self.is_quiet()],
                Some(loaded) => {
                    let told = self.opening.history.then_some(Effect::Told);
                    told.into_iter().chain(self.opened(&loaded)).collect()
                }
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

fn refuse(id: &Value, code: i32, what: &str) -> Effect {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}});
    Effect::Send(answer.to_string())
}
