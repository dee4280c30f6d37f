//! The sessions of this process, and those that were kept.

use super::super::scripted::room::lock;
use super::super::scripted::{state::State, uuid};
use super::update;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) cwd: PathBuf,
    mode: String,
    model: String,
    web: bool,
    effort: String,
    pub(crate) prompts: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    state: State,
    /// Modes and models as options, as newer agents tell them.
    as_options: bool,
    open: Mutex<HashMap<String, Session>>,
    logged_in: AtomicBool,
}

const MODES: [(&str, &str); 2] = [("build", "Build"), ("plan", "Plan")];
const EFFORTS: [(&str, &str); 2] = [("low", "Low"), ("high", "High")];
const MODELS: [(&str, &str); 2] = [("small", "Small model"), ("large", "Large model")];

fn is_one(known: &[(&str, &str)], wanted: &Value) -> Result<String, Value> {
    let wanted = wanted.as_str().unwrap_or_default();
    if known.iter().any(|(id, _)| *id == wanted) {
        return Ok(wanted.to_owned());
    }
    Err(json!({"code": -32602, "message": format!("Invalid params: {wanted} is not known")}))
}

impl Sessions {
    pub(crate) fn new(state: State, as_options: bool) -> Sessions {
        Sessions { state, as_options, open: Mutex::default(), logged_in: AtomicBool::new(false) }
    }

    pub(crate) fn log_in(&self) {
        self.logged_in.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        self.logged_in.load(Ordering::SeqCst)
    }

    /// Takes up a kept session without a word.
    pub(crate) fn resume(&self, id: &str, cwd: &str) -> Option<Value> {
        let kept = self.state.kept(id)?;
        let said = kept.iter().filter(|told| told["sessionUpdate"] == "user_message_chunk");
        let prompts = said.filter_map(|told| told["content"]["text"].as_str().map(str::to_owned));
        Some(self.open(id, cwd, prompts.collect()))
    }

    /// Lets go of a session, and leaves a mark of it.
    pub(crate) fn close(&self, id: &str) {
        lock(&self.open).remove(id);
        self.state.keep(&format!("closed-{id}"), &Value::Null);
    }

    /// One page of the kept sessions: one session, and where to go on.
    pub(crate) fn list(&self, cursor: Option<&str>, folders: bool) -> Value {
        let mut names = self.state.names();
        names.retain(|name| name.starts_with("ses_"));
        let at = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let told = |id: &String| {
            let kept = self.state.kept(id).unwrap_or_default();
            let prompt = kept.iter().find(|told| told["sessionUpdate"] == "user_message_chunk");
            let title = prompt.map(|told| told["content"]["text"].clone());
            let cwd = self.state.kept(&format!("cwd-{id}")).and_then(|told| told.last().cloned());
            let cwd = cwd.filter(|_| folders).unwrap_or_else(|| json!("/srv/harbor/app"));
            json!({"sessionId": id, "cwd": cwd, "title": title,
                "updatedAt": "2026-11-18T09:30:00Z"})
        };
        let page: Vec<Value> = names.iter().skip(at).take(1).map(told).collect();
        let next = (at + 1 < names.len()).then(|| (at + 1).to_string());
        json!({"sessions": page, "nextCursor": next})
    }

    pub(crate) fn forget(&self, id: &str) -> bool {
        self.state.forget(id)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        lock(&self.open).contains_key(id)
    }

    /// Remembers what was told of a session.
    pub(crate) fn keep(&self, id: &str, update: &Value) {
        self.state.keep(id, update);
    }

    fn open(&self, id: &str, cwd: &str, prompts: Vec<String>) -> Value {
        self.keep(&format!("cwd-{id}"), &json!(cwd));
        let (mode, model) = ("build".to_owned(), "small".to_owned());
        let (cwd, effort) = (PathBuf::from(cwd), "low".to_owned());
        let session = Session { cwd, mode, model, web: false, effort, prompts };
        let told = self.told(&session);
        lock(&self.open).insert(id.to_owned(), session);
        told
    }

