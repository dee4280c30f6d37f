//! What both ways of speaking to an agent have in common: no pipes here, only what is said.

use super::acp::Acp;
use super::agents::Protocol;
use super::claude::Claude;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// What is sent to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<PromptImage>,
}

/// A picture that is sent to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptImage {
    /// `image/png` and the like.
    pub mime_type: String,
    /// Its bytes, in base64.
    pub data: String,
}

/// Something to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunChoice {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The group that it is listed under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// What an option of an agent is set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OptionValue {
    /// On or off.
    Flag(bool),
    /// One of its choices.
    Choice(String),
}

/// An option of an agent beside its mode and its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunOption {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is about, as the protocol names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What it is set to.
    pub value: OptionValue,
    /// Values to choose from; none for one that is on or off.
    pub choices: Vec<RunChoice>,
}

/// What is chosen of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) options: Vec<(String, OptionValue)>,
}

/// What an answer to a question for leave, or to the agent's own questions, says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Option(String),
    /// A refusal, and why: the agent reads it.
    Because {
        option: String,
        message: String,
    },
    Answers(serde_json::Map<String, Value>),
    /// No answer is given; the agent goes on without one.
    Declined,
    Cancelled,
}

/// What is to be done after something was said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Write a line to the agent; the log has it first.
    Send(String),
    /// Keep a line in the log that is not sent as it is.
    Log(String),
    /// Write a line to the agent that the log has in another form.
    Tell(String),
    /// The agent takes prompts now.
    Ready,
    /// The agent has told its own id of the session.
    Native(String),
    /// Modes, models or what is chosen of them have changed.
    Choices,
    /// The running turn is over; the agent has told so.
    Ended,
    /// The agent waits for an answer; the call that it is about.
    Asked { request: String, call: String, question: bool },
    /// It asked while too much waits, and was refused: this call, where it is about one, goes no further.
    Full(String),
    /// It does not wait any more.
    Withdrawn(String),
    /// The agent wants something of the machine.
    Wants { id: Value, method: String, params: Value },
    /// Tell whoever reads.
    Notice(String),
    /// The agent has told all of what was said before.
    Told,
    /// It cannot go on.
    Fatal(String),
    /// It cannot go on before somebody has logged in; what can be done.
    Login(String),
    /// It has let go of the session.
    Closed,
}

/// What came of a line.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    /// Whether the line belongs into the log.
    pub(crate) log: bool,
    pub(crate) effects: Vec<Effect>,
}

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Nobody asks that.
    Unknown,
    /// The answer is none of those on offer.
    NoSuchOption,
    /// The agent has no way to be told why.
    NoReason,
    /// The form wants something else; what.
    Unfit(String),
    /// Not everything is answered; what is not.
    Missing(String),
}

/// How an agent's process is to be started and spoken to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opening {
    /// Makes ids of requests unique over all processes of a session.
    pub(crate) run: String,
    pub(crate) cwd: String,
    /// The agent's own id of the session.
    pub(crate) native: Option<String>,
    /// The session is to be taken up, not begun.
    pub(crate) resume: bool,
    /// It was begun elsewhere, and the log has nothing of what was said: the agent is to tell it.
    pub(crate) history: bool,
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    /// The command line of the agent, and the variables that it gets.
    pub(crate) argv: Vec<String>,
    pub(crate) variables: BTreeSet<String>,
    /// The command by which one logs in, where that is known.
    pub(crate) login: Vec<String>,
    /// Folders beside `cwd` in which it may work.
    pub(crate) directories: Vec<String>,
}

