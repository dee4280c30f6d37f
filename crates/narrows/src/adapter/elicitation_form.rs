//! Elicitation forms: an agent, or an MCP server behind it, asks the user for values. A form is a
//! question like any other. ACP and Claude Code send the same JSON schema.

use crate::json::{Json, Kind};
use crate::model::event::{
    Body, Question, QuestionAnswer, QuestionOption, QuestionPart, QuestionResponse,
};
use crate::sanitize::Raw;

/// The number of form fields that are read.
const MAX_FIELDS: usize = 64;

/// A form that awaits its answer.
#[derive(Debug, Default)]
pub(super) struct ElicitationForm {
    /// The tool call id of the question.
    call_id: String,
    message: String,
    fields: Vec<FormField>,
}

/// A field of a form.
#[derive(Debug)]
struct FormField {
    name: String,
    /// The text of its question.
    question: String,
    /// The values on offer with their labels.
    labels: Vec<(String, String)>,
}

impl ElicitationForm {
    /// Parses the request with this id into a form and its question.
    pub(super) fn parse(id: &str, params: Option<Json<'_>>) -> (Self, Question<Raw>) {
        let get = |names: &[&str]| params.and_then(|p| p.any(names));
        let message = get(&["message", "title"]).and_then(Json::owned).unwrap_or_default();
        // A tool call may elicit several times: each form is a question of its own.
        let call_id = format!("elicitation-{id}");
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
        let is_single = properties.map_or(0, |p| p.fields().count()) == 1;
        let mut form = ElicitationForm { call_id, message, fields: Vec::new() };
        let mut questions = Vec::new();
        for (key, field) in properties.into_iter().flat_map(Json::fields).take(MAX_FIELDS) {
            let name = crate::json::decode(key);
            let text = |names: &[&str]| field.any(names).and_then(Json::owned);
            let own_text = match (text(&["title"]), text(&["description"])) {
                (Some(title), Some(about)) if title != about => format!("{title}: {about}"),
                (title, about) => title.or(about).unwrap_or_else(|| name.clone()),
            };
            // The message is the question of a single field, and precedes the first of several.
            let question = if form.message.is_empty() {
                own_text
            } else if is_single {
                form.message.clone()
            } else if questions.is_empty() {
                format!("{}\n{own_text}", form.message)
            } else {
                own_text
            };
            let labels = value_labels(field);
            let label = |(value, label): &(String, String)| QuestionOption {
                label: Raw::new(label.as_str()),
                description: value_description(field, value).map(Raw::new),
            };
            questions.push(QuestionPart {
                question: Raw::new(question.as_str()),
                // With several fields the title is part of the question.
                header: text(&["title"]).filter(|_| is_single).map(Raw::new),
                options: labels.iter().map(label).collect(),
                multi_select: field.text("type").as_deref() == Some("array"),
                name: Some(Raw::new(name.as_str())),
                format: answer_format(field).map(Raw::new),
                default: field.get("default").map(|d| labeled(d, &labels)).map(Raw::new),
                optional: !required.contains(&name),
            });
            form.fields.push(FormField { name, question, labels });
        }
        if questions.is_empty() {
            let format = url.as_ref().map(|_| Raw::new("url"));
            let message = match url {
                Some(url) => format!("{} {url}", form.message).trim().to_owned(),
                None => form.message.clone(),
            };
            let question = Raw::new(message.as_str());
            // There is nothing to type: the answer is that the user is done or has seen it.
            questions.push(QuestionPart {
                question,
                format,
                optional: true,
                ..QuestionPart::default()
            });
            form.message = message;
        }
        let (request_id, tool_call_id) = (Some(Raw::new(id)), Raw::new(form.call_id.as_str()));
        (form, Question { request_id, tool_call_id, questions })
    }

    /// Builds the answer: the values of the fields, or the action without any.
    pub(super) fn answer(self, result: Option<Json<'_>>) -> Body<Raw> {
        let form = self;
        let action = result.and_then(|r| {
            let action = r.get("action")?;
            action.owned().or_else(|| action.get("action").and_then(Json::owned))
        });
        let content =
            result.and_then(|r| r.get("content").or_else(|| r.path(&["action", "content"])));
        let field_answer = |field: &FormField| {
            let answer = labeled(content?.get(&field.name)?, &field.labels);
            let question = Raw::new(field.question.as_str());
            Some(QuestionResponse { question, answer: Raw::new(answer) })
        };
        let mut answers: Vec<_> = form.fields.iter().filter_map(field_answer).collect();
        if answers.is_empty() {
            let action = Raw::new(action.unwrap_or_else(|| "cancel".to_owned()));
            answers.push(QuestionResponse { question: Raw::new(form.message), answer: action });
        }
        let tool_call_id = Raw::new(form.call_id);
        Body::QuestionAnswer(Box::new(QuestionAnswer { tool_call_id, answers }))
    }
}

/// The values that a field offers, with their labels.
fn value_labels(field: Json<'_>) -> Vec<(String, String)> {
    if field.text("type").as_deref() == Some("boolean") {
        return [("true", "Yes"), ("false", "No")].map(|(v, l)| (v.into(), l.into())).to_vec();
    }
    // Earlier forms list the labels separately.
    let names: Vec<_> = field
        .get("enumNames")
        .into_iter()
        .flat_map(Json::items)
        .take(MAX_FIELDS)
        .map(Json::owned)
        .collect();
    let label = |(at, choice): (usize, Json<'_>)| {
        if let Some(plain) = choice.scalar() {
            let name = names.get(at).cloned().flatten();
            return Some((plain.to_string(), name.unwrap_or_else(|| plain.into_owned())));
        }
        let value = choice.any(&["const", "title"]).and_then(Json::scalar)?.into_owned();
        let label = choice.any(&["title", "const"]).and_then(Json::scalar)?.into_owned();
        Some((value, label))
    };
    choices(field).take(MAX_FIELDS).enumerate().filter_map(label).collect()
}

fn choices(field: Json<'_>) -> impl Iterator<Item = Json<'_>> {
    const LISTS: [&str; 3] = ["enum", "oneOf", "anyOf"];
    let list = field.any(&LISTS).or_else(|| field.get("items").and_then(|items| items.any(&LISTS)));
    list.into_iter().flat_map(Json::items)
}

/// The description of a value on offer.
fn value_description(field: Json<'_>, value: &str) -> Option<String> {
    let is_value = |choice: &Json<'_>| choice.text("const").as_deref() == Some(value);
    choices(field).take(MAX_FIELDS).find(is_value)?.get("description").and_then(Json::owned)
}

/// The format that an answer must have; none when any text will do.
fn answer_format(field: Json<'_>) -> Option<String> {
    match field.text("type").as_deref() {
        Some(kind @ ("number" | "integer")) => Some(kind.to_owned()),
        Some("string") | None => field.get("format").and_then(Json::owned).map(|format| {
            // A typed URL is not a link to visit, which has the format `url`.
            if format == "url" { "uri".to_owned() } else { format }
        }),
        Some(_) => None,
    }
}

/// A value as text, by its label when it has one.
fn labeled(value: Json<'_>, labels: &[(String, String)]) -> String {
    let label = |value: &str| {
        let found = labels.iter().find(|(offered, _)| offered == value);
        found.map_or(value, |(_, label)| label.as_str()).to_owned()
    };
    if let Some(value) = value.scalar() {
        return label(&value);
    }
    let list = value.items().filter_map(Json::scalar);
    list.map(|value| label(&value)).collect::<Vec<_>>().join(", ")
}
