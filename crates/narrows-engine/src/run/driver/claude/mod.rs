//! The client side of Claude Code's stream-json protocol.

mod forms;
mod login;
mod permissions;

use super::form::Form;
use super::{
    DriverOutput, Effect, PermissionReply, Prompt, ReplyError, RunChoice, RunSettings, SessionStart,
};
use permissions::{ClaudeRequest, answers_by_question};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Prompts whose echo may be outstanding.
const MAX_ECHOES: usize = 64;
const MODES: [(&str, &str); 4] = [
    ("default", "Ask before changes"),
    ("acceptEdits", "Accept edits"),
    ("plan", "Plan"),
    ("bypassPermissions", "Bypass permissions"),
];

/// The client's side of one connection.
#[derive(Debug)]
pub(crate) struct Claude {
    start_params: SessionStart,
    next: u64,
    /// The id of the request that opened the conversation.
    initialize: String,
    ready: bool,
    requests: HashMap<String, ClaudeRequest>,
    /// Open forms.
    forms: HashMap<String, Form>,
    /// Ids of requests, the newest last.
    seen_ids: VecDeque<String>,
    /// Sent messages whose echo has not arrived.
    echoes: VecDeque<String>,
    in_turn: bool,
    native: Option<String>,
    modes: Vec<RunChoice>,
    mode: Option<String>,
    models: Vec<RunChoice>,
    model: Option<String>,
}

/// A record, parsed no deeper than needed.
#[derive(Debug, Deserialize)]
struct StreamRecord<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uuid: Option<Cow<'a, str>>,
    #[serde(default, rename = "isReplay")]
    is_replay: bool,
    #[serde(borrow, default, rename = "permissionMode")]
    mode: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    parent_tool_use_id: Option<Value>,
    /// The error of a model response.
    #[serde(default)]
    error: Option<Value>,
}

impl Claude {
    pub(crate) fn new(start_params: SessionStart) -> Self {
        let initialize = format!("{}.init", start_params.run);
        let modes = MODES.iter().map(|(id, name)| RunChoice {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            group: None,
        });
        Claude {
            mode: start_params.mode.clone(),
            model: start_params.model.clone(),
            start_params,
            next: 0,
            initialize,
            ready: false,
            requests: HashMap::new(),
            forms: HashMap::new(),
            seen_ids: VecDeque::new(),
            echoes: VecDeque::new(),
            in_turn: false,
            native: None,
            modes: modes.collect(),
            models: Vec::new(),
        }
    }

    pub(crate) fn args(&self) -> Vec<String> {
        let mut args: Vec<String> = [
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
        ]
        .map(str::to_owned)
        .into();
        let mut option = |name: &str, value: Option<&String>| {
            // A value that looks like an option is not passed.
            if let Some(value) = value.filter(|v| !v.starts_with('-')) {
                args.extend([name.to_owned(), value.clone()]);
            }
        };
        let name = if self.start_params.resume { "--resume" } else { "--session-id" };
        option(name, self.start_params.native.as_ref());
        option("--model", self.start_params.model.as_ref());
        option("--permission-mode", self.start_params.mode.as_ref());
        for folder in &self.start_params.directories {
            option("--add-dir", Some(folder));
        }
        args
    }

    pub(crate) fn start(&mut self) -> Vec<Effect> {
        // Subagents' text is part of the session; versions without this field ignore it.
        let request = json!({"subtype": "initialize", "hooks": {}, "forwardSubagentText": true});
        vec![Self::control(&self.initialize, &request)]
    }

