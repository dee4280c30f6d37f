//! Drivers: the protocols of agents without their pipes. A driver turns lines of the agent and commands of
//! the actor into effects. `acp` and `claude` implement the protocols, `form` their forms.

mod acp;
mod claude;
mod form;

pub(super) use claude::new_uuid;

use super::agents::Protocol;
use acp::Acp;
use claude::Claude;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A prompt to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PromptImage>,
}

/// An image in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptImage {
    /// The media type, such as `image/png`.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// A value to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunChoice {
    /// Its id.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The group under which it is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum OptionValue {
    /// On or off.
    Flag(bool),
    /// One of its choices.
    Choice(String),
}

/// An option of an agent other than mode and model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunOption {
    /// Its id.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The category, as the protocol names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The current value.
    pub value: OptionValue,
    /// The choices; empty for a flag.
    pub choices: Vec<RunChoice>,
}

/// Changes of an agent's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    pub mode: Option<String>,
    pub model: Option<String>,
    #[serde(default)]
    pub options: Vec<(String, OptionValue)>,
}

/// The answer to a permission request or a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PermissionReply {
    Option(String),
    /// A refusal with a reason, which the agent reads.
    Because {
        option: String,
        message: String,
    },
    Answers(serde_json::Map<String, Value>),
    /// No answer; the agent continues without it.
    Declined,
    Cancelled,
}

/// What the actor has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Log a line, then write it to the agent.
    Send(String),
    /// Log a line that is not sent in this form.
    Log(String),
    /// Write a line to the agent without logging it.
    SendUnlogged(String),
    /// The agent accepts prompts now.
    Ready,
    /// The agent has reported its own session id.
    AgentSessionId(String),
    /// Modes, models, options or their values have changed.
    OptionsChanged,
    /// The agent has ended the running turn.
    TurnEnded,
    /// The agent waits for an answer about this tool call.
    RequestOpened { request: String, call: String, question: bool },
    /// A request was refused because too many are open; its tool call, if any, will not run.
    RequestRefused(String),
    /// The request is closed.
    RequestClosed(String),
    /// The agent requests a client service (file or terminal).
    ClientRequest { id: Value, method: String, params: Value },
    /// Log a notice.
    Notice(String),
    /// The agent has replayed the whole history.
    HistoryReplayed,
    /// The agent cannot continue.
    Fatal(String),
    /// The agent cannot continue without a login; instructions.
    LoginRequired(String),
    /// The agent has closed the session.
    SessionClosed,
}

/// The result of a line.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DriverOutput {
    /// Whether to log the line.
    pub(crate) log: bool,
    pub(crate) effects: Vec<Effect>,
}

/// Why an answer is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplyError {
    /// There is no such request.
    Unknown,
    /// The option was not offered.
    NoSuchOption,
    /// The agent cannot receive a reason.
    NoReason,
    /// The answer does not fit the form; why.
    Unfit(String),
    /// Answers are missing; which.
    Missing(String),
}

/// Parameters of an agent's process and session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionStart {
    /// Makes request ids unique over all processes of a session.
    pub(crate) run: String,
    pub(crate) cwd: String,
    /// The agent's own session id.
    pub(crate) native: Option<String>,
    /// Resume the session instead of opening a new one.
    pub(crate) resume: bool,
    /// The session was begun elsewhere and its history is not in the log: the agent has to replay it.
    pub(crate) history: bool,
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    /// The agent's command line and the names of its variables.
    pub(crate) argv: Vec<String>,
    pub(crate) variables: BTreeSet<String>,
    /// The login command, if known.
    pub(crate) login: Vec<String>,
    /// Additional directories in which it may work.
    pub(crate) directories: Vec<String>,
}

/// The driver of one protocol.
#[derive(Debug)]
pub(crate) enum Driver {
    Acp(Box<Acp>),
    Claude(Box<Claude>),
}

macro_rules! either {
    ($self:ident, $driver:ident => $do:expr) => {
        match $self {
            Driver::Acp($driver) => $do,
            Driver::Claude($driver) => $do,
        }
    };
}

impl Driver {
    pub(crate) fn new(protocol: Protocol, start_params: SessionStart) -> Self {
        match protocol {
            Protocol::Acp => Driver::Acp(Box::new(Acp::new(start_params))),
            Protocol::Claude => Driver::Claude(Box::new(Claude::new(start_params))),
        }
    }

    /// Arguments that the protocol adds to the agent's own.
    pub(crate) fn args(&self) -> Vec<String> {
        match self {
            Driver::Acp(_) => Vec::new(),
            Driver::Claude(claude) => claude.args(),
        }
    }

