//! The control channel: questions for leave and their answers.

use super::call::{diffs, questions};
use super::record::Record;
use super::system::commands;
use super::{Claude, Form, suggestion, unknown};
use crate::adapter::Yield;
use crate::adapter::input::read_input;
use crate::event::{Answer, Ask, Body, Choice, Decision, Info, Question, ToolEvent};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;
use crate::tool::{Fresh, ToolCall};

/// The answers that there always are.
const ALLOW: (&str, &str) = ("allow", "Allow once");
const DENY: (&str, &str) = ("deny", "Deny");
/// How the ids of suggestions begin, before their place in the list.
const ALWAYS: &str = "allow_always:";
/// Suggestions of one question that are looked at.
const MAX_SUGGESTIONS: usize = 16;

/// A question that waits for its answer: the call it is about, and the answers on offer.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) call: String,
    /// Ids and words.
    pub(super) options: Vec<(String, String)>,
}

impl Claude {
    pub(super) fn control(
        &mut self,
        kind: &str,
        r: &Record<'_>,
        object: Json<'_>,
        out: &mut Yield,
    ) {
        let id = r.request.and_then(Json::scalar).unwrap_or_default();
        match kind {
            "control_request" => self.request(&id, object, out),
            "control_cancel_request" if self.filled_in(&id, None, out) => {}
            "control_cancel_request" => self.answered(&id, Decision::Cancelled, None, out),
            _ => {
                let response = object.get("response");
                let get = |name: &str| response.and_then(|r| r.get(name));
                let id = get("request_id").and_then(Json::scalar).unwrap_or_default();
                let given = get("response");
                if self.filled_in(&id, given, out) {
                    return;
                }
                if let Some(list) = given.and_then(|g| g.get("commands")) {
                    let commands = commands(Some(list));
                    return self.learn(Info { commands, ..Info::default() }, out);
                }
                let failed = || get("subtype").and_then(Json::str).as_deref() == Some("error");
                let decision = match given.and_then(|g| g.text("behavior")).as_deref() {
                    Some("allow") => Decision::Allowed,
                    Some("deny") => Decision::Rejected,
                    // Refused to answer is not leave.
                    None if failed() => Decision::Cancelled,
                    _ => {
                        out.quiet += 1;
                        return;
                    }
                };
                let more = given.and_then(|g| g.get("updatedPermissions"));
                let more = more.filter(|m| m.kind() == Kind::Array);
                // What is allowed from now on is known by what it says.
                let first = more.and_then(|m| m.items().next());
                let option = first.filter(|_| decision == Decision::Allowed);
                let option = option.and_then(suggestion::words);
                self.answered(&id, decision, option, out);
            }
        }
    }

