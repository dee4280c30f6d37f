//! The settings that an ACP agent offers: modes, models and other options.

use crate::run::driver::{OptionValue, RunChoice, RunOption};
use serde_json::{Value, json};

/// Choices of one kind, and options, that are read.
const MAX_CHOICES: usize = 256;
const MAX_OPTIONS: usize = 64;

/// Modes, models and options, as the agent last reported them.
#[derive(Debug, Default)]
pub(super) struct ConfigOptions {
    pub(super) modes: Vec<RunChoice>,
    pub(super) mode: Option<String>,
    pub(super) models: Vec<RunChoice>,
    pub(super) model: Option<String>,
    /// The options by which newer agents set the mode and the model.
    mode_option: Option<String>,
    model_option: Option<String>,
    /// All other options.
    pub(super) options: Vec<RunOption>,
}

impl ConfigOptions {
    /// Reads the settings of an opened session.
    pub(super) fn on_opened(&mut self, result: &Value) {
        let reason = &result["modes"];
        if reason.is_object() {
            self.modes = choices(&reason["availableModes"], "id");
            self.mode = reason["currentModeId"].as_str().map(str::to_owned);
        }
        let reason = &result["models"];
        if reason.is_object() {
            self.models = choices(&reason["availableModels"], "modelId");
            self.model = reason["currentModelId"].as_str().map(str::to_owned);
        }
        self.read_options(&result["configOptions"]);
    }

    /// Reads the options; the list is always complete.
    pub(super) fn read_options(&mut self, list: &Value) {
        let Some(list) = list.as_array() else { return };
        self.options.clear();
        for option in list.iter().take(MAX_OPTIONS) {
            let Some(id) = option["id"].as_str() else { continue };
            let now = option["currentValue"].as_str().map(str::to_owned);
            match option["category"].as_str().unwrap_or(id) {
                // An agent with both modes and a mode option has the same values in both.
                "mode" if self.mode_option.is_none() && !self.modes.is_empty() => self.mode = now,
                "mode" if self.mode_option.as_deref().is_none_or(|known| known == id) => {
                    self.mode_option = Some(id.to_owned());
                    self.modes = choices(&option["options"], "value");
                    self.mode = now;
                }
                "model" if self.model_option.as_deref().is_none_or(|known| known == id) => {
                    self.model_option = Some(id.to_owned());
                    self.models = choices(&option["options"], "value");
                    self.model = now;
                }
                _ => self.options.extend(read_option(id, option)),
            }
        }
    }

    /// The request that sets a mode: its method and params.
    pub(super) fn set_mode(&mut self, session: &str, mode: &str) -> Option<(&'static str, Value)> {
        if self.mode.as_deref() == Some(mode) || !is_known(&self.modes, mode) {
            return None;
        }
        self.mode = Some(mode.to_owned());
        Some(match &self.mode_option {
            Some(id) => set(session, id, &json!(mode)),
            None => ("session/set_mode", json!({"sessionId": session, "modeId": mode})),
        })
    }

    /// The request that sets a model.
    pub(super) fn set_model(
        &mut self,
        session: &str,
        model: &str,
    ) -> Option<(&'static str, Value)> {
        if self.model.as_deref() == Some(model) || !is_known(&self.models, model) {
            return None;
        }
        self.model = Some(model.to_owned());
        Some(match &self.model_option {
            Some(id) => set(session, id, &json!(model)),
            None => ("session/set_model", json!({"sessionId": session, "modelId": model})),
        })
    }

    /// The request that sets another option; `None` for unknown options and values.
    pub(super) fn set_option(
        &mut self,
        session: &str,
        id: &str,
        value: &OptionValue,
    ) -> Option<(&'static str, Value)> {
        let option = self.options.iter_mut().find(|option| option.id == id)?;
        let fits = match (value, &option.value) {
            (OptionValue::Flag(_), OptionValue::Flag(_)) => true,
            (OptionValue::Choice(value), OptionValue::Choice(_)) => {
                is_known(&option.choices, value)
            }
            _ => false,
        };
        if !fits || option.value == *value {
            return None;
        }
        option.value = value.clone();
        Some(match value {
            OptionValue::Choice(value) => set(session, id, &json!(value)),
            OptionValue::Flag(on) => {
                let (method, mut params) = set(session, id, &json!(on));
                params["type"] = "boolean".into();
                (method, params)
            }
        })
    }

    /// Applies an update of the mode or the options; returns whether there was one.
    pub(super) fn update(&mut self, update: &Value) -> bool {
        match update["sessionUpdate"].as_str() {
            Some("current_mode_update") => {
                self.mode = update["currentModeId"].as_str().map(str::to_owned);
                true
            }
            Some("config_option_update") => {
                self.read_options(&update["configOptions"]);
                true
            }
            _ => false,
        }
    }
}