    /// The format of the logged packets.
    pub(crate) fn format(&self) -> narrows::Format {
        match self {
            Driver::Acp(_) => narrows::Format::Acp,
            Driver::Claude(_) => narrows::Format::ClaudeStream,
        }
    }

    pub(crate) fn start(&mut self) -> Vec<Effect> {
        either!(self, d => d.start())
    }

    /// Processes a line of the agent's output.
    pub(crate) fn on_line(&mut self, line: &[u8]) -> DriverOutput {
        either!(self, d => d.on_line(line))
    }

    pub(crate) fn prompt(&mut self, prompt: &Prompt) -> Result<Vec<Effect>, String> {
        either!(self, d => d.prompt(prompt))
    }

    /// Cancels the running turn.
    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        either!(self, d => d.cancel())
    }

    pub(crate) fn answer(
        &mut self,
        request: &str,
        reply: &PermissionReply,
    ) -> Result<Vec<Effect>, ReplyError> {
        either!(self, d => d.answer(request, reply))
    }

    pub(crate) fn choose(&mut self, settings: &RunSettings) -> Vec<Effect> {
        either!(self, d => d.choose(settings))
    }

    /// Options other than mode and model.
    pub(crate) fn options(&self) -> &[RunOption] {
        match self {
            Driver::Acp(acp) => acp.options(),
            Driver::Claude(_) => &[],
        }
    }

    /// Closes the session, if the agent supports it.
    pub(crate) fn close(&mut self) -> Option<Effect> {
        match self {
            Driver::Acp(acp) => acp.close(),
            Driver::Claude(_) => None,
        }
    }

    /// Login instructions for an agent that has produced no output.
    pub(crate) fn login_hint(&self) -> Option<String> {
        match self {
            Driver::Acp(acp) => acp.login_hint(),
            Driver::Claude(_) => None,
        }
    }

    /// Answers a client request.
    pub(crate) fn on_client_result(
        &mut self,
        id: &Value,
        result: Result<Value, String>,
    ) -> Vec<Effect> {
        match self {
            Driver::Acp(acp) => acp.on_client_result(id, result),
            Driver::Claude(_) => Vec::new(),
        }
    }

    /// Whether a refusal may have a reason.
    pub(crate) fn takes_reasons(&self) -> bool {
        matches!(self, Driver::Claude(_))
    }

    pub(crate) fn modes(&self) -> (&[RunChoice], Option<&str>) {
        either!(self, d => d.modes())
    }

    pub(crate) fn models(&self) -> (&[RunChoice], Option<&str>) {
        either!(self, d => d.models())
    }

    /// Checks that the agent offers the settings; the error lists what it offers.
    pub(crate) fn check_offered(&self, settings: &RunSettings) -> Result<(), String> {
        let mode = settings.mode.as_deref();
        mode.map_or(Ok(()), |mode| check_choice("mode", mode, self.modes().0))?;
        // Claude Code accepts models that it does not list.
        let model = settings.model.as_deref().filter(|_| matches!(self, Driver::Acp(_)));
        model.map_or(Ok(()), |model| check_choice("model", model, self.models().0))?;
        for (id, value) in &settings.options {
            let Some(option) = self.options().iter().find(|option| option.id == *id) else {
                let all = join_ids(self.options().iter().map(|option| option.id.as_str()));
                return Err(format!("there is no option `{id}`; there are: {all}"));
            };
            match (&option.value, value) {
                (OptionValue::Flag(_), OptionValue::Flag(_)) => {}
                (OptionValue::Flag(_), OptionValue::Choice(_)) => {
                    return Err(format!("the option `{id}` is true or false"));
                }
                (OptionValue::Choice(_), OptionValue::Choice(value)) => {
                    check_choice(&format!("value of the option `{id}`"), value, &option.choices)?;
                }
                (OptionValue::Choice(_), OptionValue::Flag(_)) => {
                    return Err(format!("the option `{id}` is one of: {}", ids(&option.choices)));
                }
            }
        }
        Ok(())
    }

    /// Writes a line in the form of the log.
    pub(crate) fn envelope(&mut self, to_agent: bool, line: &[u8], at: &str, out: &mut Vec<u8>) {
        match self {
            Driver::Acp(acp) => acp.envelope(to_agent, line, at, out),
            Driver::Claude(_) => out.extend_from_slice(line),
        }
        out.push(b'\n');
    }
}

fn check_choice(what: &str, id: &str, offered: &[RunChoice]) -> Result<(), String> {
    if offered.iter().any(|choice| choice.id == id) {
        return Ok(());
    }
    Err(format!("there is no {what} `{id}`; there are: {}", ids(offered)))
}

fn ids(offered: &[RunChoice]) -> String {
    join_ids(offered.iter().map(|choice| choice.id.as_str()))
}

fn join_ids<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<&str> = ids.collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}
