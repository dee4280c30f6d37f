//! Speaking to Claude Code: JSON lines in both directions.

mod ask;
mod forms;
mod login;

use super::driver::{Chosen, Effect, Heard, Opening, Prompt, Refused, Reply, RunChoice};
use super::form::Form;
use ask::{Ask, by_question};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Prompts whose echo may be on its way.
const MAX_ECHOES: usize = 64;
const MODES: [(&str, &str); 4] = [
    ("default", "Ask before changes"),
    ("acceptEdits", "Accept edits"),
    ("plan", "Plan"),
    ("bypassPermissions", "Bypass permissions"),
];

/// The side of narrows.
#[derive(Debug)]
pub(crate) struct Claude {
    opening: Opening,
    next: u64,
    /// The request by which the conversation was opened.
    initialize: String,
    ready: bool,
    requests: HashMap<String, Ask>,
    /// Forms that wait to be filled in.
    forms: HashMap<String, Form>,
    /// Ids of requests, the newest last.
    ids: VecDeque<String>,
    /// What was sent and has not come back yet.
    echoes: VecDeque<String>,
    in_turn: bool,
    native: Option<String>,
    modes: Vec<RunChoice>,
    mode: Option<String>,
    models: Vec<RunChoice>,
    model: Option<String>,
}

/// A record, looked at no deeper than needed.
#[derive(Debug, Deserialize)]
struct Record<'a> {
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
    /// What went wrong with an answer of the model.
    #[serde(default)]
    error: Option<Value>,
}

impl Claude {
    pub(crate) fn new(opening: Opening) -> Self {
        let initialize = format!("{}.init", opening.run);
        let modes = MODES.iter().map(|(id, name)| RunChoice {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            group: None,
        });
        Claude {
            mode: opening.mode.clone(),
            model: opening.model.clone(),
            opening,
            next: 0,
            initialize,
            ready: false,
            requests: HashMap::new(),
            forms: HashMap::new(),
            ids: VecDeque::new(),
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
            // A value that looks like an option is none.
            if let Some(value) = value.filter(|v| !v.starts_with('-')) {
                args.extend([name.to_owned(), value.clone()]);
            }
        };
        let name = if self.opening.resume { "--resume" } else { "--session-id" };
        option(name, self.opening.native.as_ref());
        option("--model", self.opening.model.as_ref());
        option("--permission-mode", self.opening.mode.as_ref());
        for folder in &self.opening.directories {
            option("--add-dir", Some(folder));
        }
        args
    }

    pub(crate) fn start(&mut self) -> Vec<Effect> {
        // What subagents say is part of the session; versions that do not know this leave it out.
        let request = json!({"subtype": "initialize", "hooks": {}, "forwardSubagentText": true});
        vec![Self::control(&self.initialize, &request)]
    }

