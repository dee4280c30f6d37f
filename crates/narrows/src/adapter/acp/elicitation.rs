//! Forms that an agent asks the user to fill in: questions like any other.

use super::Acp;
use crate::adapter::Yield;
use crate::event::{Body, GivenAnswer, Question, QuestionAnswer, QuestionOption, QuestionPart};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;

/// Fields of a form that are read.
const MAX_FIELDS: usize = 64;

/// A form that waits to be filled in: the question that it is, and its fields.
#[derive(Debug, Default)]
pub(in crate::adapter) struct Form {
    call: String,
    message: String,
    fields: Vec<Field>,
}

/// A field of a form: its name, the words by which it is asked, and what stands for its values.
#[derive(Debug)]
struct Field {
    name: String,
    words: String,
    labels: Vec<(String, String)>,
}

pub(super) fn is_elicitation(method: &str) -> bool {
    matches!(method, "elicitation/create" | "session/elicitation" | "session/elicit")
}

impl Acp {
    /// The agent asks for something that the user knows.
    pub(super) fn elicit(&mut self, id: &str, params: Option<Json<'_>>, out: &mut Yield) {
        let (form, question) = Form::read(id, params);
        out.push(Body::QuestionRequest(Box::new(question)));
        let (place, new) = self.forms.open(id);
        *place = form;
        self.waiting += u32::from(new);
    }

    /// The user filled in a form, or did not want to; false when there is no such form.
    pub(super) fn elicited(&mut self, id: &str, result: Option<Json<'_>>, out: &mut Yield) -> bool {
        let Some(form) = self.forms.take(id) else { return false };
        self.waiting = self.waiting.saturating_sub(1);
        out.push(form.answered(result));
        true
    }
}

impl Form {
    /// Reads a request with this id: the form, and the question that it is.
    pub(in crate::adapter) fn read(id: &str, params: Option<Json<'_>>) -> (Form, Question<Raw>) {
        let get = |names: &[&str]| params.and_then(|p| p.any(names));
        let message = get(&["message", "title"]).and_then(Json::owned).unwrap_or_default();
        // A call may ask several times: each form is a question of its own.
        let call = format!("elicitation-{id}");
        let url = get(&["url"]).and_then(Json::owned);
        let schema = get(&["requestedSchema", "requested_schema", "schema"]);
        let properties =
            schema.and_then(|s| s.get("properties")).filter(|p| p.kind() == Kind::Object);
        let required: Vec<_> = schema
            .and_then(|s| s.get("required"))
            .into_iter()
            .flat_map(Json::items)
            .take(MAX_FIELDS)
            .filter_map(Json::owned)
            .collect();
        let only = properties.map_or(0, |p| p.fields().count()) == 1;
        let mut form = Form { call, message, fields: Vec::new() };
        let mut questions = Vec::new();
        for (key, field) in properties.into_iter().flat_map(Json::fields).take(MAX_FIELDS) {
            let name = crate::json::decode(key);
            let text = |names: &[&str]| field.any(names).and_then(Json::owned);
            let words = match (text(&["title"]), text(&["description"])) {
                (Some(title), Some(about)) if title != about => format!("{title}: {about}"),
                (title, about) => title.or(about).unwrap_or_else(|| name.clone()),
            };
            let words = if only && !form.message.is_empty() { form.message.clone() } else { words };
            // What is asked for stands before the first of several fields.
            let before = !only && questions.is_empty() && !form.message.is_empty();
            let words = if before { format!("{}\n{words}", form.message) } else { words };
            let labels = labels(field);
            let label = |(value, label): &(String, String)| QuestionOption {
                label: Raw::new(label.as_str()),
                description: described(field, value).map(Raw::new),
            };
            questions.push(QuestionPart {
                question: Raw::new(words.as_str()),
                // Of several fields each has its words.
                header: text(&["title"]).filter(|_| only).map(Raw::new),
                options: labels.iter().map(label).collect(),
                multi_select: field.text("type").as_deref() == Some("array"),
                name: Some(Raw::new(name.as_str())),
                format: format(field).map(Raw::new),
                default: field.get("default").map(|d| shown(d, &labels)).map(Raw::new),
                optional: !required.contains(&name),
            });
            form.fields.push(Field { name, words, labels });
        }
        if questions.is_empty() {
            let format = url.as_ref().map(|_| Raw::new("url"));
            let words = match url {
                Some(url) => format!("{} {url}", form.message).trim().to_owned(),
                None => form.message.clone(),
            };
            let question = Raw::new(words.as_str());
            // There is nothing to type: that it is done, or seen, is the answer.
            questions.push(QuestionPart {
                question,
                format,
                optional: true,
                ..QuestionPart::default()
            });
            form.message = words;
        }
        let (request_id, tool_call_id) = (Some(Raw::new(id)), Raw::new(form.call.as_str()));
        (form, Question { request_id, tool_call_id, questions })
    }

