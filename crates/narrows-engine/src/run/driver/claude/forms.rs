//! Forms of MCP servers that Claude Code uses (elicitation).

use super::Claude;
use super::permissions::TOO_MANY_MESSAGE;
use crate::run::driver::form::Form;
use crate::run::driver::{DriverOutput, Effect, PermissionReply, ReplyError};
use serde_json::{Map, Value, json};

impl Claude {
    /// Handles an elicitation request.
    pub(super) fn on_form_request(&mut self, id: &str, request: &Value, output: &mut DriverOutput) {
        let form = Form::read(&request["mode"], &request["requested_schema"], &request["url"]);
        let form = match form {
            Ok(form) if !self.is_full() => form,
            Ok(_) => {
                return output.effects.extend([
                    error_response(id, TOO_MANY_MESSAGE),
                    Effect::RequestRefused(String::new()),
                ]);
            }
            Err(what) => return output.effects.push(error_response(id, what)),
        };
        self.forms.insert(id.to_owned(), form.with_id(&request["elicitation_id"]));
        let (request, call) = (id.to_owned(), format!("elicitation-{id}"));
        output.effects.push(Effect::RequestOpened { request, call, question: true });
    }

    /// Closes the request of a URL whose visit is complete.
    pub(super) fn on_form_completed(&mut self, line: &[u8], output: &mut DriverOutput) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let Some(done) = record["elicitation_id"].as_str() else { return };
        let found = self.forms.iter().find(|(_, form)| form.is_url_request(done));
        if let Some(id) = found.map(|(id, _)| id.clone()) {
            let accept = PermissionReply::Answers(Map::new());
            output.effects.extend(self.answer_form(&id, &accept).unwrap_or_default());
        }
    }

    /// Answers an open form.
    pub(super) fn answer_form(
        &mut self,
        id: &str,
        reply: &PermissionReply,
    ) -> Result<Vec<Effect>, ReplyError> {
        let response = self.forms.get(id).ok_or(ReplyError::Unknown)?.result(reply)?;
        self.forms.remove(id);
        let answer = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": id, "response": response,
        }});
        Ok(vec![Effect::Send(answer.to_string()), Effect::RequestClosed(id.to_owned())])
    }
}

/// The error response to a request.
pub(super) fn error_response(id: &str, what: &str) -> Effect {
    let error = json!({"type": "control_response", "response": {
        "subtype": "error", "request_id": id, "error": what,
    }});
    Effect::Send(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::driver::SessionStart;

    fn feed_line(claude: &mut Claude, line: &Value) -> DriverOutput {
        claude.on_line(line.to_string().as_bytes())
    }

    #[test]
    fn form_is_opened_once_and_answered_once() {
        let mut claude = Claude::new(SessionStart::default());
        let schema =
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let request_state = json!({"type": "control_request", "request_id": "q1", "request": {
            "subtype": "elicitation", "mcp_server_name": "harbor", "message": "How many?",
            "mode": "form", "requested_schema": schema}});
        let output = feed_line(&mut claude, &request_state);
        assert!(
            matches!(output.effects[..], [Effect::RequestOpened { question: true, .. }])
                && output.log
        );
        assert_eq!(
            feed_line(&mut claude, &request_state),
            DriverOutput::default(),
            "repeated while open"
        );
        let answers = |n: Value| PermissionReply::Answers(Map::from_iter([("n".to_owned(), n)]));
        let unfit = claude.answer("q1", &answers(json!("many")));
        assert_eq!(unfit, Err(ReplyError::Unfit("`n`: it is a whole number".to_owned())));
        assert_eq!(
            claude.answer("q1", &PermissionReply::Option("allow".to_owned())),
            Err(ReplyError::NoSuchOption)
        );
        let effects = claude.answer("q1", &answers(json!("3"))).expect("taken");
        let [Effect::Send(line), Effect::RequestClosed(_)] = &effects[..] else {
            panic!("an answer")
        };
        let line: Value = serde_json::from_str(line).expect("JSON");
        let response = json!({"action": "accept", "content": {"n": 3}});
        assert_eq!(line["response"]["response"], response);
        assert_eq!(claude.answer("q1", &PermissionReply::Declined), Err(ReplyError::Unknown));
    }

    #[test]
    fn url_request_completes_and_form_is_cancelled() {
        let mut claude = Claude::new(SessionStart::default());
        let request_state = |id: &str, mode: &str| {
            json!({"type": "control_request", "request_id": id, "request": {
                "subtype": "elicitation", "mcp_server_name": "harbor", "message": "Log in",
                "mode": mode, "url": "https://example.com", "elicitation_id": "e1"}})
        };
        feed_line(&mut claude, &request_state("q1", "url"));
        let done =
            json!({"type": "system", "subtype": "elicitation_complete", "elicitation_id": "e1"});
        let effects = feed_line(&mut claude, &done).effects;
        let [Effect::Send(line), Effect::RequestClosed(_)] = &effects[..] else {
            panic!("an answer")
        };
        assert!(line.contains(r#""action":"accept""#), "{line}");
        feed_line(&mut claude, &request_state("q2", "url"));
        let back = json!({"type": "control_cancel_request", "request_id": "q2"});
        assert_eq!(feed_line(&mut claude, &back).effects, [Effect::RequestClosed("q2".to_owned())]);
        let strange = feed_line(&mut claude, &request_state("q3", "_dance")).effects;
        assert!(matches!(&strange[..], [Effect::Send(line)] if line.contains("error")));
    }
}
