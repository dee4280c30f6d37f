//! Forms that an agent wants to be filled in, and addresses that it wants to be visited.

use super::{Acp, MAX_REQUESTS, refuse};
use crate::run::driver::{Effect, Refused, Reply};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

/// Fields of one form.
const MAX_FIELDS: usize = 64;
/// Invalid params, in JSON-RPC.
const INVALID: i32 = -32602;

/// A form that waits.
#[derive(Debug)]
pub(super) struct Form {
    id: Value,
    /// The agent's name for an address that is to be visited.
    visit: Option<String>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    /// The words by which it may be called, too.
    words: Vec<String>,
    required: bool,
    schema: Value,
}

impl Acp {
    /// The agent asks for something that somebody knows.
    pub(super) fn form_asked(&mut self, id: Value, params: &Value) -> Vec<Effect> {
        if self.forms.len() >= MAX_REQUESTS {
            return vec![refuse(&id, -32000, "too many requests wait for an answer")];
        }
        let mode = params["mode"].as_str().unwrap_or("form");
        let (visit, fields) = match mode {
            "form" => (None, fields(&params["requestedSchema"])),
            "url" if params["url"].is_string() => {
                let name = params["elicitationId"].as_str().unwrap_or_default();
                (Some(name.to_owned()), Vec::new())
            }
            _ => return vec![refuse(&id, INVALID, "narrows does not know this kind of question")],
        };
        if fields.len() > MAX_FIELDS {
            return vec![refuse(&id, INVALID, "the form has too many fields")];
        }
        let request = self.name(&id);
        let call = format!("elicitation-{request}");
        self.forms.insert(request.clone(), Form { id, visit, fields });
        vec![Effect::Asked { request, call, question: true }]
    }

    /// What had to be done at an address is done: nobody needs to say so any more.
    pub(super) fn form_is_done(&mut self, params: Option<&RawValue>) -> Vec<Effect> {
        let params = params.and_then(|p| serde_json::from_str::<Value>(p.get()).ok());
        let Some(done) = params.as_ref().and_then(|p| p["elicitationId"].as_str()) else {
            return Vec::new();
        };
        let is = |form: &Form| form.visit.as_deref() == Some(done);
        let found = self.forms.iter().find(|(_, form)| is(form)).map(|(name, _)| name.clone());
        let accept = Reply::Answers(Map::new());
        found.and_then(|name| self.fill_in(&name, &accept).ok()).unwrap_or_default()
    }

    /// Gives the agent what was answered.
    pub(super) fn fill_in(&mut self, request: &str, reply: &Reply) -> Result<Vec<Effect>, Refused> {
        let form = self.forms.get(request).ok_or(Refused::Unknown)?;
        let result = match reply {
            Reply::Answers(_) if form.visit.is_some() => json!({"action": "accept"}),
            Reply::Answers(answers) => {
                let content = form.content(answers).map_err(Refused::Unfit)?;
                json!({"action": "accept", "content": content})
            }
            Reply::Declined => json!({"action": "decline"}),
            Reply::Cancelled => json!({"action": "cancel"}),
            Reply::Option(_) | Reply::Because { .. } => return Err(Refused::NoSuchOption),
        };
        let answer = json!({"jsonrpc": "2.0", "id": form.id, "result": result});
        self.forms.remove(request);
        Ok(vec![Effect::Send(answer.to_string()), Effect::Withdrawn(request.to_owned())])
    }
}

