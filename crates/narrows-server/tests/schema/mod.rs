//! Values against schemas of the OpenAPI document: strictly, and with a record of what was seen.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use serde_json::Value;
use std::collections::BTreeSet;

/// A field of a schema: there or not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub field: String,
    pub there: bool,
}

pub struct Document {
    root: Value,
    /// What was in the values that fitted.
    pub seen: BTreeSet<Seen>,
}

type Fits = Result<Vec<Seen>, String>;

impl Document {
    pub fn new(root: Value) -> Self {
        Document { root, seen: BTreeSet::new() }
    }

    pub fn schema(&self, name: &str) -> &Value {
        self.root.pointer(&format!("/components/schemas/{name}")).expect("a schema")
    }

    /// Whether a value is what a schema says, with nothing that the schema does not tell.
    pub fn takes(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let seen = self.fits(name, self.schema(name), value)?;
        self.seen.extend(seen);
        Ok(())
    }

    pub fn check(&mut self, name: &str, value: &Value) {
        self.takes(name, value).unwrap_or_else(|e| panic!("{name}: {e}\n{value:#}"));
    }

    /// The fields of a schema and of all that it leads to, and whether they may be missing.
    pub fn fields(&self, names: &[&str]) -> BTreeSet<(String, bool)> {
        let mut fields = BTreeSet::new();
        let mut known: BTreeSet<String> = names.iter().map(|&n| n.to_owned()).collect();
        let mut left: Vec<String> = known.iter().cloned().collect();
        while let Some(name) = left.pop() {
            let schema = self.schema(&name);
            for field in schema["properties"].as_object().into_iter().flat_map(|p| p.keys()) {
                fields.insert((format!("{name}.{field}"), !is_required(schema, field)));
            }
            let mut links = Vec::new();
            references(schema, &mut links);
            left.extend(links.into_iter().filter(|link| known.insert(link.clone())));
        }
        fields
    }

    fn fits(&self, at: &str, schema: &Value, value: &Value) -> Fits {
        let mut seen = Vec::new();
        for (word, rule) in schema.as_object().ok_or("no schema")? {
            let holds = match word.as_str() {
                "description" | "properties" | "additionalProperties" | "required" => true,
                "format" => matches!(rule.as_str(), Some("int64" | "double")),
                "$ref" => {
                    let name = rule.as_str().and_then(|r| r.rsplit('/').next()).unwrap_or_default();
                    seen.extend(self.fits(name, self.schema(name), value)?);
                    true
                }
                "type" => match rule {
                    Value::Array(any) => any.iter().any(|kind| is_of(kind, value)),
                    kind => is_of(kind, value),
                },
                "maxItems" => value.as_array().is_none_or(|a| a.len() as u64 <= number(rule)),
                "maxProperties" => value.as_object().is_none_or(|o| o.len() as u64 <= number(rule)),
                "enum" => rule.as_array().is_some_and(|words| words.contains(value)),
                "minimum" => !value.is_number() || value.as_f64() >= rule.as_f64(),
                "items" => {
                    for value in value.as_array().into_iter().flatten() {
                        seen.extend(self.fits(at, rule, value)?);
                    }
                    true
                }
                "propertyNames" => *rule == serde_json::json!({"type": "string"}),
                "oneOf" => {
                    let ways = rule.as_array().into_iter().flatten();
                    let all: Vec<Fits> = ways.map(|way| self.fits(at, way, value)).collect();
                    let (mut good, bad): (Vec<_>, Vec<_>) =
                        all.into_iter().partition(Result::is_ok);
                    if good.len() != 1 {
                        return Err(format!("{at} is {} of its kinds: {bad:?}", good.len()));
                    }
                    seen.extend(good.remove(0)?);
                    true
                }
                word => return Err(format!("{at}: this test does not know `{word}`")),
            };
            if !holds {
                return Err(format!("{at}: not {word} {rule}: {value}"));
            }
        }
        self.object(at, schema, value, &mut seen)?;
        Ok(seen)
    }

    /// The fields of an object: those that must be there are, and there are no others.
    fn object(
        &self,
        at: &str,
        schema: &Value,
        value: &Value,
        seen: &mut Vec<Seen>,
    ) -> Result<(), String> {
        let Some(object) = value.as_object() else { return Ok(()) };
        let known = schema["properties"].as_object();
        if known.is_none() && schema.get("additionalProperties").is_none() {
            return Ok(());
        }
        for (field, value) in object {
            let told = known.and_then(|k| k.get(field)).or(schema.get("additionalProperties"));
            // The arguments of a call are the agent's: there may be others.
            if told.is_none() && at.ends_with("Input") {
                continue;
            }
            let told = told.ok_or_else(|| format!("{at}: nobody tells of `{field}`"))?;
            seen.extend(self.fits(&format!("{at}.{field}"), told, value)?);
        }
        for field in known.into_iter().flat_map(|k| k.keys()) {
            let there = object.contains_key(field);
            if !there && is_required(schema, field) {
                return Err(format!("{at}: `{field}` is missing"));
            }
            seen.push(Seen { field: format!("{at}.{field}"), there });
        }
        Ok(())
    }
}

fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().is_some_and(|r| r.iter().any(|r| r == field))
}

fn number(rule: &Value) -> u64 {
    rule.as_u64().expect("a number")
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => false,
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            let link = map.get("$ref").and_then(Value::as_str);
            found.extend(link.and_then(|l| l.rsplit('/').next()).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
