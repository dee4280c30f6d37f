//! The control channel: permission and elicitation requests and their answers.

use super::record::ClaudeRecord;
use super::system::commands;
use super::tool_use::{input_diffs, questions};
use super::{ClaudeParser, suggestion, unknown};
use crate::adapter::elicitation_form::ElicitationForm;
use crate::adapter::output::AdapterOutput;
use crate::adapter::tool_input::read_input;
use crate::json::{Json, Kind};
use crate::model::event::{
    Body, DecisionOutcome, PermissionDecision, PermissionOption, PermissionRequest, Question,
    SessionUpdate, ToolEvent,
};
use crate::model::tool::{ChangedFields, ToolCall};
use crate::sanitize::Raw;

/// The id and the label of the options that every request has.
const ALLOW_OPTION: (&str, &str) = ("allow", "Allow once");
const DENY_OPTION: (&str, &str) = ("deny", "Deny");
/// The prefix of the option ids of suggestions; their index follows.
const SUGGESTION_ID_PREFIX: &str = "allow_always:";
/// The number of suggestions that are read from one request.
const MAX_SUGGESTIONS: usize = 16;

/// A permission request that awaits its answer.
#[derive(Debug, Default)]
pub(super) struct PendingControlRequest {
    pub(super) call_id: String,
    /// The ids and labels of the options.
    pub(super) options: Vec<(String, String)>,
}

impl ClaudeParser {
    pub(super) fn control(
        &mut self,
        kind: &str,
        r: &ClaudeRecord<'_>,
        object: Json<'_>,
        out: &mut AdapterOutput,
    ) {
        let id = r.request.and_then(Json::scalar).unwrap_or_default();
        match kind {
            "control_request" => self.control_request(&id, object, out),
            "control_cancel_request" if self.close_form(&id, None, out) => {}
            "control_cancel_request" => self.decide(&id, DecisionOutcome::Cancelled, None, out),
            _ => {
                let response = object.get("response");
                let get = |name: &str| response.and_then(|r| r.get(name));
                let id = get("request_id").and_then(Json::scalar).unwrap_or_default();
                let answer = get("response");
                if self.close_form(&id, answer, out) {
                    return;
                }
                if let Some(list) = answer.and_then(|a| a.get("commands")) {
                    let commands = commands(Some(list));
                    return self
                        .update_info(SessionUpdate { commands, ..SessionUpdate::default() }, out);
                }
                let failed = || get("subtype").and_then(Json::str).as_deref() == Some("error");
                let decision = match answer.and_then(|a| a.text("behavior")).as_deref() {
                    Some("allow") => DecisionOutcome::Allowed,
                    Some("deny") => DecisionOutcome::Rejected,
                    // A failed request is not permitted.
                    None if failed() => DecisionOutcome::Cancelled,
                    _ => {
                        out.ignore();
                        return;
                    }
                };
                let updates = answer.and_then(|a| a.get("updatedPermissions"));
                let updates = updates.filter(|u| u.kind() == Kind::Array);
                // The chosen suggestion is identified by its label.
                let first = updates.and_then(|m| m.items().next());
                let option = first.filter(|_| decision == DecisionOutcome::Allowed);
                let option = option.and_then(suggestion::suggestion_label);
                self.decide(&id, decision, option, out);
            }
        }
    }

