//! A login that Claude Code misses.

use super::Claude;
use crate::run::driver::{Effect, Heard};
use serde_json::Value;

impl Claude {
    /// The turn fails with what to do, as that of any agent that misses its login.
    pub(super) fn log_in(&self, line: &[u8], heard: &mut Heard) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let content = &record["message"]["content"];
        let texts = content.as_array().into_iter().flatten().filter_map(|b| b["text"].as_str());
        let told: Vec<&str> = content.as_str().into_iter().chain(texts).collect();
        let told = Some(told.join(" ")).filter(|told| !told.trim().is_empty());
        let told = told.unwrap_or_else(|| "no reason given".to_owned());
        let command = Some(self.opening.login.join(" ")).filter(|command| !command.is_empty());
        let command = command.map(|command| format!("- In a terminal: run `{command}`\n"));
        let command = command.unwrap_or_default();
        // The error of the run says it.
        heard.log = false;
        heard.effects.push(Effect::Login(format!(
            "The agent needs a login: {told}\n{command}- API key: set ANTHROPIC_API_KEY"
        )));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::driver::Opening;
    use serde_json::json;

    fn heard(parent: Option<&str>) -> Heard {
        let login = ["claude", "auth", "login"].map(str::to_owned).to_vec();
        let mut claude = Claude::new(Opening { login, ..Opening::default() });
        let line = json!({"type": "assistant", "error": "authentication_failed",
            "parent_tool_use_id": parent, "message": {"model": "<synthetic>",
            "content": [{"type": "text", "text": "Not logged in"}]}});
        claude.hear(line.to_string().as_bytes())
    }

    #[test]
    fn a_missing_login_says_what_to_do_in_place_of_its_record() {
        let Heard { log, effects } = heard(None);
        let [Effect::Login(words)] = &effects[..] else { panic!("{effects:?}") };
        assert!(!log && words.contains("needs a login: Not logged in"), "{words}");
        assert!(words.contains("run `claude auth login`"), "{words}");
        assert!(words.contains("set ANTHROPIC_API_KEY"), "{words}");
        // What fails in a subagent is told to whoever called it.
        let Heard { log, effects } = heard(Some("toolu_1"));
        assert!(log && effects.is_empty());
    }
}
