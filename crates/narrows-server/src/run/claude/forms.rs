//! Forms of the servers that Claude Code works with (MCP elicitation).

use super::Claude;
use super::ask::FULL;
use crate::run::driver::{Effect, Heard, Refused, Reply};
use crate::run::form::Form;
use serde_json::{Map, Value, json};

impl Claude {
    /// A server asks for something that somebody knows.
    pub(super) fn form_asked(&mut self, id: &str, request: &Value, heard: &mut Heard) {
        let form = Form::read(&request["mode"], &request["requested_schema"], &request["url"]);
        let form = match form {
            Ok(form) if !self.is_full() => form,
            Ok(_) => {
                return heard.effects.extend([refused(id, FULL), Effect::Full(String::new())]);
            }
            Err(what) => return heard.effects.push(refused(id, what)),
        };
        self.forms.insert(id.to_owned(), form.named(&request["elicitation_id"]));
        let (request, call) = (id.to_owned(), format!("elicitation-{id}"));
        heard.effects.push(Effect::Asked { request, call, question: true });
    }

    /// What had to be done at an address is done: nobody needs to say so any more.
    pub(super) fn form_is_done(&mut self, line: &[u8], heard: &mut Heard) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let Some(done) = record["elicitation_id"].as_str() else { return };
        let found = self.forms.iter().find(|(_, form)| form.is_visit_of(done));
        if let Some(id) = found.map(|(id, _)| id.clone()) {
            let accept = Reply::Answers(Map::new());
            heard.effects.extend(self.fill_in(&id, &accept).unwrap_or_default());
        }
    }

    /// Gives the agent what was answered.
    pub(super) fn fill_in(&mut self, id: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        let given = self.forms.get(id).ok_or(Refused::Unknown)?.result(reply)?;
        self.forms.remove(id);
        let answer = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": id, "response": given,
        }});
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(id.to_owned())])
    }
}

/// Tells the agent that something cannot be done.
pub(super) fn refused(id: &str, what: &str) -> Effect {
    let error = json!({"type": "control_response", "response": {
        "subtype": "error", "request_id": id, "error": what,
    }});
    Effect::Send(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::driver::Opening;

    fn hear(claude: &mut Claude, line: &Value) -> Heard {
        claude.hear(line.to_string().as_bytes())
    }

    #[test]
    fn a_form_is_asked_once_and_answered_once() {
        let mut claude = Claude::new(Opening::default());
        let schema =
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let ask = json!({"type": "control_request", "request_id": "q1", "request": {
            "subtype": "elicitation", "mcp_server_name": "harbor", "message": "How many?",
            "mode": "form", "requested_schema": schema}});
        let heard = hear(&mut claude, &ask);
        assert!(matches!(heard.effects[..], [Effect::Asked { question: true, .. }]) && heard.log);
        assert_eq!(hear(&mut claude, &ask), Heard::default(), "it is told again");
        let answers = |n: Value| Reply::Answers(Map::from_iter([("n".to_owned(), n)]));
        let unfit = claude.answer("q1", &answers(json!("many")));
        assert_eq!(unfit, Err(Refused::Unfit("`n`: it is a whole number".to_owned())));
        assert_eq!(
            claude.answer("q1", &Reply::Option("allow".to_owned())),
            Err(Refused::NoSuchOption)
        );
        let effects = claude.answer("q1", &answers(json!("3"))).expect("taken");
        let [Effect::Send(line), Effect::Withdrawn(_)] = &effects[..] else { panic!("an answer") };
        let line: Value = serde_json::from_str(line).expect("JSON");
        let given = json!({"action": "accept", "content": {"n": 3}});
        assert_eq!(line["response"]["response"], given);
        assert_eq!(claude.answer("q1", &Reply::Declined), Err(Refused::Unknown));
    }

    #[test]
    fn an_address_is_done_when_the_server_says_so_and_a_form_is_taken_back() {
        let mut claude = Claude::new(Opening::default());
        let ask = |id: &str, mode: &str| {
            json!({"type": "control_request", "request_id": id, "request": {
                "subtype": "elicitation", "mcp_server_name": "harbor", "message": "Log in",
                "mode": mode, "url": "https://example.com", "elicitation_id": "e1"}})
        };
        hear(&mut claude, &ask("q1", "url"));
        let done =
            json!({"type": "system", "subtype": "elicitation_complete", "elicitation_id": "e1"});
        let effects = hear(&mut claude, &done).effects;
        let [Effect::Send(line), Effect::Withdrawn(_)] = &effects[..] else { panic!("an answer") };
        assert!(line.contains(r#""action":"accept""#), "{line}");
        hear(&mut claude, &ask("q2", "url"));
        let back = json!({"type": "control_cancel_request", "request_id": "q2"});
        assert_eq!(hear(&mut claude, &back).effects, [Effect::Withdrawn("q2".to_owned())]);
        let strange = hear(&mut claude, &ask("q3", "_dance")).effects;
        assert!(matches!(&strange[..], [Effect::Send(line)] if line.contains("error")));
    }
}
