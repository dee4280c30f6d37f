//! Forms that an agent wants to be filled in, and addresses that it wants to be visited.

use super::leave::{FULL, INVALID, TOO_MANY};
use super::{Acp, refuse};
use crate::run::driver::{Effect, Refused, Reply};
use crate::run::form::Form;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A form that waits: the request, and what is asked.
#[derive(Debug)]
pub(super) struct Waiting {
    id: Value,
    form: Form,
}

impl Acp {
    /// The agent asks for something that somebody knows.
    pub(super) fn form_asked(&mut self, id: Value, params: &Value) -> Vec<Effect> {
        if self.is_full() {
            return vec![refuse(&id, TOO_MANY, FULL), Effect::Full(String::new())];
        }
        let asked = |name: &str| &params[name];
        let form = Form::read(asked("mode"), asked("requestedSchema"), asked("url"));
        let form = match form {
            Ok(form) => form.named(asked("elicitationId")),
            Err(what) => return vec![refuse(&id, INVALID, what)],
        };
        let request = self.new_name(&id);
        let call = format!("elicitation-{request}");
        self.forms.insert(request.clone(), Waiting { id, form });
        vec![Effect::Asked { request, call, question: true }]
    }

    /// Whether a form of this id waits.
    pub(super) fn is_form(&self, id: &Value) -> bool {
        self.forms.values().any(|waiting| waiting.id == *id)
    }

    /// What had to be done at an address is done: nobody needs to say so any more.
    pub(super) fn form_is_done(&mut self, params: Option<&RawValue>) -> Vec<Effect> {
        let params = params.and_then(|p| serde_json::from_str::<Value>(p.get()).ok());
        let Some(done) = params.as_ref().and_then(|p| p["elicitationId"].as_str()) else {
            return Vec::new();
        };
        let found = self.forms.iter().find(|(_, waiting)| waiting.form.is_visit_of(done));
        let found = found.map(|(name, _)| name.clone());
        let accept = Reply::Answers(Map::new());
        found.and_then(|name| self.fill_in(&name, &accept).ok()).unwrap_or_default()
    }

    /// Gives the agent what was answered.
    pub(super) fn fill_in(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        let Waiting { id, form } = self.forms.get(request).ok_or(Refused::Unknown)?;
        let result = form.result(reply)?;
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.forms.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(request.to_owned())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_takes_back_is_answered_once() {
        let mut acp = Acp::new(crate::run::driver::Opening::default());
        let hear = |acp: &mut Acp, line: Value| acp.hear(line.to_string().as_bytes()).effects;
        let wait =
            json!({"id": 5, "method": "terminal/wait_for_exit", "params": {"terminalId": "t"}});
        assert!(matches!(hear(&mut acp, wait)[..], [Effect::Wants { .. }]));
        let cancel = json!({"method": "$/cancel_request", "params": {"requestId": 5}});
        let [Effect::Send(line)] = &hear(&mut acp, cancel.clone())[..] else { panic!("an answer") };
        assert!(line.contains("-32800") && line.contains(r#""id":5"#), "{line}");
        assert_eq!(hear(&mut acp, cancel), [], "once");
        assert_eq!(acp.give(&json!(5), Ok(json!({}))), [], "it was answered");
        // What is done at an address is done, whoever was asked.
        let visit = json!({"id": "v", "method": "elicitation/create", "params":
            {"mode": "url", "url": "https://example.com", "elicitationId": "e", "message": "Go"}});
        assert!(matches!(hear(&mut acp, visit)[..], [Effect::Asked { question: true, .. }]));
        let done = json!({"method": "elicitation/complete", "params": {"elicitationId": "e"}});
        let effects = hear(&mut acp, done);
        let [Effect::Send(line), Effect::Withdrawn(_)] = &effects[..] else { panic!("an answer") };
        assert!(line.contains(r#""action":"accept""#), "{line}");
    }
}
