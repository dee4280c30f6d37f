//! Elicitation: forms that an agent wants filled in, and URLs that it wants visited.

use super::permissions::{INVALID_PARAMS, TOO_MANY_CODE, TOO_MANY_MESSAGE};
use super::{Acp, refuse};
use crate::run::driver::form::Form;
use crate::run::driver::{Effect, PermissionReply, ReplyError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// An open form and the id of its request.
#[derive(Debug)]
pub(super) struct PendingForm {
    id: Value,
    form: Form,
}

impl Acp {
    /// Handles an `elicitation/create` request.
    pub(super) fn on_form_request(&mut self, id: Value, params: &Value) -> Vec<Effect> {
        if self.is_full() {
            return vec![
                refuse(&id, TOO_MANY_CODE, TOO_MANY_MESSAGE),
                Effect::RequestRefused(String::new()),
            ];
        }
        let param = |name: &str| &params[name];
        let form = Form::read(param("mode"), param("requestedSchema"), param("url"));
        let form = match form {
            Ok(form) => form.with_id(param("elicitationId")),
            Err(what) => return vec![refuse(&id, INVALID_PARAMS, what)],
        };
        let request = self.assign_name(&id);
        let call = format!("elicitation-{request}");
        self.forms.insert(request.clone(), PendingForm { id, form });
        vec![Effect::RequestOpened { request, call, question: true }]
    }

    /// Returns whether a form with this request id is open.
    pub(super) fn is_form(&self, id: &Value) -> bool {
        self.forms.values().any(|waiting| waiting.id == *id)
    }

    /// Closes the request of a URL whose visit is complete.
    pub(super) fn on_form_completed(&mut self, params: Option<&RawValue>) -> Vec<Effect> {
        let params = params.and_then(|p| serde_json::from_str::<Value>(p.get()).ok());
        let Some(done) = params.as_ref().and_then(|p| p["elicitationId"].as_str()) else {
            return Vec::new();
        };
        let found = self.forms.iter().find(|(_, waiting)| waiting.form.is_url_request(done));
        let found = found.map(|(name, _)| name.clone());
        let accept = PermissionReply::Answers(Map::new());
        found.and_then(|name| self.answer_form(&name, &accept).ok()).unwrap_or_default()
    }

    /// Answers an open form.
    pub(super) fn answer_form(
        &mut self,
        request: &str,
        reply: &PermissionReply,
    ) -> Result<Vec<Effect>, ReplyError> {
        let PendingForm { id, form } = self.forms.get(request).ok_or(ReplyError::Unknown)?;
        let result = form.result(reply)?;
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.forms.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::RequestClosed(request.to_owned())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_request_is_answered_once() {
        let mut acp = Acp::new(crate::run::driver::SessionStart::default());
        let feed_line =
            |acp: &mut Acp, line: Value| acp.on_line(line.to_string().as_bytes()).effects;
        let wait =
            json!({"id": 5, "method": "terminal/wait_for_exit", "params": {"terminalId": "t"}});
        assert!(matches!(feed_line(&mut acp, wait)[..], [Effect::ClientRequest { .. }]));
        let cancel = json!({"method": "$/cancel_request", "params": {"requestId": 5}});
        let [Effect::Send(line)] = &feed_line(&mut acp, cancel.clone())[..] else {
            panic!("an answer")
        };
        assert!(line.contains("-32800") && line.contains(r#""id":5"#), "{line}");
        assert_eq!(feed_line(&mut acp, cancel), [], "once");
        assert_eq!(acp.on_client_result(&json!(5), Ok(json!({}))), [], "it was answered");
        // A completed visit closes the request without an answer of the client.
        let visit = json!({"id": "v", "method": "elicitation/create", "params":
            {"mode": "url", "url": "https://example.com", "elicitationId": "e", "message": "Go"}});
        assert!(matches!(
            feed_line(&mut acp, visit)[..],
            [Effect::RequestOpened { question: true, .. }]
        ));
        let done = json!({"method": "elicitation/complete", "params": {"elicitationId": "e"}});
        let effects = feed_line(&mut acp, done);
        let [Effect::Send(line), Effect::RequestClosed(_)] = &effects[..] else {
            panic!("an answer")
        };
        assert!(line.contains(r#""action":"accept""#), "{line}");
    }
}
