//! Forms: their fields, and the conversion and validation of answers.

mod checks;
mod pattern;

use super::{PermissionReply, ReplyError};
use serde_json::{Map, Number, Value, json};

/// Fields of one form.
const MAX_FIELDS: usize = 64;

/// A form: fields to fill in, or a URL to visit.
#[derive(Debug)]
pub(super) struct Form {
    /// The agent's id of the URL request.
    url_id: Option<String>,
    fields: Vec<FormField>,
}

#[derive(Debug)]
struct FormField {
    name: String,
    /// Labels that answers may use as keys, too.
    words: Vec<String>,
    required: bool,
    schema: Value,
}

impl Form {
    /// Reads a form from the agent's schema; the error says why it is unsupported.
    pub(super) fn read(mode: &Value, schema: &Value, url: &Value) -> Result<Form, &'static str> {
        let (url_id, fields) = match mode.as_str().unwrap_or("form") {
            "form" => (None, fields(schema)),
            "url" if url.is_string() => (Some(String::new()), Vec::new()),
            _ => return Err("unsupported elicitation mode"),
        };
        if fields.len() > MAX_FIELDS {
            return Err("the form has too many fields");
        }
        Ok(Form { url_id, fields })
    }

    /// Sets the agent's id of the URL request.
    pub(super) fn with_id(mut self, name: &Value) -> Form {
        let name = name.as_str().map(str::to_owned);
        self.url_id = self.url_id.map(|url_id| name.unwrap_or(url_id));
        self
    }

    /// Returns whether this is the URL request with the given id.
    pub(super) fn is_url_request(&self, name: &str) -> bool {
        self.url_id.as_deref() == Some(name)
    }

    /// The result for the agent, as defined by MCP.
    pub(super) fn result(&self, reply: &PermissionReply) -> Result<Value, ReplyError> {
        Ok(match reply {
            PermissionReply::Answers(_) if self.url_id.is_some() => json!({"action": "accept"}),
            PermissionReply::Answers(answers) => {
                let content = self.content(answers).map_err(ReplyError::Unfit)?;
                json!({"action": "accept", "content": content})
            }
            PermissionReply::Declined => json!({"action": "decline"}),
            PermissionReply::Cancelled => json!({"action": "cancel"}),
            PermissionReply::Option(_) | PermissionReply::Because { .. } => {
                return Err(ReplyError::NoSuchOption);
            }
        })
    }
}

