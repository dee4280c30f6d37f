//! Elicitation requests and their answers.

use super::AcpParser;
use crate::adapter::elicitation_form::ElicitationForm;
use crate::adapter::output::AdapterOutput;
use crate::json::Json;
use crate::model::event::Body;

/// Whether a method is an elicitation, under its current or an earlier name.
pub(super) fn is_elicitation(method: &str) -> bool {
    matches!(method, "elicitation/create" | "session/elicitation" | "session/elicit")
}

impl AcpParser {
    /// The agent asks the user to fill in a form.
    pub(super) fn elicitation_request(
        &mut self,
        id: &str,
        params: Option<Json<'_>>,
        out: &mut AdapterOutput,
    ) {
        let (form, question) = ElicitationForm::parse(id, params);
        out.push(Body::QuestionRequest(Box::new(question)));
        let (entry, is_new) = self.forms.get_or_insert(id);
        *entry = form;
        self.open_requests += u32::from(is_new);
    }

    /// Closes a form with the user's answer, if any; returns false when there is no such form.
    pub(super) fn close_form(
        &mut self,
        id: &str,
        result: Option<Json<'_>>,
        out: &mut AdapterOutput,
    ) -> bool {
        let Some(form) = self.forms.remove(id) else { return false };
        self.open_requests = self.open_requests.saturating_sub(1);
        out.push(form.answer(result));
        true
    }
}