    fn control_request(&mut self, id: &str, object: Json<'_>, out: &mut AdapterOutput) {
        let Some(request) = object.get("request") else {
            return unknown("control_request", object, out);
        };
        match request.text("subtype").as_deref() {
            Some("can_use_tool") => {}
            Some("elicitation") => return self.elicitation_request(id, request, out),
            Some(
                "initialize"
                | "interrupt"
                | "set_permission_mode"
                | "set_model"
                | "hook_callback"
                | "mcp_message"
                | "mcp_status"
                | "set_max_thinking_tokens"
                | "rewind_files",
            ) => {
                out.ignore();
                return;
            }
            _ => return unknown("control_request", object, out),
        }
        let call = request.text("tool_use_id").unwrap_or_default();
        self.control_requests.get_or_insert(id).0.call_id = call.clone().into_owned();
        let tool_call_id = Raw::new(call.clone());
        let request_id = Raw::new(id);
        if request.text("tool_name").as_deref() == Some("AskUserQuestion") {
            let questions = request.get("input").map(questions).unwrap_or_default();
            let request_id = Some(request_id);
            let question = Question { request_id, tool_call_id, questions };
            return out.push(Body::QuestionRequest(Box::new(question)));
        }
        let target = self.requested_call(request, &call, out);
        let mut offered =
            vec![(ALLOW_OPTION.0.to_owned(), ALLOW_OPTION.1.to_owned(), "allow_once")];
        let suggestions = request.get("permission_suggestions").filter(|s| s.kind() == Kind::Array);
        let suggestions = suggestions.into_iter().flat_map(Json::items).take(MAX_SUGGESTIONS);
        for (at, suggestion) in suggestions.enumerate() {
            if let Some(label) = suggestion::suggestion_label(suggestion) {
                offered.push((format!("{SUGGESTION_ID_PREFIX}{at}"), label, "allow_always"));
            }
        }
        offered.push((DENY_OPTION.0.to_owned(), DENY_OPTION.1.to_owned(), "reject_once"));
        let choice = |(id, name, kind): &(String, String, &str)| PermissionOption {
            option_id: Raw::new(id.as_str()),
            name: Raw::new(name.as_str()),
            kind: Raw::new(*kind),
        };
        let options = offered.iter().map(choice).collect();
        self.control_requests.get_or_insert(id).0.options =
            offered.into_iter().map(|(id, name, _)| (id, name)).collect();
        // The model's description of its command is not a description by the program.
        let by_model = request.path(&["input", "description"]).and_then(Json::str);
        let by_program =
            request.get("description").and_then(Json::str).filter(|d| Some(d) != by_model.as_ref());
        let tool_name = || request.any(&["display_name", "tool_name"]).and_then(Json::str);
        let title = target.or_else(|| by_program.or_else(tool_name).map(Raw::new));
        let ask = PermissionRequest { request_id, tool_call_id, title, options, call: None };
        out.push(Body::PermissionRequest(Box::new(ask)));
    }

    /// An MCP server asks the user to fill in a form.
    fn elicitation_request(&mut self, id: &str, request: Json<'_>, out: &mut AdapterOutput) {
        // The request may be repeated for a client that connects later.
        if self.forms.contains_key(id) {
            out.ignore();
            return;
        }
        let (form, mut question) = ElicitationForm::parse(id, Some(request));
        let server = request.any(&["display_name", "mcp_server_name"]).and_then(Json::owned);
        if let Some(first) = question.questions.first_mut() {
            first.header = first.header.take().or(server.map(Raw::new));
        }
        *self.forms.get_or_insert(id).0 = form;
        self.open_forms += 1;
        out.push(Body::QuestionRequest(Box::new(question)));
    }

    /// Closes a form with the user's answer, if any; returns false when there is no such form.
    fn close_form(&mut self, id: &str, answer: Option<Json<'_>>, out: &mut AdapterOutput) -> bool {
        let Some(form) = self.forms.remove(id) else { return false };
        self.open_forms = self.open_forms.saturating_sub(1);
        out.push(form.answer(answer));
        true
    }

    /// Emits the call with the arguments that would run; returns its command or its file.
    fn requested_call(
        &mut self,
        request: Json<'_>,
        id: &str,
        out: &mut AdapterOutput,
    ) -> Option<Raw> {
        let input = request.get("input").filter(|i| i.kind() == Kind::Object);
        let is_known = self.tool_uses.contains_key(id);
        let (known, _) = self.tool_uses.get_or_insert(id);
        known.identify(&request.text("tool_name").unwrap_or_default());
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        known.describe(&mut call);
        call.name = Some(Raw::new(&*known.name)).filter(|n| !n.is_empty());
        read_input(&mut call, input, input);
        call.diffs = input.and_then(|i| input_diffs(&call, i));
        let target = call.command.clone().or_else(|| call.file_path.clone());
        if is_known {
            // The arguments are known; here they may be in another order.
            (call.input, call.name) = (None, None);
        }
        let parent = request.text("agent_id").and_then(|agent| {
            self.subagent_calls.get(&agent).map(|parent| Raw::new(parent.as_str()))
        });
        let event = ToolEvent {
            id: Raw::new(id),
            call,
            fresh: ChangedFields::default(),
            grew_from: None,
            first: !is_known,
            grows: false,
            repeats: false,
        };
        out.push_in(parent, Body::ToolCallStart(Box::new(event)));
        target
    }

    fn decide(
        &mut self,
        id: &str,
        decision: DecisionOutcome,
        option: Option<String>,
        out: &mut AdapterOutput,
    ) {
        let Some(request) = self.control_requests.remove(id) else {
            out.ignore();
            return;
        };
        let (request_id, tool_call_id) = (Raw::new(id), Raw::new(request.call_id));
        let chosen =
            option.and_then(|label| request.options.iter().find(|(_, name)| *name == label));
        let option_id = chosen.map(|(id, _)| Raw::new(id.as_str()));
        let option = chosen.map(|(_, name)| Raw::new(name.as_str()));
        let waited_ms = None;
        let answer =
            PermissionDecision { request_id, tool_call_id, decision, option_id, option, waited_ms };
        out.push(Body::PermissionAnswer(Box::new(answer)));
    }
}