fn set(session: &str, id: &str, value: &Value) -> (&'static str, Value) {
    let params = json!({"sessionId": session, "configId": id, "value": value});
    ("session/set_config_option", params)
}

fn read_option(id: &str, option: &Value) -> Option<RunOption> {
    let now = &option["currentValue"];
    let value = match option["type"].as_str() {
        Some("boolean") => OptionValue::Flag(now.as_bool()?),
        None if now.is_boolean() => OptionValue::Flag(now.as_bool()?),
        Some("select") | None => OptionValue::Choice(now.as_str()?.to_owned()),
        Some(_) => return None,
    };
    Some(RunOption {
        id: id.to_owned(),
        name: option["name"].as_str().unwrap_or(id).to_owned(),
        category: option["category"].as_str().map(str::to_owned),
        value,
        choices: choices(&option["options"], "value"),
    })
}

fn is_known(list: &[RunChoice], id: &str) -> bool {
    list.iter().any(|choice| choice.id == id)
}

/// Reads a list of choices, which may be grouped.
fn choices(list: &Value, id: &str) -> Vec<RunChoice> {
    let mut out = Vec::new();
    for one in list.as_array().into_iter().flatten() {
        let group = one["options"].as_array().map(|options| {
            let name = one["name"].as_str().or(one["group"].as_str()).unwrap_or_default();
            (name.to_owned(), options)
        });
        match group {
            Some((name, options)) => {
                out.extend(options.iter().filter_map(|c| choice(c, id, Some(&name))));
            }
            None => out.extend(choice(one, id, None)),
        }
        if out.len() >= MAX_CHOICES {
            break;
        }
    }
    out.truncate(MAX_CHOICES);
    out
}

fn choice(choice: &Value, id: &str, group: Option<&str>) -> Option<RunChoice> {
    let id = choice[id].as_str().or(choice["id"].as_str())?;
    let name = choice["name"].as_str().unwrap_or(id);
    let group = group.filter(|group| !group.is_empty()).map(str::to_owned);
    Some(RunChoice { id: id.to_owned(), name: name.to_owned(), group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_options_are_read_by_category_and_group() {
        let mut choices = ConfigOptions::default();
        choices.on_opened(&json!({"configOptions": [
            {"id": "perm", "name": "Mode", "category": "mode", "type": "select", "currentValue": "a",
             "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]},
            {"id": "engine", "name": "Model", "category": "model", "type": "select",
             "currentValue": "x/1", "options": [
                {"group": "x", "name": "X", "options": [{"value": "x/1", "name": "One"}]},
                {"group": "y", "name": "Y", "options": [{"value": "y/2", "name": "Two"}]}]},
            {"id": "web", "name": "Web search", "type": "boolean", "currentValue": false},
            {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select",
             "currentValue": "low", "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]},
            {"id": "odd", "type": "slider", "currentValue": 3}, 7,
        ]}));
        assert_eq!((choices.mode.as_deref(), choices.model.as_deref()), (Some("a"), Some("x/1")));
        let groups: Vec<_> =
            choices.models.iter().map(|m| (m.id.as_str(), m.group.as_deref())).collect();
        assert_eq!(groups, [("x/1", Some("X")), ("y/2", Some("Y"))]);
        let ids: Vec<&str> = choices.options.iter().map(|o| o.id.as_str()).collect();
        assert_eq!(ids, ["web", "effort"]);

        let by_option = "session/set_config_option";
        let set = choices.set_mode("s", "b").expect("a request");
        assert_eq!(set, (by_option, json!({"sessionId": "s", "configId": "perm", "value": "b"})));
        let set = choices.set_model("s", "y/2").expect("a request");
        assert_eq!(
            set,
            (by_option, json!({"sessionId": "s", "configId": "engine", "value": "y/2"}))
        );
        let set = choices.set_option("s", "web", &OptionValue::Flag(true)).expect("a request");
        let params = json!({"sessionId": "s", "configId": "web", "type": "boolean", "value": true});
        assert_eq!(set, (by_option, params));
        let high = OptionValue::Choice("high".to_owned());
        assert!(choices.set_option("s", "effort", &high).is_some());
        assert!(choices.set_option("s", "effort", &high).is_none(), "it is so already");
        assert!(choices.set_option("s", "web", &high).is_none());
        assert!(
            choices.set_option("s", "effort", &OptionValue::Choice("max".to_owned())).is_none()
        );
        assert!(choices.set_option("s", "none", &high).is_none());
        assert!(choices.set_mode("s", "c").is_none());

        // The response to a change reports all options.
        choices.update(&json!({"sessionUpdate": "config_option_update", "configOptions": [
            {"id": "web", "name": "Web search", "type": "boolean", "currentValue": false}]}));
        assert_eq!(choices.options.len(), 1);
        assert_eq!(choices.options[0].value, OptionValue::Flag(false));
    }
}