    fn request(&mut self, id: &str, object: Json<'_>, out: &mut Yield) {
        let Some(request) = object.get("request") else {
            return unknown("control_request", object, out);
        };
        match request.text("subtype").as_deref() {
            Some("can_use_tool") => {}
            Some("elicitation") => return self.elicit(id, request, out),
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
                out.quiet += 1;
                return;
            }
            _ => return unknown("control_request", object, out),
        }
        let call = request.text("tool_use_id").unwrap_or_default();
        self.requests.open(id).0.call = call.clone().into_owned();
        let tool_call_id = Raw::new(call.clone());
        let request_id = Raw::new(id);
        if request.text("tool_name").as_deref() == Some("AskUserQuestion") {
            let questions = request.get("input").map(questions).unwrap_or_default();
            let request_id = Some(request_id);
            let question = Question { request_id, tool_call_id, questions };
            return out.push(Body::QuestionRequest(Box::new(question)));
        }
        let exact = self.asked_call(request, &call, out);
        let mut offered = vec![(ALLOW.0.to_owned(), ALLOW.1.to_owned(), "allow_once")];
        let more = request.get("permission_suggestions").filter(|s| s.kind() == Kind::Array);
        for (at, one) in more.into_iter().flat_map(Json::items).take(MAX_SUGGESTIONS).enumerate() {
            if let Some(words) = suggestion::words(one) {
                offered.push((format!("{ALWAYS}{at}"), words, "allow_always"));
            }
        }
        offered.push((DENY.0.to_owned(), DENY.1.to_owned(), "reject_once"));
        let choice = |(id, name, kind): &(String, String, &str)| Choice {
            option_id: Raw::new(id.as_str()),
            name: Raw::new(name.as_str()),
            kind: Raw::new(*kind),
        };
        let options = offered.iter().map(choice).collect();
        self.requests.open(id).0.options =
            offered.into_iter().map(|(id, name, _)| (id, name)).collect();
        // What the model calls its command is no word of the program.
        let own = request.path(&["input", "description"]).and_then(Json::str);
        let told =
            request.get("description").and_then(Json::str).filter(|d| Some(d) != own.as_ref());
        let named = || request.any(&["display_name", "tool_name"]).and_then(Json::str);
        let title = exact.or_else(|| told.or_else(named).map(Raw::new));
        let ask = Ask { request_id, tool_call_id, title, options, call: None };
        out.push(Body::PermissionRequest(Box::new(ask)));
    }

    /// A server that the agent works with asks for something that the user knows.
    fn elicit(&mut self, id: &str, request: Json<'_>, out: &mut Yield) {
        // The request may come again for somebody who joins later.
        if self.forms.has(id) {
            out.quiet += 1;
            return;
        }
        let (form, mut question) = Form::read(id, Some(request));
        let server = request.any(&["display_name", "mcp_server_name"]).and_then(Json::owned);
        if let Some(first) = question.questions.first_mut() {
            first.header = first.header.take().or(server.map(Raw::new));
        }
        *self.forms.open(id).0 = form;
        self.waiting += 1;
        out.push(Body::QuestionRequest(Box::new(question)));
    }

    /// The user filled in a form, or nobody will any more; false when there is no such form.
    fn filled_in(&mut self, id: &str, given: Option<Json<'_>>, out: &mut Yield) -> bool {
        let Some(form) = self.forms.take(id) else { return false };
        self.waiting = self.waiting.saturating_sub(1);
        out.push(form.answered(given));
        true
    }

    /// The call as it is asked for, which is what will be done; its command or its file.
    fn asked_call(&mut self, request: Json<'_>, id: &str, out: &mut Yield) -> Option<Raw> {
        let input = request.get("input").filter(|i| i.kind() == Kind::Object);
        let is_known = self.calls.has(id);
        let (known, _) = self.calls.open(id);
        known.identify(&request.text("tool_name").unwrap_or_default());
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        known.tell(&mut call);
        call.name = Some(Raw::new(&*known.name)).filter(|n| !n.is_empty());
        read_input(&mut call, input, input);
        call.diffs = input.and_then(|i| diffs(&call, i));
        let exact = call.command.clone().or_else(|| call.file_path.clone());
        if is_known {
            // The same arguments in another order are the same.
            (call.input, call.name) = (None, None);
        }
        let parent = request
            .text("agent_id")
            .and_then(|agent| self.agents.get(&agent).map(|parent| Raw::new(parent.as_str())));
        let event = ToolEvent {
            id: Raw::new(id),
            call,
            fresh: Fresh::default(),
            grew_from: None,
            first: !is_known,
            grows: false,
            repeats: false,
        };
        out.push_in(parent, Body::ToolCallStart(Box::new(event)));
        exact
    }

    fn answered(&mut self, id: &str, decision: Decision, option: Option<String>, out: &mut Yield) {
        let Some(request) = self.requests.take(id) else {
            out.quiet += 1;
            return;
        };
        let (request_id, tool_call_id) = (Raw::new(id), Raw::new(request.call));
        let chosen =
            option.and_then(|words| request.options.iter().find(|(_, name)| *name == words));
        let option_id = chosen.map(|(id, _)| Raw::new(id.as_str()));
        let option = chosen.map(|(_, name)| Raw::new(name.as_str()));
        let waited_ms = None;
        let answer = Answer { request_id, tool_call_id, decision, option_id, option, waited_ms };
        out.push(Body::PermissionAnswer(Box::new(answer)));
    }
}
