//! The client side of the Agent Client Protocol. Messages of the agent are logged as they are; the driver
//! reads only what the connection depends on.

mod config_options;
mod forms;
mod login;
mod permissions;
mod replay;
mod request_names;
mod session;

use super::{DriverOutput, Effect, Prompt, RunChoice, RunOption, RunSettings, SessionStart};
use config_options::ConfigOptions;
use forms::PendingForm;
use login::LoginMethods;
use permissions::PendingPermission;
use replay::ReplayFilter;
use request_names::RequestNames;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;

/// Longest update that is parsed, in bytes: those that change modes are short.
const MAX_UPDATE_BYTES: usize = 256 << 10;

/// A request to the agent that waits for its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingCall {
    Initialize,
    Authenticate,
    New,
    /// Resumes a session without a replay.
    Resume,
    Load,
    /// Probes whether more will be replayed.
    Quiet,
    Prompt,
    /// A settings change, which an agent may refuse without harm.
    Choice,
    /// Closes the session.
    Close,
}

/// The client's side of one connection.
#[derive(Debug)]
pub(crate) struct Acp {
    start_params: SessionStart,
    next: u64,
    pending_calls: HashMap<u64, PendingCall>,
    permissions: HashMap<String, PendingPermission>,
    /// Open forms.
    forms: HashMap<String, PendingForm>,
    names: RequestNames,
    /// The name of the request that the last line concerns, if it differs from the default name.
    line_request: Option<String>,
    /// Client requests that are being executed, by id.
    client_requests: HashSet<String>,
    session: Option<String>,
    images: bool,
    /// The session capabilities of the agent.
    capabilities: SessionCapabilities,
    logins: LoginMethods,
    /// Whether it has produced conversation output.
    has_output: bool,
    replay: ReplayFilter,
    prompting: Option<u64>,
    /// The running turn is being cancelled.
    cancelling: bool,
    choices: ConfigOptions,
}

/// The session capabilities of an agent.
#[derive(Debug, Clone, Copy, Default)]
struct SessionCapabilities {
    load: bool,
    resume: bool,
    close: bool,
    directories: bool,
}