fn fields(schema: &Value) -> Vec<Field> {
    let required = |name: &str| {
        schema["required"].as_array().into_iter().flatten().any(|r| r.as_str() == Some(name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, schema): (&String, &Value)| {
        let words = ["title", "description"].into_iter().filter_map(|w| schema[w].as_str());
        Field {
            name: name.clone(),
            words: words.map(str::to_owned).collect(),
            required: required(name),
            schema: schema.clone(),
        }
    };
    properties.take(MAX_FIELDS + 1).map(field).collect()
}

impl Form {
    /// The answers as the form wants them; or what is wrong with them.
    fn content(&self, answers: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let only = self.fields.len() == 1 && answers.len() == 1;
        let mut content = Map::new();
        let mut used = 0;
        for field in &self.fields {
            let given = answers.get(&field.name);
            let given = given.or_else(|| field.words.iter().find_map(|words| answers.get(words)));
            let given = given.or_else(|| answers.values().next().filter(|_| only));
            used += usize::from(given.is_some());
            let given = given.filter(|given| !is_nothing(given));
            match given {
                Some(given) => {
                    let value = field.value(given).map_err(|e| format!("`{}`: {e}", field.name))?;
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

/// Whether a field is left as it is.
fn is_nothing(given: &Value) -> bool {
    given.is_null() || given.as_str().is_some_and(|text| text.trim().is_empty())
}

impl Field {
    /// An answer as the field wants it. People type text, programs give values.
    fn value(&self, given: &Value) -> Result<Value, String> {
        let text = match given {
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
            "integer" => {
                let number = text.parse::<i64>().map_err(|_| "it is a whole number".to_owned())?;
                #[allow(clippy::cast_precision_loss, reason = "limits are near")]
                self.within(number as f64)?;
                Ok(number.into())
            }
            "number" => {
                let number = text.parse::<f64>().ok().and_then(Number::from_f64);
                let number = number.ok_or("it is a number")?;
                self.within(number.as_f64().unwrap_or_default())?;
                Ok(Value::Number(number))
            }
            "array" => self.several(given, &text),
            "string" if !given.is_object() && !given.is_array() => {
                let offered = offered(&self.schema);
                if offered.is_empty() {
                    return self.text(given.as_str().unwrap_or(&text)).map(Value::String);
                }
                one_of(&offered, &text).map(Value::String)
            }
            "string" => Err("it is a text".to_owned()),
            other => Err(format!("narrows cannot fill in a field of the type `{other}`")),
        }
    }

    fn within(&self, number: f64) -> Result<(), String> {
        let (least, most) = (&self.schema["minimum"], &self.schema["maximum"]);
        if least.as_f64().is_some_and(|least| number < least) {
            return Err(format!("it is at least {least}"));
        }
        if most.as_f64().is_some_and(|most| number > most) {
            return Err(format!("it is at most {most}"));
        }
        Ok(())
    }

    fn text(&self, text: &str) -> Result<String, String> {
        let length = text.chars().count() as u64;
        let (least, most) = (&self.schema["minLength"], &self.schema["maxLength"]);
        if least.as_u64().is_some_and(|least| length < least) {
            return Err(format!("it has at least {least} characters"));
        }
        if most.as_u64().is_some_and(|most| length > most) {
            return Err(format!("it has at most {most} characters"));
        }
        Ok(text.to_owned())
    }

    /// Several of those on offer: a list, or words with commas between them.
    fn several(&self, given: &Value, text: &str) -> Result<Value, String> {
        let offered = offered(&self.schema["items"]);
        let words: Vec<String> = match given {
            Value::Array(list) => {
                let words = list.iter().map(|one| one.as_str().map(str::to_owned));
                words.collect::<Option<_>>().ok_or("it is a list of texts")?
            }
            // A label may have a comma in it.
            _ if one_of(&offered, text).is_ok() => vec![text.to_owned()],
            _ => text.split(',').map(|word| word.trim().to_owned()).collect(),
        };
        let count = words.len() as u64;
        let values = words
            .iter()
            .map(|word| if offered.is_empty() { Ok(word.clone()) } else { one_of(&offered, word) });
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

/// What is on offer: values and their words.
fn offered(schema: &Value) -> Vec<(String, String)> {
    let list = ["enum", "oneOf", "anyOf"].into_iter().find_map(|name| schema[name].as_array());
    let one = |one: &Value| {
        let value = one.as_str().or_else(|| one["const"].as_str())?;
        Some((value.to_owned(), one["title"].as_str().unwrap_or(value).to_owned()))
    };
    list.into_iter().flatten().take(MAX_FIELDS).filter_map(one).collect()
}

fn one_of(offered: &[(String, String)], word: &str) -> Result<String, String> {
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
        let form = Form { id: json!(1), visit: None, fields: fields(schema) };
        form.content(answers.as_object().expect("answers")).map(Value::Object)
    }

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

    #[test]
    fn answers_become_what_the_form_wants() {
        let schema = json!({"type": "object", "required": ["age", "name"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 5},
            "age": {"type": "integer", "minimum": 1, "maximum": 150},
            "share": {"type": "number", "maximum": 1},
            "sure": {"type": "boolean"},
            "tier": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large, fast"}]},
            "color": {"type": "string", "enum": ["red", "green"]},
            "tags": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta, gamma"}]}},
            "free": {"type": "array", "items": {"type": "string"}},
        }});
        // As people type, by words and names.
        let typed = json!({"Your name": "Ada", "age": " 36 ", "share": "0.5", "sure": "Yes", "tier": "Large, fast",
            "color": "red", "tags": "Beta, gamma", "free": "x, y"});
        let expected = json!({"name": "Ada", "age": 36, "share": 0.5, "sure": true, "tier": "l",
            "color": "red", "tags": ["b"], "free": ["x", "y"]});
        assert_eq!(fill(&schema, &typed), Ok(expected.clone()));
        // As programs say it.
        assert_eq!(fill(&schema, &expected), Ok(expected));
        // What may be left out is left out.
        let few = json!({"name": "Ada", "age": 36, "sure": null, "tier": ""});
        assert_eq!(fill(&schema, &few), Ok(json!({"name": "Ada", "age": 36})));
        for (wrong, said) in [
            (json!({"name": "Ada"}), "`age` is missing"),
            (json!({"name": "Ada", "age": "x"}), "`age`: it is a whole number"),
            (json!({"name": "Ada", "age": 0}), "`age`: it is at least 1"),
            (json!({"name": "Ada", "age": 151}), "`age`: it is at most 150"),
            (json!({"name": "A", "age": 1}), "`name`: it has at least 2 characters"),
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
            assert_eq!(fill(&schema, &wrong), Err(said.to_owned()));
        }
        let strange = fill(&schema, &json!({"name": "Ada", "age": 1, "nonsense": 1}));
        assert!(strange.is_err_and(|e| e.starts_with("the form has these fields: ")));
        // The only field needs no name.
        let one = json!({"properties": {"name": {"type": "string"}}});
        assert_eq!(fill(&one, &json!({"What is your name?": "Ada"})), Ok(json!({"name": "Ada"})));
        assert_eq!(fill(&json!({}), &json!({})), Ok(json!({})));
    }
}
