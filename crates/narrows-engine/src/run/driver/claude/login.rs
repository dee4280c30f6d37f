//! Missing logins of Claude Code.

use super::Claude;
use crate::run::driver::{DriverOutput, Effect};
use serde_json::Value;

impl Claude {
    /// Fails the turn with login instructions, as for other agents.
    pub(super) fn authenticate(&self, line: &[u8], output: &mut DriverOutput) {
        let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let content = &record["message"]["content"];
        let texts = content.as_array().into_iter().flatten().filter_map(|b| b["text"].as_str());
        let reason: Vec<&str> = content.as_str().into_iter().chain(texts).collect();
        let reason = Some(reason.join(" ")).filter(|reason| !reason.trim().is_empty());
        let reason = reason.unwrap_or_else(|| "no reason given".to_owned());
        let command = Some(self.start_params.login.join(" ")).filter(|command| !command.is_empty());
        let command = command.map(|command| format!("- In a terminal: run `{command}`\n"));
        let command = command.unwrap_or_default();
        // The run's error replaces it.
        output.log = false;
        output.effects.push(Effect::LoginRequired(format!(
            "The agent needs a login: {reason}\n{command}- API key: set ANTHROPIC_API_KEY"
        )));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::driver::SessionStart;
    use serde_json::json;

    fn output(parent: Option<&str>) -> DriverOutput {
        let login = ["claude", "auth", "login"].map(str::to_owned).to_vec();
        let mut claude = Claude::new(SessionStart { login, ..SessionStart::default() });
        let line = json!({"type": "assistant", "error": "authentication_failed",
            "parent_tool_use_id": parent, "message": {"model": "<synthetic>",
            "content": [{"type": "text", "text": "Not logged in"}]}});
        claude.on_line(line.to_string().as_bytes())
    }

    #[test]
    fn missing_login_replaces_its_record() {
        let DriverOutput { log, effects } = output(None);
        let [Effect::LoginRequired(words)] = &effects[..] else { panic!("{effects:?}") };
        assert!(!log && words.contains("needs a login: Not logged in"), "{words}");
        assert!(words.contains("run `claude auth login`"), "{words}");
        assert!(words.contains("set ANTHROPIC_API_KEY"), "{words}");
        // A subagent's failure is reported to its parent.
        let DriverOutput { log, effects } = output(Some("toolu_1"));
        assert!(log && effects.is_empty());
    }
}