/// A JSON-RPC message, parsed no deeper than needed.
#[derive(Debug, Deserialize)]
struct RpcMessage<'a> {
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
    pub(crate) fn new(start_params: SessionStart) -> Self {
        Acp {
            start_params,
            next: 0,
            pending_calls: HashMap::new(),
            permissions: HashMap::new(),
            forms: HashMap::new(),
            names: RequestNames::default(),
            line_request: None,
            client_requests: HashSet::new(),
            session: None,
            images: false,
            capabilities: SessionCapabilities::default(),
            logins: LoginMethods::default(),
            has_output: false,
            replay: ReplayFilter::default(),
            prompting: None,
            cancelling: false,
            choices: ConfigOptions::default(),
        }
    }

    pub(crate) fn start(&mut self) -> Vec<Effect> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                // narrows has no text that is not on disk. Gemini CLI (0.61) does not create a file whose
                // read was answered with "not found"; without the capability it reads by itself.
                "fs": {"readTextFile": false, "writeTextFile": true},
                "terminal": true,
                // Clients read the login instructions with a terminal at hand.
                "auth": {"terminal": true},
                "session": {"configOptions": {"boolean": {}}},
                "elicitation": {"form": {}, "url": {}},
                "_meta": {"terminal-auth": true},
            },
            "clientInfo": {
                "name": "narrows", "title": "narrows", "version": env!("CARGO_PKG_VERSION"),
            },
        });
        vec![self.request(PendingCall::Initialize, "initialize", &params)]
    }

    pub(crate) fn on_line(&mut self, line: &[u8]) -> DriverOutput {
        let log = !self.replay.drops_updates();
        self.line_request = None;
        let Ok(message) = serde_json::from_slice::<RpcMessage<'_>>(line) else {
            return DriverOutput { log, effects: Vec::new() };
        };
        let Some(method) = message.method.as_deref() else {
            return self.on_response(&message);
        };
        let Some(id) = message.id else {
            let mut effects = Vec::new();
            let log = self.replay.should_log(message.params);
            if method == "session/update" {
                self.has_output = self.has_output || log && replay::is_conversation(message.params);
                if line.len() < MAX_UPDATE_BYTES {
                    self.on_update(message.params, &mut effects);
                }
            } else if method == "$/cancel_request" {
                effects = self.on_cancel_request(message.params);
            } else if method == "elicitation/complete" {
                effects = self.on_form_completed(message.params);
            }
            return DriverOutput { log, effects };
        };
        if self.is_open(&id) {
            return permissions::refuse_duplicate(&id);
        }
        let params: Value =
            message.params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or(Value::Null);
        let effects = match method {
            "session/request_permission" => {
                self.has_output = true;
                return DriverOutput {
                    log: true,
                    effects: self.on_permission_request(id, &params),
                };
            }
            "elicitation/create" => {
                self.has_output = true;
                // A person must see it, even during a replay.
                return DriverOutput { log: true, effects: self.on_form_request(id, &params) };
            }
            _ if method.starts_with("fs/") || method.starts_with("terminal/") => {
                self.client_requests.insert(id.to_string());
                vec![Effect::ClientRequest { id, method: method.to_owned(), params }]
            }
            _ => vec![refuse(&id, -32601, "method not found")],
        };
        DriverOutput { log, effects }
    }

    /// Handles the response to a request of narrows.
    fn on_response(&mut self, message: &RpcMessage<'_>) -> DriverOutput {
        let call = message.id.as_ref().and_then(Value::as_u64);
        let call = call.and_then(|id| self.pending_calls.remove(&id).map(|call| (id, call)));
        let log = match call {
            Some((_, PendingCall::Quiet)) => false,
            Some((_, PendingCall::Load)) => true,
            _ => !self.replay.drops_updates(),
        };
        let Some((id, call)) = call else { return DriverOutput { log, effects: Vec::new() } };
        let error = message.error.as_ref();
        let result: Value =
            message.result.and_then(|r| serde_json::from_str(r.get()).ok()).unwrap_or(Value::Null);
        let fatal = |what: &str| {
            let reason = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
            // The reason may be in `data`, next to a generic message.
            let data = error.map_or(&Value::Null, |e| &e["data"]);
            let more = data.as_str().or(data["details"].as_str()).or(data["message"].as_str());
            let more = more.map_or(String::new(), |more| format!(" ({more})"));
            vec![Effect::Fatal(format!("{what}: {reason}{more}"))]
        };
        let missing = |early: bool| error.is_some_and(|error| login::is_login_error(error, early));
        let effects = match call {
            PendingCall::Authenticate if error.is_none() => vec![self.open()],
            PendingCall::Authenticate => self.authenticate(error),
            PendingCall::New | PendingCall::Resume | PendingCall::Load if missing(true) => {
                self.replay.end();
                self.authenticate(error)
            }
            PendingCall::Prompt if self.prompting == Some(id) && missing(false) => {
                self.login_required(error)
            }
            PendingCall::Initialize if error.is_some() => fatal("the agent does not begin"),
            PendingCall::New if error.is_some() => fatal("the agent cannot open a session"),
            PendingCall::Initialize => self.on_initialized(&result),
            PendingCall::New => self.on_opened(&result),
            PendingCall::Resume if error.is_some() && self.capabilities.load => {
                self.capabilities.resume = false;
                vec![self.open()]
            }
            PendingCall::Resume if error.is_none() => {
                let mut result = if result.is_object() { result } else { json!({}) };
                result["sessionId"] = json!(self.start_params.native);
                self.on_opened(&result)
            }
            PendingCall::Load | PendingCall::Resume if error.is_some() => {
                self.on_session_lost(error)
            }
            PendingCall::Load | PendingCall::Resume => {
                self.replay.loaded(result, self.start_params.native.clone());
                vec![self.probe_replay()]
            }
            PendingCall::Quiet => match self.replay.finish_if_quiet() {
                None => vec![self.probe_replay()],
                Some(loaded) => {
                    let reason = self.start_params.history.then_some(Effect::HistoryReplayed);
                    reason.into_iter().chain(self.on_opened(&loaded)).collect()
                }
            },
            PendingCall::Prompt if self.prompting == Some(id) => {
                (self.prompting, self.has_output) = (None, true);
                vec![Effect::TurnEnded]
            }
            // An agent with options reports all of them.
            PendingCall::Choice if result["configOptions"].is_array() => {
                self.choices.read_options(&result["configOptions"]);
                vec![Effect::OptionsChanged]
            }
            PendingCall::Close => vec![Effect::SessionClosed],
            PendingCall::Prompt | PendingCall::Choice => Vec::new(),
        };
        // narrows reports this failure itself, with the agent's message.
        let is_reported =
            matches!(effects.first(), Some(Effect::Fatal(_) | Effect::LoginRequired(_)));
        let tried = matches!(call, PendingCall::Authenticate | PendingCall::Resume)
            || matches!(effects.first(), Some(Effect::Send(line)) if line.contains("authenticate"));
        let is_reported = is_reported || error.is_some() && tried || call == PendingCall::Close;
        DriverOutput { log: log && !is_reported, effects }
    }

    fn on_update(&mut self, params: Option<&RawValue>, effects: &mut Vec<Effect>) {
        let Some(params) = params.map(RawValue::get) else { return };
        let reason = ["current_mode_update", "config_option_update"];
        if !reason.iter().any(|kind| params.contains(kind)) {
            return;
        }
        let Ok(params) = serde_json::from_str::<Value>(params) else { return };
        if self.choices.update(&params["update"]) {
            effects.push(Effect::OptionsChanged);
        }
    }

    pub(crate) fn prompt(&mut self, prompt: &Prompt) -> Result<Vec<Effect>, String> {
        let Some(session) = self.session.clone() else {
            return Err("the agent is not ready".to_owned());
        };
        if !prompt.images.is_empty() && !self.images {
            return Err("this agent does not accept images".to_owned());
        }
        let mut blocks: Vec<Value> = prompt
            .images
            .iter()
            .map(|i| json!({"type": "image", "mimeType": i.mime_type, "data": i.data}))
            .collect();
        if !prompt.text.is_empty() || blocks.is_empty() {
            blocks.push(json!({"type": "text", "text": prompt.text}));
        }
        let effect = self.request(
            PendingCall::Prompt,
            "session/prompt",
            &json!({"sessionId": session, "prompt": blocks}),
        );
        (self.prompting, self.cancelling) = (Some(self.next - 1), false);
        Ok(vec![effect])
    }

    pub(crate) fn choose(&mut self, settings: &RunSettings) -> Vec<Effect> {
        let Some(session) = self.session.clone() else { return Vec::new() };
        let mut asks = Vec::new();
        asks.extend(settings.mode.as_deref().and_then(|m| self.choices.set_mode(&session, m)));
        asks.extend(settings.model.as_deref().and_then(|m| self.choices.set_model(&session, m)));
        for (id, value) in &settings.options {
            asks.extend(self.choices.set_option(&session, id, value));
        }
        asks.iter()
            .map(|(method, params)| self.request(PendingCall::Choice, method, params))
            .collect()
    }

    pub(crate) fn on_client_result(
        &mut self,
        id: &Value,
        result: Result<Value, String>,
    ) -> Vec<Effect> {
        // It was cancelled and answered before.
        if !self.client_requests.remove(&id.to_string()) {
            return Vec::new();
        }
        match result {
            Ok(result) => {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                vec![Effect::Send(answer.to_string())]
            }
            // Agents check whether a file exists before they create it, and match on these words.
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

    /// Sends a request that is not logged.
    fn request_unlogged(&mut self, call: PendingCall, method: &str, params: &Value) -> Effect {
        match self.request(call, method, params) {
            Effect::Send(line) => Effect::SendUnlogged(line),
            other => other,
        }
    }

    fn request(&mut self, call: PendingCall, method: &str, params: &Value) -> Effect {
        let id = self.next;
        self.next += 1;
        self.pending_calls.insert(id, call);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Effect::Send(message.to_string())
    }
}

fn refuse(id: &Value, code: i32, what: &str) -> Effect {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}});
    Effect::Send(answer.to_string())
}