    /// A new session, and the answer to whoever wanted it.
    pub(crate) fn start(&self, cwd: &str) -> (String, Value) {
        let id = format!("ses_{}", uuid().replace('-', ""));
        let mut answer = self.open(&id, cwd, Vec::new());
        answer["sessionId"] = json!(id);
        // So that it can be loaded before anything was said.
        self.keep(&id, &Value::Null);
        (id, answer)
    }

    /// Says a kept session again.
    pub(crate) fn load(&self, id: &str, cwd: &str) -> Option<Value> {
        let kept = self.state.kept(id)?;
        let mut prompts = Vec::new();
        for told in kept.iter().filter(|told| !told.is_null()) {
            if told["sessionUpdate"] == "user_message_chunk" {
                prompts.push(told["content"]["text"].as_str().unwrap_or_default().to_owned());
            }
            update(id, told);
        }
        Some(self.open(id, cwd, prompts))
    }

    /// A prompt came: the session as it was before.
    pub(crate) fn prompted(&self, id: &str, text: &str) -> Option<Session> {
        let mut open = lock(&self.open);
        let session = open.get_mut(id)?;
        let before = session.clone();
        session.prompts.push(text.to_owned());
        self.keep(
            id,
            &json!({"sessionUpdate": "user_message_chunk", "messageId": format!("msg_{}", uuid()),
            "content": {"type": "text", "text": text}}),
        );
        Some(before)
    }

    pub(crate) fn set_mode(&self, id: &str, wanted: &Value) -> Result<Value, Value> {
        let mode = is_one(&MODES, wanted)?;
        update(id, &json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
        if let Some(session) = lock(&self.open).get_mut(id) {
            session.mode = mode;
        }
        Ok(json!({}))
    }

    pub(crate) fn set_model(&self, id: &str, wanted: &Value) -> Result<Value, Value> {
        let model = is_one(&MODELS, wanted)?;
        if let Some(session) = lock(&self.open).get_mut(id) {
            session.model = model;
        }
        Ok(json!({}))
    }

    pub(crate) fn set_option(
        &self,
        id: &str,
        option: &Value,
        value: &Value,
    ) -> Result<Value, Value> {
        match option.as_str() {
            Some("mode") => self.set_mode(id, value)?,
            Some("model") => self.set_model(id, value)?,
            Some("web") => {
                let mut open = lock(&self.open);
                if let (Some(session), Some(on)) = (open.get_mut(id), value.as_bool()) {
                    session.web = on;
                }
                Value::Null
            }
            Some("effort") => {
                let effort = is_one(&EFFORTS, value)?;
                if let Some(session) = lock(&self.open).get_mut(id) {
                    session.effort = effort;
                }
                Value::Null
            }
            _ => return is_one(&[], option).map(Value::String),
        };
        Ok(lock(&self.open).get(id).map(|session| self.told(session)).unwrap_or_default())
    }

    /// Modes and models as they are told.
    fn told(&self, session: &Session) -> Value {
        if self.as_options {
            let select = |id: &str, name: &str, now: &str, all: &[(&str, &str)]| {
                let options: Vec<Value> =
                    all.iter().map(|(value, name)| json!({"value": value, "name": name})).collect();
                json!({"id": id, "name": name, "category": id, "type": "select", "currentValue": now, "options": options})
            };
            let group = |name: &str, all: &[(&str, &str)]| {
                let options: Vec<Value> =
                    all.iter().map(|(value, name)| json!({"value": value, "name": name})).collect();
                json!({"group": name.to_lowercase(), "name": name, "options": options})
            };
            return json!({"configOptions": [
                select("model", "Model", &session.model, &MODELS),
                select("mode", "Session Mode", &session.mode, &MODES),
                {"id": "web", "name": "Web search", "type": "boolean", "currentValue": session.web},
                {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select",
                 "currentValue": session.effort,
                 "options": [group("Fast", &EFFORTS[..1]), group("Slow", &EFFORTS[1..])]}]});
        }
        let all = |key: &str, known: &[(&str, &str)]| -> Vec<Value> {
            known.iter().map(|(id, name)| json!({key: id, "name": name})).collect()
        };
        json!({
            "modes": {"currentModeId": session.mode, "availableModes": all("id", &MODES)},
            "models": {"currentModelId": session.model, "availableModels": all("modelId", &MODELS)},
        })
    }
}
