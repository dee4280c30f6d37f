//! How a session is begun, taken up and let go, and what is done about a missing login.

use super::login::Logins;
use super::replay::Replay;
use super::{Abilities, Acp, Asked};
use crate::run::driver::{Chosen, Effect, Opening};
use serde_json::{Value, json};

const LOST: &str =
    "The agent does not have this session any more: it begins anew, without its memory.";
const NO_DIRECTORIES: &str =
    "This agent cannot be given other folders: it works in that of the session only.";
const CANNOT: &str = "This agent cannot take up a session: it begins anew, without its memory.";

const UNABLE: &str = "this agent cannot take up a session";
const NO_HISTORY: &str = "This agent does not tell what was said before: it knows it all the same.";

impl Acp {
    pub(super) fn initialized(&mut self, result: &Value) -> Vec<Effect> {
        let version = result["protocolVersion"].as_u64().unwrap_or(1);
        if version != 1 {
            let what = format!("the agent speaks version {version} of the protocol, narrows 1");
            return vec![Effect::Fatal(what)];
        }
        let can = &result["agentCapabilities"];
        self.images = can["promptCapabilities"]["image"].as_bool().unwrap_or(false);
        let session = &can["sessionCapabilities"];
        self.can = Abilities {
            load: can["loadSession"].as_bool() == Some(true),
            resume: session["resume"].is_object(),
            close: session["close"].is_object(),
            directories: session["additionalDirectories"].is_object(),
        };
        let Opening { argv, variables, .. } = &self.opening;
        self.logins = Logins::read(&result["authMethods"], argv, variables);
        let resumes = self.opening.resume && self.opening.native.is_some();
        let mut effects = Vec::new();
        if resumes && !self.can.load && !self.can.resume {
            if self.opening.history {
                return vec![Effect::Fatal(UNABLE.to_owned())];
            }
            effects.push(Effect::Notice(CANNOT.to_owned()));
        }
        if self.opening.history && !self.can.load {
            effects.push(Effect::Notice(NO_HISTORY.to_owned()));
        }
        if !self.opening.directories.is_empty() && !self.can.directories {
            effects.push(Effect::Notice(NO_DIRECTORIES.to_owned()));
        }
        effects.push(self.open());
        effects
    }

    /// Goes on with the session, or begins one.
    pub(super) fn open(&mut self) -> Effect {
        let Some(native) = self.opening.native.clone().filter(|_| self.opening.resume) else {
            return self.open_new();
        };
        let mut params = self.place();
        params["sessionId"] = json!(native);
        if self.can.resume && !(self.opening.history && self.can.load) {
            // What was said is in the log: a replay of it would be dropped.
            return self.ask(Asked::Resume, "session/resume", &params);
        }
        if self.can.load {
            self.replay.begin(self.opening.history);
            return self.ask(Asked::Load, "session/load", &params);
        }
        self.open_new()
    }

    /// A login is missing: one that needs nobody is tried, else it is said what to do.
    pub(super) fn log_in(&mut self, error: Option<&Value>) -> Vec<Effect> {
        if let Some(method) = self.logins.next_alone() {
            return vec![self.ask(
                Asked::Authenticate,
                "authenticate",
                &json!({"methodId": method}),
            )];
        }
        self.log_in_first(error)
    }

    /// Nothing can be done before somebody has logged in.
    pub(super) fn log_in_first(&self, error: Option<&Value>) -> Vec<Effect> {
        let told = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
        let ways = self.logins.words(&self.opening.login);
        let ways = ways.unwrap_or_else(|| "It does not say how.".to_owned());
        vec![Effect::Login(format!("The agent needs a login: {told}\n{ways}"))]
    }

    /// What somebody could do who waits for an agent that has not said a word.
    pub(crate) fn login_hint(&self) -> Option<String> {
        let unknown = || {
            let waits = self.asked.values().any(|asked| matches!(asked, Asked::Initialize));
            waits.then(|| "It has not answered `initialize`, so its logins are unknown.".to_owned())
        };
        self.logins.words(&self.opening.login).or_else(unknown).filter(|_| !self.spoke)
    }

    /// Lets go of the session; none when the agent does not want to know.
    pub(crate) fn close(&mut self) -> Option<Effect> {
        let session = self.session.take().filter(|_| self.can.close)?;
        Some(self.ask_quietly(Asked::Close, "session/close", &json!({"sessionId": session})))
    }

    /// Asks whether more is replayed. The log needs not know.
    pub(super) fn is_quiet(&mut self) -> Effect {
        self.ask_quietly(Asked::Quiet, Replay::METHOD, &json!({}))
    }

    /// Where the session works.
    fn place(&self) -> Value {
        let mut place = json!({"cwd": self.opening.cwd, "mcpServers": []});
        if self.can.directories && !self.opening.directories.is_empty() {
            place["additionalDirectories"] = json!(self.opening.directories);
        }
        place
    }

    pub(super) fn open_new(&mut self) -> Effect {
        let params = self.place();
        self.ask(Asked::New, "session/new", &params)
    }

    /// The agent has lost a session, or never had it: what narrows has kept stays. One that was to be
    /// taken up is not begun in its place.
    pub(super) fn lost(&mut self, error: Option<&Value>) -> Vec<Effect> {
        self.replay.end();
        if self.opening.history {
            let told = error.and_then(|e| e["message"].as_str()).unwrap_or("no reason given");
            let what = format!("the agent does not go on with this session: {told}");
            return vec![Effect::Fatal(what)];
        }
        vec![Effect::Notice(LOST.to_owned()), self.open_new()]
    }

    pub(super) fn opened(&mut self, result: &Value) -> Vec<Effect> {
        let Some(session) = result["sessionId"].as_str() else {
            return vec![Effect::Fatal("the agent opened a session without an id".to_owned())];
        };
        self.session = Some(session.to_owned());
        self.choices.opened(result);
        let mut effects = vec![Effect::Native(session.to_owned()), Effect::Choices];
        let Opening { mode, model, .. } = self.opening.clone();
        effects.extend(self.choose(&Chosen { mode, model, options: Vec::new() }));
        effects.push(Effect::Ready);
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_not_opened_says_why() {
        let mut acp = Acp::new(Opening::default());
        acp.start();
        acp.hear(json!({"id": 0, "result": {"protocolVersion": 1}}).to_string().as_bytes());
        let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "not as root"}});
        let heard = acp.hear(json!({"id": 1, "error": error}).to_string().as_bytes());
        let what = "the agent opens no session: Internal error (not as root)";
        assert_eq!(heard.effects, [Effect::Fatal(what.to_owned())]);
    }
}
