//! Forms that an agent asks the user to fill in: questions like any other.

use super::Acp;
use crate::adapter::Yield;
use crate::event::{Body, GivenAnswer, Question, QuestionAnswer, QuestionOption, QuestionPart};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;

/// Fields of a form that are read.
const MAX_FIELDS: usize = 64;

/// A form that waits to be filled in: the call it is of, and its fields by name with their words.
#[derive(Debug, Default)]
pub(super) struct Form {
    call: String,
    message: String,
    fields: Vec<(String, String)>,
}

pub(super) fn is_elicitation(method: &str) -> bool {
    matches!(method, "elicitation/create" | "session/elicitation" | "session/elicit")
}

impl Acp {
    /// The agent asks for something that the user knows.
    pub(super) fn elicit(&mut self, id: &str, params: Option<Json<'_>>, out: &mut Yield) {
        let get = |names: &[&str]| params.and_then(|p| p.any(names));
        let message = get(&["message", "title"]).and_then(Json::owned).unwrap_or_default();
        let call = get(&["toolCallId", "tool_call_id"]).and_then(Json::owned);
        let call = call.unwrap_or_else(|| format!("elicitation-{id}"));
        let url = get(&["url"]).and_then(Json::owned);
        let schema = get(&["requestedSchema", "requested_schema", "schema"]);
        let properties =
            schema.and_then(|s| s.get("properties")).filter(|p| p.kind() == Kind::Object);
        let mut form = Form { call, message, fields: Vec::new() };
        let mut questions = Vec::new();
        for (key, field) in properties.into_iter().flat_map(Json::fields).take(MAX_FIELDS) {
            let name = crate::json::decode(key);
            let text = |names: &[&str]| field.any(names).and_then(Json::owned);
            let words = text(&["title", "description"]).unwrap_or_else(|| name.clone());
            let words =
                match (form.message.is_empty(), properties.map_or(0, |p| p.fields().count())) {
                    (false, 1) => form.message.clone(),
                    _ => words,
                };
            questions.push(QuestionPart {
                question: Raw::new(words.as_str()),
                header: text(&["title"]).or_else(|| Some(name.clone())).map(Raw::new),
                options: choices(field),
                multi_select: field.text("type").as_deref() == Some("array"),
            });
            form.fields.push((name, words));
        }
        if questions.is_empty() {
            let words = match url {
                Some(url) => format!("{} {url}", form.message).trim().to_owned(),
                None => form.message.clone(),
            };
            questions.push(QuestionPart {
                question: Raw::new(words),
                header: None,
                options: Vec::new(),
                multi_select: false,
            });
        }
        let (request_id, tool_call_id) = (Some(Raw::new(id)), Raw::new(form.call.as_str()));
        out.push(Body::QuestionRequest(Box::new(Question { request_id, tool_call_id, questions })));
        let (place, new) = self.forms.open(id);
        *place = form;
        self.waiting += u32::from(new);
    }

    /// The user filled in a form, or did not want to; false when there is no such form.
    pub(super) fn elicited(&mut self, id: &str, result: Option<Json<'_>>, out: &mut Yield) -> bool {
        let Some(form) = self.forms.take(id) else { return false };
        self.waiting = self.waiting.saturating_sub(1);
        let action = result.and_then(|r| {
            let action = r.get("action")?;
            action.owned().or_else(|| action.get("action").and_then(Json::owned))
        });
        let content =
            result.and_then(|r| r.get("content").or_else(|| r.path(&["action", "content"])));
        let given = |(name, words): &(String, String)| {
            let value = content?.get(name)?;
            let list: Vec<_> = value.items().filter_map(Json::scalar).collect();
            let answer =
                value.scalar().map_or_else(|| list.join(", "), std::borrow::Cow::into_owned);
            Some(GivenAnswer { question: Raw::new(words.as_str()), answer: Raw::new(answer) })
        };
        let mut answers: Vec<_> = form.fields.iter().filter_map(given).collect();
        if answers.is_empty() {
            let word = action.unwrap_or_else(|| "cancel".to_owned());
            answers.push(GivenAnswer { question: Raw::new(form.message), answer: Raw::new(word) });
        }
        let tool_call_id = Raw::new(form.call);
        out.push(Body::QuestionAnswer(Box::new(QuestionAnswer { tool_call_id, answers })));
        true
    }
}

/// The answers that a field offers.
fn choices(field: Json<'_>) -> Vec<QuestionOption<Raw>> {
    let option = |label: String| QuestionOption { label: Raw::new(label), description: None };
    if field.text("type").as_deref() == Some("boolean") {
        return ["Yes", "No"].map(|word| option(word.to_owned())).to_vec();
    }
    let of = |json: Json<'_>| {
        let listed = json.any(&["enum", "oneOf", "anyOf"]).into_iter().flat_map(Json::items);
        let label = |one: Json<'_>| {
            let named = one.any(&["title", "const"]).and_then(Json::scalar);
            one.scalar().or(named).map(|l| option(l.into_owned()))
        };
        listed.take(MAX_FIELDS).filter_map(label).collect::<Vec<_>>()
    };
    let own = of(field);
    if own.is_empty() { field.get("items").map(of).unwrap_or_default() } else { own }
}
