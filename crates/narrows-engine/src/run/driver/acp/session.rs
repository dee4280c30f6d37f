//! Opening, resuming and closing an ACP session, and logins that are missing.

use super::login::LoginMethods;
use super::replay::ReplayFilter;
use super::{Acp, PendingCall, SessionCapabilities};
use crate::run::driver::{Effect, RunSettings, SessionStart};
use serde_json::{Value, json};

const LOST: &str = "The agent no longer has this session; it starts a new one without the history.";
const DIRECTORIES_UNSUPPORTED_NOTICE: &str =
    "This agent does not support additional directories; it works in the session's directory only.";
const RESUME_UNSUPPORTED_NOTICE: &str =
    "This agent cannot resume a session; it starts a new one without the history.";

const RESUME_UNSUPPORTED: &str = "this agent cannot resume a session";
const HISTORY_UNSUPPORTED_NOTICE: &str =
    "This agent does not replay the history, but remembers it.";

impl Acp {
    pub(super) fn on_initialized(&mut self, result: &Value) -> Vec<Effect> {
        let version = result["protocolVersion"].as_u64().unwrap_or(1);
        if version != 1 {
            let what = format!("the agent speaks version {version} of the protocol, narrows 1");
            return vec![Effect::Fatal(what)];
        }
        let can = &result["agentCapabilities"];
        self.images = can["promptCapabilities"]["image"].as_bool().unwrap_or(false);
        let session = &can["sessionCapabilities"];
        self.capabilities = SessionCapabilities {
            load: can["loadSession"].as_bool() == Some(true),
            resume: session["resume"].is_object(),
            close: session["close"].is_object(),
            directories: session["additionalDirectories"].is_object(),
        };
        let SessionStart { argv, variables, .. } = &self.start_params;
        self.logins = LoginMethods::read(&result["authMethods"], argv, variables);
        let resumes = self.start_params.resume && self.start_params.native.is_some();
        let mut effects = Vec::new();
        if resumes && !self.capabilities.load && !self.capabilities.resume {
            if self.start_params.history {
                return vec![Effect::Fatal(RESUME_UNSUPPORTED.to_owned())];
            }
            effects.push(Effect::Notice(RESUME_UNSUPPORTED_NOTICE.to_owned()));
        }
        if self.start_params.history && !self.capabilities.load {
            effects.push(Effect::Notice(HISTORY_UNSUPPORTED_NOTICE.to_owned()));
        }
        if !self.start_params.directories.is_empty() && !self.capabilities.directories {
            effects.push(Effect::Notice(DIRECTORIES_UNSUPPORTED_NOTICE.to_owned()));
        }
        effects.push(self.open());
        effects
    }

    /// Resumes the session or opens a new one.
    pub(super) fn open(&mut self) -> Effect {
        let Some(native) = self.start_params.native.clone().filter(|_| self.start_params.resume)
        else {
            return self.open_new();
        };
        let mut params = self.session_params();
        params["sessionId"] = json!(native);
        if self.capabilities.resume && !(self.start_params.history && self.capabilities.load) {
            // The log has the history: its replay would be dropped.
            return self.request(PendingCall::Resume, "session/resume", &params);
        }
        if self.capabilities.load {
            self.replay.begin(self.start_params.history);
            return self.request(PendingCall::Load, "session/load", &params);
        }
        self.open_new()
    }

    /// Tries the next automatic login; if there is none, reports what a person has to do.
    pub(super) fn authenticate(&mut self, error: Option<&Value>) -> Vec<Effect> {
        if let Some(method) = self.logins.next_automatic() {
            return vec![self.request(
                PendingCall::Authenticate,
                "authenticate",
                &json!({"methodId": method}),
            )];
        }
        self.login_required(error)
    }

    /// Reports that a login is required, with instructions.
    pub(super) fn login_required(&self, error: Option<&Value>) -> Vec<Effect> {
        let reason = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
        let instructions = self.logins.instructions(&self.start_params.login);
        let instructions =
            instructions.unwrap_or_else(|| "It does not offer a login method.".to_owned());
        vec![Effect::LoginRequired(format!("The agent needs a login: {reason}\n{instructions}"))]
    }

    /// Login instructions for an agent that has produced no output.
    pub(crate) fn login_hint(&self) -> Option<String> {
        let unknown = || {
            let is_initializing =
                self.pending_calls.values().any(|asked| matches!(asked, PendingCall::Initialize));
            is_initializing
                .then(|| "It has not answered `initialize`, so its logins are unknown.".to_owned())
        };
        self.logins
            .instructions(&self.start_params.login)
            .or_else(unknown)
            .filter(|_| !self.has_output)
    }

    /// Closes the session; `None` if the agent does not support it.
    pub(crate) fn close(&mut self) -> Option<Effect> {
        let session = self.session.take().filter(|_| self.capabilities.close)?;
        Some(self.request_unlogged(
            PendingCall::Close,
            "session/close",
            &json!({"sessionId": session}),
        ))
    }

    /// Probes whether more will be replayed; the probe is not logged.
    pub(super) fn probe_replay(&mut self) -> Effect {
        self.request_unlogged(PendingCall::Quiet, ReplayFilter::METHOD, &json!({}))
    }

    /// The params that open a session.
    fn session_params(&self) -> Value {
        let mut place = json!({"cwd": self.start_params.cwd, "mcpServers": []});
        if self.capabilities.directories && !self.start_params.directories.is_empty() {
            place["additionalDirectories"] = json!(self.start_params.directories);
        }
        place
    }

    pub(super) fn open_new(&mut self) -> Effect {
        let params = self.session_params();
        self.request(PendingCall::New, "session/new", &params)
    }

    /// Handles a session that the agent has lost: narrows' log stays. A session to be taken over from the
    /// agent is not replaced by a new one.
    pub(super) fn on_session_lost(&mut self, error: Option<&Value>) -> Vec<Effect> {
        self.replay.end();
        if self.start_params.history {
            let reason = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
            let what = format!("the agent does not go on with this session: {reason}");
            return vec![Effect::Fatal(what)];
        }
        vec![Effect::Notice(LOST.to_owned()), self.open_new()]
    }

    pub(super) fn on_opened(&mut self, result: &Value) -> Vec<Effect> {
        let Some(session) = result["sessionId"].as_str() else {
            return vec![Effect::Fatal("the agent opened a session without an id".to_owned())];
        };
        self.session = Some(session.to_owned());
        self.choices.on_opened(result);
        let mut effects = vec![Effect::AgentSessionId(session.to_owned()), Effect::OptionsChanged];
        let SessionStart { mode, model, .. } = self.start_params.clone();
        effects.extend(self.choose(&RunSettings { mode, model, options: Vec::new() }));
        effects.push(Effect::Ready);
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_session_open_reports_reason() {
        let mut acp = Acp::new(SessionStart::default());
        acp.start();
        acp.on_line(json!({"id": 0, "result": {"protocolVersion": 1}}).to_string().as_bytes());
        let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "not as root"}});
        let output = acp.on_line(json!({"id": 1, "error": error}).to_string().as_bytes());
        let what = "the agent cannot open a session: Internal error (not as root)";
        assert_eq!(output.effects, [Effect::Fatal(what.to_owned())]);
    }
}