fn fields(schema: &Value) -> Vec<FormField> {
    let required = |name: &str| {
        schema["required"].as_array().into_iter().flatten().any(|r| r.as_str() == Some(name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, schema): (&String, &Value)| {
        let words = ["title", "description"].into_iter().filter_map(|w| schema[w].as_str());
        FormField {
            name: name.clone(),
            words: words.map(str::to_owned).collect(),
            required: required(name),
            schema: schema.clone(),
        }
    };
    properties.take(MAX_FIELDS + 1).map(field).collect()
}

impl Form {
    /// Converts the answers for the agent; the error says what is wrong with them.
    fn content(&self, answers: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let only = self.fields.len() == 1 && answers.len() == 1;
        let mut content = Map::new();
        let mut used = 0;
        for field in &self.fields {
            let answer = answers.get(&field.name);
            let answer = answer.or_else(|| field.words.iter().find_map(|words| answers.get(words)));
            let answer = answer.or_else(|| answers.values().next().filter(|_| only));
            used += usize::from(answer.is_some());
            let answer = answer.filter(|answer| !is_empty_answer(answer));
            match answer {
                Some(answer) => {
                    let value =
                        field.value(answer).map_err(|e| format!("`{}`: {e}", field.name))?;
                    content.insert(field.name.clone(), value);
                }
                None if field.required => return Err(format!("`{}` is missing", field.name)),
                None => {}
            }
        }
        if used < answers.len() {
            let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
            return Err(format!("the form has these fields: {}", names.join(", ")));
        }
        Ok(content)
    }
}

/// Returns whether a field is left empty.
fn is_empty_answer(answer: &Value) -> bool {
    answer.is_null() || answer.as_str().is_some_and(|text| text.trim().is_empty())
}

impl FormField {
    /// Converts an answer to the field's type. People type text, programs send values.
    fn value(&self, answer: &Value) -> Result<Value, String> {
        let text = match answer {
            Value::String(text) => text.trim().to_owned(),
            Value::Array(_) | Value::Object(_) => String::new(),
            other => other.to_string(),
        };
        match self.schema["type"].as_str().unwrap_or("string") {
            "boolean" => match text.to_lowercase().as_str() {
                "true" | "yes" | "y" => Ok(true.into()),
                "false" | "no" | "n" => Ok(false.into()),
                _ => Err("it is yes or no".to_owned()),
            },
            "integer" => self.number(parse_integer(&text).ok_or("it is a whole number")?),
            "number" => {
                let number = text.parse::<f64>().ok().and_then(Number::from_f64);
                self.number(number.ok_or("it is a number")?)
            }
            "array" => self.list_value(answer, &text),
            "string" if !answer.is_object() && !answer.is_array() => {
                let offered = choices(&self.schema);
                if offered.is_empty() {
                    return self.text(answer.as_str().unwrap_or(&text)).map(Value::String);
                }
                pick(&offered, &text).map(Value::String)
            }
            "string" => Err("it is a text".to_owned()),
            other => Err(format!("unsupported field type `{other}`")),
        }
    }

    fn number(&self, number: Number) -> Result<Value, String> {
        checks::number(&self.schema, number.as_f64().unwrap_or_default())?;
        let same = |one: &Value| one.as_f64() == number.as_f64();
        match self.schema["enum"].as_array() {
            Some(offered) if !offered.iter().any(same) => {
                let offered: Vec<String> = offered.iter().map(Value::to_string).collect();
                Err(format!("it is one of: {}", offered.join(", ")))
            }
            _ => Ok(Value::Number(number)),
        }
    }

    fn text(&self, text: &str) -> Result<String, String> {
        checks::text(&self.schema, text)?;
        Ok(text.to_owned())
    }

    /// Several values: a list, or comma-separated text.
    fn list_value(&self, answer: &Value, text: &str) -> Result<Value, String> {
        let offered = choices(&self.schema["items"]);
        let words: Vec<String> = match answer {
            Value::Array(list) => {
                let words = list.iter().map(|one| one.as_str().map(str::to_owned));
                words.collect::<Option<_>>().ok_or("it is a list of texts")?
            }
            // A label may contain a comma.
            _ if pick(&offered, text).is_ok() => vec![text.to_owned()],
            _ => text.split(',').map(|word| word.trim().to_owned()).collect(),
        };
        let count = words.len() as u64;
        let values = words
            .iter()
            .map(|word| if offered.is_empty() { Ok(word.clone()) } else { pick(&offered, word) });
        let values = values.collect::<Result<Vec<String>, String>>()?;
        let (least, most) = (&self.schema["minItems"], &self.schema["maxItems"]);
        if least.as_u64().is_some_and(|least| count < least) {
            return Err(format!("at least {least} are chosen"));
        }
        if most.as_u64().is_some_and(|most| count > most) {
            return Err(format!("at most {most} are chosen"));
        }
        Ok(json!(values))
    }
}

/// Parses an integer, also with an empty fraction (`4.0`).
fn parse_integer(text: &str) -> Option<Number> {
    let plain = text.split_once('.').filter(|(_, part)| part.bytes().all(|b| b == b'0'));
    let plain = plain.map_or(text, |(plain, _)| plain);
    plain.parse::<i64>().map(Number::from).or_else(|_| plain.parse::<u64>().map(Number::from)).ok()
}

/// The choices of a field: values and labels.
fn choices(schema: &Value) -> Vec<(String, String)> {
    let list = ["enum", "oneOf", "anyOf"].into_iter().find_map(|name| schema[name].as_array());
    let one = |(at, one): (usize, &Value)| {
        let value = one.as_str().or_else(|| one["const"].as_str())?;
        // Earlier schemas have the labels in a separate list.
        let label = one["title"].as_str().or_else(|| schema["enumNames"][at].as_str());
        Some((value.to_owned(), label.unwrap_or(value).to_owned()))
    };
    list.into_iter().flatten().take(MAX_FIELDS).enumerate().filter_map(one).collect()
}

fn pick(offered: &[(String, String)], word: &str) -> Result<String, String> {
    let by_value = offered.iter().find(|(value, _)| value == word);
    let found = by_value.or_else(|| offered.iter().find(|(_, label)| label == word));
    found.map(|(value, _)| value.clone()).ok_or_else(|| {
        let labels: Vec<&str> = offered.iter().map(|(_, label)| label.as_str()).collect();
        format!("it is one of: {}", labels.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(schema: &Value, answers: &Value) -> Result<Value, String> {
        let form = Form { url_id: None, fields: fields(schema) };
        form.content(answers.as_object().expect("answers")).map(Value::Object)
    }

    #[test]
    fn answers_are_converted_to_field_types() {
        let schema = json!({"type": "object", "required": ["age", "name"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 5},
            "age": {"type": "integer", "minimum": 1, "maximum": 150},
            "share": {"type": "number", "maximum": 1},
            "sure": {"type": "boolean"},
            "tier": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large, fast"}]},
            "color": {"type": "string", "enum": ["red", "green"]},
            "tags": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta, gamma"}]}},
            "free": {"type": "array", "items": {"type": "string"}},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
            "mail": {"type": "string", "format": "email"},
            "step": {"type": "integer", "enum": [1, 2, 4]},
            "part": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "old": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]},
            "odd": {"type": "string", "pattern": "^(?!no).*$"},
        }});
        // As typed by people, by labels and names.
        let typed = json!({"Your name": "Ada", "age": " 36 ", "share": "0.5", "sure": "Yes", "tier": "Large, fast",
            "color": "red", "tags": "Beta, gamma", "free": "x, y", "code": "AB-7", "mail": "ada@example.com",
            "step": "4.0", "part": "0.5", "old": "Why", "odd": "no"});
        let expected = json!({"name": "Ada", "age": 36, "share": 0.5, "sure": true, "tier": "l",
            "color": "red", "tags": ["b"], "free": ["x", "y"], "code": "AB-7", "mail": "ada@example.com",
            "step": 4, "part": 0.5, "old": "y", "odd": "no"});
        assert_eq!(fill(&schema, &typed), Ok(expected.clone()));
        // As sent by programs.
        assert_eq!(fill(&schema, &expected), Ok(expected));
        // Optional fields may be left out.
        let few = json!({"name": "Ada", "age": 36, "sure": null, "tier": ""});
        assert_eq!(fill(&schema, &few), Ok(json!({"name": "Ada", "age": 36})));
        for (wrong, message) in [
            (json!({"name": "Ada"}), "`age` is missing"),
            (json!({"name": "Ada", "age": "x"}), "`age`: it is a whole number"),
            (json!({"name": "Ada", "age": 0}), "`age`: it is at least 1"),
            (json!({"name": "Ada", "age": 151}), "`age`: it is at most 150"),
            (json!({"name": "A", "age": 1}), "`name`: it has at least 2 characters"),
            (json!({"name": "Augusta", "age": 1}), "`name`: it has at most 5 characters"),
            (json!({"name": "Ada", "age": 1.5}), "`age`: it is a whole number"),
            (json!({"name": "Ada", "age": 1, "share": 2}), "`share`: it is at most 1"),
            (
                json!({"name": "Ada", "age": 1, "code": "ab-7"}),
                "`code`: it does not fit the pattern ^[A-Z]{2}-\\d+$",
            ),
            (
                json!({"name": "Ada", "age": 1, "mail": "ada"}),
                "`mail`: it is an address like ada@example.com",
            ),
            (json!({"name": "Ada", "age": 1, "step": 3}), "`step`: it is one of: 1, 2, 4"),
            (json!({"name": "Ada", "age": 1, "part": 1}), "`part`: it is less than 1"),
            (json!({"name": "Ada", "age": 1, "sure": "perhaps"}), "`sure`: it is yes or no"),
            (json!({"name": "Ada", "age": 1, "share": "NaN"}), "`share`: it is a number"),
            (
                json!({"name": "Ada", "age": 1, "tier": "xl"}),
                "`tier`: it is one of: Small, Large, fast",
            ),
            (
                json!({"name": "Ada", "age": 1, "tags": ["c"]}),
                "`tags`: it is one of: Alpha, Beta, gamma",
            ),
            (
                json!({"name": "Ada", "age": 1, "tags": ["a", "b", "a"]}),
                "`tags`: at most 2 are chosen",
            ),
            (json!({"name": ["x"], "age": 1}), "`name`: it is a text"),
        ] {
            assert_eq!(fill(&schema, &wrong), Err(message.to_owned()));
        }
        let strange = fill(&schema, &json!({"name": "Ada", "age": 1, "nonsense": 1}));
        assert!(strange.is_err_and(|e| e.starts_with("the form has these fields: ")));
        // A single field needs no name.
        let one = json!({"properties": {"name": {"type": "string"}}});
        assert_eq!(fill(&one, &json!({"What is your name?": "Ada"})), Ok(json!({"name": "Ada"})));
        assert_eq!(fill(&json!({}), &json!({})), Ok(json!({})));
    }
}