    /// What was answered: the fields that were filled in, or the word that was said instead.
    pub(in crate::adapter) fn answered(self, result: Option<Json<'_>>) -> Body<Raw> {
        let form = self;
        let action = result.and_then(|r| {
            let action = r.get("action")?;
            action.owned().or_else(|| action.get("action").and_then(Json::owned))
        });
        let content =
            result.and_then(|r| r.get("content").or_else(|| r.path(&["action", "content"])));
        let given = |field: &Field| {
            let answer = shown(content?.get(&field.name)?, &field.labels);
            let question = Raw::new(field.words.as_str());
            Some(GivenAnswer { question, answer: Raw::new(answer) })
        };
        let mut answers: Vec<_> = form.fields.iter().filter_map(given).collect();
        if answers.is_empty() {
            let word = action.unwrap_or_else(|| "cancel".to_owned());
            answers.push(GivenAnswer { question: Raw::new(form.message), answer: Raw::new(word) });
        }
        let tool_call_id = Raw::new(form.call);
        Body::QuestionAnswer(Box::new(QuestionAnswer { tool_call_id, answers }))
    }
}

/// The values that a field offers, each with its words.
fn labels(field: Json<'_>) -> Vec<(String, String)> {
    if field.text("type").as_deref() == Some("boolean") {
        return [("true", "Yes"), ("false", "No")].map(|(v, l)| (v.into(), l.into())).to_vec();
    }
    // Earlier forms have the words in a list of their own.
    let names: Vec<_> = field
        .get("enumNames")
        .into_iter()
        .flat_map(Json::items)
        .take(MAX_FIELDS)
        .map(Json::owned)
        .collect();
    let label = |(at, one): (usize, Json<'_>)| {
        if let Some(plain) = one.scalar() {
            let name = names.get(at).cloned().flatten();
            return Some((plain.to_string(), name.unwrap_or_else(|| plain.into_owned())));
        }
        let value = one.any(&["const", "title"]).and_then(Json::scalar)?.into_owned();
        let label = one.any(&["title", "const"]).and_then(Json::scalar)?.into_owned();
        Some((value, label))
    };
    offered(field).take(MAX_FIELDS).enumerate().filter_map(label).collect()
}

fn offered(field: Json<'_>) -> impl Iterator<Item = Json<'_>> {
    const LISTS: [&str; 3] = ["enum", "oneOf", "anyOf"];
    let own = field.any(&LISTS).or_else(|| field.get("items").and_then(|items| items.any(&LISTS)));
    own.into_iter().flat_map(Json::items)
}

/// What a value that is on offer means.
fn described(field: Json<'_>, value: &str) -> Option<String> {
    let is = |one: &Json<'_>| one.text("const").as_deref() == Some(value);
    offered(field).take(MAX_FIELDS).find(is)?.get("description").and_then(Json::owned)
}

/// What an answer has to be, where not any text is one.
fn format(field: Json<'_>) -> Option<String> {
    match field.text("type").as_deref() {
        Some(kind @ ("number" | "integer")) => Some(kind.to_owned()),
        Some("string") | None => field.get("format").and_then(Json::owned).map(|format| {
            // An address that is typed is not one to visit.
            if format == "url" { "uri".to_owned() } else { format }
        }),
        Some(_) => None,
    }
}

/// A value as it is shown: by its words where there are some.
fn shown(value: Json<'_>, labels: &[(String, String)]) -> String {
    let word = |value: &str| {
        let known = labels.iter().find(|(known, _)| known == value);
        known.map_or(value, |(_, label)| label.as_str()).to_owned()
    };
    if let Some(value) = value.scalar() {
        return word(&value);
    }
    let list = value.items().filter_map(Json::scalar);
    list.map(|value| word(&value)).collect::<Vec<_>>().join(", ")
}
