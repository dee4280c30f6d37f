//! The control channel: questions for leave and their answers.

use super::call::questions;
use super::record::Record;
use super::system::commands;
use super::{Claude, unknown};
use crate::adapter::Yield;
use crate::event::{Answer, Ask, Body, Choice, Decision, Info, Question};
use crate::json::Json;
use crate::sanitize::Raw;

/// A question that waits for its answer: the call it is about.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) call: String,
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
            "control_cancel_request" => self.answered(&id, Decision::Cancelled, out),
            _ => {
                let response = object.get("response");
                let get = |name: &str| response.and_then(|r| r.get(name));
                let id = get("request_id").and_then(Json::scalar).unwrap_or_default();
                let given = get("response");
                if let Some(list) = given.and_then(|g| g.get("commands")) {
                    let commands = commands(Some(list));
                    return self.learn(Info { commands, ..Info::default() }, out);
                }
                let decision = match given.and_then(|g| g.text("behavior")).as_deref() {
                    Some("allow") => Decision::Allowed,
                    Some("deny") => Decision::Rejected,
                    _ => {
                        out.quiet += 1;
                        return;
                    }
                };
                self.answered(&id, decision, out);
            }
        }
    }

    fn request(&mut self, id: &str, object: Json<'_>, out: &mut Yield) {
        let Some(request) = object.get("request") else {
            return unknown("control_request", object, out);
        };
        match request.text("subtype").as_deref() {
            Some("can_use_tool") => {}
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
        let tool_call_id = Raw::new(call);
        let request_id = Raw::new(id);
        if request.text("tool_name").as_deref() == Some("AskUserQuestion") {
            let questions = request.get("input").map(questions).unwrap_or_default();
            let request_id = Some(request_id);
            let question = Question { request_id, tool_call_id, questions };
            return out.push(Body::QuestionRequest(Box::new(question)));
        }
        let choice = |id: &str, name: &str, kind: &str| Choice {
            option_id: Raw::new(id),
            name: Raw::new(name),
            kind: Raw::new(kind),
        };
        let options =
            vec![choice("allow", "Allow", "allow_once"), choice("deny", "Deny", "reject_once")];
        let title = request.any(&["description", "display_name", "tool_name"]);
        let title = title.and_then(Json::str).map(Raw::new);
        let ask = Ask { request_id, tool_call_id, title, options };
        out.push(Body::PermissionRequest(Box::new(ask)));
    }

    fn answered(&mut self, id: &str, decision: Decision, out: &mut Yield) {
        let Some(request) = self.requests.take(id) else {
            out.quiet += 1;
            return;
        };
        let (request_id, tool_call_id) = (Raw::new(id), Raw::new(request.call));
        let (option_id, option) = (None, None);
        let answer = Answer { request_id, tool_call_id, decision, option_id, option };
        out.push(Body::PermissionAnswer(Box::new(answer)));
    }
}