    pub(crate) fn hear(&mut self, line: &[u8]) -> Heard {
        let mut heard = Heard { log: true, effects: Vec::new() };
        let Ok(record) = serde_json::from_slice::<Record<'_>>(line) else { return heard };
        if let Some(native) = record.session_id.as_deref().filter(|n| !n.is_empty())
            && self.native.as_deref() != Some(native)
        {
            self.native = Some(native.to_owned());
            heard.effects.push(Effect::Native(native.to_owned()));
        }
        match &*record.r#type {
            "control_response" => self.response(line, &mut heard),
            "control_request" => self.request(line, &mut heard),
            "control_cancel_request" => {
                let id = serde_json::from_slice::<Value>(line).unwrap_or_default();
                if let Some(id) = id["request_id"].as_str()
                    && (self.requests.remove(id).is_some() || self.forms.remove(id).is_some())
                {
                    heard.effects.push(Effect::Withdrawn(id.to_owned()));
                }
            }
            "user"
                if record.is_replay
                    && record.parent_tool_use_id.as_ref().is_none_or(Value::is_null) =>
            {
                // The log has it since it was sent.
                let own = |echo: &String| Some(echo.as_str()) == record.uuid.as_deref();
                if let Some(at) = self.echoes.iter().position(own) {
                    self.echoes.remove(at);
                    heard.log = false;
                }
            }
            "system" if record.subtype.as_deref() == Some("elicitation_complete") => {
                self.form_is_done(line, &mut heard);
            }
            "system" => {
                let told = matches!(record.subtype.as_deref(), Some("init" | "status"));
                if told && (record.mode.is_some() || record.model.is_some()) {
                    self.mode = record.mode.map(Cow::into_owned).or(self.mode.take());
                    self.model = record.model.map(Cow::into_owned).or(self.model.take());
                    heard.effects.push(Effect::Choices);
                }
            }
            // How far the message is that was sent: the turn tells the same.
            "command_lifecycle" => heard.log = false,
            "assistant"
                if record.error.is_some_and(|e| e == "authentication_failed")
                    && record.parent_tool_use_id.is_none_or(|parent| parent.is_null()) =>
            {
                self.log_in(line, &mut heard);
            }
            "result" if self.in_turn => {
                self.in_turn = false;
                heard.effects.push(Effect::Ended);
            }
            _ => {}
        }
        heard
    }

    fn response(&mut self, line: &[u8], heard: &mut Heard) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let response = &record["response"];
        if response["request_id"].as_str() != Some(&self.initialize) || self.ready {
            return;
        }
        if response["subtype"] == "error" {
            let told = response["error"].as_str().unwrap_or("no reason given");
            heard.effects.push(Effect::Fatal(format!("Claude Code does not begin: {told}")));
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
        heard.effects.extend([Effect::Choices, Effect::Ready]);
    }

    fn request(&mut self, line: &[u8], heard: &mut Heard) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let Some(id) = record["request_id"].as_str() else { return };
        let request = &record["request"];
        if !self.is_new(id, heard) {
            return;
        }
        if request["subtype"] == "elicitation" {
            return self.form_asked(id, request, heard);
        }
        if request["subtype"] != "can_use_tool" {
            return heard.effects.push(forms::refused(id, "narrows does not do this"));
        }
        let call = request["tool_use_id"].as_str().unwrap_or_default().to_owned();
        if self.is_full() {
            return heard.effects.extend([forms::refused(id, ask::FULL), Effect::Full(call)]);
        }
        let question = request["tool_name"] == "AskUserQuestion";
        let suggestions = request["permission_suggestions"].as_array();
        let suggestions = suggestions.map(|list| list[..list.len().min(16)].to_vec());
        let suggestions = suggestions.unwrap_or_default();
        let ask = Ask { input: request["input"].clone(), question, suggestions };
        self.requests.insert(id.to_owned(), ask);
        heard.effects.push(Effect::Asked { request: id.to_owned(), call, question });
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
        let native = self.native.as_deref().or(self.opening.native.as_deref()).unwrap_or_default();
        let sent = json!({
            "type": "user", "message": message, "parent_tool_use_id": null, "session_id": native,
            "uuid": uuid,
        });
        // The form in which it comes back: then it is known.
        let mut kept = sent.clone();
        kept["isReplay"] = true.into();
        if self.echoes.len() >= MAX_ECHOES {
            self.echoes.pop_front();
        }
        self.echoes.push_back(uuid);
        self.in_turn = true;
        Ok(vec![Effect::Log(kept.to_string()), Effect::Tell(sent.to_string())])
    }

    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        self.next += 1;
        let id = format!("{}.{}", self.opening.run, self.next);
        let mut effects = vec![Self::control(&id, &json!({"subtype": "interrupt"}))];
        for request in self.requests() {
            effects.extend(self.answer(&request, &Reply::Cancelled).unwrap_or_default());
        }
        effects
    }

    pub(crate) fn answer(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        if self.forms.contains_key(request) {
            return self.fill_in(request, reply);
        }
        let ask = self.requests.get(request).ok_or(Refused::Unknown)?;
        let given = match reply {
            Reply::Answers(answers) if ask.question => {
                let mut input = ask.input.clone();
                let answers =
                    by_question(&input["questions"], answers).map_err(Refused::Missing)?;
                input["answers"] = answers.into();
                json!({"behavior": "allow", "updatedInput": input})
            }
            Reply::Option(option) if option == "allow" && !ask.question => {
                json!({"behavior": "allow", "updatedInput": ask.input})
            }
            Reply::Option(option) if !ask.question && ask.suggestion(option).is_some() => {
                let allowed: Vec<&Value> = ask.suggestion(option).into_iter().collect();
                json!({"behavior": "allow", "updatedInput": ask.input, "updatedPermissions": allowed})
            }
            Reply::Option(option) if option == "deny" => {
                json!({"behavior": "deny", "message": "The user does not want this."})
            }
            Reply::Declined if ask.question => {
                json!({"behavior": "deny", "message": "The user does not want to answer."})
            }
            Reply::Because { option, message } if option == "deny" => {
                json!({"behavior": "deny", "message": message})
            }
            Reply::Cancelled => {
                json!({"behavior": "deny", "message": "The user cancelled this.", "interrupt": true})
            }
            Reply::Because { option, .. }
                if option == "allow" || ask.suggestion(option).is_some() =>
            {
                return Err(Refused::NoReason);
            }
            Reply::Option(_) | Reply::Because { .. } | Reply::Answers(_) | Reply::Declined => {
                return Err(Refused::NoSuchOption);
            }
        };
        let answer = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": request, "response": given,
        }});
        self.requests.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(request.to_owned())])
    }

    pub(crate) fn choose(&mut self, chosen: &Chosen) -> Vec<Effect> {
        let (mode, model) = (chosen.mode.as_deref(), chosen.model.as_deref());
        let mut effects = Vec::new();
        if let Some(mode) = mode.filter(|m| self.modes.iter().any(|c| c.id == **m)) {
            self.next += 1;
            let id = format!("{}.{}", self.opening.run, self.next);
            effects
                .push(Self::control(&id, &json!({"subtype": "set_permission_mode", "mode": mode})));
            self.mode = Some(mode.to_owned());
        }
        if let Some(model) = model {
            self.next += 1;
            let id = format!("{}.{}", self.opening.run, self.next);
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