/// One of the two.
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
    pub(crate) fn new(protocol: Protocol, opening: Opening) -> Self {
        match protocol {
            Protocol::Acp => Driver::Acp(Box::new(Acp::new(opening))),
            Protocol::Claude => Driver::Claude(Box::new(Claude::new(opening))),
        }
    }

    /// Arguments that the agent needs beside its own.
    pub(crate) fn args(&self) -> Vec<String> {
        match self {
            Driver::Acp(_) => Vec::new(),
            Driver::Claude(claude) => claude.args(),
        }
    }

    /// How the log names this way of speaking.
    pub(crate) fn format(&self) -> narrows::Format {
        match self {
            Driver::Acp(_) => narrows::Format::Acp,
            Driver::Claude(_) => narrows::Format::ClaudeStream,
        }
    }

    pub(crate) fn start(&mut self) -> Vec<Effect> {
        either!(self, d => d.start())
    }

    /// Takes a line that the agent wrote.
    pub(crate) fn hear(&mut self, line: &[u8]) -> Heard {
        either!(self, d => d.hear(line))
    }

    pub(crate) fn prompt(&mut self, prompt: &Prompt) -> Result<Vec<Effect>, String> {
        either!(self, d => d.prompt(prompt))
    }

    /// Asks the agent to end the turn.
    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        either!(self, d => d.cancel())
    }

    pub(crate) fn answer(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        either!(self, d => d.answer(request, reply))
    }

    pub(crate) fn choose(&mut self, chosen: &Chosen) -> Vec<Effect> {
        either!(self, d => d.choose(chosen))
    }

    /// Options beside mode and model.
    pub(crate) fn options(&self) -> &[RunOption] {
        match self {
            Driver::Acp(acp) => acp.options(),
            Driver::Claude(_) => &[],
        }
    }

    /// Lets go of the session, where the agent wants to know.
    pub(crate) fn close(&mut self) -> Option<Effect> {
        match self {
            Driver::Acp(acp) => acp.close(),
            Driver::Claude(_) => None,
        }
    }

    /// What somebody could do who waits for an agent that has not said a word.
    pub(crate) fn login_hint(&self) -> Option<String> {
        match self {
            Driver::Acp(acp) => acp.login_hint(),
            Driver::Claude(_) => None,
        }
    }

    /// Answers something that the agent wanted of the machine.
    pub(crate) fn give(&mut self, id: &Value, given: Result<Value, String>) -> Vec<Effect> {
        match self {
            Driver::Acp(acp) => acp.give(id, given),
            Driver::Claude(_) => Vec::new(),
        }
    }

    /// Whether a refusal may say why.
    pub(crate) fn takes_reasons(&self) -> bool {
        matches!(self, Driver::Claude(_))
    }

    pub(crate) fn modes(&self) -> (&[RunChoice], Option<&str>) {
        either!(self, d => d.modes())
    }

    pub(crate) fn models(&self) -> (&[RunChoice], Option<&str>) {
        either!(self, d => d.models())
    }

    /// Whether the agent offers what is chosen; or what it offers.
    pub(crate) fn offers(&self, chosen: &Chosen) -> Result<(), String> {
        let mode = chosen.mode.as_deref();
        mode.map_or(Ok(()), |mode| is_offered("mode", mode, self.modes().0))?;
        // Claude Code takes models that it does not list.
        let model = chosen.model.as_deref().filter(|_| matches!(self, Driver::Acp(_)));
        model.map_or(Ok(()), |model| is_offered("model", model, self.models().0))?;
        for (id, value) in &chosen.options {
            let Some(option) = self.options().iter().find(|option| option.id == *id) else {
                let all = listed(self.options().iter().map(|option| option.id.as_str()));
                return Err(format!("there is no option `{id}`; there are: {all}"));
            };
            match (&option.value, value) {
                (OptionValue::Flag(_), OptionValue::Flag(_)) => {}
                (OptionValue::Flag(_), OptionValue::Choice(_)) => {
                    return Err(format!("the option `{id}` is true or false"));
                }
                (OptionValue::Choice(_), OptionValue::Choice(value)) => {
                    is_offered(&format!("value of the option `{id}`"), value, &option.choices)?;
                }
                (OptionValue::Choice(_), OptionValue::Flag(_)) => {
                    return Err(format!("the option `{id}` is one of: {}", ids(&option.choices)));
                }
            }
        }
        Ok(())
    }

    /// A line as the log keeps it.
    pub(crate) fn wrap(&mut self, to_agent: bool, line: &[u8], at: &str, out: &mut Vec<u8>) {
        match self {
            Driver::Acp(acp) => acp.wrap(to_agent, line, at, out),
            Driver::Claude(_) => out.extend_from_slice(line),
        }
        out.push(b'\n');
    }
}

fn is_offered(what: &str, wanted: &str, offered: &[RunChoice]) -> Result<(), String> {
    if offered.iter().any(|choice| choice.id == wanted) {
        return Ok(());
    }
    Err(format!("there is no {what} `{wanted}`; there are: {}", ids(offered)))
}

fn ids(offered: &[RunChoice]) -> String {
    listed(offered.iter().map(|choice| choice.id.as_str()))
}

fn listed<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<&str> = ids.collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}
