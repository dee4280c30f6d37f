//! Labels of permission suggestions: what Claude Code offers to allow permanently, stated exactly.

use crate::json::{Index, Json, Kind};
use std::borrow::Cow;

/// The number of rules or directories in one label.
const MAX_ENTRIES: usize = 32;

/// Returns the label of a suggestion in JSON; none when it allows nothing, or something unknown.
pub fn describe_suggestion(json: &str) -> Option<String> {
    let mut index = Index::default();
    suggestion_label(index.read(json).ok()?.root())
}

/// Returns the label of a suggestion; none when it allows nothing, or something unknown.
pub(super) fn suggestion_label(suggestion: Json<'_>) -> Option<String> {
    let destination = suggestion.text("destination")?;
    let scope = scope(&destination)?;
    match suggestion.text("type")?.as_ref() {
        "addRules" if suggestion.text("behavior").as_deref() == Some("allow") => {
            let rules = list_all(suggestion.get("rules")?, rule)?;
            Some(format!("Always allow {} {scope}", rules.join(", ")))
        }
        "addDirectories" => {
            let dirs = list_all(suggestion.get("directories")?, |dir| {
                dir.str().filter(|d| !d.is_empty()).map(Cow::into_owned)
            })?;
            Some(format!("Always allow work in {} {scope}", dirs.join(", ")))
        }
        "setMode" => match suggestion.text("mode")?.as_ref() {
            "acceptEdits" => Some(format!("Allow, and accept all edits {scope}")),
            "bypassPermissions" => Some(format!("Allow, and ask for nothing any more {scope}")),
            mode @ ("default" | "plan" | "dontAsk" | "auto") => {
                Some(format!("Allow, and switch to the mode {mode} {scope}"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns where and for how long a suggestion applies.
fn scope(destination: &str) -> Option<&'static str> {
    Some(match destination {
        "session" => "for this session",
        "localSettings" => "in this project (.claude/settings.local.json)",
        "projectSettings" => "in this project, for everyone (.claude/settings.json)",
        "userSettings" => "in all projects (~/.claude/settings.json)",
        "cliArg" => "until the agent ends",
        _ => return None,
    })
}

/// Formats a rule like the settings: `Bash(npm test:*)`; without content it is the whole tool.
fn rule(rule: Json<'_>) -> Option<String> {
    let tool = rule.text("toolName").filter(|t| !t.is_empty())?;
    Some(match rule.text("ruleContent").filter(|c| !c.is_empty()) {
        Some(content) => format!("{tool}({content})"),
        None => format!("{tool} (whatever it does)"),
    })
}

/// Formats every entry of a list, or returns none: an entry that cannot be shown must not be offered.
fn list_all(list: Json<'_>, format: impl Fn(Json<'_>) -> Option<String>) -> Option<Vec<String>> {
    if list.kind() != Kind::Array || list.is_empty() || list.items().nth(MAX_ENTRIES).is_some() {
        return None;
    }
    list.items().map(format).collect()
}

#[cfg(test)]
mod tests {
    use super::describe_suggestion;

    #[test]
    fn suggestion_label_names_permission_and_scope() {
        for (json, label) in [
            (
                r#"{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"npm test:*"},{"toolName":"WebFetch"}],"behavior":"allow","destination":"localSettings"}"#,
                "Always allow Bash(npm test:*), WebFetch (whatever it does) in this project (.claude/settings.local.json)",
            ),
            (
                r#"{"type":"addDirectories","directories":["/srv/data"],"destination":"session"}"#,
                "Always allow work in /srv/data for this session",
            ),
            (
                r#"{"type":"setMode","mode":"acceptEdits","destination":"session"}"#,
                "Allow, and accept all edits for this session",
            ),
        ] {
            assert_eq!(describe_suggestion(json).as_deref(), Some(label), "{json}");
        }
        for json in [
            r#"{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"deny","destination":"session"}"#,
            r#"{"type":"addRules","rules":[],"behavior":"allow","destination":"session"}"#,
            r#"{"type":"addRules","rules":[{"ruleContent":"x"}],"behavior":"allow","destination":"session"}"#,
            r#"{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"the moon"}"#,
            r#"{"type":"removeRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"session"}"#,
            r#"{"type":"setMode","mode":"whatever","destination":"session"}"#,
            "[]",
            "no JSON",
        ] {
            assert_eq!(describe_suggestion(json), None, "{json}");
        }
    }
}
