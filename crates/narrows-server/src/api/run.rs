//! Runs on the wire.

use crate::error::{ApiError, ApiResult};
use narrows_engine::run::{AgentSession, OptionValue, PromptImage, Protocol, Reply};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// An agent that can be run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentInfo {
    /// The name by which it is asked for.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Whether its program is there.
    pub installed: bool,
    /// Why it cannot be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The agents that can be run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentList {
    /// Whether this server runs agents.
    pub allow_run: bool,
    /// The agents.
    pub agents: Vec<AgentInfo>,
}

/// A session to be run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewRun {
    /// The agent's name.
    #[schema(max_length = 100)]
    pub agent: String,
    /// Go on with a session that the agent keeps by itself, by the agent's own id of it
    /// (`GET /api/agents/{agent}/sessions`). The agent is started for it, and what it tells of the
    /// session's past is kept where narrows does not have it. One that narrows has is answered as it is.
    #[serde(default)]
    #[schema(max_length = 512)]
    pub native_id: Option<String>,
    /// The folder in which it works, as a whole path on the server's machine. Without one the
    /// session gets a folder of its own, with `outputs` and `files` in it; one that is taken up by
    /// its `nativeId` works where the agent says.
    #[serde(default)]
    #[schema(max_length = 4096)]
    pub cwd: Option<String>,
    /// Other folders in which it may work, as whole paths. An agent that cannot be given any says so
    /// in the session.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub additional_directories: Vec<String>,
    /// The mode to begin with, as `plan`.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub mode: Option<String>,
    /// The model to begin with.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub model: Option<String>,
    /// The caller's own name for the session.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub label: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    #[schema(max_items = 32)]
    pub tags: Vec<String>,
}

/// A message to an agent.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SendMessage {
    /// What to say.
    #[serde(default)]
    pub content: String,
    /// Pictures to show.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub images: Vec<PromptImage>,
}

/// How to be told of a turn.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SendQuery {
    /// `false`: answer at once, and let whoever wants follow the session.
    pub wait: Option<bool>,
}

/// A message that was taken.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MessageTaken {
    /// Its id.
    pub id: String,
    /// `queued`, `running`, `done` or `dropped`.
    pub state: String,
    /// Follow the log from here; none while it waits.
    pub cursor: Option<String>,
}

/// How to be told of a run.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    /// Wait until the version is another one than this, up to 25 seconds.
    pub after: Option<u64>,
}

/// What to change of a run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RunChange {
    /// The mode.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub mode: Option<String>,
    /// The model.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub model: Option<String>,
    /// `false` releases messages that are held since a turn was cancelled; `true` holds those that
    /// wait.
    #[serde(default)]
    pub hold: Option<bool>,
    /// Other options of the agent, by id: one of the choices, or whether it is on. They hold until the
    /// agent ends.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, OptionValue>)]
    pub options: BTreeMap<String, OptionValue>,
}

/// An answer to a question of an agent: one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GiveAnswer {
    /// The chosen option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Why it is refused, for the agent to read: beside an option that refuses, where the run's
    /// `denyReasons` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 16384)]
    pub message: Option<String>,
    /// The answers to the agent's questions, by their `name` where they have one, else by their
    /// words. A form may want more than text: numbers, `true`, lists of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    pub answers: Option<serde_json::Map<String, serde_json::Value>>,
    /// `declined`: a question is not answered, and the agent goes on without; `cancelled`: neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// Maximum length of the reason of a refusal.
const MAX_REASON_BYTES: usize = 16 << 10;

impl GiveAnswer {
    /// Checks that the fields fit together.
    pub(crate) fn into_reply(self) -> ApiResult<Reply> {
        let message = self.message.filter(|message| !message.trim().is_empty());
        if message.as_ref().is_some_and(|m| m.len() > MAX_REASON_BYTES) {
            return Err(ApiError::invalid(format!(
                "`message` has more than {MAX_REASON_BYTES} bytes"
            )));
        }
        match (self.option_id, self.answers, self.outcome.as_deref(), message) {
            (Some(option), None, None, None) => Ok(Reply::Option(option)),
            (Some(option), None, None, Some(message)) => Ok(Reply::Because { option, message }),
            (None, Some(answers), None, None) => Ok(Reply::Answers(answers)),
            (None, None, Some("cancelled"), None) => Ok(Reply::Cancelled),
            (None, None, Some("declined"), None) => Ok(Reply::Declined),
            _ => Err(ApiError::invalid(
                "give `optionId` (with a `message` when it refuses), `answers` or `outcome`: `declined` or `cancelled`",
            )),
        }
    }
}

/// Which sessions of an agent to list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AgentSessionQuery {
    /// Only those of this folder, as a whole path on the server's machine.
    #[param(max_length = 4096)]
    pub cwd: Option<String>,
}

/// Sessions that an agent keeps by itself.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentSessions {
    /// Up to 1000 of them, as the agent orders them.
    pub sessions: Vec<AgentSession>,
}

/// Whether something was done.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Done {
    /// Whether there was something to do.
    pub done: bool,
}
