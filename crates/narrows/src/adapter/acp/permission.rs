//! Permission requests of the agent and the decisions about them.

use super::fields::MessageFields;
use super::rpc::unknown;
use super::tool_call::ToolUpdate;
use super::{AcpParser, MessageSender};
use crate::adapter::output::AdapterOutput;
use crate::json::{Json, Kind};
use crate::model::event::{
    Body, DecisionOutcome, PermissionDecision, PermissionOption, PermissionRequest,
};
use crate::sanitize::Raw;

/// The number of options that are read from one request.
const MAX_OPTIONS: usize = 64;

/// A permission request that awaits its decision.
#[derive(Debug, Default)]
pub(super) struct PendingPermission {
    pub(super) call_id: String,
    pub(super) options: Vec<OfferedOption>,
}

/// An answer that the agent offers.
#[derive(Debug)]
pub(super) struct OfferedOption {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: String,
}

impl AcpParser {
    /// The agent requests permission for a call: emits the call as it is now, then the request.
    pub(super) fn permission_request(
        &mut self,
        id: &str,
        params: Option<Json<'_>>,
        out: &mut AdapterOutput,
    ) {
        let call = params.and_then(|p| p.any(&["toolCall", "tool_call"]));
        let Some(call) = call.filter(|c| c.kind() == Kind::Object) else {
            if let Some(params) = params {
                unknown("session/request_permission", params, out);
            }
            return;
        };
        let f = MessageFields::read(call);
        let call_id = self.tool_call(&f, ToolUpdate::PermissionRequest, out);
        let list = params.and_then(|p| p.get("options")).into_iter().flat_map(Json::items);
        let options: Vec<_> = list
            .filter(|o| o.kind() == Kind::Object)
            .take(MAX_OPTIONS)
            .map(|o| {
                let text = |names: &[&str]| {
                    o.any(names).and_then(Json::scalar).unwrap_or_default().into_owned()
                };
                OfferedOption {
                    id: text(&["optionId", "option_id"]),
                    name: text(&["name"]),
                    kind: text(&["kind"]),
                }
            })
            .collect();
        let choice = |option: &OfferedOption| PermissionOption {
            option_id: Raw::new(option.id.as_str()),
            name: Raw::new(option.name.as_str()),
            kind: Raw::new(option.kind.as_str()),
        };
        out.push(Body::PermissionRequest(Box::new(PermissionRequest {
            request_id: Raw::new(id),
            tool_call_id: Raw::new(call_id.as_str()),
            title: f.title().and_then(Json::str).map(Raw::new),
            options: options.iter().map(choice).collect(),
            call: None,
        })));
        let (entry, is_new) = self.permissions.get_or_insert(id);
        *entry = PendingPermission { call_id, options };
        self.open_requests += u32::from(is_new);
    }

    /// The agent cancels a request of its own: no answer is possible any more.
    pub(super) fn cancel_request(
        &mut self,
        id: Option<Json<'_>>,
        sender: MessageSender,
        out: &mut AdapterOutput,
    ) {
        out.ignore();
        let Some(id) = id.and_then(Json::scalar).map(|id| self.scoped_id(id)) else { return };
        if sender == MessageSender::Client || self.close_form(&id, None, out) {
            return;
        }
        if let Some(permission) = self.permissions.remove(&id) {
            self.open_requests = self.open_requests.saturating_sub(1);
            decide(&id, permission, None, out);
        }
    }

    /// Cancels the permission requests of agent processes that are gone.
    pub(super) fn cancel_permissions(
        &mut self,
        is_gone: impl Fn(&str) -> bool,
        out: &mut AdapterOutput,
    ) {
        for id in self.permissions.keys_where(|_| true) {
            if is_gone(&id)
                && let Some(permission) = self.permissions.remove(&id)
            {
                self.open_requests = self.open_requests.saturating_sub(1);
                decide(&id, permission, None, out);
            }
        }
    }
}

/// Emits the decision about a permission request; without an outcome it is cancelled.
pub(super) fn decide(
    id: &str,
    permission: PendingPermission,
    outcome: Option<Json<'_>>,
    out: &mut AdapterOutput,
) {
    let chosen = outcome.and_then(|o| o.any(&["optionId", "option_id"])).and_then(Json::scalar);
    let option = chosen.as_deref().and_then(|id| permission.options.iter().find(|o| o.id == id));
    let outcome_text = outcome.and_then(|o| o.str().or_else(|| o.text("outcome")));
    let decision = match outcome_text.as_deref() {
        Some("selected") => match option.map(|o| o.kind.as_str()) {
            Some(kind) if kind.starts_with("reject") => DecisionOutcome::Rejected,
            Some(_) => DecisionOutcome::Allowed,
            None if chosen.as_deref().is_some_and(|c| c.contains("reject")) => {
                DecisionOutcome::Rejected
            }
            None => DecisionOutcome::Allowed,
        },
        _ => DecisionOutcome::Cancelled,
    };
    out.push(Body::PermissionAnswer(Box::new(PermissionDecision {
        request_id: Raw::new(id),
        tool_call_id: Raw::new(permission.call_id),
        decision,
        option_id: chosen.as_deref().map(Raw::new),
        option: option.map(|o| Raw::new(o.name.as_str())),
        waited_ms: None,
    })));
}
