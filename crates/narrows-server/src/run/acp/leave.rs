//! Requests for leave, their answers, and requests that either side takes back.

use super::{Acp, refuse};
use crate::run::driver::{Effect, Heard, Refused, Reply};
use narrows::limits::REQUESTS;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The error of a request that was taken back.
const CANCELLED: i32 = -32800;

/// Invalid params and an invalid request, in JSON-RPC.
pub(super) const INVALID: i32 = -32602;
const IN_USE: i32 = -32600;

/// An error of our own, and its words.
pub(super) const TOO_MANY: i32 = -32000;
pub(super) const FULL: &str = "too many requests wait for an answer";

/// A request for leave that waits.
#[derive(Debug)]
pub(super) struct Leave {
    id: Value,
    options: Vec<String>,
}

impl Acp {
    pub(super) fn leave_asked(&mut self, id: Value, params: &Value) -> Vec<Effect> {
        let call = &params[if params["toolCall"].is_null() { "tool_call" } else { "toolCall" }];
        // Nobody could see what it is about.
        if !call.is_object() {
            let refused = refuse(&id, INVALID, "`toolCall` is missing");
            let what = "The agent asked for leave, and did not say for which call: it was refused.";
            return vec![refused, Effect::Notice(what.to_owned())];
        }
        let call = &call[if call["toolCallId"].is_null() { "tool_call_id" } else { "toolCallId" }];
        let call = call.as_str().unwrap_or_default().to_owned();
        if self.is_full() {
            return vec![refuse(&id, TOO_MANY, FULL), Effect::Full(call)];
        }
        let options = params["options"].as_array().into_iter().flatten();
        let options = options.filter_map(|o| o["optionId"].as_str()).map(str::to_owned).collect();
        let name = self.new_name(&id);
        self.leave.insert(name.clone(), Leave { id, options });
        vec![Effect::Asked { request: name, call, question: false }]
    }

    /// Whether so much waits for answers that nothing more may.
    pub(super) fn is_full(&self) -> bool {
        self.leave.len() + self.forms.len() >= REQUESTS
    }

    /// Whether something of this id waits for its answer.
    pub(super) fn is_open(&self, id: &Value) -> bool {
        let leave = self.leave.values().any(|leave| leave.id == *id);
        leave || self.is_form(id) || self.wants.contains(&id.to_string())
    }

    /// The agent asks again with the id of a request that waits. Nobody could say which of the two is
    /// answered: the second one is refused, beside the log, where it would take the first one's place.
    pub(super) fn asked_twice(&self, id: &Value) -> Heard {
        let what = format!(
            "The agent asked with the id {id} while another request of this id waits. The second one \
             was refused."
        );
        let refused = match refuse(id, IN_USE, "a request of this id waits for its answer") {
            Effect::Send(line) => Effect::Tell(line),
            other => other,
        };
        Heard { log: false, effects: vec![refused, Effect::Notice(what)] }
    }

    /// The agent does not wait any more for something that it asked for.
    pub(super) fn withdrawn(&mut self, params: Option<&RawValue>) -> Vec<Effect> {
        let params = params.and_then(|p| serde_json::from_str::<Value>(p.get()).ok());
        let Some(id) = params.as_ref().map(|p| &p["requestId"]).filter(|id| !id.is_null()) else {
            return Vec::new();
        };
        let name = self.name(id);
        self.about = self.names.of(id).map(str::to_owned);
        if self.wants.remove(&id.to_string()) {
            return vec![refuse(id, CANCELLED, "Request cancelled")];
        }
        let is_asked = self.leave.contains_key(&name) || self.forms.contains_key(&name);
        if !is_asked {
            return Vec::new();
        }
        self.answer(&name, &Reply::Cancelled).unwrap_or_default()
    }

    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        let Some(session) = &self.session else { return Vec::new() };
        let cancel = json!({
            "jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session},
        });
        let mut effects = vec![Effect::Send(cancel.to_string())];
        // Asked again: also in the words of the protocol below.
        if std::mem::replace(&mut self.cancelling, true)
            && let Some(prompt) = self.prompting
        {
            effects.push(cancel_request(prompt));
        }
        let mut open: Vec<String> = self.leave.keys().chain(self.forms.keys()).cloned().collect();
        open.sort();
        for name in open {
            effects.extend(self.answer(&name, &Reply::Cancelled).unwrap_or_default());
        }
        effects
    }

    pub(crate) fn answer(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        if self.forms.contains_key(request) {
            return self.fill_in(request, reply);
        }
        let leave = self.leave.get(request).ok_or(Refused::Unknown)?;
        let outcome = match reply {
            Reply::Option(option) if leave.options.contains(option) => {
                json!({"outcome": "selected", "optionId": option})
            }
            // The protocol has no words for it.
            Reply::Because { option, .. } if leave.options.contains(option) => {
                return Err(Refused::NoReason);
            }
            Reply::Option(_) | Reply::Because { .. } | Reply::Answers(_) | Reply::Declined => {
                return Err(Refused::NoSuchOption);
            }
            Reply::Cancelled => json!({"outcome": "cancelled"}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": leave.id, "result": {"outcome": outcome}});
        self.leave.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(request.to_owned())])
    }
}

/// Takes back something that was asked of the agent.
fn cancel_request(id: u64) -> Effect {
    let params = json!({"requestId": id});
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
    Effect::Send(cancel.to_string())
}
