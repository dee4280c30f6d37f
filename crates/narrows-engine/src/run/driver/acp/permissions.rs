//! Permission requests, their answers, and cancellation by either side.

use super::{Acp, refuse};
use crate::run::driver::{DriverOutput, Effect, PermissionReply, ReplyError};
use narrows::limits::REQUESTS;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// ACP's error code of a cancelled request.
const CANCELLED: i32 = -32800;

/// JSON-RPC's codes for invalid params and an invalid request.
pub(super) const INVALID_PARAMS: i32 = -32602;
const INVALID_REQUEST: i32 = -32600;

/// The error for too many open requests.
pub(super) const TOO_MANY_CODE: i32 = -32000;
pub(super) const TOO_MANY_MESSAGE: &str = "too many requests wait for an answer";

/// An open permission request.
#[derive(Debug)]
pub(super) struct PendingPermission {
    id: Value,
    options: Vec<String>,
}

impl Acp {
    pub(super) fn on_permission_request(&mut self, id: Value, params: &Value) -> Vec<Effect> {
        let call = &params[if params["toolCall"].is_null() { "tool_call" } else { "toolCall" }];
        // Without its call, a person cannot judge the request.
        if !call.is_object() {
            let refused = refuse(&id, INVALID_PARAMS, "`toolCall` is missing");
            let what = "The agent requested a permission without naming the tool call; the request was refused.";
            return vec![refused, Effect::Notice(what.to_owned())];
        }
        let call = &call[if call["toolCallId"].is_null() { "tool_call_id" } else { "toolCallId" }];
        let call = call.as_str().unwrap_or_default().to_owned();
        if self.is_full() {
            return vec![
                refuse(&id, TOO_MANY_CODE, TOO_MANY_MESSAGE),
                Effect::RequestRefused(call),
            ];
        }
        let options = params["options"].as_array().into_iter().flatten();
        let options = options.filter_map(|o| o["optionId"].as_str()).map(str::to_owned).collect();
        let name = self.assign_name(&id);
        self.permissions.insert(name.clone(), PendingPermission { id, options });
        vec![Effect::RequestOpened { request: name, call, question: false }]
    }

    /// Returns whether the limit of open requests is reached.
    pub(super) fn is_full(&self) -> bool {
        self.permissions.len() + self.forms.len() >= REQUESTS
    }

    /// Returns whether a request with this id is open.
    pub(super) fn is_open(&self, id: &Value) -> bool {
        let leave = self.permissions.values().any(|leave| leave.id == *id);
        leave || self.is_form(id) || self.client_requests.contains(&id.to_string())
    }

    /// Handles the agent's cancellation of its own request.
    pub(super) fn on_cancel_request(&mut self, params: Option<&RawValue>) -> Vec<Effect> {
        let params = params.and_then(|p| serde_json::from_str::<Value>(p.get()).ok());
        let Some(id) = params.as_ref().map(|p| &p["requestId"]).filter(|id| !id.is_null()) else {
            return Vec::new();
        };
        let name = self.request_name(id);
        self.line_request = self.names.get(id).map(str::to_owned);
        if self.client_requests.remove(&id.to_string()) {
            return vec![refuse(id, CANCELLED, "Request cancelled")];
        }
        let is_open = self.permissions.contains_key(&name) || self.forms.contains_key(&name);
        if !is_open {
            return Vec::new();
        }
        self.answer(&name, &PermissionReply::Cancelled).unwrap_or_default()
    }

    pub(crate) fn cancel(&mut self) -> Vec<Effect> {
        let Some(session) = &self.session else { return Vec::new() };
        let cancel = json!({
            "jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session},
        });
        let mut effects = vec![Effect::Send(cancel.to_string())];
        // A repeated cancel also cancels the request itself, on the JSON-RPC level.
        if std::mem::replace(&mut self.cancelling, true)
            && let Some(prompt) = self.prompting
        {
            effects.push(cancel_request(prompt));
        }
        let mut open: Vec<String> =
            self.permissions.keys().chain(self.forms.keys()).cloned().collect();
        open.sort();
        for name in open {
            effects.extend(self.answer(&name, &PermissionReply::Cancelled).unwrap_or_default());
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
        let leave = self.permissions.get(request).ok_or(ReplyError::Unknown)?;
        let outcome = match reply {
            PermissionReply::Option(option) if leave.options.contains(option) => {
                json!({"outcome": "selected", "optionId": option})
            }
            // ACP cannot transport a reason.
            PermissionReply::Because { option, .. } if leave.options.contains(option) => {
                return Err(ReplyError::NoReason);
            }
            PermissionReply::Option(_)
            | PermissionReply::Because { .. }
            | PermissionReply::Answers(_)
            | PermissionReply::Declined => {
                return Err(ReplyError::NoSuchOption);
            }
            PermissionReply::Cancelled => json!({"outcome": "cancelled"}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": leave.id, "result": {"outcome": outcome}});
        self.permissions.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::RequestClosed(request.to_owned())])
    }
}

/// Cancels a request to the agent.
fn cancel_request(id: u64) -> Effect {
    let params = json!({"requestId": id});
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
    Effect::Send(cancel.to_string())
}

/// Refuses a request that reuses the id of an open one: an answer could not be assigned to either. The
/// second one is not logged, where it would replace the first.
pub(super) fn refuse_duplicate(id: &Value) -> DriverOutput {
    let what = format!(
        "The agent asked with the id {id} while another request of this id waits. The second one \
         was refused."
    );
    let refused = match refuse(id, INVALID_REQUEST, "a request with this id is open") {
        Effect::Send(line) => Effect::SendUnlogged(line),
        other => other,
    };
    DriverOutput { log: false, effects: vec![refused, Effect::Notice(what)] }
}