    pub(crate) fn on_line(&mut self, line: &[u8]) -> DriverOutput {
        let mut output = DriverOutput { log: true, effects: Vec::new() };
        let Ok(record) = serde_json::from_slice::<StreamRecord<'_>>(line) else { return output };
        if let Some(native) = record.session_id.as_deref().filter(|n| !n.is_empty())
            && self.native.as_deref() != Some(native)
        {
            self.native = Some(native.to_owned());
            output.effects.push(Effect::AgentSessionId(native.to_owned()));
        }
        match &*record.r#type {
            "control_response" => self.on_control_response(line, &mut output),
            "control_request" => self.on_control_request(line, &mut output),
            "control_cancel_request" => {
                let id = serde_json::from_slice::<Value>(line).unwrap_or_default();
                if let Some(id) = id["request_id"].as_str()
                    && (self.requests.remove(id).is_some() || self.forms.remove(id).is_some())
                {
                    output.effects.push(Effect::RequestClosed(id.to_owned()));
                }
            }
            "user"
                if record.is_replay
                    && record.parent_tool_use_id.as_ref().is_none_or(Value::is_null) =>
            {
                // It was logged when it was sent.
                let own = |echo: &String| Some(echo.as_str()) == record.uuid.as_deref();
                if let Some(at) = self.echoes.iter().position(own) {
                    self.echoes.remove(at);
                    output.log = false;
                }
            }
            "system" if record.subtype.as_deref() == Some("elicitation_complete") => {
                self.on_form_completed(line, &mut output);
            }
            "system" => {
                let reason = matches!(record.subtype.as_deref(), Some("init" | "status"));
                if reason && (record.mode.is_some() || record.model.is_some()) {
                    self.mode = record.mode.map(Cow::into_owned).or(self.mode.take());
                    self.model = record.model.map(Cow::into_owned).or(self.model.take());
                    output.effects.push(Effect::OptionsChanged);
                }
            }
            // The progress of a sent message, which the turn reports already.
            "command_lifecycle" => output.log = false,
            "assistant"
                if record.error.is_some_and(|e| e == "authentication_failed")
                    && record.parent_tool_use_id.is_none_or(|parent| parent.is_null()) =>
            {
                self.authenticate(line, &mut output);
            }
            "result" if self.in_turn => {
                self.in_turn = false;
                output.effects.push(Effect::TurnEnded);
            }
            _ => {}
        }
        output
    }

    fn on_control_response(&mut self, line: &[u8], output: &mut DriverOutput) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let response = &record["response"];
        if response["request_id"].as_str() != Some(&self.initialize) || self.ready {
            return;
        }
        if response["subtype"] == "error" {
            let reason = response["error"].as_str().unwrap_or("no reason given");
            output.effects.push(Effect::Fatal(format!("Claude Code does not begin: {reason}")));
            return;
        }
        self.ready = true;
        let models = response["response"]["models"].as_array().into_iter().flatten();
        let choice = |m: &Value| {
            let id = m["value"].as_str().or(m["id"].as_str())?;
            let name = m["displayName"].as_str().or(m["name"].as_str()).unwrap_or(id);
            Some(RunChoice { id: id.to_owned(), name: name.to_owned(), group: None })
        };
        self.models = models.filter_map(choice).take(256).collect();
        output.effects.extend([Effect::OptionsChanged, Effect::Ready]);
    }

    fn on_control_request(&mut self, line: &[u8], output: &mut DriverOutput) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let Some(id) = record["request_id"].as_str() else { return };
        let request = &record["request"];
        if !self.is_first(id, output) {
            return;
        }
        if request["subtype"] == "elicitation" {
            return self.on_form_request(id, request, output);
        }
        if request["subtype"] != "can_use_tool" {
            return output.effects.push(forms::error_response(id, "narrows does not do this"));
        }
        let call = request["tool_use_id"].as_str().unwrap_or_default().to_owned();
        if self.is_full() {
            return output.effects.extend([
                forms::error_response(id, permissions::TOO_MANY_MESSAGE),
                Effect::RequestRefused(call),
            ]);
        }
        let question = request["tool_name"] == "AskUserQuestion";
        let suggestions = request["permission_suggestions"].as_array();
        let suggestions = suggestions.map(|list| list[..list.len().min(16)].to_vec());
        let suggestions = suggestions.unwrap_or_default();
        let request_state =
            ClaudeRequest { input: request["input"].clone(), question, suggestions };
        self.requests.insert(id.to_owned(), request_state);
        output.effects.push(Effect::RequestOpened { request: id.to_owned(), call, question });
    }

    pub(crate) fn prompt(&mut self, prompt: &Prompt) -> Result<Vec<Effect>, String> {
        let images = prompt.images.iter().map(|i| {
            let source = json!({"type": "base64", "media_type": i.mime_type, "data": i.data});
            json!({"type": "image", "source": source})
        });
        let mut content: Vec<Value> = images.collect();
        if !prompt.text.is_empty() || content.is_empty() {
            content.push(json!({"type": "text", "text": prompt.text}));
        }
        let uuid = new_uuid().ok_or("there are no random numbers")?;
        let message = json!({"role": "user", "content": content});
        let native =
            self.native.as_deref().or(self.start_params.native.as_deref()).unwrap_or_default();
        let sent = json!({
            "type": "user", "message": message, "parent_tool_use_id": null, "session_id": native,
            "uuid": uuid,
        });
        // The UUID identifies the echo.
        let mut echo = sent.clone();
        echo["isReplay"] = true.into();
        if self.echoes.len() >= MAX_ECHOES {
            self.echoes.pop_front();
        }
        self.echoes.push_back(uuid);
        self.in_turn = true;
        Ok(vec![Effect::Log(echo.to_string()), Effect::SendUnlogged(sent.to_string())])
    }

    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        self.next += 1;
        let id = format!("{}.{}", self.start_params.run, self.next);
        let mut effects = vec![Self::control(&id, &json!({"subtype": "interrupt"}))];
        for request in self.requests() {
            effects.extend(self.answer(&request, &PermissionReply::Cancelled).unwrap_or_default());
        }
        effects
    }

    pub(crate) fn answer(
        &mut self,
        request: &str,
        reply: &PermissionReply,
    ) -> Result<Vec<Effect>, ReplyError> {
        if self.forms.contains_key(request) {
            return self.answer_form(request, reply);
        }
        let request_state = self.requests.get(request).ok_or(ReplyError::Unknown)?;
        let response = match reply {
            PermissionReply::Answers(answers) if request_state.question => {
                let mut input = request_state.input.clone();
                let answers = answers_by_question(&input["questions"], answers)
                    .map_err(ReplyError::Missing)?;
                input["answers"] = answers.into();
                json!({"behavior": "allow", "updatedInput": input})
            }
            PermissionReply::Option(option) if option == "allow" && !request_state.question => {
                json!({"behavior": "allow", "updatedInput": request_state.input})
            }
            PermissionReply::Option(option)
                if !request_state.question && request_state.suggestion(option).is_some() =>
            {
                let allowed: Vec<&Value> = request_state.suggestion(option).into_iter().collect();
                json!({"behavior": "allow", "updatedInput": request_state.input, "updatedPermissions": allowed})
            }
            PermissionReply::Option(option) if option == "deny" => {
                json!({"behavior": "deny", "message": "The user does not want this."})
            }
            PermissionReply::Declined if request_state.question => {
                json!({"behavior": "deny", "message": "The user does not want to answer."})
            }
            PermissionReply::Because { option, message } if option == "deny" => {
                json!({"behavior": "deny", "message": message})
            }
            PermissionReply::Cancelled => {
                json!({"behavior": "deny", "message": "The user cancelled this.", "interrupt": true})
            }
            PermissionReply::Because { option, .. }
                if option == "allow" || request_state.suggestion(option).is_some() =>
            {
                return Err(ReplyError::NoReason);
            }
            PermissionReply::Option(_)
            | PermissionReply::Because { .. }
            | PermissionReply::Answers(_)
            | PermissionReply::Declined => {
                return Err(ReplyError::NoSuchOption);
            }
        };
        let answer = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": request, "response": response,
        }});
        self.requests.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::RequestClosed(request.to_owned())])
    }

    pub(crate) fn choose(&mut self, settings: &RunSettings) -> Vec<Effect> {
        let (mode, model) = (settings.mode.as_deref(), settings.model.as_deref());
        let mut effects = Vec::new();
        if let Some(mode) = mode.filter(|m| self.modes.iter().any(|c| c.id == **m)) {
            self.next += 1;
            let id = format!("{}.{}", self.start_params.run, self.next);
            effects
                .push(Self::control(&id, &json!({"subtype": "set_permission_mode", "mode": mode})));
            self.mode = Some(mode.to_owned());
        }
        if let Some(model) = model {
            self.next += 1;
            let id = format!("{}.{}", self.start_params.run, self.next);
            effects.push(Self::control(&id, &json!({"subtype": "set_model", "model": model})));
            self.model = Some(model.to_owned());
        }
        effects
    }

    fn requests(&self) -> Vec<String> {
        self.requests.keys().chain(self.forms.keys()).cloned().collect()
    }

    pub(crate) fn modes(&self) -> (&[RunChoice], Option<&str>) {
        (&self.modes, self.mode.as_deref())
    }

    pub(crate) fn models(&self) -> (&[RunChoice], Option<&str>) {
        (&self.models, self.model.as_deref())
    }

    fn control(id: &str, request: &Value) -> Effect {
        let message = json!({"type": "control_request", "request_id": id, "request": request});
        Effect::Send(message.to_string())
    }
}

/// A random UUID (version 4), as Claude Code names sessions and records.
pub(crate) fn new_uuid() -> Option<String> {
    let mut bytes: [u8; 16] = narrows_store::random().ok()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Some(parts.join("-"))
}
